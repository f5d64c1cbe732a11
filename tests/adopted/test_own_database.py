"""Our own tables are never created in the database of others, whatever is forgotten on the command line."""

import subprocess
from pathlib import Path

import psycopg
import pytest

from countersign.records import app
from countersign.settings import BadSetting, Settings
from tests.adopted.shop import make_sqlite
from tests.servers.countersign import COMMAND, MASTER_KEY, environment

TEXT = '''"""A shop."""

from countersign.declare import Model, Module, Table, Text


class Country(Model, table=Table("country", key="code")):
    """A country."""

    title = Text()


module = Module("shop", version="1.0.0", models=(Country,), search_path=("public",))
'''
COMMANDS = (
    ("serve", "records", "--port", "0"),
    ("serve", "--distribution-port", "0", "--records-port", "0"),
    ("user", "create", "ada"),
    ("org", "create", "acme", "--name", "Acme"),
    ("db", "upgrade"),
    ("modules", "apply"),
    ("backup", "copy.zip"),
    ("doctor",),
)


@pytest.fixture
def text(tmp_path: Path) -> str:
    """The path of a module text with a table of the shop."""
    path = tmp_path / "shop.py"
    path.write_text(TEXT)
    return str(path)


def content(path: Path) -> dict[str, bytes]:
    """Return the bytes of the file and of the files beside it that SQLite creates."""
    return {each.name: each.read_bytes() for each in path.parent.glob(f"{path.name}*")}


def relations(url: str) -> list[tuple[object, ...]]:
    """Return the schemas and relations of applications in the database."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT n.nspname::text, c.relname::text FROM pg_namespace AS n LEFT JOIN pg_class AS c "
            "ON c.relnamespace = n.oid WHERE n.nspname NOT LIKE 'pg_%' AND n.nspname <> 'information_schema' "
            "ORDER BY 1, 2"
        ).fetchall()


def settings_of(tmp_path: Path, text: str, url: str, existing_url: str = "") -> Settings:
    """Return settings with the database of others as our database."""
    return Settings(
        data=str(tmp_path / "data"), database_url=url, existing_url=existing_url, modules=text, master_key=MASTER_KEY
    )


async def opened(settings: Settings) -> None:
    """Open the service and close it."""
    async with app.open_records(settings, "http://127.0.0.1:8080", is_loopback=True):
        pass


@pytest.mark.parametrize("is_named_twice", [False, True])
async def test_a_service_writes_nothing_to_a_sqlite_file_of_another_program(
    tmp_path: Path, text: str, is_named_twice: bool
) -> None:
    url = make_sqlite(tmp_path / "theirs.sqlite")
    before = content(tmp_path / "theirs.sqlite")

    with pytest.raises(BadSetting, match="COUNTERSIGN_EXISTING_URL"):
        await opened(settings_of(tmp_path, text, url, url if is_named_twice else ""))

    assert content(tmp_path / "theirs.sqlite") == before


@pytest.mark.parametrize("is_named_twice", [False, True])
async def test_a_service_creates_nothing_in_a_postgres_database_of_another_program(
    postgres_url: str, tmp_path: Path, text: str, is_named_twice: bool
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE country (code text PRIMARY KEY, title text)")
    before = relations(postgres_url)

    with pytest.raises(BadSetting, match="COUNTERSIGN_EXISTING_URL"):
        await opened(settings_of(tmp_path, text, postgres_url, postgres_url if is_named_twice else ""))

    assert relations(postgres_url) == before


async def test_a_service_creates_nothing_in_a_database_of_another_name(
    postgres_url: str, tmp_path: Path, text: str
) -> None:
    before = relations(postgres_url)
    other_spelling = postgres_url.replace("127.0.0.1", "localhost") + "?application_name=theirs"

    with pytest.raises(BadSetting, match="leave COUNTERSIGN_DATABASE_URL empty"):
        await opened(settings_of(tmp_path, text, other_spelling, postgres_url))

    assert relations(postgres_url) == before


async def test_a_service_without_the_address_creates_nothing(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadSetting, match="COUNTERSIGN_EXISTING_URL"):
        await opened(settings_of(tmp_path, text, ""))

    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_creates_tables_in_the_database_of_another_program(
    postgres_url: str, tmp_path: Path, text: str, command: tuple[str, ...]
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE country (code text PRIMARY KEY, title text)")
    before = relations(postgres_url)
    settings = {
        "COUNTERSIGN_DATABASE_URL": postgres_url,
        "COUNTERSIGN_MODULES": text,
        "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
        "COUNTERSIGN_DATA": str(tmp_path / "data"),
    }

    ended = subprocess.run(
        [*COMMAND, *command], env=environment(**settings), cwd=tmp_path, capture_output=True, text=True, timeout=120
    )

    assert ended.returncode != 0
    assert "COUNTERSIGN_EXISTING_URL" in ended.stdout + ended.stderr
    assert relations(postgres_url) == before


async def test_the_file_of_our_own_tables_is_no_existing_database(tmp_path: Path, text: str) -> None:
    own = tmp_path / "data" / "records.sqlite"

    with pytest.raises(BadSetting, match="is the file of Countersign's own tables"):
        await opened(settings_of(tmp_path, text, "", f"sqlite:///{own.parent}/../data/{own.name}"))

    assert not own.exists()
