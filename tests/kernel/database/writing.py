"""A process of its own that writes to a SQLite file and says what was acknowledged; for the tests of faults.

python -m tests.kernel.database.writing FILE FIRST COUNT: tasks at once put the things FIRST… in, two rows each (n and
-n), and print `+n` once that is durable or `-n CLASS` when it was refused. COUNT 0: until killed.
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from countersign.kernel.database.sqlite import SqliteDatabase, open_sqlite
from countersign.kernel.errors import Refused

TABLE = "CREATE TABLE IF NOT EXISTS thing (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
PUT = "INSERT INTO thing (id, body) VALUES ($1, $2)"
TASKS = 8


def say(line: str) -> None:
    """One line, at once, in one write."""
    os.write(1, f"{line}\n".encode())


async def put(database: SqliteDatabase, number: int, size: int) -> bool:
    """Put both rows in and tell the outcome; whether it was acknowledged."""
    try:
        async with database.transaction() as transaction:
            await transaction.run(PUT, number, b"x" * size)
            await asyncio.sleep(0)
            await transaction.run(PUT, -number, b"x" * size)
    except Refused as refused:
        say(f"-{number} {type(refused).__name__}")
        return False
    say(f"+{number}")
    return True


async def opened(path: Path) -> SqliteDatabase:
    """The file with the table."""
    database = await open_sqlite(path, readers=1, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(TABLE)
    return database


async def write(path: Path, first: int, last: int) -> None:
    """Write from the first to before the last number, several at once, then tell how many rows are read."""
    database = await opened(path)
    say("ready")
    numbers = iter(range(first, last) if last > first else count(first))

    async def work() -> None:
        for number in numbers:
            await put(database, number, 100)

    await asyncio.gather(*(work() for _ in range(TASKS)))
    row = await database.fetch_one("SELECT count(id) FROM thing")
    assert row is not None
    say(f"={row[0]}")
    await database.close()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])))
