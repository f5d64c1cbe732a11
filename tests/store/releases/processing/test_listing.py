"""archive.extract lists the content of an artifact in pages, and stores nothing."""

import pytest

from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from tests.store.files import sha256_of
from tests.store.releases.processing.works import EXECUTABLE, JobRunner, noise, tar, zip_files


async def test_every_entry_is_listed_with_its_digest(works: JobRunner) -> None:
    data = tar({"bin/run": EXECUTABLE, "b": noise(300_000)}, links={"start": "bin/run"}, folders=("saves",))

    listing = await works.run_job("archive.extract", await works.upload(data))

    assert listing["entries"] == [
        {"path": "saves", "kind": "folder", "mode": "0755"},
        {"path": "bin/run", "kind": "file", "mode": "0755", "size": 21, "sha256": sha256_of(EXECUTABLE)},
        {"path": "b", "kind": "file", "mode": "0644", "size": 300_000, "sha256": sha256_of(noise(300_000))},
        {"path": "start", "kind": "link", "mode": listing["entries"][3]["mode"], "target": "bin/run"},
    ]
    assert (listing["files"], listing["size"], listing["total"], listing["next_offset"]) == (2, 300_021, 4, None)


async def test_long_listings_come_in_pages(works: JobRunner) -> None:
    artifact_id = await works.upload(zip_files({f"file{number:03d}": b"" for number in range(25)}), filename="a.zip")

    paths: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await works.run_job("archive.extract", artifact_id, offset=offset, limit=10)
        paths += [entry["path"] for entry in page["entries"]]
        offset = page["next_offset"]

    assert paths == [f"file{number:03d}" for number in range(25)]


async def test_nothing_is_kept(works: JobRunner) -> None:
    await works.run_job("archive.extract", await works.upload(tar({"a": noise(100_000)})))

    assert await works.store.database.fetch("SELECT id FROM pack") == []
    assert await works.store.database.fetch("SELECT artifact_id FROM build") == []


async def test_an_invalid_or_hostile_archive_is_refused(works: JobRunner) -> None:
    with pytest.raises(ArchiveUnknown):
        await works.outcome("archive.extract", await works.upload(b"just words", filename="a.txt"))
    with pytest.raises(ArchiveRefused):
        await works.outcome("archive.extract", await works.upload(tar({"/etc/passwd": b""}), filename="b.tar"))
