"""Bytes that are not valid text end no reading of a schema: such values are no samples, and such names are left out."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countersign.connect.draft import Draft
from countersign.declare import text
from countersign.declare.text import FieldText
from tests.connect.conftest import drafted, drafted_sqlite
from tests.servers.postgres import Cluster, PostgresFactory

TABLES = """
CREATE TABLE parcel (id integer PRIMARY KEY, contact text, place text, quantity integer);
INSERT INTO parcel (id, contact) VALUES (2, 'ada@example.com'), (3, 'bob@example.com');
CREATE TABLE whole (id integer PRIMARY KEY, quantity integer);
"""
NAME = "caf\ufffd"


def database_url(cluster: Cluster, url: str, encoding: str) -> str:
    """Create a PostgreSQL database with the encoding, and return its address."""
    name = f"{url.rpartition('/')[2]}_{encoding.lower()}"
    cluster.sql(
        f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
        database=url.rpartition("/")[2],
    )
    return f"{url.rpartition('/')[0]}/{name}"


def personal(module_draft: Draft, model: str) -> dict[str, object]:
    """Return the labels of the fields of a model, after the text was written and read."""
    read = text.read(text.write(module_draft.text))
    fields = next(each.body for each in read.models if each.class_name.lower() == model)
    return {
        each.name: dict(each.call.options).get("personal") for each in fields if isinstance(each, FieldText)
    }


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_postgres_database_in_another_encoding_is_read(
    encoding: str, new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    url = database_url(postgres_cluster, new_postgres_url(), encoding)
    as_bytes = r"E'caf\xe9'" if encoding == "SQL_ASCII" else "'café'"
    postgres_cluster.sql(
        TABLES, f"INSERT INTO parcel (id, place) VALUES (1, {as_bytes})", database=url.rpartition("/")[2]
    )

    module_draft = drafted(url, "post")

    assert personal(module_draft, "parcel") == {"contact": "EMAIL", "place": "TEXT", "quantity": None}


def test_names_in_a_postgres_database_that_are_no_utf_8_are_left_out(
    new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    url = database_url(postgres_cluster, new_postgres_url(), "SQL_ASCII")
    odd = r"""
    DO $do$ BEGIN
        EXECUTE format('CREATE TABLE %I (id integer PRIMARY KEY, quantity integer)', E'caf\xe9');
        EXECUTE format('CREATE TABLE column_of (id integer PRIMARY KEY, %I integer)', E'caf\xe9');
        EXECUTE format('CREATE TABLE refers (id integer PRIMARY KEY, quantity integer REFERENCES %I)', E'caf\xe9');
        EXECUTE format('CREATE TYPE odd AS ENUM (%L)', E'caf\xe9');
        CREATE TABLE label_of (id integer PRIMARY KEY, kind odd);
        EXECUTE format('CREATE VIEW seen AS SELECT id, %L::text AS place FROM whole', E'caf\xe9');
        EXECUTE format('COMMENT ON COLUMN whole.quantity IS %L', E'caf\xe9');
    END $do$
    """
    postgres_cluster.sql(TABLES, odd, database=url.rpartition("/")[2])

    module_draft = drafted(url, "post")

    assert set(module_draft.report.left_out) == {
        (f"public.{NAME}", "its name is not valid UTF-8"),
        *((f"public.{each}", "a name in it is not valid UTF-8") for each in ("column_of", "refers", "label_of")),
        ("public.seen", "a view: declare it by hand, with Table(key=…)"),
    }
    assert personal(module_draft, "whole") == {"quantity": None}


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_text_in_a_sqlite_file_that_is_not_valid_is_no_error(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "post.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.executescript(TABLES)
        connection.execute("INSERT INTO parcel (id, place) VALUES (1, CAST(x'636166e9ff' AS TEXT))")
        connection.execute("INSERT INTO parcel (id, place, quantity) VALUES (4, x'ff00fe', 'many')")
        connection.commit()

    module_draft = drafted_sqlite(path)

    assert personal(module_draft, "parcel") == {"contact": "EMAIL", "place": "TEXT", "quantity": None}


def test_names_in_a_sqlite_file_that_are_no_utf_8_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "post.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.executescript("CREATE TABLE cafX (id INTEGER PRIMARY KEY, quantity INTEGER)")
        connection.executescript("CREATE TABLE column_of (id INTEGER PRIMARY KEY, cafX INTEGER)")
        connection.executescript("CREATE VIEW seen AS SELECT id, 'cafX' AS place FROM whole")
    path.write_bytes(path.read_bytes().replace(b"cafX", b"caf\xe9"))

    module_draft = drafted_sqlite(path)

    assert set(module_draft.report.left_out) == {
        (NAME, "its name is not valid UTF-8"), ("column_of", "a name in it is not valid UTF-8"),
        ("seen", "a view: declare it by hand, with Table(key=…)"),
    }  # fmt: skip
    assert personal(module_draft, "whole") == {"quantity": None}
