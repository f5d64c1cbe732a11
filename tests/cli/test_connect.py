"""`countersign connect` writes a module text for an existing database, and never its password."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.declare import text
from tests.cli.conftest import Run
from tests.servers.postgres import Cluster

SHOP = (Path(__file__).parents[1] / "connect/schemas/shop.sql").read_text()
ROLE = "CREATE ROLE {name} LOGIN PASSWORD 'hunter2'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}"


def change(url: str, statement: str) -> None:
    """Run a statement on the SQLite file."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.executescript(statement)


def shop_url(postgres_url: str, cluster: Cluster) -> str:
    """Fill the database with the shop, and return its address with a role that may only read, and its password."""
    database = postgres_url.rpartition("/")[2]
    role = f"reader_{database}"
    cluster.sql(SHOP, ROLE.format(name=role), database=database)
    return postgres_url.replace("postgres@", f"{role}:hunter2@")


def shop_file(tmp_path: Path) -> Path:
    """Write a SQLite file with two tables."""
    path = tmp_path / "my-shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, password TEXT);"
            "CREATE TABLE log (message TEXT);"
            "INSERT INTO customer (name, password) VALUES ('Ada', 'hunter2');"
        )
    return path


def test_a_role_with_select_alone_gets_a_module_text(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    url = shop_url(postgres_url, postgres_cluster)
    (tmp_path / "url").write_text(f"{url}\n")

    result = run("connect", "--url-file", "url", "--name", "shop", "--try")

    assert result.returncode == Exit.OK, result.stderr
    assert "Connected: PostgreSQL " in result.stdout
    assert "not a superuser" in result.stdout
    assert "  models         4   order_detail, customer, shipment, store" in result.stdout
    assert "  secret         1   customer.password_hash" in result.stdout
    assert "COUNTERSIGN_EXISTING_URL_FILE=url countersign serve records --modules ./shop.py --try" in result.stdout
    module_text = (tmp_path / "shop.py").read_text()
    class_names = [model.class_name for model in text.read(module_text).models]
    assert class_names == ["OrderDetail", "Customer", "Shipment", "Store"]
    assert module_text.startswith('"""shop, from postgresql://127.0.0.1:')
    for output in (module_text, result.stdout, result.stderr):
        assert "hunter2" not in output


def test_a_password_in_the_argument_is_warned_of(
    run: Run, postgres_url: str, postgres_cluster: Cluster
) -> None:
    result = run("connect", shop_url(postgres_url, postgres_cluster), "--name", "shop")

    assert result.returncode == Exit.OK
    assert "use --url-file instead" in result.stderr
    assert "hunter2" not in result.stdout + result.stderr


def test_the_setting_names_the_database_if_no_url_is_given(run: Run, tmp_path: Path) -> None:
    path = shop_file(tmp_path)

    result = run("connect", "--json", COUNTERSIGN_DATABASE_URL=f"sqlite:///{path}")

    answer = json.loads(result.stdout)
    assert result.returncode == Exit.OK
    assert (answer["module"], answer["file"], answer["models"]) == ("my_shop", "my_shop.py", ["customer"])
    assert answer["secret"] == ["customer.password"]
    assert [entry["relation"] for entry in answer["left_out"]] == ["log"]
    assert "Ada" not in result.stdout + (tmp_path / "my_shop.py").read_text()


def test_an_existing_file_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    path = shop_file(tmp_path)
    (tmp_path / "shop.py").write_text("mine")

    result = run("connect", f"sqlite:///{path}", "--name", "shop")

    assert result.returncode == Exit.CONFLICT
    assert result.stderr.splitlines() == [
        "Error: cannot write the module",
        "Why:   shop.py exists, and an existing file is never overwritten",
        "Next:  Choose another file with --out, or another name with --name.",
    ]
    assert (tmp_path / "shop.py").read_text() == "mine"


def test_named_tables_alone_are_read(run: Run, tmp_path: Path) -> None:
    path = shop_file(tmp_path)

    assert run("connect", f"sqlite:///{path}", "--table", "nothing").returncode == Exit.NOT_FOUND
    assert run("connect", f"sqlite:///{path}", "--table", "log").returncode == Exit.NOT_FOUND
    assert run("connect", f"sqlite:///{path}", "--table", "customer").returncode == Exit.OK


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), Exit.USAGE, "no URL is given"),
        (("mysql://db.example.com/shop",), Exit.USAGE, "begins with postgresql:// or sqlite:///"),
        (("postgresql://u:hunter2/x@db.example.com/shop",), Exit.USAGE, "cannot be read as an address"),
        (("sqlite:///missing.db",), Exit.NOT_FOUND, "does not exist"),
        (("sqlite:///a", "--url-file", "b"), Exit.USAGE, "not both"),
        (("--url-file", "missing"), Exit.USAGE, "missing: No such file"),
        (("sqlite:///noise.db",), Exit.UNREACHABLE, "cannot read the database"),
        (("postgresql://postgres@127.0.0.1:1/shop",), Exit.UNREACHABLE, "cannot read the database"),
        (("sqlite:///noise.db", "--name", "Not a name"), Exit.USAGE, "is not a module name"),
    ],
)
def test_what_cannot_be_read_is_said_with_a_remedy(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: Exit, message: str
) -> None:
    (tmp_path / "noise.db").write_bytes(b"no database at all" * 100)

    result = run("connect", *arguments)

    assert result.returncode == code
    assert message in result.stderr
    assert "hunter2" not in result.stderr
    assert not list(tmp_path.glob("*.py"))
