"""An outbox on a database of each engine, and receivers on this machine."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from countersign.kernel.database.open import open_database
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.kernel.webhooks import outbox, receivers
from countersign.kernel.webhooks.outbox import Delivery, Outbox
from countersign.kernel.webhooks.sender import Sender
from countersign.settings import Settings
from tests.outbox import begin
from tests.peers.receiver import Receiver, receiving

KEY = "dGVzdCBtYXN0ZXIga2V5IG9mIDMyIGJ5dGVzIC0tIG8="


@dataclass
class ObservedOutbox:
    """An outbox with functions for tests."""

    outbox: Outbox
    url: str
    master: MasterKey

    async def add(self, url: str, *types: str, owner: str = "north") -> tuple[str, str]:
        """Create a receiver, and return its id and its secret."""
        async with self.outbox.database.transaction() as transaction:
            webhook, secret = await receivers.add(transaction, self.outbox, owner, url, types)
        return webhook.id, secret

    async def emit(self, *subjects: str, kind: str = "thing.made", owner: str = "north") -> None:
        """Emit an event for each of the subjects, each in its own transaction."""
        for subject in subjects:
            async with self.outbox.database.transaction() as transaction:
                await outbox.emit(transaction, owner, kind, subject)

    async def deliver(self) -> None:
        """Send everything that is due, as a node does in one round."""
        lanes = Sender(self.outbox)
        await lanes.open()
        await lanes.drain()

    async def deliveries(self, webhook_id: str) -> list[Delivery]:
        """Return the deliveries to a receiver, the oldest event first."""
        newest_first = await outbox.list_deliveries(
            self.outbox.database, webhook_id, outbox.AFTER_EVERY_ID, None, 1_000
        )
        return newest_first[::-1]

    async def tables(self) -> list[str]:
        """Return everything that is stored, as text."""
        stored_rows: list[str] = []
        for table in ("webhook", "webhook_event", "webhook_delivery"):
            stored_rows += [repr(row) for row in await self.outbox.database.fetch("SELECT * FROM " + table)]
        return stored_rows

    def public(self) -> "ObservedOutbox":
        """Return the same outbox without the permission to send to private networks."""
        return replace(self, outbox=replace(self.outbox, is_private=False))


@pytest.fixture
async def post(database_url: str) -> AsyncIterator[ObservedOutbox]:
    """An empty outbox."""
    database = await open_database(database_url, schema="shop", reserve_bytes=0)
    await begin(database)
    master = master_key(Settings(master_key=KEY))
    yield ObservedOutbox(
        Outbox(database, master, "https://store.example/api/v1", is_private=True, days=14), database_url, master
    )
    await database.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that responds with 200."""
    async with receiving() as webhook_receiver:
        yield webhook_receiver


@pytest.fixture
async def other() -> AsyncIterator[Receiver]:
    """Another receiver that responds with 200."""
    async with receiving() as webhook_receiver:
        yield webhook_receiver
