"""The digest of a table depends on its rows only, not on the engine or on their order."""

import asyncio
from pathlib import Path

from countersign.backup import table_checksum
from countersign.backup.table_checksum import TableChecksum
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database

SCHEMA = """
CREATE TABLE thing (b TEXT, a BIGINT, c REAL, d BLOB, PRIMARY KEY (b, a));
CREATE TABLE "order" (word TEXT);
"""
ROWS = [("Ä", 1, None, b"\0"), ("a", -(1 << 62), 0.5, None), ("B", 3, 1.0, b""), ("B", 20, None, b"x" * 3)]


async def digests(url: str, rows: list[tuple[str, int, float | None, bytes | None]]) -> list[TableChecksum]:
    """Write tables with these rows, and return the digests of the tables."""
    database = await open_database(url, schema="test", reserve_bytes=0)
    try:
        async with database.transaction() as transaction:
            await transaction.run(in_dialect(SCHEMA, database.dialect))
            await transaction.run_many("INSERT INTO thing (b, a, c, d) VALUES ($1, $2, $3, $4)", rows)
            await transaction.run_many('INSERT INTO "order" (word) VALUES ($1)', [("b",), ("a",)])
        return [checksum async for checksum in table_checksum.table_checksums(database)]
    finally:
        await database.close()


def test_both_engines_give_the_same_digests(postgres_url: str, tmp_path: Path) -> None:
    sqlite_digests = asyncio.run(digests(f"sqlite:///{tmp_path}/one.db", ROWS))
    postgres_digests = asyncio.run(digests(postgres_url, ROWS[::-1]))

    assert sqlite_digests == postgres_digests
    assert [(checksum.table, checksum.rows) for checksum in sqlite_digests] == [("order", 2), ("thing", 4)]


def test_another_value_gives_another_digest(tmp_path: Path) -> None:
    changed_rows = [*ROWS[:-1], ("B", 20, None, b"x" * 2)]

    _, first_digest = asyncio.run(digests(f"sqlite:///{tmp_path}/one.db", ROWS))
    _, second_digest = asyncio.run(digests(f"sqlite:///{tmp_path}/two.db", changed_rows))

    assert first_digest.sha256 != second_digest.sha256
    assert table_checksum.encode_row(("ab", "c")) != table_checksum.encode_row(("a", "bc"))
    assert table_checksum.encode_row((1,)) != table_checksum.encode_row(("1",))
