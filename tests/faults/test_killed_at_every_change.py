"""After a kill at any single change to the disk (a write, half a write, a sync, a rename …), no acknowledged data is
lost."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import frail_worker, places
from tests.faults.frail import FaultyDiskWorker, frail
from tests.faults.places import FilledDirectory
from tests.faults.preload import compile_library
from tests.figures import Figures

SAMPLE = 4
MOST = 5_000


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[FaultyDiskWorker]:
    """A process whose disk fails below the test's folder."""
    with frail(compile_library("frail", tmp_path), tmp_path) as faulty_worker:
        yield faulty_worker


@pytest.mark.parametrize(
    "concurrency_and_mode",
    [(1, frail_worker.KILLS), (1, frail_worker.KILLS_TORN), (3, frail_worker.KILLS)],
    ids=["alone", "torn", "together"],
)
def test_nothing_acknowledged_is_lost_when_the_process_is_killed_at_any_change_to_the_disk(
    worker: FaultyDiskWorker,
    place: FilledDirectory,
    tmp_path: Path,
    concurrency_and_mode: tuple[int, int],
    is_full: bool,
    figures: Figures,
) -> None:
    at_once, mode = concurrency_and_mode
    at, points, acknowledged, in_doubt, found_unheard = 0, 0, 0, 0, 0
    step = 0
    while at < MOST:
        errand_run = places.copy_for_errands(place, tmp_path / "data", at_once)
        life = worker.live(errand_run, mode, at)
        assert life.ended in ("killed", frail_worker.DONE), life.wrong
        acknowledged += errand_run.answered_count
        in_doubt += errand_run.in_doubt
        places.require_sound(errand_run)

        # Acknowledged changes exist; unacknowledged ones happen once.
        restarted = worker.live(errand_run)

        assert restarted.ended == frail_worker.DONE, restarted.wrong
        found_unheard += restarted.found_unheard
        places.require_once(errand_run)
        shutil.rmtree(errand_run.data)
        if not at:
            # A run without a kill counts the changes.
            step = 1 if is_full else life.changes // SAMPLE
        elif life.ended == frail_worker.DONE:
            break
        points += bool(at)
        at += step

    assert at < MOST
    assert points
    figures |= {
        "points": points,
        "acknowledged": acknowledged,
        "in_doubt": in_doubt,
        "in_doubt_and_kept": found_unheard,
        "lost": 0,
        "doubled": 0,
    }
