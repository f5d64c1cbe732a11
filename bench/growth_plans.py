"""Which indexes the statements of a request use, and how much disk a database takes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg
import httpx
import records_seed
import seed
from contenders.records import settings
from harness import Bench

from countersign.kernel.database.postgres import PostgresDatabase, PostgresTransaction
from countersign.kernel.database.sqlite import SqliteDatabase
from countersign.kernel.database.sqlite_connection import numbered
from countersign.kernel.database.sqlite_writer import SqliteTransaction
from countersign.records import app as records_app
from countersign.store import app as store_app

_SQLITE_PLAN = re.compile(r"USING (?:COVERING )?INDEX (\S+)|(SCAN) (?!CONSTANT|\()(\w+)(?! USING| VIRTUAL)")
_POSTGRES_PLAN = re.compile(r"Index (?:Only )?Scan(?: Backward)? (?:using|on) (\S+)|(Seq Scan) on (\w+)")
_OWN_KEY = re.compile(r"sqlite_autoindex_(\w+)_\d+")
EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")

Statement = tuple[str, tuple[Any, ...]]


class _Call(Protocol):
    """The values with which a request is sent."""

    method: str
    path: str

    @property
    def headers(self) -> dict[str, str]:
        """Its headers."""
        ...

    @property
    def content(self) -> bytes | None:
        """Its body."""
        ...


def run(bench: Bench, url: str, statement: str) -> None:
    """Run one statement on a database, outside the product."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(statement)
        connection.close()
        return
    assert bench.cluster is not None
    schema = "records" if "/records_" in url else "distribution"
    bench.cluster.sql(f"SET search_path TO {schema}; {statement}", url)


def disk(bench: Bench, url: str) -> int:
    """Return the bytes of a database, its indexes and its write-ahead log on SQLite."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    assert bench.cluster is not None
    return int(bench.cluster.sql("SELECT pg_database_size(current_database())", url))


def of_store(seed_data: seed.Seeded, calls: Mapping[str, _Call]) -> dict[str, list[str]]:
    """Return the indexes by operation, in the store."""

    @asynccontextmanager
    async def application() -> AsyncIterator[Any]:
        async with store_app.open_store(seed.settings_of(seed_data), seed.ROOT_URL, is_loopback=True) as store:
            yield store_app.create(store)

    return asyncio.run(_indexes(application, seed.ROOT_URL, seed_data.database_url, "distribution", calls))


def of_records(seed_data: records_seed.Seeded, calls: Mapping[str, _Call]) -> dict[str, list[str]]:
    """Return the indexes by operation, in records."""

    @asynccontextmanager
    async def application() -> AsyncIterator[Any]:
        records_settings = settings(str(seed_data.data), seed_data.database_url)
        async with records_app.open_records(records_settings, "http://bench", is_loopback=True) as service:
            yield records_app.create(service)

    return asyncio.run(_indexes(application, "http://bench", seed_data.database_url, "records", calls))


async def _indexes(
    application: Callable[[], Any], root: str, url: str, schema: str, calls: Mapping[str, _Call]
) -> dict[str, list[str]]:
    statements_by_operation: dict[str, list[Statement]] = {}
    # The application binds the methods of its database when it is opened.
    with _capture_statements() as statements:
        async with application() as indexes_app, httpx.AsyncClient(
            transport=httpx.ASGITransport(indexes_app), base_url=root
        ) as client:
            for name, call in calls.items():
                statements.clear()
                answer = await client.request(call.method, call.path, content=call.content, headers=call.headers)
                if answer.status_code >= 400:
                    raise RuntimeError(f"{name}: {answer.status_code} {answer.text[:300]}")
                statements_by_operation[name] = [*statements]
    explain = _explain_sqlite if url.startswith("sqlite") else _explain_postgres
    return {name: await explain(url, schema, statements) for name, statements in statements_by_operation.items()}


@contextmanager
def _capture_statements() -> Iterator[list[Statement]]:
    """Collect the statements that both databases run until the block ends."""
    statements: list[Statement] = []
    originals: list[tuple[type, str, Any]] = []
    for owner in (SqliteDatabase, PostgresDatabase, SqliteTransaction, PostgresTransaction):
        for name in ("fetch", "fetch_one", "scan", "run"):
            original = owner.__dict__.get(name)
            if original is not None:
                originals.append((owner, name, original))
                setattr(owner, name, _capturing(original, statements))
    try:
        yield statements
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _capturing(original: Callable[..., Any], statements: list[Statement]) -> Callable[..., Any]:
    async def run_captured(database: Any, statement: str, *values: Any) -> Any:
        statements.append((statement, values))
        return await original(database, statement, *values)

    return run_captured


def _explain(statements: list[Statement]) -> Iterator[Statement]:
    """Yield each statement once, except the statements that have no plan."""
    seen_texts: set[str] = set()
    for statement, values in statements:
        if statement not in seen_texts and statement.lstrip().upper().startswith(EXPLAINED):
            seen_texts.add(statement)
            yield statement, values


async def _explain_sqlite(url: str, _schema: str, statements: list[Statement]) -> list[str]:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    tables = {f"all of {name}" for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    used_indexes: list[str] = []
    for statement, values in _explain(statements):
        rows = connection.execute(f"EXPLAIN QUERY PLAN {numbered(statement)}", values or None)
        used_indexes += [_named(match) for row in rows for match in _SQLITE_PLAN.finditer(str(row[3]))]
    connection.close()
    # SQLite also names the subqueries that it reads.
    return [index for index in dict.fromkeys(used_indexes) if not index.startswith("all of ") or index in tables]


async def _explain_postgres(url: str, schema: str, statements: list[Statement]) -> list[str]:
    connection = await asyncpg.connect(url, server_settings={"search_path": schema})
    used_indexes: list[str] = []
    for statement, values in _explain(statements):
        for (line,) in await connection.fetch(f"EXPLAIN {statement}", *values):
            used_indexes += [_named(match) for match in _POSTGRES_PLAN.finditer(line)]
    await connection.close()
    return list(dict.fromkeys(used_indexes))


def _named(match: re.Match[str]) -> str:
    index, scan, table = match.groups()
    return f"all of {table}" if scan else _OWN_KEY.sub(r"key of \1", index)
