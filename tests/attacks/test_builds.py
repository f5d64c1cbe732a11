"""Attacks on builds: through the contents of an artifact, by callers with access to another artifact, and through
simultaneous changes."""

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backports import zstd

from countersign.kernel import clock
from countersign.kernel.errors import Unavailable
from countersign.store.releases import blob_gc, blobs, draft_removal
from countersign.store.releases.lifecycle import JustChanged
from countersign.store.releases.permissions import OwnedProduct, OwnedRelease
from countersign.store.releases.processing import builds, chunk_gc, sbom
from countersign.store.releases.processing.builds import Build
from countersign.updates import chunks
from countersign.updates.api_types import ChunkPlaces
from countersign.updates.ingest_worker import MAX_METADATA_BYTES
from countersign.updates.install.validate_manifest import ManifestRefused
from countersign.updates.worker_protocol import MetadataFile
from tests.store.files import Shop, open_shop
from tests.store.releases.processing.damage import writable_file
from tests.store.releases.processing.works import JobRunner, noise, tar, zip_files
from tests.store.world import World

SHARED, SECRET = noise(900_000, 1), b"the whole plot of the sequel " * 3000


@pytest.fixture
async def shop(world: World) -> Shop:
    """A shop with a free product."""
    return await open_shop(world, access="free")


@pytest.fixture
def works(shop: Shop, tmp_path: Path) -> JobRunner:
    """The shop, with a worker for its jobs."""
    return JobRunner(shop, tmp_path / "scratch")


async def test_chunks_that_are_shared_with_a_draft_do_not_give_the_draft_away(works: JobRunner) -> None:
    """Access to one build reveals nothing of another build, even if both are in one pack."""
    await works.upload_and_process(tar({"plot": SECRET, "engine": SHARED}), "2.0.0-draft")
    await works.upload_and_process(tar({"engine": SHARED}), "1.1.0")
    await works.publish("1.1.0")

    chunk_places = msgspec.convert(await works.get("/releases/1.1.0/chunks"), ChunkPlaces)
    chunk_names = {name for pack in chunk_places.packs for name, _, _ in pack.chunks}
    for pack in chunk_places.packs:
        pack_content = (await works.shop.world.http.get(pack.url)).content
        for start in range(len(pack_content)):
            if pack_content[start : start + 4] == b"\x28\xb5\x2f\xfd":
                assert chunks.chunk_id(_unpack_frame(pack_content[start:])) in chunk_names


def _unpack_frame(frame: bytes) -> bytes:
    """Return the contents of the zstd frame at the beginning."""
    try:
        return zstd.ZstdDecompressor().decompress(frame)
    except zstd.ZstdError:
        return b""


async def upload_build(works: JobRunner, data: bytes) -> tuple[str, Build]:
    artifact_id = (await works.upload_and_process(data))["artifact_id"]
    stored_build = await builds.build(works.store.database, artifact_id)
    assert stored_build is not None
    return artifact_id, stored_build


async def test_a_build_whose_manifest_is_lost_is_made_again(works: JobRunner) -> None:
    """The repair that `artifact.verify` suggests succeeds."""
    artifact_id, lost_build = await upload_build(works, tar({"a": SHARED}))
    (await writable_file(works.store, lost_build.envelope_sha256)).unlink()
    verify_result = await works.run_job("artifact.verify", artifact_id)
    assert "build.process" in verify_result["findings"][0]["heal"]

    await works.run_job("build.process", artifact_id, again=True)

    assert (await works.run_job("artifact.verify", artifact_id))["ok"]


async def test_a_build_that_is_processed_twice_at_once_shows_the_stored_manifest(works: JobRunner) -> None:
    """A job's result names the stored manifest; a job that finishes too late runs again and has the same result."""
    artifact_id = await works.upload(tar({"a": b"a"}))
    first_outcome = await works.outcome("build.process", artifact_id)
    second_outcome = await works.outcome("build.process", artifact_id)
    await works.keep(first_outcome)

    with pytest.raises(Unavailable):
        await works.keep(second_outcome)

    third_result = await works.run_job("build.process", artifact_id)
    assert third_result["manifest_sha256"] == msgspec.to_builtins(first_outcome.result)["manifest_sha256"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", '{"packages": ' + "[" * 200_000),
        ("package-lock.json", '{"packages": ' + '{"a":' * 100_000),
        ("x.cdx.json", '{"bomFormat": "CycloneDX", "x": ' + "[" * 200_000),
        ("x.dist-info/METADATA", "Name: " + "\n " * 200_000),
        ("x.dist-info/METADATA", "Name: =?utf-8?q?" + "=00" * 1000 + "?="),
    ],
    ids=["list", "object", "unread", "header", "encoded"],
)
async def test_a_file_with_an_invalid_component_list_lists_no_components(
    works: JobRunner, name: str, text: str
) -> None:
    """The file is part of the build, and does not stop its processing."""
    result = await works.upload_and_process(tar({name: text.encode()}))

    assert result["files"] == 1


async def test_files_with_long_component_lists_are_read_up_to_a_limit(works: JobRunner) -> None:
    """The process that does the jobs of all organisations reads them. 200 files of 1 MiB would use up its memory."""
    files = {f"{number}/package.json": _package(number, 1 << 20) for number in range(20)}

    result = await works.upload_and_process(zip_files(files), filename="game.zip")

    assert result["files"] == 20
    assert result["components"] == MAX_METADATA_BYTES // (1 << 20)


def _package(number: int, size: int) -> bytes:
    package_head = b'{"name":"part%d","version":"1","text":"' % number
    return package_head + b"a" * (size - len(package_head) - 2) + b'"}'


def test_no_more_parts_are_gathered_than_are_reported() -> None:
    """After the limit, the other files of a build are not read."""
    looked_at: list[int] = []

    def notes() -> Iterator[MetadataFile]:
        for number in range(50):
            looked_at.append(number)
            parts = [{"name": f"{number}-{at}"} for at in range(5_000)]
            yield MetadataFile("bom.json", msgspec.json.encode({"bomFormat": "CycloneDX", "components": parts}))

    bill = sbom.bill_of_materials("a", "1", notes())

    assert bill is not None
    assert bill[1] == sbom.MAX_COMPONENTS
    assert len(looked_at) < 5


async def test_a_listing_is_limited_to_the_maximum_answer_size(works: JobRunner) -> None:
    """A result has a maximum size for any names in an archive, because many results are listed together."""
    path = "/".join(["n" * 250] * 4)[:1000]
    files = {f"{path}/{number:05}": b"" for number in range(2500)}
    artifact_id = await works.upload(zip_files(files), filename="game.zip")

    listing = await works.run_job("archive.extract", artifact_id, limit=10_000)

    assert len(json.dumps(listing)) < 2 << 20
    later_entries: list[Any] = listing["entries"]
    while listing["next_offset"] is not None:
        listing = await works.run_job("archive.extract", artifact_id, limit=10_000, offset=listing["next_offset"])
        later_entries += listing["entries"]
    assert [entry["path"] for entry in later_entries] == list(files)


async def test_a_version_number_read_after_a_change_includes_the_change(works: JobRunner) -> None:
    """The statement with the highest number shows the channel's current state, even if its request was slow."""
    for version in ("1.1.0", "1.2.0"):
        await works.upload_and_process(tar({"version": version.encode()}), version)
    await works.publish("1.1.0")
    await channel_statement(works)
    async with works.store.database.transaction() as transaction:
        await transaction.run("UPDATE channel_statement SET expires_at = 0")
    async with works.store.database.transaction() as transaction:
        await transaction.run("UPDATE channel_statement SET expires_at = 0")
        slow_statement = asyncio.create_task(channel_statement(works))
        # Time to read the releases, and to wait for the row.
        await asyncio.sleep(0.5)
        await transaction.run(
            "UPDATE release SET status = 'published', published_at = $1 WHERE version = '1.2.0'", clock.now()
        )

    assert (await slow_statement)["version"] == "1.2.0"


@pytest.mark.parametrize("path", [".countersign/state.json", ".Countersign/manifest.json"])
async def test_a_build_that_no_client_would_install_is_refused(works: JobRunner, path: str) -> None:
    """The store signs only builds that clients accept. Therefore a channel never leads to a build that clients
    refuse."""
    with pytest.raises(ManifestRefused):
        await works.upload_and_process(tar({path: b"{}", "game": b"x"}))


async def channel_statement(works: JobRunner) -> dict[str, Any]:
    state = await works.get("/channels/stable")
    return json.loads(base64.b64decode(state["statement"]["payload"]))


@pytest.mark.parametrize("subpath", ["channels/%00", "releases/%00/manifest", "releases/1.0.0/delta?from=%00"])
async def test_a_name_with_a_zero_byte_is_only_unknown(works: JobRunner, subpath: str) -> None:
    """PostgreSQL does not store text with a zero byte."""
    answer = await works.shop.world.call("GET", f"/products/{works.shop.product_id}/{subpath}")

    assert 400 <= answer.status_code < 500


async def test_the_blobs_of_a_build_are_never_collected(works: JobRunner) -> None:
    """Packs, signed manifests and deltas are kept at any age while a build refers to them."""
    first_build = await works.upload_and_process(tar({"a": SHARED}), "1.1.0")
    await works.publish("1.1.0")
    second_build = await works.upload_and_process(
        tar({"a": SHARED[:500_000] + b"inserted" + SHARED[500_000:]}), "1.2.0"
    )
    pair = {"from_artifact": first_build["artifact_id"], "to_artifact": second_build["artifact_id"]}
    assert (await works.run_job("delta.make", "", **pair))["deltas"] == 1
    database = works.store.database
    used_blobs = "SELECT sha256 FROM pack UNION SELECT envelope_sha256 FROM build UNION SELECT sha256 FROM delta"
    digests = [sha256 for (sha256,) in await database.fetch(used_blobs)]
    later_time = clock.later(clock.now(), seconds=86_400)

    assert not set(digests) & {sha256 async for sha256 in blobs.unused_blobs(database, later_time)}
    for sha256 in digests:
        await blobs.condemn(database, sha256, later_time)
    assert await blobs.condemned_blobs(database, 100) == []
    with clock.fixed(later_time):
        await blob_gc.collect(works.store)
    assert len(digests) >= 5
    assert [await works.store.blobs.size(sha256) is None for sha256 in digests] == [False] * len(digests)


async def test_a_chunk_reused_during_garbage_collection_is_kept(works: JobRunner) -> None:
    """A new build may use a chunk again between its detection as unused and its removal."""
    await works.upload_and_process(tar({"a": SHARED}))
    ((org_id, name),) = await works.store.database.fetch("SELECT org_id, id FROM chunk ORDER BY id LIMIT 1")

    async with works.store.database.transaction() as transaction:
        assert await transaction.run(chunk_gc.DELETE_CHUNK, org_id, name) == 0


async def test_a_signed_manifest_of_another_build_is_not_trusted(works: JobRunner) -> None:
    """The organisation's signature alone does not make it this build's manifest."""
    artifact_id, own_build = await upload_build(works, tar({"a": b"mine"}))
    other_id = (await works.upload_and_process(tar({"a": b"another"}), "1.2.0"))["artifact_id"]
    other_build = await builds.build(works.store.database, other_id)
    assert other_build is not None
    (await writable_file(works.store, own_build.envelope_sha256)).write_bytes(
        (await writable_file(works.store, other_build.envelope_sha256)).read_bytes()
    )

    verify_result = await works.run_job("artifact.verify", artifact_id)

    assert [finding["kind"] for finding in verify_result["findings"]] == ["manifest"]


async def test_no_shared_cache_stores_a_sold_file(works: JobRunner) -> None:
    """A manifest names the chunks, and the chunks give access to the packs."""
    world, shop = works.shop.world, works.shop
    body = {"slug": "sold", "title": "Sold", "kind": "game", "platforms": ["linux"], "access": "entitled"}
    product_id = (await world.call("POST", "/products", shop.token, json=body)).json()["id"]
    sold_works = JobRunner(shop._replace(product_id=product_id), works.folder)
    await sold_works.upload_and_process(tar({"a": b"a"}), "1.0.0")
    await sold_works.publish("1.0.0")
    await world.person("buyer@example.org")
    await world.grant("buyer@example.org", product_id)
    buyer = await world.person_token("buyer@example.org", "read:library read:products")

    path = f"/products/{product_id}/releases/1.0.0"
    for subpath in ("manifest", "chunks", "delta?from=1.0.0"):
        answer = await world.call("GET", f"{path}/{subpath}", buyer)
        assert answer.status_code == 200
        assert "public" not in answer.headers.get("cache-control", "private")


async def test_a_draft_processed_during_its_removal_is_removed_completely_or_not_at_all(works: JobRunner) -> None:
    """Otherwise its chunks would be counted for a build that no longer exists."""
    artifact_id = await works.upload(tar({"a": b"a"}), "3.0.0-draft")
    artifact = await builds.artifact(works.store.database, artifact_id)
    assert artifact is not None
    product = OwnedProduct(artifact.product_id, artifact.org_id, artifact.org, artifact.product, "draft", "free", 0)
    owned = OwnedRelease(product, artifact.release_id, artifact.version, artifact.channel, "draft")
    builds_seen = await draft_removal.builds_of(works.store, artifact.release_id)
    await works.run_job("build.process", artifact_id)

    with pytest.raises(JustChanged):
        async with works.store.database.transaction() as transaction:
            await draft_removal.remove(transaction, owned, builds_seen)

    assert (await works.run_job("artifact.verify", artifact_id))["ok"]
