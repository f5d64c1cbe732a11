"""A node that emits events and sends the events in its outbox, until it is killed: `DATABASE [quiet]`."""

import asyncio
import sys
from contextlib import suppress
from itertools import count

from countersign.kernel import ids
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.security.masterkey import master_key
from countersign.kernel.webhooks import outbox, sender
from countersign.kernel.webhooks.outbox import Outbox
from countersign.settings import Settings
from tests.servers.countersign import MASTER_KEY

ADD = "INSERT INTO thing (id) VALUES ($1)"


class RollBack(Exception):
    """Rolls the change back."""


async def make(database: Database, *, is_kept: bool) -> None:
    """Add a thing with its event.

    Raises:
        RollBack: the change is rolled back on purpose.
    """
    async with database.transaction() as transaction:
        thing_id = ids.new_uuid()
        await transaction.run(ADD, thing_id)
        await outbox.emit(transaction, "north", "thing.made", thing_id)
        if not is_kept:
            raise RollBack


async def live(url: str, *, is_quiet: bool) -> None:
    """Send events and, unless `quiet`, add things meanwhile. Every third thing is rolled back."""
    # Shorter than elsewhere: the events of a killed node are free again after this time, and the test should not wait
    # long.
    sender.LEASE_S, sender.POLL_EVERY_S = 1.0, 0.02
    database = await open_database(url, schema="shop", reserve_bytes=0)
    box = Outbox(database, master_key(Settings(master_key=MASTER_KEY)), "https://store.example", True, 14)
    async with sender.send_deliveries(box):
        for number in count():
            with suppress(RollBack):
                if not is_quiet:
                    await make(database, is_kept=number % 3 != 0)
            await asyncio.sleep(3600 if is_quiet else 0.01)


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], is_quiet="quiet" in sys.argv))
