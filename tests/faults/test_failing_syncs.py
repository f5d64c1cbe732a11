"""A sync that fails: whoever waited for it is refused, nothing is written any more, and the next start has it all."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.faults import frail_worker, places
from tests.faults.crowd import Crowd
from tests.faults.frail import Frail, built, frail
from tests.faults.lives import Lives
from tests.faults.places import Place
from tests.figures import Figures

RUNS, RUNS_FULL = 4, 100
"""Of each service."""
HANDS = (1, 6)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Frail]:
    """A process whose disk is frail below the test's folder."""
    with frail(built(tmp_path), tmp_path) as made:
        yield made


def test_after_a_sync_that_failed_all_writes_are_refused_and_a_new_start_has_what_was_acknowledged(
    worker: Frail, place: Place, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    chance = random.Random(5)
    about = places.copied(place, tmp_path / "data", 1)
    syncs = worker.live(about, frail_worker.SYNC_FAILS).syncs
    shutil.rmtree(about.data)
    failed = acknowledged = in_doubt = kept = 0
    for run in range(RUNS_FULL if is_full else RUNS):
        about = places.copied(place, tmp_path / "data", HANDS[run % len(HANDS)])

        life = worker.live(about, frail_worker.SYNC_FAILS, chance.randint(1, syncs))

        assert life.ended in (frail_worker.DONE, frail_worker.TURNED), life.wrong
        # An upload whose own bytes could not be made durable is refused alone.
        if set(life.turned) - {"upload"}:
            assert len(life.turned) == len(about.ledgers), "a write was acknowledged after a commit had failed"
        failed += life.ended == frail_worker.TURNED
        acknowledged += about.heard
        in_doubt += about.in_doubt
        places.require_sound(about)
        again = worker.live(about)
        assert again.ended == frail_worker.DONE, again.wrong
        kept += again.found_unheard
        places.require_once(about)
        shutil.rmtree(about.data)

    assert failed
    figures |= {
        "runs_with_a_failed_sync": failed,
        "acknowledged": acknowledged,
        "refused": in_doubt,
        "refused_and_found_kept": kept,
        "lost": 0,
        "doubled": 0,
    }


@pytest.mark.parametrize("service", ["distribution", "records"])
def test_a_server_ends_after_a_commit_that_failed_on_the_disk_and_the_next_one_goes_on(
    service: str, tmp_path: Path
) -> None:
    lives = Lives(tmp_path / "data", service)
    crowd = Crowd(lives, places.served(lives), 0)
    sound = dict(lives.settings)
    lives.settings |= {"LD_PRELOAD": str(built(tmp_path)), "FRAIL_UNDER": str(lives.data / f"{service}.sqlite")}
    lives.settings |= {"FRAIL_MODE": str(frail_worker.SYNC_FAILS), "FRAIL_AT": "8"}
    try:
        lives.start()
        turned = asyncio.run(crowd.try_once())

        assert turned is not None
        assert turned.args == (503,)
        assert lives.end() == Exit.FAILED
        said = lives.log.read_text()
        assert "the disk failed while a change was made durable" in said
        assert "Traceback" not in said

        lives.settings = sound
        lives.start()
        asyncio.run(crowd.look_at_all())
        assert lives.stop() == 0
    finally:
        lives.kill()
    places.require_once(crowd.about)
