"""The outbox of a service: what its webhooks stand on, and an event put in beside the change it tells of."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.security.masterkey import MasterKey

ALL = "*"
PING = "webhook.ping"

WANTING = "SELECT id, types FROM webhook WHERE owner = $1"
ADD_EVENT = "INSERT INTO webhook_event (id, owner, type, subject, at) VALUES ($1, $2, $3, $4, $5)"
ADD_DELIVERY = """
    INSERT INTO webhook_delivery (webhook_id, event_id, state, attempts, queued_at, due_at)
    VALUES ($1, $2, 'waiting', 0, $3, $3)
"""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Where events wait. `source` is the address below which a subject is found; `is_private` lets receivers be in
    networks of one's own; what was delivered is kept for `days`."""

    database: Database
    master: MasterKey
    source: str
    is_private: bool
    days: int


class Event(NamedTuple):
    """That something happened to the thing at `subject`, a path below the source. It says nothing else about it: who
    wants to know more asks, and is told what they may see."""

    id: str
    type: str
    subject: str
    at: Instant

    def body(self, source: str) -> bytes:
        """The event as it is sent: JSON with the attributes of CloudEvents 1.0 and no data."""
        return msgspec.json.encode(
            {
                "specversion": "1.0",
                "id": self.id,
                "source": source,
                "type": self.type,
                "subject": self.subject,
                "time": clock.rfc3339(self.at),
            }
        )


async def emit(transaction: Transaction, owner: str, kind: str, subject: str) -> None:
    """Have the owner's receivers told, once the transaction is durable; nobody is if it is rolled back. Without any
    receiver nothing is kept."""
    receivers = await transaction.fetch(WANTING, owner)
    if receivers:
        wanting = [webhook_id for webhook_id, types in receivers if wants(types, kind)]
        await _add(transaction, owner, kind, subject, wanting)


async def ping(transaction: Transaction, owner: str, webhook_id: str) -> Event:
    """An event that says nothing, for one receiver."""
    return await _add(transaction, owner, PING, f"webhooks/{webhook_id}", [webhook_id])


def wants(types: str, kind: str) -> bool:
    """Whether a receiver that chose these types is told of this one."""
    return types == ALL or f" {kind} " in types


async def _add(transaction: Transaction, owner: str, kind: str, subject: str, wanting: list[str]) -> Event:
    event = Event(ids.new_uuid(), kind, subject, clock.now())
    await transaction.run(ADD_EVENT, event.id, owner, kind, subject, event.at)
    for webhook_id in wanting:
        await transaction.run(ADD_DELIVERY, webhook_id, event.id, event.at)
    return event
