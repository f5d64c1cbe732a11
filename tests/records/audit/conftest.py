"""An audit with empty lanes in a database of each engine. A lane is one of the hash chains of the audit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.records.audit.chain import LANES, Chain, ChainEntry
from countersign.records.audit.verify import ChainDefect, verify

SECRET = b"s" * 32
TABLES = """
CREATE TABLE audit_lane (lane BIGINT PRIMARY KEY, count BIGINT NOT NULL, hash BLOB NOT NULL, mac BLOB NOT NULL);
CREATE TABLE audit_entry (
    id TEXT PRIMARY KEY, revision BIGINT NOT NULL, changed BIGINT NOT NULL, at BIGINT, lane BIGINT, number BIGINT,
    user_id TEXT, agent_token TEXT, agent TEXT, command TEXT, model TEXT, record_id TEXT, fields TEXT, changes TEXT,
    plan_id TEXT, request_id TEXT, hash BLOB
);
CREATE INDEX audit_entry_by_lane ON audit_entry (lane, number);
CREATE INDEX audit_entry_at ON audit_entry (at, id);
CREATE INDEX audit_entry_user_id ON audit_entry (user_id, id);
CREATE INDEX audit_entry_record_id ON audit_entry (record_id, id);
"""


@asynccontextmanager
async def open_audit_database(url: str, *, pool: int = 10) -> AsyncGenerator[Database]:
    """Open a database with the tables of the audit and empty lanes."""
    database = await open_database(url, schema="office", pool=pool, reserve_bytes=0)
    try:
        async with database.transaction() as transaction:
            await transaction.run(in_dialect(TABLES, database.dialect))
            await Chain(database.dialect, SECRET).create_lanes(transaction)
        yield database
    finally:
        await database.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with the tables of the audit and empty lanes."""
    async with open_audit_database(database_url) as database:
        yield database


@pytest.fixture
def chain(database: Database) -> Chain:
    """The audit chain of the database."""
    return Chain(database.dialect, SECRET)


def entry(number: int = 1, *, agent: str | None = None) -> ChainEntry:
    """Return an entry that its number identifies."""
    return ChainEntry(
        at=1_700_000_000_000_000 + number,
        user_id=f"{number:024x}",
        agent_token=agent,
        agent=agent,
        command="lead.update",
        model="lead",
        record_id=f"{number:024x}" if number % 2 else None,
        fields="name,stage",
        changes=f'{{"name":["Ada","Zoë {number}"]}}',
        plan_id=None,
        request_id=f"request-{number}",
    )


async def append_entries(database: Database, chain: Chain, entries: int, *, entries_at_once: int = 1) -> None:
    """Append this number of entries, with `entries_at_once` entries in one transaction. On PostgreSQL, five
    transactions run at a time."""

    async def append(first_number: int) -> None:
        async with database.transaction() as transaction:
            for number in range(first_number, min(first_number + entries_at_once, entries)):
                await chain.append(transaction, entry(number, agent="scout" if number % 3 else None))

    starts = list(range(0, entries, entries_at_once))
    while starts:
        await asyncio.gather(*(append(start) for start in starts[:5]))
        starts = starts[5:]


async def change(database: Database, statement: str, *values: None | int | str | bytes) -> None:
    """Change the database like an attacker who can write to it but does not have the key."""
    async with database.transaction() as transaction:
        await transaction.run(statement, *values)


async def faults(database: Database) -> tuple[ChainDefect, ...]:
    """Return the faults that verification finds."""
    return (await verify(database, SECRET)).faults


async def counts(database: Database) -> dict[int, int]:
    """Return the number of entries of each lane according to its head, without empty lanes."""
    return dict(await database.fetch("SELECT lane, count FROM audit_lane WHERE count > 0 ORDER BY lane"))


def lanes(database: Database) -> int:
    """Return the number of lanes of this engine."""
    return LANES[database.dialect]
