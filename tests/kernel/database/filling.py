"""A program that mounts a small volume, fills it, and continues when there is space again. It prints JSON.

unshare -m python -m tests.kernel.database.filling FOLDER
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from countersign.kernel.database.sqlite import SqliteDatabase
from tests.kernel.database.writing import open_file, put

SIZE = 8 * 1024 * 1024


async def _kept(database: SqliteDatabase) -> list[int]:
    return [row[0] for row in await database.fetch("SELECT id FROM thing WHERE id > 0 ORDER BY id")]


async def fill_volume(folder: Path) -> dict[str, object]:
    """Fill the volume while 8 concurrent transactions write, free space, and write again."""
    database = await open_file(folder / "a.db")
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * (SIZE // 2))
    acknowledged: list[int] = []
    number = 0
    refused_rounds = 0
    while refused_rounds < 3:
        group = range(number + 1, number + 9)
        outcomes = await asyncio.gather(*(put(database, number, 20_000) for number in group))
        acknowledged += [number for number, is_kept in zip(group, outcomes, strict=True) if is_kept]
        refused_rounds += not any(outcomes)
        number += 8
    kept_while_full = await _kept(database)
    ballast.unlink()
    results = await asyncio.gather(*(put(database, number + index, 1000) for index in range(1, 9)))
    kept_after = await _kept(database)
    check = await database.fetch("PRAGMA integrity_check")
    await database.close()
    return {
        "acknowledged": acknowledged,
        "kept_while_full": kept_while_full,
        "later": results,
        "kept_after": len(kept_after),
        "check": check[0][0],
    }


if __name__ == "__main__":
    place = Path(sys.argv[1])
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        sys.stdout.write("no mount\n")
    else:
        sys.stdout.write(json.dumps(asyncio.run(fill_volume(place))) + "\n")
