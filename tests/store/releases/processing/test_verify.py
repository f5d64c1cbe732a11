"""Verification finds what differs from the record, reports where, and names the repair."""

from typing import Any

from countersign.store.releases.processing import builds
from countersign.store.releases.processing.builds import Build
from tests.store.releases.processing.damage import flip, writable_file
from tests.store.releases.processing.works import JobRunner, noise, tar

DATA = tar({"a.dat": noise(3_000_000), "b.txt": b"words"})


async def upload_build(works: JobRunner) -> tuple[str, Build]:
    artifact_id = (await works.upload_and_process(DATA))["artifact_id"]
    stored_build = await builds.build(works.store.database, artifact_id)
    assert stored_build is not None
    return artifact_id, stored_build


async def artifact_digest(works: JobRunner, artifact_id: str) -> str:
    artifact = await builds.artifact(works.store.database, artifact_id)
    assert artifact is not None
    return artifact.sha256


async def findings(works: JobRunner, artifact_id: str) -> list[dict[str, Any]]:
    report = await works.run_job("artifact.verify", artifact_id)
    assert report["ok"] == (not report["findings"])
    assert report["wounds"] == len(report["findings"])
    return report["findings"]


async def test_an_intact_build_is_verified(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)

    report = await works.run_job("artifact.verify", artifact_id)

    assert report == {
        "artifact_id": artifact_id,
        "ok": True,
        "checked": ["bytes", "signature", "chunks", "archive"],
        "findings": [],
        "wounds": 0,
    }


async def test_an_artifact_without_a_build_is_verified_by_its_own_digest(works: JobRunner) -> None:
    artifact_id = await works.upload(DATA)

    assert await findings(works, artifact_id) == []
    await flip(works.store, await artifact_digest(works, artifact_id), 700)
    faults = await findings(works, artifact_id)
    assert [(finding["kind"], finding["offset"], finding["length"]) for finding in faults] == [
        ("artifact", 0, len(DATA))
    ]


async def test_a_changed_bit_of_the_artifact_is_located(works: JobRunner) -> None:
    artifact_id, build = await upload_build(works)
    await flip(works.store, await artifact_digest(works, artifact_id), build.block_size + 5)

    faults = await findings(works, artifact_id)

    assert [(finding["kind"], finding["offset"], finding["length"]) for finding in faults] == [
        ("artifact", build.block_size, build.block_size),
        ("file", 0, 3_000_000),
    ]
    assert "Upload the same file again" in faults[0]["heal"]


async def test_an_artifact_that_lost_its_end_is_found_out(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    path = await writable_file(works.store, await artifact_digest(works, artifact_id))
    path.write_bytes(path.read_bytes()[:-20_000])

    faults = await findings(works, artifact_id)

    assert {finding["kind"] for finding in faults} >= {"artifact", "archive"}


async def test_missing_bytes_are_reported(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    (await writable_file(works.store, await artifact_digest(works, artifact_id))).unlink()

    faults = await findings(works, artifact_id)

    assert [(finding["kind"], finding["length"]) for finding in faults] == [("artifact", len(DATA))]


async def test_a_damaged_artifact_is_repaired_by_a_repeated_upload(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    await flip(works.store, await artifact_digest(works, artifact_id), 1000)
    assert await findings(works, artifact_id)

    await works.upload(DATA, "9.9.9")

    assert await findings(works, artifact_id) == []


async def test_a_damaged_chunk_is_found_and_healed_by_processing_again(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    packs = await works.store.database.fetch("SELECT sha256 FROM pack")
    await flip(works.store, packs[0][0], 100_000)

    faults = await findings(works, artifact_id)

    assert [finding["kind"] for finding in faults] == ["chunk"]
    assert faults[0]["offset"] <= 100_000 < faults[0]["offset"] + faults[0]["length"]
    assert "again" in faults[0]["heal"]
    await works.run_job("build.process", artifact_id, again=True)
    assert await findings(works, artifact_id) == []


async def test_every_chunk_of_a_missing_pack_is_reported(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    ((sha256,),) = await works.store.database.fetch("SELECT sha256 FROM pack")
    (await writable_file(works.store, sha256)).unlink()

    faults = await findings(works, artifact_id)

    assert {finding["kind"] for finding in faults} == {"chunk"}
    ((count,),) = await works.store.database.fetch("SELECT count(*) FROM chunk")
    assert len(faults) == count


async def test_a_chunk_without_a_row_is_found(works: JobRunner) -> None:
    artifact_id, _ = await upload_build(works)
    async with works.store.database.transaction() as transaction:
        ((name,),) = await transaction.fetch("SELECT id FROM chunk ORDER BY id LIMIT 1")
        await transaction.run("DELETE FROM chunk WHERE id = $1", name)

    faults = await findings(works, artifact_id)

    assert [finding["kind"] for finding in faults] == ["chunk"]
    assert name in faults[0]["detail"]


async def test_a_manifest_signed_by_another_key_is_not_trusted(works: JobRunner) -> None:
    artifact_id, build = await upload_build(works)
    path = await writable_file(works.store, build.envelope_sha256)
    path.write_bytes(path.read_bytes().replace(b'"sig":"', b'"sig":"AAAA'))

    faults = await findings(works, artifact_id)

    assert [finding["kind"] for finding in faults] == ["manifest"]


async def test_an_archive_that_is_not_safe_is_found_by_name_and_rule(works: JobRunner) -> None:
    artifact_id = await works.upload(tar({"fine": b"", "sub/../../evil": b"x"}), filename="evil.tar")

    faults = await findings(works, artifact_id)

    assert [finding["kind"] for finding in faults] == ["archive"]
    assert faults[0]["detail"].startswith("sub/../../evil: ")
