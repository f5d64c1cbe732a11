"""Plans: the cheapest way for each file, from manifests alone."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.updates import planner
from countersign.updates.api_types import DeltaOffer, position_ranges
from countersign.updates.planner import ChunkLocation, LocalFiles, UpdatePlan, positions
from tests.updates.builds import BuildServer, SampleBuild, build

CHANCE = random.Random(4)
BIG = CHANCE.randbytes(500_000)
OLD = build("1.0", {"a": BIG, "b": b"b" * 3000, "c": b"c"}, executables=("b",))
NEW = build("2.0", {"a": BIG + b"more", "moved/b": b"b" * 3000, "c": b"c", "d": CHANCE.randbytes(9000)})


def local(installed: SampleBuild, damaged: Iterable[str] = ()) -> LocalFiles:
    """Return the build on disk, complete except for some files, of which no part remains."""
    files = {file.path: (file.sha256, file.mode) for file in installed.manifest.files if file.path not in set(damaged)}
    spots: dict[str, ChunkLocation] = {}
    for file in installed.manifest.files:
        offset = 0
        for chunk_position in file.chunks if file.path in files else ():
            chunk = installed.manifest.chunks[chunk_position]
            spots.setdefault(chunk.id, ChunkLocation(file.path, offset))
            offset += chunk.size
    return LocalFiles(files, spots, installed.manifest, installed.sha256)


def plan(shelf: BuildServer, local_files: LocalFiles, *, memory_bytes: int = planner.MEMORY_BYTES) -> UpdatePlan:
    """Return the plan for the build of the shelf."""
    wanted_build = shelf.wanted
    offer = shelf.offer(shelf.older.version) if shelf.older else None
    return planner.plan(
        wanted_build.manifest, wanted_build.sha256, local_files, shelf.places(), offer, memory_bytes=memory_bytes
    )


def paths(update_plan: UpdatePlan, wanted_build: SampleBuild = NEW) -> dict[str, list[str]]:
    """Return the files' paths by the planned operation."""
    files = wanted_build.manifest.files
    by_delta = [position for delta in update_plan.deltas for position in positions(delta.files, len(files))]
    return {
        "kept": [files[position].path for position in update_plan.kept],
        "copied": [files[position].path for position, _ in update_plan.copied],
        "deltas": [files[position].path for position in by_delta],
        "assembled": [files[position].path for position in update_plan.assembled],
    }


def test_each_file_is_updated_from_the_cheapest_source() -> None:
    updated_paths = paths(plan(BuildServer(NEW, OLD), local(OLD)))

    assert updated_paths == {"kept": ["c"], "copied": ["moved/b"], "deltas": ["a", "d"], "assembled": []}


def test_without_deltas_only_missing_chunks_are_fetched() -> None:
    shelf = BuildServer(NEW)

    update_plan = plan(shelf, local(OLD))

    new_frames = {name: frame for name, frame in NEW.frames.items() if name not in OLD.frames}
    assert paths(update_plan)["assembled"] == ["a", "d"]
    assert update_plan.fetch_bytes == sum(map(len, new_frames.values())) < 200_000


def test_a_chunk_that_two_files_need_is_counted_once() -> None:
    wanted_build = build("1", {"one": BIG, "two": BIG + b"!"})

    update_plan = plan(BuildServer(wanted_build), LocalFiles())

    assert update_plan.fetch_bytes == sum(map(len, wanted_build.frames.values()))
    assert update_plan.write_bytes >= 2 * len(BIG)


def test_a_first_install_takes_the_artifact_when_it_is_smaller() -> None:
    small = build("1", {"one": BIG}, artifact=b"small")

    update_plan = plan(BuildServer(small), LocalFiles())

    assert update_plan.artifact
    assert update_plan.fetch_bytes == 5


@pytest.mark.parametrize("damaged", ["a", "b"])
def test_a_delta_is_not_used_if_one_of_its_old_files_is_damaged(damaged: str) -> None:
    update_plan = plan(BuildServer(NEW, OLD), local(OLD, [damaged]))

    assert update_plan.deltas == []


def test_a_delta_that_needs_too_much_memory_is_not_used() -> None:
    assert plan(BuildServer(NEW, OLD), local(OLD), memory_bytes=1 << 20).deltas == []


def test_deltas_between_other_builds_are_not_used() -> None:
    shelf = BuildServer(NEW, OLD)
    offer = shelf.offer("1.0")
    assert offer is not None
    foreign = DeltaOffer("ready", "1.0", "2.0", "0" * 64, NEW.sha256, offer.deltas)

    update_plan = planner.plan(NEW.manifest, NEW.sha256, local(OLD), shelf.places(), foreign)

    assert update_plan.deltas == []


@pytest.mark.parametrize("bad_positions", [[(0, 99)], [(2, 1)], [(0, 2), (1, 3)], [(-1, 1)]], ids=str)
def test_a_delta_with_invalid_positions_is_not_used(bad_positions: list[tuple[int, int]]) -> None:
    shelf = BuildServer(NEW, OLD)
    delta = shelf.deltas[0]
    shelf.deltas[0] = type(delta)(delta.url, delta.size, delta.sha256, bad_positions, delta.files, delta.memory)

    assert plan(shelf, local(OLD)).deltas == []


def test_a_file_with_only_a_wrong_mode_costs_a_copy() -> None:
    other_build = build("1.0", OLD.contents)

    update_plan = plan(BuildServer(other_build), local(OLD))

    assert paths(update_plan, other_build)["copied"] == ["b"]
    assert update_plan.fetch_bytes == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_every_file_is_in_one_place_and_nothing_costs_more_than_all_chunks(seed: int) -> None:
    rng = random.Random(seed)
    contents = [rng.randbytes(rng.randrange(60_000)) for _ in range(6)]
    older = build("1", {f"f{n}": rng.choice(contents) for n in range(5)})
    newer = build("2", {f"f{n}": rng.choice(contents) for n in range(8)})
    damaged = [f"f{n}" for n in range(5) if rng.random() < 0.3]

    update_plan = plan(BuildServer(newer), local(older, damaged))

    all_positions = [*update_plan.kept, *(position for position, _ in update_plan.copied), *update_plan.assembled]
    assert sorted(all_positions) == list(range(len(newer.manifest.files)))
    assert update_plan.fetch_bytes <= sum(map(len, newer.frames.values()))


@given(st.sets(st.integers(0, 60)))
def test_positions_come_back_from_ranges(wanted_positions: set[int]) -> None:
    assert positions(position_ranges(sorted(wanted_positions)), 61) == sorted(wanted_positions)
