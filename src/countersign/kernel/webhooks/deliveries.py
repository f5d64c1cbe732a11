"""Deliveries of webhook events: listed, replayed, given up, and removed."""

from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.webhooks import outbox
from countersign.kernel.webhooks.outbox import PING

State: TypeAlias = Literal["waiting", "delivered", "given_up"]

NEWEST = "~"
"""Sorts after every id."""
MAX_REPLAYED = 10_000

PAGE = """
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
AT_ONCE = "UPDATE webhook SET rest_until = 0 WHERE id = $1"
GIVE_UP = """
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
    """One event for one receiver. `answer` is the status of the last response, `fault` the reason for its absence."""

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
    """The number of deliveries that were queued again, and up to which moment; None: up to now."""

    deliveries: int
    through: Instant | None


async def page(reader: Reader, webhook_id: str, before: str, state: State | None, limit: int) -> list[Delivery]:
    """Deliveries to a receiver, newest event first, of events before the one with this id."""
    rows = await reader.fetch(PAGE, webhook_id, before, state or "", limit)
    return [Delivery(*row) for row in rows]


async def replay(transaction: Transaction, webhook_id: str, event_id: str) -> None:
    """Queue an event again, as if it had just happened; a pending delivery stays as it is.

    Raises:
        DeliveryNotFound: there is no such delivery.
    """
    begun = await transaction.run(REPLAY, webhook_id, event_id, clock.now())
    if not begun and await transaction.fetch_one(IS_THERE, webhook_id, event_id) is None:
        raise DeliveryNotFound("the webhook has no delivery of this event")
    await transaction.run(AT_ONCE, webhook_id)


async def replay_since(transaction: Transaction, owner: str, webhook_id: str, types: str, since: Instant) -> Replayed:
    """Queue every event of the receiver's types again, from the moment on, also events from before it was added;
    10,000 at most (and all of the same moment), oldest first."""
    row = await transaction.fetch_one(LAST_SINCE, owner, since, PING, types, MAX_REPLAYED)
    if row is None or row[0] is None:
        return Replayed(0, None)
    last, counted = row
    begun = await transaction.run(REPLAY_BETWEEN, webhook_id, owner, since, last, PING, types, clock.now())
    await transaction.run(AT_ONCE, webhook_id)
    return Replayed(begun, last if counted == MAX_REPLAYED else None)


async def forget_old(transaction: Transaction, days: int) -> None:
    """Give up deliveries that have waited longer than all attempts take, unless deliveries are paused, and remove those
    that ended this number of days ago."""
    now = clock.now()
    await transaction.run(GIVE_UP, clock.later(now, seconds=-outbox.MAX_RETRY_S), now)
    oldest = clock.later(now, seconds=-86_400 * days)
    await transaction.run(FORGET_ENDED, oldest)
    await transaction.run(FORGET_EVENTS, oldest)
