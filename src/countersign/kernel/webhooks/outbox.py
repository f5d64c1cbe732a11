"""The outbox of webhook events. Events are stored with the change that they report, retried on a schedule, replayed,
and removed.

An operator can pause all deliveries. A restored installation starts paused: its receivers know the events that were
pending when the backup was made, and a copy for a trial must not call them at all. The pause is a row next to the
events, so that it applies on every node, after every start and on any database that the installation is moved to,
until an operator ends it.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.security.masterkey import MasterKey

_MINUTE, _HOUR = 60.0, 3_600.0
RETRY_DELAYS_S = (
    *(5.0, 5 * _MINUTE, 30 * _MINUTE),
    *(2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR),
)
"""The delay after each failed attempt, as Standard Webhooks proposes: ten attempts in slightly more than three days."""
JITTER = 0.2
MAX_RETRY_S = sum(RETRY_DELAYS_S) * (1 + JITTER) + 12 * _HOUR
"""A delivery that has waited longer than this is given up, even after fewer attempts, because its receiver was down all
the time."""
MAX_BACKOFF_S = 300.0


def retry_delay_s(attempts: int) -> float | None:
    """Return the seconds until the next attempt after this number of failed attempts, or None if there is no further
    attempt. A jitter of 20 % spreads the retries of deliveries that failed together."""
    return None if attempts > len(RETRY_DELAYS_S) else _jittered(RETRY_DELAYS_S[attempts - 1])


def backoff_s(failures: int) -> float:
    """Return the seconds for which nothing is sent to a receiver after this number of failures in a row. The time
    doubles with each failure, up to five minutes."""
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
    """The outbox of a service. The paths of subjects are below the URL `source`. `is_private` allows receivers in
    private networks. Ended deliveries are kept for `days`."""

    database: Database
    master: MasterKey
    source: str
    is_private: bool
    days: int


class Event(NamedTuple):
    """An event: something happened to the resource at `subject`, which is a path below the outbox's `source`. The event
    carries no data: a receiver reads the resource, with its own permissions."""

    id: str
    type: str
    subject: str
    at: Instant

    def body(self, source: str) -> bytes:
        """Return the body of the request: JSON with the attributes of CloudEvents 1.0 and no data."""
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
        receiver_ids = [webhook_id for webhook_id, types in receivers if wants(types, kind)]
        await _add(transaction, owner, kind, subject, receiver_ids)


async def ping(transaction: Transaction, owner: str, webhook_id: str) -> Event:
    """Queue a test event for one receiver."""
    return await _add(transaction, owner, PING, f"webhooks/{webhook_id}", [webhook_id])


def wants(types: str, kind: str) -> bool:
    """Return whether a receiver that chose these types gets events of type `kind`."""
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
    """Return when deliveries were paused, or None if they are not paused."""
    row = await reader.fetch_one(PAUSED_SINCE)
    return None if row is None else Instant(row[0])


async def pause(transaction: Transaction) -> None:
    """Pause all deliveries. An existing pause stays unchanged."""
    await transaction.run(PAUSE, clock.now())


async def resume(transaction: Transaction) -> bool:
    """Resume queued deliveries; paused time does not count towards their expiry. Returns False if deliveries were not
    paused."""
    if not await transaction.run(RESUME):
        return False
    await transaction.run(REQUEUE, clock.now())
    return True


async def describe_pause(reader: Reader) -> str:
    """Describe the pause in words, with the command that ends it."""
    held_since = await paused_since(reader)
    return "not held" if held_since is None else f"held since {clock.rfc3339(held_since)}, until `{RESUME_COMMAND}`"


State: TypeAlias = Literal["waiting", "delivered", "given_up"]

AFTER_EVERY_ID = "~"
"""A text that sorts after every id."""
MAX_REPLAYED = 10_000

DELIVERIES_PAGE = """
    SELECT d.event_id, e.type, e.subject, e.at, d.state, d.attempts, d.due_at, d.ended_at, d.answer, d.fault
    FROM webhook_delivery d
    JOIN webhook_event e ON e.id = d.event_id
    WHERE d.webhook_id = $1
        AND d.event_id < $2
        AND ($3 = '' OR d.state = $3)
    ORDER BY d.event_id DESC
    LIMIT $4
"""
IS_THERE = "SELECT 1 FROM webhook_delivery WHERE webhook_id = $1 AND event_id = $2"
REPLAY = """
    UPDATE webhook_delivery
    SET state = 'waiting', attempts = 0, queued_at = $3, due_at = $3, ended_at = NULL
    WHERE webhook_id = $1 AND event_id = $2 AND state <> 'waiting'
"""
LAST_SINCE = """
    SELECT max(at), count(*)
    FROM (
        SELECT at
        FROM webhook_event
        WHERE owner = $1 AND at >= $2 AND type <> $3 AND ($4 = '*' OR $4 LIKE '% ' || type || ' %')
        ORDER BY at, id
        LIMIT $5
    ) AS found
"""
REPLAY_BETWEEN = """
    INSERT INTO webhook_delivery (webhook_id, event_id, state, attempts, queued_at, due_at)
    SELECT $1, id, 'waiting', 0, CAST($7 AS BIGINT), CAST($7 AS BIGINT)
    FROM webhook_event
    WHERE owner = $2 AND at >= $3 AND at <= $4 AND type <> $5 AND ($6 = '*' OR $6 LIKE '% ' || type || ' %')
    ON CONFLICT (webhook_id, event_id) DO UPDATE
    SET state = 'waiting', attempts = 0, queued_at = excluded.queued_at, due_at = excluded.due_at, ended_at = NULL
    WHERE webhook_delivery.state <> 'waiting'
"""
RESET_BACKOFF = "UPDATE webhook SET rest_until = 0 WHERE id = $1"
GIVE_UP_OLD = """
    UPDATE webhook_delivery
    SET state = 'given_up', ended_at = $2
    WHERE state = 'waiting' AND queued_at <= $1 AND NOT EXISTS (SELECT 1 FROM delivery_hold)
"""
FORGET_ENDED = "DELETE FROM webhook_delivery WHERE ended_at <= $1"
FORGET_EVENTS = """
    DELETE FROM webhook_event
    WHERE at <= $1 AND NOT EXISTS (SELECT 1 FROM webhook_delivery d WHERE d.event_id = webhook_event.id)
"""


class DeliveryNotFound(NotFound):
    """The webhook has no delivery of this event, or it was removed after its retention."""

    resolution = "List the webhook's deliveries and use an event's id from there."


class Delivery(NamedTuple):
    """One event for one receiver. `answer` is the status of the last response. If there was no response, `fault` is the
    reason."""

    event_id: str
    type: str
    subject: str
    at: Instant
    state: State
    attempts: int
    due_at: Instant
    ended_at: Instant | None
    answer: int | None
    fault: str | None


class Replayed(NamedTuple):
    """The number of deliveries that were queued again, and the time of the last event among them, or None if all events
    up to now were queued again."""

    deliveries: int
    through: Instant | None


async def list_deliveries(
    reader: Reader, webhook_id: str, before_id: str, state: State | None, limit: int
) -> list[Delivery]:
    """List deliveries of events that precede the event with the id `before_id`, newest event first."""
    rows = await reader.fetch(DELIVERIES_PAGE, webhook_id, before_id, state or "", limit)
    return [Delivery(*row) for row in rows]


async def replay(transaction: Transaction, webhook_id: str, event_id: str) -> None:
    """Queue an event again, as if it had just happened. A pending delivery stays unchanged.

    Raises:
        DeliveryNotFound: there is no such delivery.
    """
    replayed_rows = await transaction.run(REPLAY, webhook_id, event_id, clock.now())
    if not replayed_rows and await transaction.fetch_one(IS_THERE, webhook_id, event_id) is None:
        raise DeliveryNotFound("the webhook has no delivery of this event")
    await transaction.run(RESET_BACKOFF, webhook_id)


async def replay_since(
    transaction: Transaction, owner: str, webhook_id: str, types: str, since_instant: Instant
) -> Replayed:
    """Queue again every event since this moment whose type the receiver has chosen, including events from before the
    receiver was added. At most the oldest 10,000 events are queued, and all events with the same time as the last of
    these."""
    row = await transaction.fetch_one(LAST_SINCE, owner, since_instant, PING, types, MAX_REPLAYED)
    if row is None or row[0] is None:
        return Replayed(0, None)
    last_id, delivery_count = row
    replayed_rows = await transaction.run(
        REPLAY_BETWEEN, webhook_id, owner, since_instant, last_id, PING, types, clock.now()
    )
    await transaction.run(RESET_BACKOFF, webhook_id)
    return Replayed(replayed_rows, last_id if delivery_count == MAX_REPLAYED else None)


async def forget_old(transaction: Transaction, days: int) -> None:
    """Give up deliveries that have waited longer than all attempts take, unless deliveries are paused. Remove
    deliveries that ended more than `days` ago."""
    now = clock.now()
    await transaction.run(GIVE_UP_OLD, clock.later(now, seconds=-MAX_RETRY_S), now)
    oldest_kept = clock.later(now, seconds=-86_400 * days)
    await transaction.run(FORGET_ENDED, oldest_kept)
    await transaction.run(FORGET_EVENTS, oldest_kept)
