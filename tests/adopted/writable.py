"""The shop with tables that people may write."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from countersign.declare import Model, Module
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


def shop_registry(
    *,
    is_writable: bool = True,
    version: str = "",
    deletes: bool = False,
    session: Mapping[str, str] | None = None,
    session_roles: Mapping[str, str] | None = None,
) -> Registry:
    """Return the registry of the shop. `version` is the column in which other applications count the changes of a
    customer, `deletes` says whether records can be deleted, and the others are options of its tables and module."""
    models: list[type[Model]] = []
    for each in MODULE.models:
        declared = each.declared
        assert declared.table is not None
        column = version if declared.name == "customer" else ""
        table = replace(declared.table, writable=is_writable, version=column, deletes=deletes)
        models.append(model(each.__name__, declared.fields, table=table, comments=declared.comments))
    shop = Module(
        "shop",
        version="1.0.0",
        models=tuple(models),
        search_path=("public",),
        session=session,
        session_roles=session_roles,
    )
    return Registry([base_models.MODULE, shop])
