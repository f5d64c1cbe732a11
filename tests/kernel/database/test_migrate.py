"""Migrations run in order, once, continue after a failure, and are refused if they belong to other code."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from countersign.backup.schema_description import describe_schema
from countersign.kernel.database.migrate import SchemaMismatch, in_dialect, pending, upgrade
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import ConstraintViolation, Database

FIRST = "CREATE TABLE a (id TEXT PRIMARY KEY, n BIGINT CHECK (n > (0)));\nINSERT INTO a (id, n) VALUES ('Z', 1);\n"
SECOND = "ALTER TABLE a ADD COLUMN note TEXT;\nCREATE INDEX a_by_n ON a (n DESC, id) WHERE n > 1;\n"
THIRD = "CREATE TABLE b (id TEXT PRIMARY KEY REFERENCES a (id)) WITHOUT ROWID;\nINSERT INTO b (id) VALUES ('Z');\n"
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Return a function that writes a package of migrations with these texts, and returns its name."""
    name = f"moves_{tmp_path.name}"
    folder = tmp_path / "packages" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(folder.parent)

    def write(*texts: str) -> str:
        for old in folder.glob("*.sql"):
            old.unlink()
        for number, text in enumerate(texts, 1):
            (folder / f"{number:04d}_step.sql").write_text(text)
        return name

    yield write
    sys.modules.pop(name, None)


async def test_pending_migrations_are_applied_in_order_and_once(database: Database, write: Write) -> None:
    package = write(FIRST, SECOND)

    assert await pending(database, package) == ["0001_step", "0002_step"]
    assert await upgrade(database, package) == ["0001_step", "0002_step"]
    assert await upgrade(database, package) == []
    assert await pending(database, write(FIRST, SECOND, THIRD)) == ["0003_step"]
    assert await upgrade(database, package) == ["0003_step"]
    assert await database.fetch_one("SELECT a.note, b.id FROM a JOIN b ON a.id = b.id") == (None, "Z")


async def test_a_migration_for_the_other_engine_is_recorded_and_changes_nothing(
    database: Database, write: Write
) -> None:
    other_dialect = "postgres" if database.dialect == "sqlite" else "sqlite"
    package = write(FIRST, f"-- only: {other_dialect}\nDROP TABLE a;\n-- end\n", THIRD)

    assert await upgrade(database, package) == ["0001_step", "0002_step", "0003_step"]
    assert await pending(database, package) == []
    assert await database.fetch_one("SELECT id FROM a") == ("Z",)


async def test_starters_at_once_apply_each_migration_once(database_url: str, write: Write) -> None:
    package = write(FIRST, SECOND, THIRD)
    nodes = [await open_database(database_url, schema="shop", pool=2) for _ in range(5)]

    applied = await asyncio.gather(*(upgrade(node, package) for node in nodes))

    assert sorted(name for names in applied for name in names) == ["0001_step", "0002_step", "0003_step"]
    assert await nodes[0].fetch_one("SELECT count(id) FROM a") == (1,)
    await asyncio.gather(*(node.close() for node in nodes))


async def test_an_interrupted_upgrade_continues_with_the_failed_step(database: Database, write: Write) -> None:
    package = write(FIRST, "CREATE TABLE half (id TEXT);\nINSERT INTO a (id) VALUES ('Z');\n", THIRD)

    with pytest.raises(ConstraintViolation):
        await upgrade(database, package)
    assert await pending(database, package) == ["0002_step", "0003_step"]
    assert "half" not in await describe_schema(database)

    write(FIRST, SECOND, THIRD)
    assert await upgrade(database, package) == ["0002_step", "0003_step"]


async def test_an_applied_file_may_not_change(database: Database, write: Write) -> None:
    await upgrade(database, write(FIRST, SECOND))
    package = write(FIRST + "-- changed\n", SECOND)

    for ask in (upgrade, pending):
        with pytest.raises(SchemaMismatch, match="0001_step was changed"):
            await ask(database, package)


async def test_a_newer_database_is_refused(database: Database, write: Write) -> None:
    await upgrade(database, write(FIRST, SECOND))

    with pytest.raises(SchemaMismatch, match=r"newer version migrated the database \(0002_step\)"):
        await upgrade(database, write(FIRST))


async def test_different_line_endings_do_not_count_as_a_change(database: Database, write: Write) -> None:
    await upgrade(database, write(FIRST))

    assert await pending(database, write(FIRST.replace("\n", "\r\n"))) == []


async def test_numbers_run_without_a_gap(database: Database, write: Write, tmp_path: Path) -> None:
    package = write(FIRST, SECOND)
    folder = tmp_path / "packages" / package
    (folder / "0002_step.sql").rename(folder / "0003_step.sql")

    with pytest.raises(SchemaMismatch, match="expected the number 0002"):
        await upgrade(database, package)

    (folder / "0003_step.sql").rename(folder / "second.sql")
    with pytest.raises(SchemaMismatch, match=r"second\.sql"):
        await upgrade(database, package)


async def test_text_sorts_by_code_point(database: Database, write: Write) -> None:
    await upgrade(database, write("CREATE TABLE w (word TEXT PRIMARY KEY);"))
    words = ["\U0001f600", "\uffee", "é", "z", "a", "Z", "a b", "a-b", "A"]
    async with database.transaction() as transaction:
        await transaction.run_many("INSERT INTO w (word) VALUES ($1)", [(word,) for word in words])

    rows = await database.fetch("SELECT word FROM w ORDER BY word")

    assert [row[0] for row in rows] == sorted(words)


WHOLE = """
CREATE TABLE schema_migration (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, applied_at BIGINT NOT NULL
);
CREATE TABLE a (note TEXT, id TEXT PRIMARY KEY, n BIGINT CHECK (n > (0)));
CREATE INDEX a_by_n ON a (n DESC, id) WHERE n > 1;
CREATE TABLE b (id TEXT PRIMARY KEY REFERENCES a (id)) WITHOUT ROWID;
"""


@pytest.mark.parametrize(
    ("changed_sql", "into"),
    [
        ("", ""),
        ("note TEXT", "note BIGINT"),
        ("n > (0)", "n > (1)"),
        ("n DESC", "n"),
        ("WHERE n > 1", "WHERE n > 2"),
        (" REFERENCES a (id)", ""),
        ("note TEXT", "note TEXT NOT NULL"),
        ("note TEXT", "note TEXT DEFAULT 'x'"),
        ("note TEXT", "note TEXT UNIQUE"),
    ],
)
async def test_a_description_shows_a_schema_that_differs(
    database_url: str, write: Write, changed_sql: str, into: str
) -> None:
    migrated_database = await open_database(database_url, schema="shop")
    await upgrade(migrated_database, write(FIRST, SECOND, THIRD))
    schema_found = await describe_schema(migrated_database)
    await migrated_database.close()
    changed_database = await open_database(database_url.replace(".db", "2.db"), schema="shop2")
    async with changed_database.transaction() as transaction:
        await transaction.run(in_dialect(WHOLE.replace(changed_sql, into), changed_database.dialect))
    expected_schema = (await describe_schema(changed_database)).replace("shop2.", "shop.")
    await changed_database.close()

    assert (schema_found == expected_schema) == (changed_sql == into)
