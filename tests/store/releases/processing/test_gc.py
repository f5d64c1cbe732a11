"""Chunks without uses are removed, chunks in use are kept, and no other writer waits for the removal."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.store.releases import blob_gc
from countersign.store.releases.processing import builds, chunk_gc
from tests.store.releases.processing.works import JobRunner, noise, tar

SHARED = {"shared": noise(1_000_000, 1)}
FIRST = {**SHARED, "first": noise(3_000_000, 2)}
SECOND = {**SHARED, "second": noise(200_000, 3)}


async def remove(works: JobRunner, version: str) -> None:
    path = f"/products/{works.shop.product_id}/releases/{version}"
    answer = await works.shop.world.call("DELETE", path, works.shop.token)
    assert answer.status_code == 204, answer.text


async def chunk_names(works: JobRunner) -> set[str]:
    return {name for (name,) in await works.store.database.fetch("SELECT id FROM chunk")}


async def assert_whole(works: JobRunner, artifact_id: str) -> None:
    report = await works.run_job("artifact.verify", artifact_id)
    assert report["ok"], report["findings"]


def hours_later(hours: float) -> Instant:
    return clock.later(clock.now(), seconds=hours * 3600)


async def collect_from(works: JobRunner, hours: float) -> None:
    """Run the collector after these hours, and again a day later, when what it found unused can be removed."""
    for hours_passed in (hours, hours + 25):
        with clock.fixed(hours_later(hours_passed)):
            await blob_gc.collect(works.store, is_confirmed=True)


async def test_a_removed_draft_releases_only_its_own_chunks(works: JobRunner) -> None:
    await works.upload_and_process(tar(FIRST), "2.0.0")
    kept_build = await works.upload_and_process(tar(SECOND), "2.1.0")
    names_before = await chunk_names(works)

    await remove(works, "2.0.0")
    assert await chunk_names(works) == names_before, "builds under way may be about to use them"
    with clock.fixed(hours_later(2)):
        swept = await chunk_gc.sweep(works.store)

    assert swept.chunks == len(names_before) - len(await chunk_names(works)) > 0
    await assert_whole(works, kept_build["artifact_id"])


async def test_a_mostly_empty_pack_is_rewritten_and_its_bytes_are_freed(works: JobRunner) -> None:
    await works.upload_and_process(tar(FIRST), "2.0.0")
    kept_build = await works.upload_and_process(tar(SECOND), "2.1.0")
    packs = {sha256 for (sha256,) in await works.store.database.fetch("SELECT sha256 FROM pack")}
    await remove(works, "2.0.0")

    with clock.fixed(hours_later(2)):
        first_sweep = await chunk_gc.sweep(works.store)
    with clock.fixed(hours_later(4)):
        second_sweep = await chunk_gc.sweep(works.store)
    await collect_from(works, 4)

    assert (first_sweep.repacked, second_sweep.packs) == (1, 1)
    remaining_packs = {sha256 for (sha256,) in await works.store.database.fetch("SELECT sha256 FROM pack")}
    gone_packs = packs - remaining_packs
    assert len(gone_packs) == 1
    assert await works.store.blobs.size(gone_packs.pop()) is None
    await assert_whole(works, kept_build["artifact_id"])


async def test_deleting_the_last_build_deletes_all_chunks(works: JobRunner) -> None:
    await works.upload_and_process(tar(FIRST), "2.0.0")
    await remove(works, "2.0.0")

    with clock.fixed(hours_later(2)):
        await chunk_gc.sweep(works.store)
        await chunk_gc.sweep(works.store)
    await collect_from(works, 2)

    assert await chunk_names(works) == set()
    assert await works.store.database.fetch("SELECT id FROM pack") == []
    assert [sha256 async for sha256, *_ in works.store.blobs.sealed_blobs()] == []


async def test_a_build_keeps_a_needed_chunk_that_was_just_released(works: JobRunner) -> None:
    await works.upload_and_process(tar(FIRST), "2.0.0")
    other_artifact = await works.upload(tar({**FIRST, "more": b"more"}), "2.1.0")
    outcome = await works.outcome("build.process", other_artifact)

    await remove(works, "2.0.0")
    with clock.fixed(hours_later(2)):
        await works.keep(outcome)
        await chunk_gc.sweep(works.store)

    await assert_whole(works, other_artifact)


async def test_a_build_whose_chunks_were_collected_meanwhile_is_complete_or_not_kept(works: JobRunner) -> None:
    await works.upload_and_process(tar(FIRST), "2.0.0")
    other_artifact = await works.upload(tar({**FIRST, "more": b"more"}), "2.1.0")
    outcome = await works.outcome("build.process", other_artifact)

    await remove(works, "2.0.0")
    with clock.fixed(hours_later(2)):
        await chunk_gc.sweep(works.store)
        await chunk_gc.sweep(works.store)
        await blob_gc.collect(works.store)
        with pytest.raises(Exception, match=r"(?i)foreign key|gone"):
            await works.keep(outcome)
    assert await builds.build(works.store.database, other_artifact) is None

    await works.run_job("build.process", other_artifact)
    await assert_whole(works, other_artifact)


async def test_garbage_collection_during_builds_never_breaks_a_build(works: JobRunner) -> None:
    for number in range(3):
        await works.upload_and_process(tar({**SHARED, "own": noise(400_000, 10 + number)}), f"3.{number}.0")
    waiting_builds = [
        await works.upload(tar({**SHARED, "new": noise(400_000, 20 + number)}), f"4.{number}.0") for number in range(3)
    ]

    async def sweep_again_and_again() -> None:
        for _ in range(6):
            await chunk_gc.sweep(works.store, min_idle_s=0)
            await asyncio.sleep(0)

    async def build(artifact_id: str) -> None:
        for attempt in range(5):
            outcome = await works.outcome("build.process", artifact_id)
            try:
                await works.keep(outcome)
            except Exception:  # the chunks were removed in the meantime: the runner retries
                assert attempt < 4
            else:
                return

    removals = [remove(works, f"3.{number}.0") for number in range(3)]
    await asyncio.gather(sweep_again_and_again(), *removals, *(build(number) for number in waiting_builds))

    for artifact_id in waiting_builds:
        await assert_whole(works, artifact_id)


async def test_only_drafts_are_removed_and_only_by_their_own(works: JobRunner) -> None:
    world, path = works.shop.world, f"/products/{works.shop.product_id}/releases"
    await works.upload_and_process(tar(FIRST), "2.0.0")
    stranger = await world.person("s@south.example", south="owner")

    assert (await world.call("DELETE", f"{path}/2.0.0", stranger)).status_code in (403, 404)
    assert (await world.call("DELETE", f"{path}/2.0.0")).status_code == 401
    assert (await world.call("DELETE", f"{path}/7.7.7", works.shop.token)).status_code == 404
    published_response = await world.call("DELETE", f"{path}/1.0.0", works.shop.token)
    assert (published_response.status_code, published_response.json()["code"]) == (409, "release_published")
