"""Sending what is due: a lane for each receiver, so that none waits for another."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from countersign.kernel import clock, safe_http_client, telemetry
from countersign.kernel.concurrency import periodic
from countersign.kernel.errors import Refused
from countersign.kernel.safe_http_client import TooSlow, Unreachable
from countersign.kernel.telemetry import ThrottledErrorLog
from countersign.kernel.webhooks import holding, leases, receivers, signing
from countersign.kernel.webhooks.leases import Due, Held, LeaseLost, Outcome
from countersign.kernel.webhooks.outbox import Outbox

LOOK_EVERY_S = 1.0
MAX_LANES = 64
MAX_IN_A_ROW = 200
"""Then others come first, where there are more receivers than lanes."""
CLOSING_S = 3.0


class Lanes:
    """Sends to receivers side by side, to each one event after the other.

    A receiver that fails has cost its lane ten seconds at most, and is left alone for a while.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False
        self._is_held = False
        self._log = telemetry.logger("webhooks")
        self._troubles: dict[str, ThrottledErrorLog] = {}

    async def open(self) -> None:
        """Begin to send to every receiver that something is due for, as far as there are lanes; to none while all is
        held.

        Raises:
            Unavailable: the database is away.
        """
        was_held, self._is_held = self._is_held, await holding.since(self._outbox.database) is not None
        if self._is_held:
            if not was_held:
                self._log.warning("nothing goes out, since this was restored", remedy=holding.COMMAND)
            return
        free = MAX_LANES - len(self._lanes)
        if free <= 0:
            return
        for webhook_id in await leases.ready(self._outbox.database, free):
            if webhook_id not in self._lanes:
                lane = asyncio.create_task(self._serve(webhook_id), name=webhook_id)
                self._lanes[webhook_id] = lane
                lane.add_done_callback(self._done)

    async def settled(self) -> None:
        """Wait until every lane has sent what was due."""
        while self._lanes:
            await asyncio.wait(tuple(self._lanes.values()))

    async def close(self) -> None:
        """Send nothing more; give what is on its way a few seconds. What is cut off then is sent again."""
        self._is_closing = True
        if self._lanes:
            await asyncio.wait(tuple(self._lanes.values()), timeout=CLOSING_S)
        left = tuple(self._lanes.values())
        for lane in left:
            lane.cancel()
        if left:
            await asyncio.wait(left)

    async def _serve(self, webhook_id: str) -> None:
        database = self._outbox.database
        try:
            held = await leases.take(database, webhook_id)
            if held is None:
                return
            secrets = receivers.signing_secrets(self._outbox.master, held.secrets)
            for _ in range(MAX_IN_A_ROW):
                due = None if self._is_closing else await leases.next_due(database, webhook_id)
                if due is None:
                    break
                outcome = await self._attempt(held, secrets, due)
                async with database.transaction() as transaction:
                    held = await leases.mark(transaction, held, due, outcome)
                if not outcome.is_delivered:
                    break
            await leases.let_go(database, held)
        except LeaseLost:
            self._log.warning("a receiver was taken over by another node", webhook=webhook_id)
        except Refused as refused:
            trouble = self._troubles.setdefault(webhook_id, ThrottledErrorLog("webhooks", "a receiver was left alone"))
            trouble.failed(refused, webhook=webhook_id)
        else:
            if trouble := self._troubles.pop(webhook_id, None):
                trouble.over(webhook=webhook_id)

    async def _attempt(self, held: Held, secrets: list[str], due: Due) -> Outcome:
        """What the receiver says to the event. Neither its address nor anything it says is logged."""
        body = due.event.body(self._outbox.source)
        headers = signing.headers(secrets, due.event.id, clock.now(), body)
        try:
            return Outcome(await safe_http_client.post(held.url, body, headers, private=self._outbox.is_private))
        except TooSlow:
            return Outcome(fault="timeout")
        except Unreachable:
            # Not why: it would tell what our network looks like from inside.
            return Outcome(fault="unreachable")

    def _done(self, lane: asyncio.Task[None]) -> None:
        self._lanes.pop(lane.get_name(), None)
        if not lane.cancelled() and (error := lane.exception()) is not None:
            self._log.error("a lane ended by a fault", webhook=lane.get_name(), exc_info=error)


@asynccontextmanager
async def sending(outbox: Outbox) -> AsyncGenerator[None]:
    """While the block lasts, what is due is sent."""
    lanes = Lanes(outbox)
    try:
        async with periodic(lanes.open, every_s=LOOK_EVERY_S):
            yield
    finally:
        await lanes.close()
