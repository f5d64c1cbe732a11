"""The shop with tables that people may write."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from countersign.declare import Declared, Model, Module
from countersign.declare.registry import Registry
from countersign.records import base_models
from tests.adopted.shop import MODULE, SQLITE, make_postgres, make_sqlite, run_sqlite
from tests.declare.sample_modules import model
from tests.servers.postgres import Cluster

WRITES_CUSTOMERS = ("INSERT, UPDATE ON customer", "USAGE ON SEQUENCE customer_customer_id_seq")


def make_writable(
    request: pytest.FixtureRequest,
    folder: Path,
    *,
    grants: Sequence[str] = WRITES_CUSTOMERS,
    sqlite: str = SQLITE,
    changes: str = "",
    sqlite_changes: str = "",
) -> str:
    """Create the shop on the engine that the parameter of the fixture names, and return its address. The role of
    PostgreSQL may create our own tables, and has these grants. `changes` are statements of the other application."""
    if request.param == "sqlite":
        url = make_sqlite(folder / "theirs.sqlite", sqlite)
        run_sqlite(folder / "theirs.sqlite", sqlite_changes)
        return url
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    own_url: str = request.getfixturevalue("postgres_url")
    url = make_postgres(cluster, own_url)
    name = own_url.rpartition("/")[2]
    with psycopg.connect(own_url, autocommit=True) as connection:
        connection.execute(f"SELECT setval('customer_customer_id_seq', 3); {changes}".encode())
        for grant in (f"CREATE ON DATABASE {name}", *grants):
            connection.execute(f"GRANT {grant} TO reader_{name}".encode())
    return url


def writable_registry(*, version: str = "", deletes: bool = False) -> Registry:
    """Return the registry of the shop whose tables are writable. `version` is the column in which other applications
    count the changes of a customer, and `deletes` says whether records can be deleted."""
    models = [
        _with_writable_table(each, each.declared, version if each.declared.name == "customer" else "", deletes=deletes)
        for each in MODULE.models
    ]
    return Registry(
        [base_models.MODULE, Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))]
    )


def _with_writable_table(
    model_class: type[Model], declared: Declared, version: str, *, deletes: bool
) -> type[Model]:
    assert declared.table is not None
    table = replace(declared.table, writable=True, version=version, deletes=deletes)
    return model(model_class.__name__, declared.fields, table=table)
