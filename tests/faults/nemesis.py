"""What kills a store at chosen moments of its lives, and starts it again."""

import asyncio
import random
import time
from collections.abc import Callable

from tests.faults.lives import Lives

WITHIN_S = (0.05, 0.35)
LEAD_S = (0.0, 0.05)
"""How long before the kill the crowd is let in: long enough to be at work then, too short to be done."""


class Nemesis:
    """Kills the store at chosen moments of its lives, and starts it again."""

    def __init__(self, lives: Lives, seed: int) -> None:
        self.lives = lives
        self.chance = random.Random(seed)
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
                assert time.monotonic() < began_s + 30
                await asyncio.sleep(0.005)
                continue
            writer.close()
            await writer.wait_closed()
            self.restarts_s.append(time.monotonic() - began_s)
            return

    async def strike(self, before: Callable[[], None]) -> None:
        """Let the life go on for a random while, do something shortly before its end, kill it, start the next."""
        lead_s = self.chance.uniform(*LEAD_S)
        await asyncio.sleep(self.chance.uniform(*WITHIN_S) - lead_s)
        before()
        await asyncio.sleep(lead_s)
        self.lives.require_alive()
        self.lives.kill()
        self.kills += 1
        await self.restart()
