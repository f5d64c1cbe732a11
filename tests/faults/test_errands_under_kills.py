"""Many clients make every kind of change at both services, while the server is killed again and again."""

import asyncio
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import places
from tests.faults.crowd import ClientPool
from tests.faults.lives import RestartableService
from tests.faults.nemesis import StoreKiller
from tests.figures import Figures

HANDS, HANDS_FULL = 6, 12
PAUSE_S, PAUSE_S_FULL = 0.05, 0.0
KILLS, STINTS_FULL, KILLS_A_STINT = 3, 5, 50
"""1,000 kills in all: 5 stints of 50 of each service on each database, so that an interrupted run can continue."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run one stint, or all stints with --full."""
    if "stint" in metafunc.fixturenames:
        metafunc.parametrize("stint", range(STINTS_FULL if metafunc.config.getoption("--full") else 1))


@pytest.fixture(params=["distribution", "records"])
def lives(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RestartableService]:
    """Each service, not started yet."""
    service = RestartableService(tmp_path / "data", request.param)
    yield service
    service.kill()


async def torment(
    lives: RestartableService, crowd: ClientPool, client_count: int, kills: int, seed: int
) -> StoreKiller:
    """Let the clients work until all kills are done, then finish and check all errands."""
    nemesis = StoreKiller(lives, seed)
    await nemesis.restart()
    async with asyncio.TaskGroup() as group:
        for _ in range(client_count):
            group.create_task(crowd.work())
        while nemesis.kills < kills:
            await nemesis.strike(lambda: None)
        crowd.is_over = True
    await crowd.look_at_all()
    return nemesis


def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed(
    lives: RestartableService, database_url: str, stint: int, is_full: bool, figures: Figures
) -> None:
    filled = places.fill_for(lives, database_url)
    crowd = ClientPool(lives, filled, stint, pause_s=PAUSE_S_FULL if is_full else PAUSE_S)
    client_count, kills = (HANDS_FULL, KILLS_A_STINT) if is_full else (HANDS, KILLS)

    nemesis = asyncio.run(torment(lives, crowd, client_count, kills, stint))

    assert lives.stop() == 0
    places.require_sound(crowd.about)
    places.require_once(crowd.about)
    ledgers = crowd.about.ledgers.values()
    figures |= {
        "kills": nemesis.kills,
        "errands": len(ledgers),
        "acknowledged": crowd.about.answered_count,
        "looked_at_again": sum(ledger.held for ledger in ledgers),
        "kept_unheard": sum(ledger.found_unheard for ledger in ledgers),
        "lost": 0,
        "doubled": 0,
        "ready_again_p50_s": round(statistics.median(nemesis.restarts_s), 3),
        "ready_again_p99_s": round(statistics.quantiles(nemesis.restarts_s, n=100)[98], 3),
    }
