"""Sends deliveries. Each receiver has a lease and a separate lane (a task that sends to it), so that no receiver waits
for another receiver.

A lease is a random token of one node. It ensures that only one of several nodes sends to a receiver, one delivery at a
time. A node that did not extend its lease in time may have lost the receiver to another node. The receiver's row then
contains a different token, so that late writes of the first node have no effect, and deliveries that it had sent may be
sent again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from countersign.kernel import clock, ids, safe_http_client, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.concurrency import periodic
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.safe_http_client import RequestTimeout, Unreachable
from countersign.kernel.telemetry import ThrottledErrorLog
from countersign.kernel.webhooks import outbox, receivers, signatures
from countersign.kernel.webhooks.outbox import Event, Outbox

LEASE_S = 30.0
"""The duration of a lease, which is longer than an attempt may take."""

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
END_LEASE = "UPDATE webhook SET lease_until = 0 WHERE id = $1 AND lease = $2"


class LeaseLost(Exception):
    """Another node now has the lease, or the receiver was removed. The transaction must be rolled back."""


class LeasedReceiver(NamedTuple):
    """A receiver that this node has leased. `secrets` are encrypted."""

    id: str
    lease: str
    url: str
    secrets: bytes
    failures: int


class DueDelivery(NamedTuple):
    """An event that is due, after this number of failed attempts."""

    attempts: int
    event: Event


class DeliveryOutcome(NamedTuple):
    """The outcome of an attempt: the status of the response, or a code for the reason why there was no response."""

    answer: int | None = None
    fault: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver confirmed the event."""
        return self.answer is not None and 200 <= self.answer < 300


async def ready_receivers(database: Database, max_receivers: int) -> list[str]:
    """List receivers with due deliveries and without a lease, in the order in which their backoff ended."""
    return [row[0] for row in await database.scan(READY, clock.now(), max_receivers)]


async def take_lease(database: Database, webhook_id: str) -> LeasedReceiver | None:
    """Lease the receiver and return it. Return None if another node has leased the receiver, or if the receiver was
    removed."""
    now, lease = clock.now(), ids.new_record_id()
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(TAKE, webhook_id, lease, clock.later(now, seconds=LEASE_S), now)
    return None if row is None else LeasedReceiver(webhook_id, lease, str(row[0]), bytes(row[1]), int(row[2]))


async def next_delivery(reader: Reader, webhook_id: str) -> DueDelivery | None:
    """Return the next due delivery of the receiver, or None."""
    row = await reader.fetch_one(NEXT, webhook_id, clock.now())
    return None if row is None else DueDelivery(int(row[0]), Event(*row[1:]))


async def record_attempt(
    transaction: Transaction, leased_receiver: LeasedReceiver, due_delivery: DueDelivery, outcome: DeliveryOutcome
) -> LeasedReceiver:
    """Record an attempt and extend the lease. Return the receiver with its new number of failures.

    Raises:
        LeaseLost: this node no longer holds the lease.
    """
    now = clock.now()
    failures = 0 if outcome.is_delivered else leased_receiver.failures + 1
    rest_until = now if outcome.is_delivered else clock.later(now, seconds=outbox.backoff_s(failures))
    leased_until = clock.later(now, seconds=LEASE_S)
    delivered_at = now if outcome.is_delivered else None
    # Run this statement first. The second of two nodes then waits for the first, and finds that its lease is lost.
    if not await transaction.run(
        KEEP, leased_receiver.id, leased_receiver.lease, leased_until, rest_until, failures, delivered_at
    ):
        raise LeaseLost(leased_receiver.id)
    state, due_at, ended_at = _next_state(now, due_delivery.attempts + 1, outcome)
    await transaction.run(
        MARK, leased_receiver.id, due_delivery.event.id, state, due_at, ended_at, outcome.answer, outcome.fault
    )
    return leased_receiver._replace(failures=failures)


def _next_state(now: Instant, attempts: int, outcome: DeliveryOutcome) -> tuple[str, Instant, Instant | None]:
    """Return the state, the time of the next attempt and the end of a delivery after this number of attempts."""
    if outcome.is_delivered:
        return "delivered", now, now
    pause_s = outbox.retry_delay_s(attempts)
    return ("given_up", now, now) if pause_s is None else ("waiting", clock.later(now, seconds=pause_s), None)


async def end_lease(database: Database, leased_receiver: LeasedReceiver) -> None:
    """End the lease, so that any node can lease the receiver."""
    async with database.transaction() as transaction:
        await transaction.run(END_LEASE, leased_receiver.id, leased_receiver.lease)


POLL_EVERY_S = 1.0
MAX_LANES = 64
MAX_IN_A_ROW = 200
"""The maximum number of consecutive deliveries to one receiver if more receivers than lanes have due deliveries. Then
another receiver gets the lane."""
CLOSING_S = 3.0


class Sender:
    """Sends to several receivers in parallel, and to each receiver one event after the other.

    A failing receiver occupies its lane for at most ten seconds, then backs off.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False
        self._is_held = False
        self._log = telemetry.logger("webhooks")
        self._failure_logs: dict[str, ThrottledErrorLog] = {}

    async def open(self) -> None:
        """Start a lane for every receiver with due deliveries, up to MAX_LANES. While deliveries are paused, start no
        lane.

        Raises:
            Unavailable: the database cannot be reached.
        """
        was_held, self._is_held = self._is_held, await outbox.paused_since(self._outbox.database) is not None
        if self._is_held:
            if not was_held:
                event = "deliveries are paused, since this installation was restored"
                self._log.warning(event, remedy=outbox.RESUME_COMMAND)
            return
        free_lanes = MAX_LANES - len(self._lanes)
        if free_lanes <= 0:
            return
        for webhook_id in await ready_receivers(self._outbox.database, free_lanes):
            if webhook_id not in self._lanes:
                lane = asyncio.create_task(self._serve(webhook_id), name=webhook_id)
                self._lanes[webhook_id] = lane
                lane.add_done_callback(self._log_ended_lane)

    async def drain(self) -> None:
        """Wait until every lane has sent its due deliveries."""
        while self._lanes:
            await asyncio.wait(tuple(self._lanes.values()))

    async def close(self) -> None:
        """Start no more deliveries, and wait a few seconds for the deliveries in progress. Interrupted deliveries are
        sent again later."""
        self._is_closing = True
        if self._lanes:
            await asyncio.wait(tuple(self._lanes.values()), timeout=CLOSING_S)
        pending_lanes = tuple(self._lanes.values())
        for lane in pending_lanes:
            lane.cancel()
        if pending_lanes:
            await asyncio.wait(pending_lanes)

    async def _serve(self, webhook_id: str) -> None:
        database = self._outbox.database
        try:
            leased_receiver = await take_lease(database, webhook_id)
            if leased_receiver is None:
                return
            secrets = receivers.signing_secrets(self._outbox.master, leased_receiver.secrets)
            for _ in range(MAX_IN_A_ROW):
                due_delivery = None if self._is_closing else await next_delivery(database, webhook_id)
                if due_delivery is None:
                    break
                outcome = await self._attempt(leased_receiver, secrets, due_delivery)
                async with database.transaction() as transaction:
                    leased_receiver = await record_attempt(transaction, leased_receiver, due_delivery, outcome)
                if not outcome.is_delivered:
                    break
            await end_lease(database, leased_receiver)
        except LeaseLost:
            self._log.warning("a receiver was taken over by another node", webhook=webhook_id)
        except Refused as refused:
            error_log = ThrottledErrorLog("webhooks", "deliveries to a receiver failed")
            failures_log = self._failure_logs.setdefault(webhook_id, error_log)
            failures_log.failed(refused, webhook=webhook_id)
        else:
            if failures_log := self._failure_logs.pop(webhook_id, None):
                failures_log.over(webhook=webhook_id)

    async def _attempt(
        self, leased_receiver: LeasedReceiver, secrets: list[str], due_delivery: DueDelivery
    ) -> DeliveryOutcome:
        """Send the event once. Neither the receiver's address nor its response is logged."""
        body = due_delivery.event.body(self._outbox.source)
        headers = signatures.signature_headers(secrets, due_delivery.event.id, clock.now(), body)
        try:
            return DeliveryOutcome(
                await safe_http_client.post(leased_receiver.url, body, headers, allows_private=self._outbox.is_private)
            )
        except RequestTimeout:
            return DeliveryOutcome(fault="timeout")
        except Unreachable:
            # Omit the reason, which would reveal the structure of our network.
            return DeliveryOutcome(fault="unreachable")

    def _log_ended_lane(self, lane: asyncio.Task[None]) -> None:
        self._lanes.pop(lane.get_name(), None)
        if not lane.cancelled() and (error := lane.exception()) is not None:
            self._log.error("a lane ended by a fault", webhook=lane.get_name(), exc_info=error)


@asynccontextmanager
async def send_deliveries(outbox: Outbox) -> AsyncGenerator[None]:
    """Send due deliveries while the block lasts."""
    lanes = Sender(outbox)
    try:
        async with periodic(lanes.open, every_s=POLL_EVERY_S):
            yield
    finally:
        await lanes.close()
