"""`countersign connect --demo-database` creates a small shop, and only where there is nothing."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from countersign.cli.output import Exit
from countersign.connect import demo_database
from countersign.declare import text
from tests.cli.conftest import Run

TABLES = ["category", "country", "customer", "product", "purchase", "purchase_line", "support_ticket"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_shop_is_created_and_connected(
    run: Run, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "postgres" else "sqlite:///new.db"

    result = run("connect", url, "--demo-database", "--try", "--name", "shop", "--json")

    assert result.returncode == Exit.OK, result.stderr
    connected = json.loads(result.stdout)
    assert sorted(connected["models"]) == TABLES
    assert connected["left_out"] == []
    assert connected["secret"] == ["customer.password_hash"]
    assert set(connected["personal"]) == {"PERSON", "ADDRESS", "EMAIL", "PHONE", "BANK"}
    assert len(text.read((tmp_path / "shop.py").read_text()).models) == len(TABLES)


def test_every_reference_of_the_shop_exists(tmp_path: Path) -> None:
    demo_database.create_sqlite(tmp_path / "shop.db")

    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM customer").fetchall() == [(48,)]


def test_an_existing_file_is_not_changed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    path.write_bytes(b"theirs")

    result = run("connect", f"sqlite:///{path}", "--demo-database")

    assert result.returncode == Exit.CONFLICT
    assert f"{path} exists" in result.stderr
    assert path.read_bytes() == b"theirs"
    assert [each.name for each in tmp_path.glob("theirs*")] == ["theirs.db"]
    assert not (tmp_path / "theirs.py").exists()


@pytest.mark.parametrize("statement", ["CREATE TABLE theirs (id int)", "CREATE TYPE customer AS ENUM ('a')"])
def test_a_database_that_is_not_empty_is_not_changed(run: Run, postgres_url: str, statement: LiteralString) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(statement)

    result = run("connect", postgres_url, "--demo-database", "--name", "shop")

    assert result.returncode == Exit.CONFLICT
    assert "the database has tables or types already" in result.stderr
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert set(tables) <= {("theirs",)}


def test_a_database_with_an_extension_is_empty(run: Run, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS citext")

    result = run("connect", postgres_url, "--demo-database", "--name", "shop")

    assert result.returncode == Exit.OK, result.stderr


def test_the_database_of_the_service_is_not_filled(run: Run, tmp_path: Path) -> None:
    for setting in ("COUNTERSIGN_DATABASE_URL", "COUNTERSIGN_EXISTING_URL"):
        result = run("connect", "--demo-database", "--name", "shop", **{setting: f"sqlite:///{tmp_path}/own.db"})

        assert result.returncode == Exit.USAGE
        assert "--demo-database needs the URL of a new database" in result.stderr
        assert not (tmp_path / "own.db").exists()


def test_a_folder_that_does_not_exist_is_named(run: Run) -> None:
    result = run("connect", "sqlite:///missing/new.db", "--demo-database")

    assert result.returncode == Exit.FAILED
    assert "missing/new.db cannot be written" in result.stderr
