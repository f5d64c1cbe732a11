"""Kills a store at chosen times of its lives, and starts it again."""

import asyncio
import random
import time
from collections.abc import Callable

from tests.faults.lives import RestartableService

WITHIN_S = (0.05, 0.35)
LEAD_S = (0.0, 0.05)
"""The time before the kill at which the clients begin. They are at work by then but cannot finish."""


class StoreKiller:
    """Kills the store at chosen times of its lives, and starts it again."""

    def __init__(self, lives: RestartableService, seed: int) -> None:
        self.lives = lives
        self.rng = random.Random(seed)
        self.kills = 0
        self.restarts_s: list[float] = []

    async def restart(self) -> None:
        """Start the store and wait until it answers."""
        began_s = time.monotonic()
        self.lives.begin()
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.lives.port)
            except OSError:
                self.lives.require_alive()
                assert time.monotonic() < began_s + 120
                await asyncio.sleep(0.005)
                continue
            writer.close()
            await writer.wait_closed()
            self.restarts_s.append(time.monotonic() - began_s)
            return

    async def strike(self, before_strike: Callable[[], None]) -> None:
        """Wait for a random time, call `before_strike` shortly before the end, kill the store and start it again."""
        lead_s = self.rng.uniform(*LEAD_S)
        await asyncio.sleep(self.rng.uniform(*WITHIN_S) - lead_s)
        before_strike()
        await asyncio.sleep(lead_s)
        self.lives.require_alive()
        self.lives.kill()
        self.kills += 1
        await self.restart()
