"""Updates are prepared from the builds that people most likely have, and offered with the files that they read and
create."""

import random
from typing import Any

import msgspec
import pytest

from countersign.store.releases.blobs import BlobRemoved
from countersign.store.releases.processing import builds
from countersign.updates.api_types import DeltaOffer
from countersign.updates.deltas.apply import MemoryPiece, contents
from countersign.updates.manifest import Manifest
from tests.store.releases.processing.works import JobRunner, noise, tar

OLD = {"level.dat": noise(800_000, 1), "other.dat": noise(300_000, 2), "same.txt": b"the same"}
NEW = {**OLD, "level.dat": OLD["level.dat"][:400_000] + b"a few new bytes" + OLD["level.dat"][400_000:]}


async def waiting_delta_jobs(works: JobRunner) -> list[tuple[str, str]]:
    rows = await works.store.database.fetch("SELECT payload FROM job WHERE type = 'delta.make' ORDER BY created_at")
    return [tuple(msgspec.json.decode(payload).values()) for (payload,) in rows]


async def publish_build(works: JobRunner, files: dict[str, bytes], version: str, **members: object) -> str:
    result = await works.upload_and_process(tar(files), version, f"game-{version}.tar", **members)
    await works.publish(version)
    return result["artifact_id"]


async def prepare_delta(works: JobRunner, old: str, new: str) -> Any:
    return await works.run_job("delta.make", "", from_artifact=old, to_artifact=new)


async def manifest_of(works: JobRunner, artifact_id: str) -> Manifest:
    build = await builds.build(works.store.database, artifact_id)
    assert build is not None
    return await builds.read_manifest(works.store, build)


def spread(stretches: list[tuple[int, int]]) -> list[int]:
    return [position for start, stop in stretches for position in range(start, stop)]


async def test_a_new_build_has_updates_from_the_newest_builds_of_its_channel(works: JobRunner) -> None:
    build_ids = [await publish_build(works, {**OLD, "v": bytes([number])}, f"1.{number}.0") for number in range(1, 6)]

    waiting_deltas = await waiting_delta_jobs(works)

    expected = [(old, new) for index, new in enumerate(build_ids) for old in build_ids[max(0, index - 3) : index]]
    assert sorted(waiting_deltas) == sorted(expected)


async def test_builds_of_another_platform_are_not_used_as_base_of_an_update(works: JobRunner) -> None:
    await publish_build(works, OLD, "1.1.0", platform="linux")
    await publish_build(works, NEW, "1.2.0", platform="windows")

    assert await waiting_delta_jobs(works) == []


async def test_the_delta_makes_the_new_files_and_is_small(works: JobRunner) -> None:
    old, new = await publish_build(works, OLD, "1.1.0"), await publish_build(works, NEW, "1.2.0")

    result = await prepare_delta(works, old, new)

    assert result["deltas"] == 1
    assert result["size"] < 1000
    offer = msgspec.convert(await works.get("/releases/1.2.0/delta?from=1.1.0"), DeltaOffer)
    assert (offer.status, offer.from_version, offer.to_version) == ("ready", "1.1.0", "1.2.0")
    (delta,) = offer.deltas
    blob = (await works.shop.world.http.get(delta.url)).content
    assert len(blob) == delta.size == result["size"]
    old_manifest, new_manifest = await manifest_of(works, old), await manifest_of(works, new)
    reads = [MemoryPiece(OLD[old_manifest.files[position].path]) for position in spread(delta.old)]
    makes = [new_manifest.files[position] for position in spread(delta.files)]
    made_contents = [b"".join(pieces) for pieces in contents(blob, reads, [file.size for file in makes])]
    assert {file.path: content for file, content in zip(makes, made_contents, strict=True)} == {
        "level.dat": NEW["level.dat"]
    }


async def test_a_build_of_an_older_release_is_the_base_of_updates_to_later_builds(works: JobRunner) -> None:
    await publish_build(works, OLD, "1.1.0", platform="linux")
    later_builds = [
        await publish_build(works, {**NEW, "v": bytes([number])}, f"1.{number}.0", platform="windows")
        for number in range(2, 7)
    ]
    deltas_before = set(await waiting_delta_jobs(works))

    added_build = (await works.upload_and_process(tar(NEW), "1.1.0", "game.tar", platform="windows"))["artifact_id"]

    assert set(await waiting_delta_jobs(works)) - deltas_before == {(added_build, new) for new in later_builds[:3]}


async def test_anyone_sees_the_size_of_the_update_from_the_release_before(works: JobRunner) -> None:
    versions = ("1.1.0", "1.2.0", "1.3.0")
    files: tuple[dict[str, bytes], ...] = (OLD, {**OLD, "level.dat": b"x" + OLD["level.dat"]}, NEW)
    build_ids = [
        await publish_build(works, content, version, platform="linux")
        for version, content in zip(versions, files, strict=True)
    ]
    versions_before = await works.store.versions()
    sizes = {
        (old, new): (await prepare_delta(works, build_ids[old], build_ids[new]))["size"]
        for old, new in ((0, 1), (0, 2), (1, 2))
    }

    listed_updates = {release["version"]: release.get("updates") for release in await works.get("/releases")}

    assert await works.store.versions() > versions_before
    assert listed_updates == {
        "1.3.0": [{"from_version": "1.2.0", "platform": "linux", "size": sizes[1, 2]}],
        "1.2.0": [{"from_version": "1.1.0", "platform": "linux", "size": sizes[0, 1]}],
        "1.1.0": None,
        "1.0.0": None,
    }
    yanked = f"/products/{works.shop.product_id}/releases/1.2.0/yank"
    assert (await works.shop.world.call("POST", yanked, works.shop.token, json={"reason": "Broken"})).is_success
    listed_updates = {release["version"]: release.get("updates") for release in await works.get("/releases")}
    assert listed_updates == {
        "1.3.0": [{"from_version": "1.1.0", "platform": "linux", "size": sizes[0, 2]}],
        "1.1.0": None,
        "1.0.0": None,
    }


async def test_a_delta_in_preparation_is_reported_as_being_prepared(works: JobRunner) -> None:
    await publish_build(works, OLD, "1.1.0")
    await publish_build(works, NEW, "1.2.0")

    assert (await works.get("/releases/1.2.0/delta?from=1.1.0"))["status"] == "preparing"
    assert (await works.get("/releases/1.1.0/delta?from=1.2.0"))["status"] == "none"


async def test_a_pair_is_prepared_once(works: JobRunner) -> None:
    old, new = await publish_build(works, OLD, "1.1.0"), await publish_build(works, NEW, "1.2.0")

    await prepare_delta(works, old, new)
    await prepare_delta(works, old, new)

    assert len(await works.store.database.fetch("SELECT id FROM delta")) == 1


async def test_a_delta_that_is_not_smaller_than_the_chunks_is_not_kept(works: JobRunner) -> None:
    old = await publish_build(works, {"a": noise(300_000, 5)}, "1.1.0")
    new = await publish_build(works, {"a": random.Random(9).randbytes(300_000)}, "1.2.0")

    assert (await prepare_delta(works, old, new))["deltas"] == 0
    assert (await works.get("/releases/1.2.0/delta?from=1.1.0"))["status"] == "none"


async def test_with_a_draft_its_updates_are_removed(works: JobRunner) -> None:
    old = await publish_build(works, OLD, "1.1.0")
    new = (await works.upload_and_process(tar(NEW), "1.2.0"))["artifact_id"]
    outcome = await works.outcome("delta.make", "", from_artifact=old, to_artifact=new)

    path = f"/products/{works.shop.product_id}/releases/1.2.0"
    assert (await works.shop.world.call("DELETE", path, works.shop.token)).status_code == 204
    await works.keep(outcome)

    assert await works.store.database.fetch("SELECT id FROM delta") == []


async def test_a_delta_that_was_removed_is_not_kept(works: JobRunner) -> None:
    old, new = await publish_build(works, OLD, "1.1.0"), await publish_build(works, NEW, "1.2.0")
    outcome = await works.outcome("delta.make", "", from_artifact=old, to_artifact=new)
    await works.remove_reserved(largest=True)

    with pytest.raises(BlobRemoved):
        await works.keep(outcome)

    assert await works.store.database.fetch("SELECT id FROM delta") == []
    assert (await prepare_delta(works, old, new))["deltas"] == 1
