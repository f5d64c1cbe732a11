"""A full volume under each service: writes are refused as documented, reads go on, and writes go on as soon as there is
space."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import places, volumes
from tests.faults.crowd import ClientPool, over_the_wire
from tests.faults.errands import FULL, Request
from tests.faults.lives import RestartableService
from tests.figures import Figures

VOLUME_MIB = 96
BEFORE, TRIES = 4, 12
AGAIN_WITHIN_S = 60
READS = {
    "distribution": (Request("GET", "/api/v1/products?limit=20"), Request("GET", "/healthz")),
    "records": (Request("GET", "/api/commands"), Request("POST", "/api/lead/list", body=b'{"limit": 20}')),
}


class SmallDiskService:
    """A service on a small volume, and its clients."""

    def __init__(self, service: str, volume: Path) -> None:
        self.volume = volume
        self.lives = RestartableService(volume / "data", service)
        self.lives.log = volume.with_name("log")
        self.crowd = ClientPool(self.lives, places.fill_for(self.lives), 0)

    async def refusals(self, tries: int) -> list[object]:
        """Return the refusal of each of `tries` errands, if it was refused."""
        outcomes = [await self.crowd.try_once() for _ in range(tries)]
        return [match.args[0] for match in outcomes if match is not None]

    async def reads(self) -> list[int]:
        """Return the statuses of reads."""
        say, token = over_the_wire(self.lives.port), self.crowd.about.tokens[0]
        return [(await say(request._replace(token=token))).status for request in READS[self.lives.service]]

    async def until_it_writes(self) -> float:
        """Return the seconds, after space was freed, until an errand succeeds."""
        began_s = time.monotonic()
        while await self.refusals(1):
            assert time.monotonic() < began_s + AGAIN_WITHIN_S
            await asyncio.sleep(0.05)
        return time.monotonic() - began_s


@pytest.fixture(params=["distribution", "records"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDiskService]:
    """Each service."""
    volume = tmp_path / "volume"
    volumes.mount_memory(volume, VOLUME_MIB)
    small_disk_service = SmallDiskService(request.param, volume)
    yield small_disk_service
    small_disk_service.lives.kill()
    volumes.unmount(volume)


@pytest.mark.parametrize("reserve_mib", [0, 16])
def test_writes_on_a_full_volume_are_refused_and_succeed_when_space_is_freed(
    site: SmallDiskService, reserve_mib: int, figures: Figures
) -> None:
    site.lives.settings["COUNTERSIGN_RESERVE_MIB"] = str(reserve_mib)
    site.lives.start()
    assert not asyncio.run(site.refusals(BEFORE))
    pid = site.lives.pid

    ballast = volumes.fill_volume(site.volume)
    # Pages that the log already has can take a few more.
    refused_codes = asyncio.run(site.refusals(TRIES))
    read_statuses = asyncio.run(site.reads())
    ballast.unlink()
    again_s = asyncio.run(site.until_it_writes())

    assert set(refused_codes) == {FULL}
    assert read_statuses == [200, 200]
    asyncio.run(site.crowd.look_at_all())
    assert site.lives.pid == pid
    site.lives.require_alive()
    # Acknowledged data is also in the file, not only in the memory of the process.
    site.lives.kill()
    site.lives.start()
    asyncio.run(site.crowd.look_at_all())
    assert site.lives.stop() == 0
    places.require_sound(site.crowd.about)
    places.require_once(site.crowd.about)
    figures |= {
        "volume_mib": VOLUME_MIB,
        "reserve_mib": reserve_mib,
        "acknowledged": site.crowd.about.answered_count,
        "refused_507": len(refused_codes),
        "lost": 0,
        "works_again_after_s": round(again_s, 2),
    }
