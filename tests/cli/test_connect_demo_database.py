"""`countersign connect --demo-database` creates a small shop, and only where there is nothing."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

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

    ended = run("connect", url, "--demo-database", "--try", "--name", "shop", "--json")

    assert ended.returncode == Exit.OK, ended.stderr
    found = json.loads(ended.stdout)
    assert sorted(found["models"]) == TABLES
    assert found["left_out"] == []
    assert found["secret"] == ["customer.password_hash"]
    assert set(found["personal"]) == {"PERSON", "ADDRESS", "EMAIL", "PHONE", "BANK"}
    assert len(text.read((tmp_path / "shop.py").read_text()).models) == len(TABLES)


def test_every_reference_of_the_shop_exists(tmp_path: Path) -> None:
    demo_database.create_sqlite(tmp_path / "shop.db")

    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM customer").fetchall() == [(48,)]


def test_an_existing_file_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    path.write_bytes(b"theirs")

    ended = run("connect", f"sqlite:///{path}", "--demo-database")

    assert ended.returncode == Exit.CONFLICT
    assert f"{path} exists" in ended.stderr
    assert path.read_bytes() == b"theirs"
    assert not (tmp_path / "theirs.py").exists()


def test_the_database_of_a_setting_is_never_changed(run: Run, postgres_url: str) -> None:
    ended = run("connect", "--demo-database", "--name", "shop", COUNTERSIGN_DATABASE_URL=postgres_url)

    assert ended.returncode == Exit.USAGE
    assert "--demo-database needs the URL" in ended.stderr
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall() == [(0,)]


def test_a_database_with_a_table_stays_as_it_is(run: Run, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE theirs (id int)")

    ended = run("connect", postgres_url, "--demo-database", "--name", "shop")

    assert ended.returncode == Exit.CONFLICT
    assert "the database has tables already" in ended.stderr
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("theirs",)]


def test_a_folder_that_does_not_exist_is_named(run: Run) -> None:
    ended = run("connect", "sqlite:///missing/new.db", "--demo-database")

    assert ended.returncode == Exit.FAILED
    assert "No such file or directory" in ended.stderr
