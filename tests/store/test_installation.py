"""Mix-ups of databases, data directories and blob stores: none of them removes a file, on any kind of installation."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import obstore
import pytest
from obstore.store import S3Store

from countersign.kernel import clock, connection_urls, ids, installation_id
from countersign.kernel.blobs.open import read_address
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migration_marker
from countersign.kernel.database.migration_marker import MigrationMarker
from countersign.kernel.installation_id import InstallationMismatch
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store import lifespan
from countersign.store.context import Store
from countersign.store.releases import blob_gc
from tests.servers.postgres import PostgresFactory
from tests.servers.s3 import Bucket
from tests.store.conftest import ROOT_URL, create_data_directory
from tests.store.files import PUBLISHER, Shop, open_shop, pattern, sha256_of
from tests.store.world import ALL_SCOPES, World

if TYPE_CHECKING:
    from obstore.store import S3Config

OLD, NEW = pattern(1000, 1), pattern(1000, 2)


@dataclass
class ClosedInstallation:
    """A closed installation: its settings, and how its database is copied or replaced by an empty one."""

    settings: Settings
    new_database: Callable[[str], str]
    product_id: str = ""

    @property
    def folder(self) -> Path:
        """The data directory."""
        return Path(self.settings.data)

    @property
    def files(self) -> BlobStore:
        """The blob store."""
        return lifespan.open_blob_store(self.settings)

    async def blob_names(self) -> set[str]:
        """Return everything in the blob store, sealed or staged."""
        sealed_digests = {blob.sha256 async for blob in self.files.sealed_blobs()}
        return sealed_digests | {blob.upload async for blob in self.files.staged_uploads()}

    def copied(self) -> "ClosedInstallation":
        """Return the same installation with a copy of the current database, which can be put in its place later."""
        if self.settings.database_url:
            name = self.settings.database_url.rsplit("/", 1)[1]
            return replace(self, settings=replace(self.settings, database_url=self.new_database(name)))
        kept_copy = self.folder.with_name("kept.sqlite")
        shutil.copyfile(self.folder / lifespan.DATABASE_FILE, kept_copy)
        return self

    def put_back(self) -> None:
        """Put the copy of an SQLite database in its place. A copy on PostgreSQL is named by its settings."""
        if not self.settings.database_url:
            shutil.copyfile(self.folder.with_name("kept.sqlite"), self.folder / lifespan.DATABASE_FILE)

    def emptied(self) -> "ClosedInstallation":
        """Return the same installation with an empty database."""
        if self.settings.database_url:
            return replace(self, settings=replace(self.settings, database_url=self.new_database("template0")))
        (self.folder / lifespan.DATABASE_FILE).unlink()
        return self


@pytest.fixture(params=["local", "s3"])
def installation(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> ClosedInstallation:
    """An installation on either database with files in either kind of store. The collector does not wait a day."""
    if request.param == "s3":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        bucket: Bucket = request.getfixturevalue("s3_url")
        url = f"s3://{bucket.name}/store?endpoint={bucket.endpoint}&region=us-east-1&allow_http=true"
        settings = replace(settings, blobs_url=url)
    new: PostgresFactory | None = request.getfixturevalue("new_postgres_url") if settings.database_url else None
    monkeypatch.setattr(blob_gc, "MIN_IDLE_S", -7200)
    if not settings.database_url:
        create_data_directory(Path(settings.data))
    return ClosedInstallation(settings, lambda template: new(template) if new else "")


@asynccontextmanager
async def open_like_serve(settings: Settings) -> AsyncGenerator[Store]:
    """Open the store of the settings like `serve` does."""
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
        yield store


@asynccontextmanager
async def shop_at(installation: ClosedInstallation) -> AsyncGenerator[Shop]:
    """Return a shop on the installation, which is created the first time."""
    async with open_like_serve(installation.settings) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            world = World(store, client)
            if installation.product_id:
                yield Shop(world, await world.person_token(PUBLISHER, ALL_SCOPES), installation.product_id)
                return
            await world.org("north")
            shop = await open_shop(world, access="entitled")
            installation.product_id = shop.product_id
            yield shop


async def begin(installation: ClosedInstallation) -> str:
    """Start the installation for the first time, and store a file. Return its id."""
    async with shop_at(installation) as shop:
        await shop.upload(OLD, "old")
        assert await blob_gc.collect(shop.store) == (0, 0, 0, "")
        return (await shop.store.database.fetch(installation_id.STORED))[0][0]


async def go_on(installation: ClosedInstallation) -> None:
    """Store another file and half of a third one, and run the collector."""
    async with shop_at(installation) as shop:
        await shop.upload(NEW, "new")
        await shop.put(await shop.address(1000, "half"), NEW[:500], "bytes 0-499/1000")
        assert await blob_gc.collect(shop.store) == (0, 0, 0, "")


async def refusal(installation: ClosedInstallation) -> InstallationMismatch:
    """Return the reason why the installation is refused."""
    with pytest.raises(InstallationMismatch) as mismatch:
        async with open_like_serve(installation.settings):
            pytest.fail("it was opened")
    return mismatch.value


async def test_an_empty_database_beside_the_files_of_another_is_refused(installation: ClosedInstallation) -> None:
    own_id = await begin(installation)
    blobs_before = await installation.blob_names()
    emptied_copy = installation.emptied()

    mismatch = await refusal(emptied_copy)

    assert own_id in mismatch.detail
    assert "installation adopt" in mismatch.remedy
    assert "has no id" in mismatch.detail
    assert await installation.blob_names() == blobs_before != set()


async def test_no_tables_are_made_in_a_database_that_is_refused(installation: ClosedInstallation) -> None:
    await begin(installation)
    emptied_copy = installation.emptied()

    await refusal(emptied_copy)
    database = await lifespan.open_database(_url(emptied_copy), schema=lifespan.SCHEMA)
    try:
        assert await database.fetch_one(TABLE[database.dialect]) is None
    finally:
        await database.close()


async def test_the_database_of_another_installation_is_refused_with_both_ids(
    installation: ClosedInstallation, tmp_path: Path
) -> None:
    own_id = await begin(installation)
    other_installation = replace(
        installation, settings=replace(installation.settings, data=str(tmp_path / "other"), blobs_url="")
    )
    if installation.settings.database_url:
        other_installation = other_installation.emptied()
    their_id = await begin(replace(other_installation, product_id=""))
    blobs_before = await installation.blob_names()

    if installation.settings.database_url:
        wrong_settings = replace(installation.settings, database_url=other_installation.settings.database_url)
    else:
        shutil.copyfile(
            other_installation.folder / lifespan.DATABASE_FILE, installation.folder / lifespan.DATABASE_FILE
        )
        wrong_settings = installation.settings
    mismatch = await refusal(replace(installation, settings=wrong_settings))

    assert own_id != their_id
    assert own_id in mismatch.detail
    assert their_id in mismatch.detail
    assert str(installation.folder) in mismatch.detail
    assert await installation.blob_names() == blobs_before


async def test_a_second_installation_with_the_same_file_store_is_refused(
    installation: ClosedInstallation, tmp_path: Path
) -> None:
    own_id = await begin(installation)
    blobs_before = await installation.blob_names()
    second_installation = replace(installation, settings=replace(installation.settings, data=str(tmp_path / "second")))
    if installation.settings.database_url:
        second_installation = second_installation.emptied()

    with pytest.raises(InstallationMismatch) as mismatch:
        async with open_with_files(second_installation.settings, installation.files):
            pytest.fail("it was opened")

    assert own_id in mismatch.value.detail
    assert await installation.blob_names() == blobs_before


async def test_an_older_copy_of_the_database_removes_nothing_and_reports_what_it_does_not_know(
    installation: ClosedInstallation,
) -> None:
    await begin(installation)
    older = installation.copied()
    await go_on(installation)
    blobs_before = await installation.blob_names()
    older.put_back()

    async with open_like_serve(older.settings) as store:
        stopped = (await blob_gc.collect(store)).stopped
        assert "older state" in stopped
        assert await installation.blob_names() == blobs_before
        report = await blob_gc.report(store.database)
        assert report is not None
        assert "installation adopt" in report.stopped

        installation_locations = lifespan.installation_id_locations(older.settings, store.database, store.blobs)
        await installation_id.adopt(installation_locations, ids.new_uuid(), clock.now())
        collection = await blob_gc.collect(store)
        report = await blob_gc.report(store.database)

    assert report is not None
    assert (collection.blobs, collection.stopped) == (0, "")
    assert (report.files, report.unknown, report.unknown_bytes) == (2, 1, len(NEW))
    assert {sha256_of(OLD), sha256_of(NEW)} <= await installation.blob_names()


async def test_one_of_two_running_copies_of_a_database_stops(installation: ClosedInstallation) -> None:
    await begin(installation)
    copy = installation.copied()
    await go_on(installation)
    if not installation.settings.database_url:
        folder = installation.folder.with_name("copy")
        folder.mkdir()
        shutil.copyfile(installation.folder.with_name("kept.sqlite"), folder / lifespan.DATABASE_FILE)
        copy = replace(copy, settings=replace(copy.settings, data=str(folder)))
    files = installation.files

    async with (
        open_like_serve(installation.settings) as original_store,
        open_with_files(copy.settings, files) as copied_store,
    ):
        first_run, second_run, third_run = [
            await blob_gc.collect(store) for store in (original_store, copied_store, original_store)
        ]

    assert (first_run.stopped, third_run.stopped) == ("", "")
    assert "another copy" in second_run.stopped


@asynccontextmanager
async def open_with_files(settings: Settings, files: BlobStore) -> AsyncGenerator[Store]:
    """Open a store that uses these files instead of those in its settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifespan, "open_blob_store", lambda _: files)
        async with open_like_serve(settings) as store:
            yield store


async def test_an_installation_of_the_version_before_gets_an_id_once(installation: ClosedInstallation) -> None:
    first_id = await begin(installation)
    await forget(installation)

    ids_made = set[str]()

    async def start() -> None:
        async with open_like_serve(installation.settings) as store:
            ids_made.update(stored_id for stored_id, _ in await store.database.fetch(installation_id.STORED))

    await asyncio.gather(*(start() for _ in range(3)))

    marker = await installation_id.blobs_marker(installation.files, "")
    settled = installation_id.directory_id(installation.folder)
    assert marker is not None
    assert settled is not None
    assert settled.is_settled
    assert ids_made == {marker.id} == {settled.id} != {first_id}


async def forget(installation: ClosedInstallation) -> None:
    """Remove the id everywhere, as in an installation of the previous version."""
    async with open_like_serve(installation.settings) as store, store.database.transaction() as transaction:
        await installation_id.forget(transaction)
    (installation.folder / installation_id.FILE_NAME).unlink()
    if not installation.settings.blobs_url:
        (installation.folder / lifespan.BLOBS_FOLDER / installation_id.FILE_NAME).unlink()
        return
    await delete_marker(installation)


async def delete_marker(installation: ClosedInstallation) -> None:
    """Delete the marker from the bucket, which the product never does."""
    s3_address = read_address(installation.settings.blobs_url)
    config: S3Config = {"endpoint": s3_address.endpoint or "", "region": "us-east-1"}
    bucket = S3Store(s3_address.bucket, prefix=s3_address.prefix, config=config, client_options={"allow_http": True})
    await obstore.delete_async(bucket, [installation_id.FILE_NAME])


async def test_an_empty_database_beside_files_of_the_version_before_is_refused(
    installation: ClosedInstallation,
) -> None:
    await begin(installation)
    await forget(installation)
    (installation.folder / migration_marker.FILE_NAME).unlink(missing_ok=True)
    blobs_before = await installation.blob_names()

    mismatch = await refusal(installation.emptied())

    assert "has files" in mismatch.detail
    assert "refers to none" in mismatch.detail
    assert await installation.blob_names() == blobs_before


async def test_a_database_whose_files_are_elsewhere_is_refused(installation: ClosedInstallation) -> None:
    await begin(installation)
    await forget(installation)

    for sha256 in await installation.blob_names():
        await installation.files.delete(sha256)
    mismatch = await refusal(installation)

    assert "has none of the first 1" in mismatch.detail


async def test_a_directory_that_is_marked_as_another_databases_is_refused(installation: ClosedInstallation) -> None:
    if not installation.settings.database_url:
        pytest.skip("SQLite databases have no address")
    await begin(installation)
    await forget(installation)
    migration_marker.write_marker(
        installation.folder, MigrationMarker("x", "elsewhere:5432/other", "2026-01-01T00:00:00Z", is_complete=True)
    )

    mismatch = await refusal(installation)

    assert "elsewhere:5432/other" in mismatch.detail
    assert connection_urls.postgres_location(installation.settings.database_url) in mismatch.detail


async def test_a_start_that_was_cut_off_at_any_place_continues(installation: ClosedInstallation) -> None:
    first_id = await begin(installation)
    path = installation.folder / installation_id.FILE_NAME
    path.write_text(json.dumps({"id": first_id, "is_settled": False}))

    async with open_like_serve(installation.settings) as store:
        assert await store.database.fetch("SELECT id FROM installation") == [(first_id,)]
    assert json.loads(path.read_text()) == {"id": first_id, "is_settled": True, "services": ["distribution"]}

    path.unlink()
    async with open_like_serve(installation.settings):
        assert json.loads(path.read_text())["id"] == first_id


async def test_the_collector_stops_if_the_blob_store_now_belongs_to_another_installation(
    installation: ClosedInstallation,
) -> None:
    await begin(installation)
    async with shop_at(installation) as shop:
        async with shop.store.database.transaction() as transaction:
            await transaction.run("DELETE FROM artifact")
        await shop.store.blobs.mark(b'{"id": "another", "collected_at": 0}', is_new=False)

        collected = await blob_gc.collect(shop.store)

        assert "another" in collected.stopped
        assert sha256_of(OLD) in await installation.blob_names()


TABLE = {
    "sqlite": "SELECT 1 FROM sqlite_schema",
    "postgres": "SELECT 1 FROM pg_tables WHERE schemaname = current_schema()",
}


def _url(installation: ClosedInstallation) -> str:
    return installation.settings.database_url or f"sqlite:///{installation.folder / lifespan.DATABASE_FILE}"
