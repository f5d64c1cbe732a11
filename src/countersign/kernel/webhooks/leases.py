"""Who sends to a receiver: a lease on it, so that of several nodes one does, and one delivery after the other.

A lease is a word that only its node knows. A node that was silent for longer than the lease lasts has lost the
receiver: what it still says changes nothing, since its word is no longer in the row. What it had sent by then may be
sent again.
"""

from typing import NamedTuple

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.webhooks import schedule
from countersign.kernel.webhooks.outbox import Event

LEASE_S = 30.0
"""Longer than an attempt may take."""

READY = """
    SELECT w.id
    FROM webhook w
    WHERE w.rest_until <= $1
        AND w.lease_until <= $1
        AND EXISTS (
            SELECT 1 FROM webhook_delivery d
            WHERE d.webhook_id = w.id AND d.state = 'waiting' AND d.due_at <= $1
        )
    ORDER BY w.rest_until, w.id
    LIMIT $2
"""
TAKE = """
    UPDATE webhook
    SET lease = $2, lease_until = $3
    WHERE id = $1 AND lease_until <= $4
    RETURNING url, secrets, failures
"""
NEXT = """
    SELECT d.attempts, e.id, e.type, e.subject, e.at
    FROM webhook_delivery d
    JOIN webhook_event e ON e.id = d.event_id
    WHERE d.webhook_id = $1 AND d.state = 'waiting' AND d.due_at <= $2
    ORDER BY d.due_at, d.event_id
    LIMIT 1
"""
KEEP = """
    UPDATE webhook
    SET lease_until = $3, rest_until = $4, failures = $5, delivered_at = COALESCE($6, delivered_at)
    WHERE id = $1 AND lease = $2
"""
MARK = """
    UPDATE webhook_delivery
    SET state = $3, attempts = attempts + 1, due_at = $4, ended_at = $5, answer = $6, fault = $7
    WHERE webhook_id = $1 AND event_id = $2 AND state = 'waiting'
"""
LET_GO = "UPDATE webhook SET lease_until = 0 WHERE id = $1 AND lease = $2"


class LeaseLost(Exception):
    """The receiver is another node's by now, or was removed; nothing of this transaction may be kept."""


class Held(NamedTuple):
    """A receiver that is this node's while the lease lasts; `secrets` are sealed."""

    id: str
    lease: str
    url: str
    secrets: bytes
    failures: int


class Due(NamedTuple):
    """An event that is to be sent now, after so many failed attempts."""

    attempts: int
    event: Event


class Outcome(NamedTuple):
    """What an attempt came to: the status of an answer, or in our words why there was none."""

    answer: int | None = None
    fault: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has said that it has the event."""
        return self.answer is not None and 200 <= self.answer < 300


async def ready(database: Database, most: int) -> list[str]:
    """Receivers that something is to be sent to now, by nobody yet; those that rested longest first."""
    return [row[0] for row in await database.scan(READY, clock.now(), most)]


async def take(database: Database, webhook_id: str) -> Held | None:
    """Have the receiver to oneself; None when another node has it, or it was removed."""
    now, lease = clock.now(), ids.new_record_id()
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(TAKE, webhook_id, lease, clock.later(now, seconds=LEASE_S), now)
    return None if row is None else Held(webhook_id, lease, str(row[0]), bytes(row[1]), int(row[2]))


async def next_due(reader: Reader, webhook_id: str) -> Due | None:
    """What is to be sent to the receiver first; None when nothing is due."""
    row = await reader.fetch_one(NEXT, webhook_id, clock.now())
    return None if row is None else Due(int(row[0]), Event(*row[1:]))


async def mark(transaction: Transaction, held: Held, due: Due, outcome: Outcome) -> Held:
    """Write down what an attempt came to, and keep the lease; the receiver with its failures counted.

    Raises:
        LeaseLost: it is not this node's any more.
    """
    now = clock.now()
    failures = 0 if outcome.is_delivered else held.failures + 1
    rest_until = now if outcome.is_delivered else clock.later(now, seconds=schedule.rest_s(failures))
    until = clock.later(now, seconds=LEASE_S)
    delivered_at = now if outcome.is_delivered else None
    # First, so that of two nodes one waits here and then finds the lease gone.
    if not await transaction.run(KEEP, held.id, held.lease, until, rest_until, failures, delivered_at):
        raise LeaseLost(held.id)
    state, due_at, ended_at = _after(now, due.attempts + 1, outcome)
    await transaction.run(MARK, held.id, due.event.id, state, due_at, ended_at, outcome.answer, outcome.fault)
    return held._replace(failures=failures)


def _after(now: Instant, attempts: int, outcome: Outcome) -> tuple[str, Instant, Instant | None]:
    """State, next attempt and end of a delivery after so many attempts."""
    if outcome.is_delivered:
        return "delivered", now, now
    pause_s = schedule.pause_s(attempts)
    return ("given_up", now, now) if pause_s is None else ("waiting", clock.later(now, seconds=pause_s), None)


async def let_go(database: Database, held: Held) -> None:
    """Leave the receiver to whoever takes it next."""
    async with database.transaction() as transaction:
        await transaction.run(LET_GO, held.id, held.lease)
