"""Blobs are reserved, stored and removed outside of transactions: crashes at every step, races, and claims that
expire."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Unavailable
from countersign.store.releases import blob_gc, blobs, receive_upload, uploads
from countersign.store.releases.artifacts import ARTIFACT
from countersign.store.releases.blobs import BlobRemoved
from countersign.store.releases.receive_upload import finish
from countersign.store.releases.uploads import Upload
from tests.store.files import Shop, pattern, sha256_of

DATA = pattern(1000)
DIGEST = sha256_of(DATA)
DAY_S = 86_400
PATIENCE_S = 30
READY = "SELECT sha256 FROM artifact WHERE status = 'ready'"
# A crash before a step leaves the same state as a crash after the previous step.
UPLOAD_STEPS = (
    (blobs, "note_new"),
    ("store", "seal"),
    (blobs, "touch"),
    (blobs, "reserve"),
    (uploads, "finish"),
    (blobs, "keep"),
    (receive_upload, "_finish_in_transaction"),
    ("store", "discard"),
)
REMOVAL_STEPS = ((blobs, "note_unused"), (blobs, "condemn"), ("store", "delete"), (blobs, "remove_condemned"))


class SimulatedCrash(Exception):
    """Simulates the end of the process."""


Step = tuple[Any, str]


class StepHooks:
    """Runs functions around a step: a function of a module, or a method of the blob store."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self._shop = shop
        self._monkeypatch = monkeypatch

    def hook_once(
        self,
        step: Step,
        *,
        before: Callable[[], Awaitable[None]] | None = None,
        after: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Run these functions around the first call of the step."""
        owner = type(self._shop.store.blobs) if step[0] == "store" else step[0]
        original = getattr(owner, step[1])
        waiting_hooks = [(before, after)]

        async def wrapped(*arguments: Any, **options: Any) -> Any:
            run_first, run_then = waiting_hooks.pop() if waiting_hooks else (None, None)
            if run_first is not None:
                await run_first()
            result = await original(*arguments, **options)
            if run_then is not None:
                await run_then()
            return result

        self._monkeypatch.setattr(owner, step[1], wrapped)


@pytest.fixture
def steps(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> StepHooks:
    """The steps of uploads and removals in the shop."""
    return StepHooks(shop, monkeypatch)


async def crash() -> None:
    """Simulate the end of the process."""
    raise SimulatedCrash


async def create_received_upload(shop: Shop, filename: str = "game.zip") -> Upload:
    """Create an upload of DATA of which all bytes are received, and which is not finished."""
    address = await shop.address(len(DATA), filename)
    upload = await uploads.upload_with_token(shop.store.database, "artifact", address.rsplit("/", 1)[1])

    async def pieces() -> AsyncIterator[bytes]:
        yield DATA

    staged_part = await shop.store.blobs.stage(upload.id, 0, pieces())
    async with shop.store.database.transaction() as transaction:
        assert await uploads.add_part(transaction, upload.id, staged_part)
    return upload


async def run(shop: Shop, statement: str, *values: Any) -> int:
    """Change the database directly."""
    async with shop.store.database.transaction() as transaction:
        return await transaction.run(statement, *values)


async def column(shop: Shop, statement: str) -> set[Any]:
    """Return the first column of all rows."""
    return {row[0] for row in await shop.store.database.fetch(statement)}


async def orphan(shop: Shop) -> None:
    """Store DATA as a blob without references for two days."""
    await shop.upload(DATA, "orphan")
    await run(shop, "DELETE FROM artifact WHERE filename = 'orphan'")
    await blobs.note_unused(shop.store.database)
    past = clock.later(clock.now(), seconds=-2 * DAY_S)
    assert await run(shop, "UPDATE blob SET touched_at = $1", past) == 1
    assert await run(shop, "UPDATE idle_blob SET since = $1", past) == 1


async def collect(shop: Shop, seconds: float = 0) -> int:
    """Run the collector this number of seconds later, and return the number of removed files."""
    with clock.fixed(clock.later(clock.now(), seconds=seconds)):
        return (await blob_gc.collect(shop.store, is_confirmed=True)).blobs


async def assert_exact(shop: Shop) -> None:
    """Require that, some days later, exactly the bytes with references from artifacts are stored and known."""
    await run(shop, "DELETE FROM upload_part")
    await run(shop, "DELETE FROM upload")
    for days in (1.1, 2.2, 3.3):
        await collect(shop, days * DAY_S)
    ready_digests = await column(shop, READY)
    assert {blob.sha256 async for blob in shop.store.blobs.sealed_blobs()} == ready_digests
    assert await column(shop, "SELECT sha256 FROM blob") == ready_digests
    assert await column(shop, "SELECT sha256 FROM idle_blob") == set()
    assert [blob async for blob in shop.store.blobs.staged_uploads()] == []


@pytest.mark.parametrize("is_repeated", [True, False])
@pytest.mark.parametrize("step", UPLOAD_STEPS, ids=lambda step: step[1])
async def test_a_crash_of_an_upload_loses_and_leaks_nothing(
    shop: Shop, steps: StepHooks, step: Step, is_repeated: bool
) -> None:
    upload = await create_received_upload(shop)
    steps.hook_once(step, after=crash)

    with pytest.raises(SimulatedCrash):
        await finish(shop.store, upload, ARTIFACT)
    if is_repeated:
        assert (await finish(shop.store, upload, ARTIFACT)).status == 201
        assert await column(shop, READY) == {DIGEST}

    for sha256 in await column(shop, READY):
        assert await shop.store.blobs.size(sha256) == len(DATA)
    await assert_exact(shop)


@pytest.mark.parametrize("step", REMOVAL_STEPS, ids=lambda step: step[1])
async def test_a_crash_of_the_collector_loses_and_leaks_nothing(shop: Shop, steps: StepHooks, step: Step) -> None:
    await orphan(shop)
    steps.hook_once(step, after=crash)

    with pytest.raises(SimulatedCrash):
        await collect(shop)
    # If the removal has begun, the upload is refused until a run finishes the removal.
    address = await shop.address(len(DATA))
    first_answer = await shop.put(address, DATA)
    await collect(shop)
    await collect(shop, blobs.CLAIM_S + 1)

    second_answer = await shop.put(address, DATA)
    assert first_answer.status_code in (201, 503)
    assert second_answer.status_code == 201, second_answer.text
    assert await shop.store.blobs.size(DIGEST) == len(DATA)
    await assert_exact(shop)


async def test_uploads_of_the_same_content_share_its_blob(shop: Shop, steps: StepHooks) -> None:
    first_upload, second_upload = [await create_received_upload(shop, name) for name in ("first", "second")]

    async def finish_second() -> None:
        assert (await finish(shop.store, second_upload, ARTIFACT)).status == 201

    steps.hook_once((blobs, "reserve"), after=finish_second)

    assert (await finish(shop.store, first_upload, ARTIFACT)).status == 201
    assert await shop.store.database.fetch(f"{READY} ORDER BY id") == [(DIGEST,), (DIGEST,)]
    assert await shop.store.database.fetch("SELECT state FROM blob") == [("live",)]
    await assert_exact(shop)


async def remove(shop: Shop, sha256: str) -> None:
    """Remove a blob without references, like the collector does a day after its reservation."""
    await blobs.note_idle(shop.store.database, sha256)
    assert await blobs.remove_unused(shop.store.database, shop.store.blobs, sha256, Instant(1 << 62))


@pytest.mark.parametrize("step", [("store", "seal"), (blobs, "reserve")], ids=lambda step: step[1])
async def test_bytes_that_are_removed_during_an_upload_are_sealed_again(
    shop: Shop, steps: StepHooks, step: Step
) -> None:
    upload = await create_received_upload(shop)
    steps.hook_once(step, after=lambda: remove(shop, DIGEST))

    assert (await finish(shop.store, upload, ARTIFACT)).status == 201

    assert await shop.store.blobs.size(DIGEST) == len(DATA)
    await assert_exact(shop)


async def test_a_reservation_ends_with_its_blob_even_if_the_same_content_is_stored_again(shop: Shop) -> None:
    database, stored_blobs = shop.store.database, [(DIGEST, len(DATA))]
    await blobs.put(database, shop.store.blobs, DATA)
    (old,) = await blobs.reserve(database, shop.store.blobs, stored_blobs)
    await remove(shop, DIGEST)
    await blobs.put(database, shop.store.blobs, DATA)
    (new,) = await blobs.reserve(database, shop.store.blobs, stored_blobs)

    with pytest.raises(BlobRemoved):
        async with database.transaction() as transaction:
            await blobs.keep(transaction, [old])
    async with database.transaction() as transaction:
        await blobs.keep(transaction, [new])


async def test_bytes_of_another_size_cannot_be_reserved(shop: Shop) -> None:
    await blobs.put(shop.store.database, shop.store.blobs, DATA)

    with pytest.raises(BlobRemoved):
        await blobs.reserve(shop.store.database, shop.store.blobs, [(DIGEST, len(DATA) + 1)])


async def test_a_reserved_blob_is_spared_for_a_day(shop: Shop) -> None:
    database = shop.store.database
    await blobs.put(database, shop.store.blobs, DATA)
    (reservation,) = await blobs.reserve(database, shop.store.blobs, [(DIGEST, len(DATA))])

    assert await collect(shop, 0.9 * DAY_S) == 0
    async with database.transaction() as transaction:
        await blobs.keep(transaction, [reservation])
    await assert_exact(shop)


async def test_a_blob_that_is_missing_is_not_reserved(shop: Shop) -> None:
    """Backups expect the bytes of every live blob."""
    with pytest.raises(BlobRemoved):
        await blobs.reserve(shop.store.database, shop.store.blobs, [(DIGEST, len(DATA))])

    assert await column(shop, "SELECT sha256 FROM blob") == set()
    await assert_exact(shop)


class StepGate:
    """Stops a step until the test lets it continue."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self) -> None:
        """Report that the step was reached, and wait."""
        self.reached.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.opened.wait()


async def test_no_writer_waits_for_a_slow_blob_store_during_an_upload(shop: Shop, steps: StepHooks) -> None:
    upload, other_upload, gate = (
        await create_received_upload(shop),
        await create_received_upload(shop, "other"),
        StepGate(),
    )
    await blobs.note_idle(shop.store.database, DIGEST)
    steps.hook_once(("store", "size"), before=gate.wait)

    slow_upload = asyncio.create_task(finish(shop.store, upload, ARTIFACT))
    async with asyncio.timeout(PATIENCE_S):
        await gate.reached.wait()
        assert await run(shop, "UPDATE blob SET touched_at = touched_at WHERE sha256 = $1", DIGEST) == 1
        assert (await finish(shop.store, other_upload, ARTIFACT)).status == 201
    assert not slow_upload.done()
    gate.opened.set()

    assert (await slow_upload).status == 201
    await assert_exact(shop)


async def test_no_writer_and_no_collector_waits_for_a_slow_removal(shop: Shop, steps: StepHooks) -> None:
    await orphan(shop)
    gate = StepGate()
    steps.hook_once(("store", "delete"), before=gate.wait)
    address = await shop.address(len(DATA))

    slow_collection = asyncio.create_task(collect(shop))
    async with asyncio.timeout(PATIENCE_S):
        await gate.reached.wait()
        assert await run(shop, "UPDATE blob SET touched_at = touched_at WHERE sha256 = $1", DIGEST) == 1
        assert (await shop.put(address, DATA)).status_code == 503
        assert (await blob_gc.collect(shop.store)).blobs == 0
    assert not slow_collection.done()
    gate.opened.set()

    assert await slow_collection == 1
    assert (await shop.put(address, DATA)).status_code == 201
    await assert_exact(shop)


async def test_a_collector_with_an_expired_claim_does_not_touch_blobs_stored_later(
    shop: Shop, steps: StepHooks
) -> None:
    await orphan(shop)
    gate = StepGate()
    steps.hook_once(("store", "delete"), after=gate.wait)
    database, store = shop.store.database, shop.store.blobs

    slow_removal = asyncio.create_task(blobs.remove_unused(database, store, DIGEST, clock.now()))
    await gate.reached.wait()
    assert await blobs.condemned_blobs(database, 10) == []
    with clock.fixed(clock.later(clock.now(), seconds=blobs.CLAIM_S + 1)):
        assert [sha256 for sha256, _ in await blobs.condemned_blobs(database, 10)] == [DIGEST]
        assert await blobs.remove_condemned(database, store, DIGEST)
    await shop.upload(DATA, "again")
    gate.opened.set()

    assert not await slow_removal
    assert await column(shop, "SELECT state FROM blob") == {"live"}
    await assert_exact(shop)


async def test_a_claim_that_ends_in_the_distant_future_is_ignored(shop: Shop) -> None:
    """The clock was set back after the claim."""
    await orphan(shop)
    await blobs.condemn(shop.store.database, DIGEST, Instant(1 << 62))
    await run(shop, "UPDATE blob SET claimed_until = $1", clock.later(clock.now(), seconds=DAY_S))

    assert await blobs.remove_condemned(shop.store.database, shop.store.blobs, DIGEST)


class SuspendedDatabase:
    """A database that suspends the process after each transaction for most of the time of a claim."""

    def __init__(self, shop: Shop) -> None:
        self._database = shop.store.database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Any]:
        """Open a transaction, and suspend the process after it."""
        async with self._database.transaction() as transaction:
            yield transaction
        self.suspension = clock.fixed(clock.later(clock.now(), seconds=blobs.CLAIM_S / 2))
        self.suspension.__enter__()


async def test_a_process_that_was_suspended_after_its_claim_deletes_nothing(shop: Shop) -> None:
    await orphan(shop)
    await blobs.condemn(shop.store.database, DIGEST, Instant(1 << 62))
    suspended: Any = SuspendedDatabase(shop)

    try:
        assert not await blobs.remove_condemned(suspended, shop.store.blobs, DIGEST)
    finally:
        suspended.suspension.__exit__(None, None, None)

    assert await shop.store.blobs.size(DIGEST) == len(DATA)
    assert await collect(shop, blobs.CLAIM_S + 1) == 1


async def test_bytes_that_are_sealed_during_a_removal_stay_known(shop: Shop, steps: StepHooks) -> None:
    """The collector deletes the bytes. An upload seals them again, and ends before it reserves them."""
    await orphan(shop)
    upload = await create_received_upload(shop)

    async def seal() -> None:
        await blobs.note_new(shop.store.database, shop.store.blobs, DIGEST)
        await shop.store.blobs.seal(upload.id, await uploads.parts(shop.store.database, upload.id), len(DATA), None)

    steps.hook_once(("store", "delete"), after=seal)
    assert await collect(shop) == 1

    assert await shop.store.blobs.size(DIGEST) == len(DATA)
    assert await column(shop, "SELECT sha256 FROM idle_blob") == {DIGEST}
    await assert_exact(shop)


async def test_a_removal_that_the_blob_store_refuses_is_finished_by_a_later_run(shop: Shop, steps: StepHooks) -> None:
    await orphan(shop)

    async def refuse() -> None:
        raise Unavailable("the blob store is away")

    steps.hook_once(("store", "delete"), before=refuse)

    with pytest.raises(Unavailable):
        await collect(shop)
    assert await collect(shop) == 0
    assert await collect(shop, blobs.CLAIM_S + 1) == 1
    await assert_exact(shop)
