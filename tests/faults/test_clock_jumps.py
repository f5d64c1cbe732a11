"""While many clients write, the wall clock of the machine jumps forward and back: nothing is lost or done twice."""

import asyncio
import random
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.faults import places, wire
from tests.faults.crowd import ClientPool
from tests.faults.lives import RestartableService
from tests.faults.preload import compile_library
from tests.figures import Figures

HANDS, HANDS_FULL = 3, 8
PAUSE_S, PAUSE_S_FULL = 0.6, 0.0
JUMPS, JUMPS_FULL = 6, 100
AHEAD_S = {
    # A token is valid from its issue on, with a tolerance of a minute, so the clock must not go back further.
    "distribution": (-30, 600, 1_800, 30, 1_200, -30),
    "records": (-43_200, -3_600, -30, 30, 600, 1_800),
}
"""No jump, including the one from the last to the first, exceeds the validity of tokens (an hour) and of
Idempotency-Keys (a day)."""
WITHIN_S = (0.1, 0.5)
SEEN_S, NEAR_S = 20, 10


class ShiftedClockService:
    """A served service that reads the offset of its clock from a file."""

    def __init__(self, lives: RestartableService, folder: Path) -> None:
        self._lives = lives
        self._file = folder / "ahead_s"
        self.set(0)
        lives.settings |= {"LD_PRELOAD": str(compile_library("wound", folder)), "WOUND_BY": str(self._file)}

    def set(self, ahead_s: int) -> None:
        """Move the clock of the service ahead by this much from now on."""
        # Write in place: the process has mapped this file, not its name.
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead_s))

    async def jump(self, ahead_s: int) -> None:
        """Set the clock, and wait until the service's answers show it; they keep their Date for a second.

        Raises:
            TimeoutError: they never show it.
        """
        self.set(ahead_s)
        async with asyncio.timeout(SEEN_S):
            while abs(await self._ahead_s() - ahead_s) > NEAR_S:
                await asyncio.sleep(0.1)

    async def _ahead_s(self) -> float:
        answer = await wire.call(self._lives.port, "GET", "/")
        return (parsedate_to_datetime(answer.headers["date"]) - datetime.now(UTC)).total_seconds()


@pytest.fixture(params=["distribution", "records"])
def lives(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RestartableService]:
    """Each service, not started yet."""
    service = RestartableService(tmp_path / "data", request.param)
    yield service
    service.kill()


async def wind(wound: ShiftedClockService, crowd: ClientPool, ahead_s: Sequence[int], client_count: int) -> None:
    """Set the clock again and again while the clients work, then finish and check all errands."""
    rng = random.Random(len(ahead_s))
    async with asyncio.TaskGroup() as group:
        for _ in range(client_count):
            group.create_task(crowd.work())
        for seconds in ahead_s:
            await asyncio.sleep(rng.uniform(*WITHIN_S))
            await wound.jump(seconds)
        crowd.is_over = True
    await crowd.look_at_all()


def test_nothing_is_lost_or_doubled_when_the_clock_jumps(
    lives: RestartableService, database_url: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    jumps = JUMPS_FULL if is_full else JUMPS
    ahead_s = [AHEAD_S[lives.service][number % JUMPS] for number in range(jumps)]
    wound = ShiftedClockService(lives, tmp_path)
    crowd = ClientPool(
        lives, places.fill_for(lives, database_url), seed=0, pause_s=PAUSE_S_FULL if is_full else PAUSE_S
    )
    lives.start()

    asyncio.run(wind(wound, crowd, ahead_s, HANDS_FULL if is_full else HANDS))

    assert lives.stop() == 0
    places.require_sound(crowd.about)
    places.require_once(crowd.about)
    figures |= {
        "jumps": jumps,
        "errands": len(crowd.about.ledgers),
        "acknowledged": crowd.about.answered_count,
        "lost": 0,
        "doubled": 0,
    }
