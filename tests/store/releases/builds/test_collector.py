"""Garbage collection of blobs: which are removed, which are kept, and races with uploads."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import Unavailable
from countersign.store import app as distribution
from countersign.store.releases import blob_gc, blobs, uploads
from countersign.store.releases.artifacts import ARTIFACT
from countersign.store.releases.blob_gc import CollectResult
from countersign.store.releases.receive_upload import finish
from tests.store.files import Shop, pattern, sha256_of

DATA = pattern(1000)
DIGEST = sha256_of(DATA)


@pytest.fixture
def clock_two_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the clock of the collector two hours ahead."""
    monkeypatch.setattr(blob_gc, "MIN_IDLE_S", -7200)


async def list_sealed_digests(shop: Shop) -> list[str]:
    """Return the digests of all sealed blobs."""
    return [digest async for digest, *_ in shop.store.blobs.sealed_blobs()]


async def list_staged_uploads(shop: Shop) -> list[str]:
    """Return the uploads that have staged bytes."""
    return [blob.upload async for blob in shop.store.blobs.staged_uploads()]


async def run(shop: Shop, statement: str, *values: Any) -> None:
    """Change the database directly."""
    async with shop.store.database.transaction() as transaction:
        await transaction.run(statement, *values)


async def orphan(shop: Shop) -> None:
    """Remove the last reference to the bytes of the only artifact, as a collection does."""
    await run(shop, "DELETE FROM artifact")
    await blobs.note_unused(shop.store.database)


async def test_an_expired_upload_is_deleted_with_its_bytes_and_its_artifact(shop: Shop) -> None:
    address = await shop.address(1000)
    await shop.put(address, DATA[:500], "bytes 0-499/1000")
    await run(shop, "UPDATE upload SET expires_at = $1", clock.now())

    collected = await blob_gc.collect(shop.store)

    assert collected == CollectResult(1, 0, 0)
    assert await list_staged_uploads(shop) == []
    assert await shop.store.database.fetch("SELECT id FROM artifact") == []
    assert (await shop.announce(1000)).status_code == 201


async def test_used_and_recent_blobs_are_kept(shop: Shop) -> None:
    await shop.upload(DATA)
    address = await shop.address(1000, "other")
    await shop.put(address, DATA[:500], "bytes 0-499/1000")
    await shop.upload(pattern(50), "unused")
    await run(shop, "DELETE FROM artifact WHERE filename = 'unused'")

    await shop.put(await shop.address(1000, "again"), DATA[:500], "bytes 0-499/1000")
    await shop.announce(1000, "again")
    await run(shop, "DELETE FROM blob WHERE sha256 = $1", sha256_of(pattern(50)))

    assert await blob_gc.collect(shop.store) == CollectResult(0, 0, 0)
    assert len(await list_sealed_digests(shop)) == 2
    assert len(await list_staged_uploads(shop)) == 2
    assert await shop.received_ranges(address) == [[0, 499]]


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_a_finished_upload_expires_without_its_artifact(shop: Shop) -> None:
    artifact = await shop.upload(DATA)
    await run(shop, "UPDATE upload SET expires_at = $1", clock.now())

    assert await blob_gc.collect(shop.store) == CollectResult(1, 0, 0)
    assert (await shop.world.call("GET", f"/artifacts/{artifact['id']}", shop.token)).content == DATA


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_unreferenced_bytes_are_deleted(shop: Shop) -> None:
    await shop.upload(DATA)
    await orphan(shop)

    assert await blob_gc.collect(shop.store) == CollectResult(0, 0, 1)
    assert await list_sealed_digests(shop) == []
    assert await shop.store.database.fetch("SELECT sha256 FROM blob") == []


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_sealed_bytes_that_the_database_never_knew_are_kept_and_reported(shop: Shop) -> None:
    await shop.upload(DATA)
    await orphan(shop)
    await run(shop, "DELETE FROM blob")
    await run(shop, "DELETE FROM idle_blob")

    assert await blob_gc.collect(shop.store) == CollectResult(0, 0, 0)
    report = await blob_gc.report(shop.store.database)

    assert report is not None
    assert report[1:] == (1, 0, 1, len(DATA), "")
    assert report.notes == ["1 stored files (1000 bytes) are unknown to the database and are kept"]
    assert await list_sealed_digests(shop) == [DIGEST]
    # An operator may remove them, like any file whose last reference was just removed.
    assert (await blob_gc.collect(shop.store, takes_unknown=True)).blobs == 0
    assert (await blob_gc.collect(shop.store)).blobs == 1


async def test_bytes_stay_for_a_day_after_the_last_reference_went(shop: Shop) -> None:
    await shop.upload(DATA)
    with clock.fixed(clock.later(clock.now(), seconds=7 * 86_400)):
        await orphan(shop)
        assert (await blob_gc.collect(shop.store)).blobs == 0
    with clock.fixed(clock.later(clock.now(), seconds=8 * 86_400 - 60)):
        assert (await blob_gc.collect(shop.store)).blobs == 0
    assert await list_sealed_digests(shop) == [DIGEST]

    with clock.fixed(clock.later(clock.now(), seconds=8 * 86_400 + 60)):
        assert (await blob_gc.collect(shop.store)).blobs == 1
    assert await list_sealed_digests(shop) == []


async def test_bytes_that_are_referred_to_again_restart_their_grace_period(shop: Shop) -> None:
    await shop.upload(DATA)
    await orphan(shop)
    await blob_gc.collect(shop.store)
    with clock.fixed(clock.later(clock.now(), seconds=86_000)):
        await shop.upload(DATA, "again")
        await orphan(shop)
        await blob_gc.collect(shop.store)

    with clock.fixed(clock.later(clock.now(), seconds=100_000)):
        assert (await blob_gc.collect(shop.store)).blobs == 0
    assert await list_sealed_digests(shop) == [DIGEST]


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_a_run_that_would_remove_more_than_a_tenth_removes_nothing(
    shop: Shop,
) -> None:
    for number in range(20):
        await shop.upload(pattern(100, number + 10), f"file {number}")
    await run(shop, "DELETE FROM artifact WHERE filename IN ('file 0', 'file 1', 'file 2')")

    with capture_logs() as logged:
        first_run = await blob_gc.collect(shop.store)
        second_run = await blob_gc.collect(shop.store)
    report = await blob_gc.report(shop.store.database)

    assert first_run.blobs == second_run.blobs == 0
    assert "3 of 20" in first_run.stopped
    assert "installation collect --yes" in first_run.stopped
    assert report is not None
    assert report.stopped == first_run.stopped
    assert len(await list_sealed_digests(shop)) == 20
    assert [line["log_level"] for line in logged] == ["error"]

    assert (await blob_gc.collect(shop.store, is_confirmed=True)).blobs == 3
    assert len(await list_sealed_digests(shop)) == 17


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_every_removal_is_logged_with_its_count(shop: Shop) -> None:
    for number in range(20):
        await shop.upload(pattern(100, number + 10), f"file {number}")
    await run(shop, "DELETE FROM artifact WHERE filename IN ('file 0', 'file 1')")

    with capture_logs() as logged:
        await blob_gc.collect(shop.store)

    assert [(record["log_level"], record["files"], record["bytes"]) for record in logged] == [("info", 2, 200)]


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_an_upload_of_unknown_bytes_that_fails_does_not_have_them_removed(shop: Shop) -> None:
    await shop.upload(DATA)
    await orphan(shop)
    await run(shop, "DELETE FROM blob")
    await run(shop, "DELETE FROM idle_blob")
    address = await shop.address(1000, "claimed", sha256=DIGEST)
    await shop.put(address, bytes(500), "bytes 0-499/1000")
    assert (await shop.put(address, bytes(500), "bytes 500-999/1000")).status_code == 422
    await blobs.put(shop.store.database, shop.store.blobs, DATA)

    assert (await blob_gc.collect(shop.store)).blobs == 0
    assert await list_sealed_digests(shop) == [DIGEST]


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_noted_bytes_without_a_reference_are_deleted(shop: Shop) -> None:
    digest = await blobs.put(shop.store.database, shop.store.blobs, DATA)
    await blobs.note_idle(shop.store.database, sha256_of(b"never sealed"))
    assert await list_sealed_digests(shop) == [digest]

    assert await blob_gc.collect(shop.store) == CollectResult(0, 0, 1)
    assert await list_sealed_digests(shop) == []
    assert await shop.store.database.fetch("SELECT sha256 FROM idle_blob") == []


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_staged_bytes_without_an_open_upload_are_deleted(shop: Shop) -> None:
    first_address = await shop.address(1000)
    await shop.put(first_address, DATA[:500], "bytes 0-499/1000")
    await shop.address(1000)

    assert await blob_gc.collect(shop.store) == CollectResult(0, 1, 0)
    assert await list_staged_uploads(shop) == []


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_an_interrupted_removal_is_continued(shop: Shop) -> None:
    await shop.upload(DATA)
    await orphan(shop)
    await blobs.condemn(shop.store.database, DIGEST, clock.later(clock.now(), seconds=7200))
    await shop.store.blobs.delete(DIGEST)

    assert await blob_gc.collect(shop.store) == CollectResult(0, 0, 1)
    assert await shop.store.database.fetch("SELECT sha256 FROM blob") == []


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_a_stopped_run_counts_and_logs_the_removals_that_an_earlier_run_began(shop: Shop) -> None:
    for number in range(4):
        await shop.upload(pattern(100, number + 10), f"file {number}")
    await orphan(shop)
    await blobs.condemn(
        shop.store.database, (await list_sealed_digests(shop))[0], clock.later(clock.now(), seconds=7200)
    )
    files, size = blob_gc.REMOVED.labels().value, blob_gc.REMOVED_BYTES.labels().value

    with capture_logs() as logged:
        collected = await blob_gc.collect(shop.store)

    assert "3 of 3" in collected.stopped
    assert collected.blobs == 1
    assert len(await list_sealed_digests(shop)) == 3
    assert (blob_gc.REMOVED.labels().value - files, blob_gc.REMOVED_BYTES.labels().value - size) == (1, 100)
    assert [(record["files"], record["bytes"]) for record in logged if record["log_level"] == "info"] == [(1, 100)]


class RowCountingDatabase:
    """A database that records the number of rows of each statement with many rows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.rows: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Any]:
        """Open a transaction that records the number of rows."""
        async with self._database.transaction() as transaction:
            yield RowCountingTransaction(transaction, self.rows)


class RowCountingTransaction:
    """A transaction of such a database."""

    def __init__(self, transaction: Transaction, rows: list[int]) -> None:
        self._transaction = transaction
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    async def run_many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Run the statement, and record its number of rows."""
        self._rows.append(len(rows))
        await self._transaction.run_many(statement, rows)


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_unknown_files_are_noted_in_pages(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "PAGE", 2)
    for number in range(5):
        await shop.upload(pattern(100, number + 10), f"file {number}")
    for table in ("artifact", "blob", "idle_blob"):
        await run(shop, f"DELETE FROM {table}")
    counting: Any = RowCountingDatabase(shop.store.database)

    await blob_gc.collect(replace(shop.store, database=counting), takes_unknown=True)

    assert counting.rows == [2, 2, 1]
    assert await shop.store.database.fetch("SELECT count(*) FROM idle_blob") == [(5,)]


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_two_collectors_at_once_do_not_disturb_each_other(shop: Shop) -> None:
    for number in range(5):
        await shop.upload(pattern(100, number + 10), f"file {number}")
    await orphan(shop)

    results = await asyncio.gather(*(blob_gc.collect(shop.store, is_confirmed=True) for _ in range(2)))

    # One run may count a file that another run removed after both had listed it. Nothing is left in any case.
    assert sum(result.blobs for result in results) >= 5
    assert await list_sealed_digests(shop) == []
    assert await shop.store.database.fetch("SELECT sha256 FROM blob") == []


async def test_completion_waits_for_a_blob_in_deletion_and_keeps_the_received_parts(shop: Shop) -> None:
    await shop.upload(DATA, "first")
    await orphan(shop)
    address = await shop.address(1000)
    await blobs.condemn(shop.store.database, DIGEST, clock.later(clock.now(), seconds=7200))

    refused_answer = await shop.put(address, DATA)

    assert (refused_answer.status_code, refused_answer.headers["Retry-After"]) == (503, "1")
    assert await shop.received_ranges(address) == [[0, 999]]
    assert await blobs.remove_condemned(shop.store.database, shop.store.blobs, DIGEST)
    finished_answer = await shop.put(address, DATA)
    assert finished_answer.status_code == 201
    assert await shop.store.blobs.size(DIGEST) == 1000


class InterruptedBlobStore:
    """A blob store that runs a function right after bytes were sealed."""

    def __init__(self, blobs: BlobStore, shop: Shop) -> None:
        self._blobs = blobs
        self._shop = shop
        self.times = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    async def seal(self, *arguments: Any) -> str:
        """Seal the bytes, and run the collector the first time."""
        digest = await self._blobs.seal(*arguments)
        self.times += 1
        if self.times == 1:
            await blobs.note_idle(self._shop.store.database, digest)
            await blobs.condemn(self._shop.store.database, digest, Instant(1 << 62))
            assert await blobs.remove_condemned(self._shop.store.database, self._blobs, digest)
        return digest


async def test_bytes_removed_between_sealing_and_referring_are_sealed_again(shop: Shop) -> None:
    address = await shop.address(1000)
    await shop.put(address, DATA[:999], "bytes 0-998/1000")
    database = shop.store.database
    upload = await uploads.upload_with_token(database, "artifact", address.rsplit("/", 1)[1])

    async def last_byte() -> Any:
        yield DATA[999:]

    staged_part = await shop.store.blobs.stage(upload.id, 999, last_byte())
    async with database.transaction() as transaction:
        assert await uploads.add_part(transaction, upload.id, staged_part)
    interrupted: Any = InterruptedBlobStore(shop.store.blobs, shop)

    answer = await finish(replace(shop.store, blobs=interrupted), upload, ARTIFACT)

    assert (answer.status, interrupted.times) == (201, 2)
    assert await shop.store.blobs.size(DIGEST) == 1000


@pytest.mark.usefixtures("clock_two_hours_ahead")
async def test_a_ready_artifact_keeps_its_bytes_in_every_order_of_uploads_and_collections(shop: Shop) -> None:
    is_over = False

    async def collect() -> None:
        while not is_over:
            await blob_gc.collect(shop.store)

    collecting_task = asyncio.create_task(collect())
    for number in range(15):
        address = await shop.address(1000, f"file {number}")
        while (answer := await shop.put(address, DATA)).status_code == 503:
            await asyncio.sleep(0)
        assert answer.status_code == 201, answer.text
        assert await shop.store.blobs.size(DIGEST) == 1000
        await orphan(shop)
    is_over = True
    await collecting_task


async def test_a_store_that_is_away_leaves_the_row_for_the_next_collection(shop: Shop) -> None:
    if shop.store.settings.blobs_url:
        pytest.skip("a directory can be made unusable, a bucket cannot")
    await shop.upload(DATA)
    await orphan(shop)
    await blobs.condemn(shop.store.database, DIGEST, Instant(1 << 62))
    folder = Path(shop.store.settings.data) / "blobs" / "sealed" / DIGEST[:2] / DIGEST[2:4]
    hidden_folder = folder.with_name("hidden")
    os.rename(folder, hidden_folder)
    folder.write_bytes(b"")

    with pytest.raises(Unavailable):
        await blob_gc.collect(shop.store)

    folder.unlink()
    os.rename(hidden_folder, folder)
    with clock.fixed(clock.later(clock.now(), seconds=distribution.COLLECT_EVERY_S)):
        assert (await blob_gc.collect(shop.store)).blobs == 1
