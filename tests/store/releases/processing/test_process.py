"""An artifact becomes a build: its tree, its chunks, and a manifest that the organisation signs."""

import base64
import gzip
import json
from typing import Any

import pytest

from countersign.archives.refusals import ArchiveRefused
from countersign.kernel.errors import Unavailable
from countersign.store.releases.blobs import BlobRemoved
from countersign.store.releases.processing import builds, sandboxed_process
from countersign.store.releases.processing.build_job import ArtifactDamaged
from countersign.store.releases.processing.builds import ArtifactGone
from countersign.updates import chunks
from countersign.updates.manifest import Manifest
from countersign.updates.worker_protocol import IngestOrder
from tests.archives import tars
from tests.store.files import sha256_of
from tests.store.releases.processing.works import EXECUTABLE, JobRunner, noise, tar, zip_files

FILES = {"bin/run.sh": EXECUTABLE, "data/level.dat": noise(500_000), "readme.txt": b"hello\n", "empty": b""}


async def manifest_of(works: JobRunner, artifact_id: str) -> Manifest:
    build = await builds.build(works.store.database, artifact_id)
    assert build is not None
    return await builds.read_manifest(works.store, build)


async def contents_of(works: JobRunner, build_manifest: Manifest) -> dict[str, bytes]:
    """Return every file, assembled from the stored chunks."""
    row = await works.store.database.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
    assert row is not None
    stored_chunks: dict[str, bytes] = {}
    for at in await builds.chunk_locations(works.store.database, row[0], [chunk.id for chunk in build_manifest.chunks]):
        pieces = [piece async for piece in works.store.blobs.read(at.pack_sha256, at.start, at.start + at.length)]
        stored_chunks[at.id] = chunks.decompress(b"".join(pieces), at.size, at.id)
    return {
        file.path: b"".join(stored_chunks[build_manifest.chunks[n].id] for n in file.chunks)
        for file in build_manifest.files
    }


async def counts(works: JobRunner) -> dict[str, int]:
    """Return the use counts of chunks, and the number of packs."""
    database = works.store.database
    (chunk_counts,) = await database.fetch("SELECT count(*), coalesce(sum(refs), 0) FROM chunk") or [(0, 0)]
    (packs,) = await database.fetch("SELECT count(*) FROM pack")
    return {"chunks": chunk_counts[0], "refs": int(chunk_counts[1]), "packs": packs[0]}


@pytest.mark.parametrize(
    ("data", "filename"),
    [(tar(FILES), "game.tar"), (gzip.compress(tar(FILES)), "game.tar.gz"), (zip_files(FILES), "game.zip")],
    ids=["tar", "tar.gz", "zip"],
)
async def test_the_file_tree_is_restored_from_the_chunks(works: JobRunner, data: bytes, filename: str) -> None:
    result = await works.upload_and_process(data, filename=filename)

    build_manifest = await manifest_of(works, result["artifact_id"])
    assert await contents_of(works, build_manifest) == FILES
    assert [file.path for file in build_manifest.files] == sorted(FILES)
    assert result["files"] == len(FILES)
    assert result["size"] == sum(map(len, FILES.values()))
    assert result["chunks"] == result["new_chunks"] == len(build_manifest.chunks)


async def test_modes_links_and_empty_folders_are_in_the_manifest(works: JobRunner) -> None:
    data = tar(FILES, links={"start": "bin/run.sh"}, folders=("saves", "bin"))

    build_manifest = await manifest_of(works, (await works.upload_and_process(data))["artifact_id"])

    assert {file.path: file.mode for file in build_manifest.files}["bin/run.sh"] == 0o755
    assert {file.path: file.mode for file in build_manifest.files}["readme.txt"] == 0o644
    assert [(link.path, link.target) for link in build_manifest.links] == [("start", "bin/run.sh")]
    assert build_manifest.folders == ["saves"]
    assert [(start.path, start.format) for start in build_manifest.launch] == [("bin/run.sh", "script")]


async def test_a_file_that_is_not_an_archive_is_a_build_of_one_file(works: JobRunner) -> None:
    result = await works.upload_and_process(EXECUTABLE, filename="tool")

    build_manifest = await manifest_of(works, result["artifact_id"])
    assert [(file.path, file.mode) for file in build_manifest.files] == [("tool", 0o755)]
    assert await contents_of(works, build_manifest) == {"tool": EXECUTABLE}


async def test_a_damaged_archive_is_not_treated_as_a_build_of_one_file(works: JobRunner) -> None:
    artifact_id = await works.upload(noise(5000), filename="game.zip")

    with pytest.raises(ArchiveRefused):
        await works.outcome("build.process", artifact_id)


async def test_a_chunk_of_two_builds_is_stored_once_and_counted_twice(works: JobRunner) -> None:
    first_build = await works.upload_and_process(tar(FILES))
    second_build = await works.upload_and_process(tar({**FILES, "new.txt": b"something new"}), "1.1.0")

    assert second_build["new_chunks"] == 1
    assert second_build["stored"] < 100
    store_counts = await counts(works)
    assert store_counts["chunks"] == first_build["chunks"] + 1
    assert store_counts["refs"] == first_build["chunks"] + second_build["chunks"]


async def test_organisations_do_not_share_chunks(works: JobRunner) -> None:
    world = works.shop.world
    await works.upload_and_process(tar(FILES))
    row = await works.store.database.fetch_one("SELECT id FROM organisation WHERE slug = 'south'")
    assert row is not None

    names = [name for (name,) in await works.store.database.fetch("SELECT id FROM chunk")]

    assert names
    assert await builds.known_chunks(world.store.database, row[0], names) == []


async def test_processing_again_changes_nothing(works: JobRunner) -> None:
    first_result = await works.upload_and_process(tar(FILES))
    counts_before = await counts(works)

    second_result = await works.run_job("build.process", first_result["artifact_id"])

    assert second_result == first_result
    assert await counts(works) == counts_before


async def test_work_that_was_done_twice_at_once_is_kept_once(works: JobRunner) -> None:
    artifact_id = await works.upload(tar(FILES))
    first_outcome = await works.outcome("build.process", artifact_id)
    second_outcome = await works.outcome("build.process", artifact_id)

    await works.keep(first_outcome)
    counts_before = await counts(works)
    with pytest.raises(Unavailable):
        await works.keep(second_outcome)

    assert await counts(works) == counts_before


async def test_a_rebuilt_build_stores_every_chunk_again(works: JobRunner) -> None:
    first_result = await works.upload_and_process(tar(FILES))
    counts_before = await counts(works)

    second_result = await works.run_job("build.process", first_result["artifact_id"], again=True)

    assert second_result["new_chunks"] == first_result["chunks"]
    counts_after = await counts(works)
    assert (counts_after["chunks"], counts_after["refs"]) == (counts_before["chunks"], counts_before["refs"])
    assert await contents_of(works, await manifest_of(works, first_result["artifact_id"])) == FILES


async def test_progress_rises_to_the_end(works: JobRunner) -> None:
    await works.upload_and_process(tar({f"file{number}": noise(2_000_000, number) for number in range(5)}))

    assert works.told == sorted(works.told)
    assert works.told[-1] > 0.9


async def test_a_hostile_archive_leaves_nothing(works: JobRunner) -> None:
    artifact_id = await works.upload(tar({"fine": noise(200_000), "../outside": b"evil"}))

    with pytest.raises(ArchiveRefused) as refusal:
        await works.outcome("build.process", artifact_id)

    assert refusal.value.members == {"rule": "dot-dot", "entry": "../outside"}
    assert await counts(works) == {"chunks": 0, "refs": 0, "packs": 0}


async def test_an_archive_that_takes_too_much_cpu_time_is_refused_and_not_tried_again(
    works: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def order(**members: Any) -> IngestOrder:
        # Keep the wall clock limit: without it, the reader itself would refuse the archive.
        return IngestOrder(**{**members, "cpu_s": 1})

    monkeypatch.setattr(sandboxed_process, "IngestOrder", order)
    empty = b"".join(tars.file(f"{number:06}".encode(), b"") for number in range(100_000))
    artifact_id = await works.upload(gzip.compress(tars.archive(empty), 1), filename="game.tar.gz")

    with pytest.raises(ArchiveRefused) as refusal:
        await works.outcome("build.process", artifact_id)

    assert refusal.value.members == {"rule": "too-slow"}
    assert await counts(works) == {"chunks": 0, "refs": 0, "packs": 0}


async def test_stored_bytes_that_were_changed_are_not_built(works: JobRunner) -> None:
    artifact_id = await works.upload(tar(FILES))
    artifact = await builds.artifact(works.store.database, artifact_id)
    assert artifact is not None
    path = await works.store.blobs.file(artifact.sha256, works.folder)
    data = bytearray(path.read_bytes())
    data[data.index(noise(500_000)[:32])] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)

    with pytest.raises(ArtifactDamaged):
        await works.outcome("build.process", artifact_id)


async def test_a_missing_artifact_is_not_processed(works: JobRunner) -> None:
    with pytest.raises(ArtifactGone):
        await works.outcome("build.process", "00000000-0000-4000-8000-000000000000")


async def test_a_build_lists_its_parts(works: JobRunner) -> None:
    metadata = b"Metadata-Version: 2.1\nName: Some_Package\nVersion: 1.2.3\n\nwords\n"
    lock = {"packages": {"": {"name": "app"}, "node_modules/left": {"version": "2.0.0"}}}
    files = {
        "lib/some_package-1.2.3.dist-info/METADATA": metadata,
        "web/package-lock.json": json.dumps(lock).encode(),
        "broken/package.json": b"{not json",
        "parts.cdx.json": json.dumps(
            {
                "bomFormat": "CycloneDX",
                "specVersion": "1.5",
                # The revision of the document itself is a number (CycloneDX 1.5, version).
                "version": 1,
                "components": [{"type": "library", "name": "zlib", "version": "1.3"}],
            }
        ).encode(),
    }

    result = await works.upload_and_process(tar(files))
    sbom = await works.get("/releases/1.0.0/sbom")

    assert result["components"] == 3
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.5")
    assert {(component["name"], component["version"]) for component in sbom["components"]} == {
        ("Some_Package", "1.2.3"),
        ("left", "2.0.0"),
        ("zlib", "1.3"),
    }


async def test_the_manifest_is_served_unchanged_after_signing(works: JobRunner) -> None:
    result = await works.upload_and_process(tar(FILES))

    envelope = await works.get("/releases/1.0.0/manifest")

    signed_payload = base64.b64decode(envelope["payload"])
    payload = json.loads(signed_payload)
    assert sha256_of(signed_payload) == result["manifest_sha256"]
    assert payload["product"] == "river"
    assert {file["path"] for file in payload["files"]} == set(FILES)


@pytest.mark.parametrize("largest", [True, False], ids=["pack", "manifest"])
async def test_a_build_whose_pack_or_manifest_was_removed_is_not_kept(works: JobRunner, largest: bool) -> None:
    artifact_id = await works.upload(tar(FILES))
    outcome = await works.outcome("build.process", artifact_id)
    await works.remove_reserved(largest=largest)

    with pytest.raises(BlobRemoved):
        await works.keep(outcome)

    assert await builds.build(works.store.database, artifact_id) is None
    await works.run_job("build.process", artifact_id)
    assert (await works.run_job("artifact.verify", artifact_id))["ok"]
