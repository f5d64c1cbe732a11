"""The outbox of webhook events: stored with the change that they report, retried on a schedule, paused by the operator.

A restored installation starts paused: its receivers know the events that were pending when the backup was made, and a
copy for a trial must not call them at all. The pause is a row beside the events, so that it applies on every node,
after every start and on any database that the installation is moved to, until an operator ends it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.security.masterkey import MasterKey

_MINUTE, _HOUR = 60.0, 3_600.0
RETRY_DELAYS_S = (
    *(5.0, 5 * _MINUTE, 30 * _MINUTE),
    *(2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR),
)
"""After each failed attempt, as Standard Webhooks proposes: ten attempts in a little more than three days."""
JITTER = 0.2
MAX_RETRY_S = sum(RETRY_DELAYS_S) * (1 + JITTER) + 12 * _HOUR
"""A delivery that has waited longer is given up even with fewer attempts: its receiver was down all the time."""
MAX_BACKOFF_S = 300.0


def retry_delay_s(attempts: int) -> float | None:
    """Seconds until the next attempt after this number of failed ones; None: there is no next one. A jitter of 20 %
    spreads the retries of deliveries that failed together."""
    return None if attempts > len(RETRY_DELAYS_S) else _jittered(RETRY_DELAYS_S[attempts - 1])


def backoff_s(failures: int) -> float:
    """Seconds for which nothing is sent to a receiver after this number of failures in a row: doubled each time, five
    minutes at most."""
    return _jittered(min(MAX_BACKOFF_S, 2.0 ** min(failures, 9)))


def _jittered(seconds: float) -> float:
    chance = int.from_bytes(ids.random_bytes(2), "big") / 0xFFFF
    return seconds * (1 - JITTER + 2 * JITTER * chance)


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
    """The outbox of a service. `source` is the URL below which a subject is found; `is_private` allows receivers in
    private networks; ended deliveries are kept for `days`."""

    database: Database
    master: MasterKey
    source: str
    is_private: bool
    days: int


class Event(NamedTuple):
    """Something happened to the resource at `subject`, a path below the source. The event carries no data: a receiver
    reads the resource, with its own permissions."""

    id: str
    type: str
    subject: str
    at: Instant

    def body(self, source: str) -> bytes:
        """The body of the request: JSON with the attributes of CloudEvents 1.0 and no data."""
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
    """Queue an event for the owner's receivers, which get it after the transaction committed. Without receivers,
    nothing is stored."""
    receivers = await transaction.fetch(WANTING, owner)
    if receivers:
        wanting = [webhook_id for webhook_id, types in receivers if wants(types, kind)]
        await _add(transaction, owner, kind, subject, wanting)


async def ping(transaction: Transaction, owner: str, webhook_id: str) -> Event:
    """Queue a test event for one receiver."""
    return await _add(transaction, owner, PING, f"webhooks/{webhook_id}", [webhook_id])


def wants(types: str, kind: str) -> bool:
    """Whether a receiver that chose these types gets events of this one."""
    return types == ALL or f" {kind} " in types


async def _add(transaction: Transaction, owner: str, kind: str, subject: str, wanting: list[str]) -> Event:
    event = Event(ids.new_uuid(), kind, subject, clock.now())
    await transaction.run(ADD_EVENT, event.id, owner, kind, subject, event.at)
    for webhook_id in wanting:
        await transaction.run(ADD_DELIVERY, webhook_id, event.id, event.at)
    return event


RESUME_COMMAND = "countersign webhooks resume"
"""The command that ends a pause."""

PAUSED_SINCE = "SELECT since FROM delivery_hold"
PAUSE = "INSERT INTO delivery_hold (id, since) VALUES (1, $1) ON CONFLICT (id) DO NOTHING"
RESUME = "DELETE FROM delivery_hold"
REQUEUE = "UPDATE webhook_delivery SET queued_at = $1 WHERE state = 'waiting'"


async def paused_since(reader: Reader) -> Instant | None:
    """When deliveries were paused; None: they are not."""
    row = await reader.fetch_one(PAUSED_SINCE)
    return None if row is None else Instant(row[0])


async def pause(transaction: Transaction) -> None:
    """Pause all deliveries; a pause that exists stays as it is."""
    await transaction.run(PAUSE, clock.now())


async def resume(transaction: Transaction) -> bool:
    """Resume queued deliveries; paused time does not count towards their expiry. False: they were not paused."""
    if not await transaction.run(RESUME):
        return False
    await transaction.run(REQUEUE, clock.now())
    return True


async def describe_pause(reader: Reader) -> str:
    """The state of the pause in words, with the command that ends it."""
    held_since = await paused_since(reader)
    return "not held" if held_since is None else f"held since {clock.rfc3339(held_since)}, until `{RESUME_COMMAND}`"
