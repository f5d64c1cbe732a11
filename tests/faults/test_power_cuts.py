"""Power cuts: data that was acknowledged before the cut exists after it, in databases and in uploaded files."""

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.faults import frail_worker, places
from tests.faults.crowd import ClientPool
from tests.faults.errands import WriteLost
from tests.faults.lives import RestartableService
from tests.faults.preload import compile_library
from tests.faults.volumes import PoweredVolume
from tests.figures import Figures

CUTS, CUTS_FULL, CUTS_OF_THE_CONTROL = 2, 50, 5
"""The number of cuts of each service."""
HANDS, HANDS_FULL = 4, 8
VOLUME_MIB = 256
WITHIN_S = (0.2, 0.8)


class PowerCutService:
    """A service on a volume that loses its power."""

    def __init__(self, service: str, folder: Path, client_count: int) -> None:
        self.volume = PoweredVolume(folder / "volume", VOLUME_MIB)
        self.lives = RestartableService(self.volume.folder / "data", service)
        self.lives.log = folder / "log"
        self.crowd = ClientPool(self.lives, places.fill_for(self.lives), 0)
        self.cuts = 0
        self._hands = client_count
        self.dropped = 0
        self._chance = random.Random(service)
        self.volume.settle()

    async def suffer(self, cuts: int) -> None:
        """Work and cut the power repeatedly. Check the answers of each life in the next life.

        Raises:
            WriteLost, WriteDoubled: something is missing, or happened twice.
        """
        self.lives.start()
        for _ in range(cuts):
            touched = await self._one_cut()
            self.volume.restore()
            places.require_sound(self.crowd.about)
            self.lives.start()
            for number in touched:
                await self.crowd.run_errand(number)

    async def _one_cut(self) -> list[int]:
        """Return the errands with requests in this life, without the answers that came after the power cut."""
        ledgers = self.crowd.about.ledgers
        ledgers_before = set(ledgers)
        client_tasks = [asyncio.create_task(self.crowd.work()) for _ in range(self._hands)]
        await asyncio.sleep(self._chance.uniform(*WITHIN_S))
        for client_task in client_tasks:
            if client_task.done():
                client_task.result()
        cut_s = time.monotonic()
        self.volume.cut_power()
        self.lives.kill()
        for client_task in client_tasks:
            client_task.cancel()
        await asyncio.gather(*client_tasks, return_exceptions=True)
        self.cuts += 1
        self.dropped += sum(ledger.doubt(cut_s) for ledger in ledgers.values())
        return [number for number in ledgers if number not in ledgers_before]

    def close(self) -> None:
        """End everything."""
        self.lives.kill()
        self.volume.remove()


@pytest.fixture(params=["distribution", "records"])
def site(request: pytest.FixtureRequest, tmp_path: Path, is_full: bool) -> Iterator[PowerCutService]:
    """Each service on a volume of its own."""
    power_cut_service = PowerCutService(request.param, tmp_path, HANDS_FULL if is_full else HANDS)
    yield power_cut_service
    power_cut_service.close()


def test_no_acknowledged_write_is_lost_in_a_power_cut(site: PowerCutService, is_full: bool, figures: Figures) -> None:
    asyncio.run(site.suffer(CUTS_FULL if is_full else CUTS))

    asyncio.run(site.crowd.look_at_all())
    assert site.lives.stop() == 0
    places.require_sound(site.crowd.about)
    places.require_once(site.crowd.about)
    ledgers = site.crowd.about.ledgers.values()
    figures |= {
        "cuts": site.cuts,
        "errands": len(ledgers),
        "acknowledged": site.crowd.about.answered_count,
        "answers_after_the_cut": site.dropped,
        "kept_unheard": sum(ledger.found_unheard for ledger in ledgers),
        "lost": 0,
        "damaged": 0,
    }


def test_a_service_with_ineffective_syncs_is_detected(site: PowerCutService, tmp_path: Path, figures: Figures) -> None:
    site.lives.settings |= {
        "LD_PRELOAD": str(compile_library("frail", tmp_path)),
        "FRAIL_UNDER": str(site.volume.folder),
        "FRAIL_MODE": str(frail_worker.SYNC_LIES),
    }

    with pytest.raises((WriteLost, apsw.Error, RuntimeError)) as refusal:
        asyncio.run(site.suffer(CUTS_OF_THE_CONTROL))

    figures |= {"cuts": site.cuts, "found": "lost" if isinstance(refusal.value, WriteLost) else "damaged"}
