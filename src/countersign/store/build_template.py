"""Builds the template of the sandbox's data sets, in a process of its own: `python -m … DIRECTORY`.

The demonstration data is created with fixed randomness and clock for the whole process, which a server cannot do.
"""

import asyncio
import sys
from pathlib import Path

from countersign.kernel import installation_id
from countersign.settings import Settings
from countersign.store import app, demo, lifespan
from countersign.store.auth import tokens

KEPT = (lifespan.DATABASE_FILE, lifespan.BLOBS_FOLDER)
ROOT_URL = "http://template.invalid"


async def make(folder: Path) -> None:
    """Fill the empty folder with a database of the demonstration and its blobs, and neither keys nor
    the id of an installation: each copy makes its own.

    Raises:
        Unavailable, StorageFull: the folder cannot be written to.
    """
    settings = Settings(data=str(folder), reserve_mib=0)
    async with app.opened(settings, ROOT_URL, is_loopback=True) as store:
        await demo.seed(store)
        async with store.database.transaction() as transaction:
            await tokens.forget_keys(transaction)
            await installation_id.forget(transaction)


def main(folder: Path) -> None:
    """Fill the folder, and leave nothing in it but the database and the blobs.

    Raises:
        Unavailable, StorageFull: as `make`.
    """
    asyncio.run(make(folder))
    for path in folder.iterdir():
        if path.name not in KEPT:
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
