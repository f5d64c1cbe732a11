"""A process that writes to an SQLite file and prints what was acknowledged, for tests of faults.

python -m tests.kernel.database.writing FILE FIRST COUNT: concurrent tasks insert the numbers FIRST… with two rows each
(n and -n). They print `+n` when the rows are durable, or `-n CLASS` when they were refused. If COUNT is 0, the process
runs until it is killed.
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
    """Print one line with a single write."""
    os.write(1, f"{line}\n".encode())


async def put(database: SqliteDatabase, number: int, size: int) -> bool:
    """Insert both rows, print the outcome, and return whether they were acknowledged."""
    try:
        async with database.transaction() as transaction:
            await transaction.run(PUT, number, b"x" * size)
            await asyncio.sleep(0)
            await transaction.run(PUT, -number, b"x" * size)
    except Refused as refusal:
        say(f"-{number} {type(refusal).__name__}")
        return False
    say(f"+{number}")
    return True


async def open_file(path: Path) -> SqliteDatabase:
    """Open the file with the table."""
    database = await open_sqlite(path, readers=1, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(TABLE)
    return database


async def write(path: Path, first_number: int, last_number: int) -> None:
    """Insert the numbers from the first up to the last, several at the same time. Then print the number of rows."""
    database = await open_file(path)
    say("ready")
    numbers = iter(range(first_number, last_number) if last_number > first_number else count(first_number))

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
