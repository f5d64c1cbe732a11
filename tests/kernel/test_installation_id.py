"""The installation id and the time of the last collection in the database and the blob store, with several nodes."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from countersign.kernel import clock, installation_id
from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.installation_id import (
    DatabaseOutdated,
    DirectoryId,
    InstallationLocations,
    InstallationState,
    Marker,
    ServiceTables,
)

TABLE = "CREATE TABLE installation (one BIGINT PRIMARY KEY, id TEXT NOT NULL, collected_at BIGINT NOT NULL)"
OWN, NAME = "01a00000-0000-7000-8000-000000000000", "the files"
EARLY, LATE = Instant(1_000_000), Instant(2_000_000)
Event = Callable[[], Awaitable[None]]


class SharedStorage:
    """A database and a blob store that several nodes share."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self.database = database
        self.blobs = blobs

    async def advance(self, at: Instant) -> None:
        """Run the collector on a node whose clock shows this time."""
        with clock.fixed(at):
            await installation_id.advance(self.database, self.blobs, NAME)

    async def times(self) -> tuple[int, int]:
        """Return the time of the last collection according to the database and to the blob store."""
        row = await self.database.fetch_one(installation_id.STORED)
        marker = await installation_id.blobs_marker(self.blobs, NAME)
        assert row is not None
        assert marker is not None
        return row[1], marker.collected_at


@pytest.fixture
async def nodes(database_url: str, tmp_path: Path) -> AsyncIterator[SharedStorage]:
    """An installation without a collection."""
    database = await open_database(database_url, schema="shop", reserve_bytes=0)
    blobs = LocalBlobs(tmp_path / "blobs", reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, database.dialect))
        await installation_id.replace(transaction, OWN)
    await installation_id.claim(blobs, OWN, NAME)
    yield SharedStorage(database, blobs)
    await database.close()


class InterleavedStorage:
    """A database and a blob store that run a function before the step with this number, counted from 0."""

    def __init__(self, nodes: SharedStorage, event: Event, at: int) -> None:
        self._nodes = nodes
        self._event = event
        self._left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes.database, name)

    async def _step(self) -> None:
        self._left -= 1
        if self._left == -1:
            await self._event()

    async def fetch_one(self, *arguments: Any) -> Any:
        """Return the first row."""
        await self._step()
        return await self._nodes.database.fetch_one(*arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Open a transaction."""
        await self._step()
        async with self._nodes.database.transaction() as transaction:
            yield transaction

    async def marker(self) -> bytes | None:
        """Return the marker."""
        await self._step()
        return await self._nodes.blobs.marker()

    async def mark(self, *arguments: Any, **options: Any) -> bool:
        """Write the marker, which is one step with the transaction around it."""
        return await self._nodes.blobs.mark(*arguments, **options)

    @property
    def was_interrupted(self) -> bool:
        """Return whether a step with this number existed."""
        return self._left < 0


@pytest.mark.parametrize("other_time", [EARLY, LATE])
@pytest.mark.parametrize("step", range(4))
async def test_a_node_that_advances_at_any_moment_of_another_stops_neither_nor_sets_the_marker_back(
    nodes: SharedStorage, step: int, other_time: Instant
) -> None:
    times_seen: list[tuple[int, int]] = []

    async def event() -> None:
        await nodes.advance(other_time)
        times_seen.append(await nodes.times())

    interleaved: Any = InterleavedStorage(nodes, event, step)
    # The clock of `advance` in the function takes precedence.
    with clock.fixed(Instant((EARLY + LATE) // 2)):
        await installation_id.advance(interleaved, interleaved, NAME)

    assert interleaved.was_interrupted
    ((_, marker_before),) = times_seen
    row, marker = await nodes.times()
    assert row == marker >= marker_before
    await nodes.advance(LATE)


@pytest.mark.parametrize("step", range(2))
async def test_a_look_at_the_times_while_another_node_advances_finds_no_outdated_database(
    nodes: SharedStorage, step: int
) -> None:
    interleaved: Any = InterleavedStorage(nodes, lambda: nodes.advance(LATE), step)

    await installation_id.require_latest(interleaved, interleaved, NAME)

    assert interleaved.was_interrupted


async def test_nodes_that_advance_at_once_all_succeed(nodes: SharedStorage) -> None:
    await asyncio.gather(*(nodes.advance(EARLY) for _ in range(5)))

    row, marker = await nodes.times()
    assert row == marker >= EARLY


async def test_an_older_state_of_the_database_is_outdated(nodes: SharedStorage) -> None:
    await nodes.advance(LATE)
    async with nodes.database.transaction() as transaction:
        await installation_id.replace(transaction, OWN)

    with pytest.raises(DatabaseOutdated, match="older state"):
        await nodes.advance(LATE)

    assert await nodes.blobs.marker() == msgspec.json.encode(Marker(OWN, LATE))


def places_of(folder: Path, schema: str, database: Database) -> InstallationLocations:
    """Return the databases and files of a service with this schema and without blobs."""
    return InstallationLocations(folder, "", ServiceTables(schema, "", "", "", "", "", ""), database)


async def test_services_that_settle_at_once_are_all_named_in_the_directory(
    nodes: SharedStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = ("distribution", "records")
    # Before it writes, each waits until the other has read. Only a lock prevents the other from reading so early.
    readers = threading.Barrier(len(services))
    write = installation_id.write_directory

    def write_after_the_other_has_read(*arguments: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            readers.wait(0.2)
        write(*arguments)

    monkeypatch.setattr(installation_id, "write_directory", write_after_the_other_has_read)
    state = InstallationState(own=None, blobs=None, are_blobs_read=True, sibling=None, database=OWN)
    all_places = [places_of(tmp_path, schema, nodes.database) for schema in services]

    await asyncio.gather(*(installation_id.register(places, state) for places in all_places))

    assert installation_id.directory_id(tmp_path) == DirectoryId(OWN, is_settled=True, services=services)
