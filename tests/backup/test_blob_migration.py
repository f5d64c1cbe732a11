"""A migration of blobs to another store names each blob that differs there, is missing here, or belongs to another
installation."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from countersign.backup.creation import BlobSource
from countersign.backup.databases import SqliteDatabases
from countersign.backup.sqlite_to_postgres import BlobMigration, NotMovable
from countersign.kernel.blobs import layout
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database.sqlite import open_sqlite
from countersign.kernel.errors import NotEmpty

LIVE = "SELECT sha256 FROM blob WHERE sha256 > $1 ORDER BY sha256 LIMIT $2"
KNOWN = "SELECT 1 FROM blob WHERE sha256 = $1"
CONTENTS = (b"one", b"two" * 1000)


async def seal(store: BlobStore, content: bytes) -> str:
    """Encrypt the bytes, and return their digest."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    staged_part = await store.stage("u", 0, pieces())
    sha256 = await store.seal("u", [staged_part], staged_part.length, None)
    await store.discard("u")
    return sha256


async def new_databases(folder: Path) -> SqliteDatabases:
    """Return a database that refers to the contents."""
    path = folder / "store.sqlite"
    database = await open_sqlite(path, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE blob (sha256 TEXT PRIMARY KEY)")
        rows = [(hashlib.sha256(content).hexdigest(),) for content in CONTENTS]
        await transaction.run_many("INSERT INTO blob (sha256) VALUES ($1)", rows)
    await database.close()
    return SqliteDatabases({"store": path}, folder)


async def test_blobs_are_copied_compared_and_distinguished(tmp_path: Path) -> None:
    source_blobs = open_blobs("", tmp_path / "here", reserve_bytes=0)
    target_blobs = open_blobs("", tmp_path / "there", reserve_bytes=0)
    databases = await new_databases(tmp_path)
    moving = BlobMigration(
        databases, BlobSource(source_blobs, "store", LIVE), target_blobs, lambda subject, count: None
    )
    first_sha256, second_sha256 = [await seal(source_blobs, content) for content in CONTENTS]

    await moving.require_own(KNOWN)
    await moving.begin()
    assert (moving.count, moving.bytes) == (2, 3003)
    assert await target_blobs.size(first_sha256) == 3
    # A second run reads again what the first one copied.
    second_migration = BlobMigration(
        databases, BlobSource(source_blobs, "store", LIVE), target_blobs, lambda subject, count: None
    )
    await second_migration.require_own(KNOWN)
    (path,) = (tmp_path / "there").rglob(layout.sealed_name(second_sha256).rpartition("/")[2])
    path.chmod(0o600)
    for wrong_content in (b"twe" + CONTENTS[1][3:], CONTENTS[1] + b"!"):
        path.write_bytes(wrong_content)
        with pytest.raises(NotMovable, match=second_sha256):
            await second_migration.begin()

    # A blob that is damaged here is not copied at all, under any name.
    await target_blobs.delete(second_sha256)
    (path,) = (tmp_path / "here").rglob(path.name)
    path.chmod(0o600)
    path.write_bytes(b"twe" + CONTENTS[1][3:])
    third_migration = BlobMigration(
        databases, BlobSource(source_blobs, "store", LIVE), target_blobs, lambda subject, count: None
    )
    async with databases.snapshot(block_writes=True) as snapshot:
        with pytest.raises(NotMovable, match=second_sha256):
            await third_migration.end(snapshot)
    assert [blob.sha256 async for blob in target_blobs.sealed_blobs()] == [first_sha256]

    await source_blobs.delete(second_sha256)
    async with databases.snapshot(block_writes=True) as snapshot:
        with pytest.raises(NotMovable, match=second_sha256):
            await second_migration.end(snapshot)

    await seal(target_blobs, b"somebody's")
    with pytest.raises(NotEmpty):
        await second_migration.require_own(KNOWN)
