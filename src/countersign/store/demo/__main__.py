"""`python -m countersign.store.demo DIRECTORY` makes the template of the sandbox's data sets.

It runs in a separate process, because the clock and the ids are fixed for the whole process.
"""

import asyncio
import sys
from pathlib import Path

from countersign.kernel import installation_id
from countersign.settings import Settings
from countersign.store import app, demo, lifespan
from countersign.store.auth import tokens

TEMPLATE_FILES = (lifespan.DATABASE_FILE, lifespan.BLOBS_FOLDER)
TEMPLATE_URL = "http://template.invalid"


async def make_template(folder: Path) -> None:
    """Fill the empty folder with the demonstration's database and blobs, without keys and without an installation id:
    each copy makes its own.

    Raises:
        Unavailable, StorageFull: the folder cannot be written to.
    """
    settings = Settings(data=str(folder), reserve_mib=0)
    async with app.open_store(settings, TEMPLATE_URL, is_loopback=True) as store:
        await demo.seed(store)
        async with store.database.transaction() as transaction:
            await tokens.forget_keys(transaction)
            await installation_id.forget(transaction)


def main(folder: Path) -> None:
    """Make the template in the folder, and remove every file but the database and the blobs.

    Raises:
        Unavailable, StorageFull: the folder cannot be written to.
    """
    asyncio.run(make_template(folder))
    for path in folder.iterdir():
        if path.name not in TEMPLATE_FILES:
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
