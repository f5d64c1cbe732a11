"""An archive contains exactly what was written, or its damage is reported. No blob is lost between two steps."""

import asyncio
import hashlib
import io
import random
import tarfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from countersign.backup.archive import (
    ABOUT,
    BLOBS,
    FORMAT,
    KEY,
    MANIFEST,
    About,
    ArchiveReader,
    ArchiveWriter,
    Manifest,
)
from countersign.backup.creation import Backup, BlobSource, blob_name
from countersign.backup.databases import SqliteDatabases
from countersign.kernel import clock
from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.database import sqlite_connection
from countersign.kernel.security.age import AgeDecryptor, AgeEncryptor, Damaged, WrongPassphrase, find_damage
from tests.figures import Figures

PASSPHRASE = "correct horse battery staple"
WORK = 4
SCHEMAS = ("distribution", "records")
HEADER_BYTES = 149 + 16
FLIPS, FLIPS_FULL = 200, 10_000
LIVE = "SELECT sha256 FROM blob WHERE sha256 > $1 ORDER BY sha256 LIMIT $2"


class Installation:
    """A database that refers to blobs, and their store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "distribution.sqlite"
        self.store = LocalBlobs(folder / "blobs", reserve_bytes=0)
        self.databases = SqliteDatabases({"distribution": self.path}, folder)
        self.archive = io.BytesIO()
        self.database = sqlite_connection.connect(self.path, use="write")
        self.database.execute("CREATE TABLE blob (sha256 TEXT PRIMARY KEY)")

    async def add(self, content: bytes) -> str:
        """Store a blob, and refer to it."""
        sha256 = await self.store.put(content)
        self.database.execute("INSERT INTO blob (sha256) VALUES (?)", (sha256,))
        return sha256

    async def remove(self, sha256: str) -> None:
        """Remove the reference to a blob, and the blob at once."""
        self.database.execute("DELETE FROM blob WHERE sha256 = ?", (sha256,))
        await self.store.delete(sha256)

    def begun(self) -> Backup:
        """Return a backup that is about to be made."""
        blobs = BlobSource(self.store, "distribution", LIVE)
        writing = ArchiveWriter(AgeEncryptor(self.archive.write, PASSPHRASE, work=WORK))
        return Backup(writing, self.databases, blobs, lambda subject, count: None)

    def read(self) -> tuple[ArchiveReader, dict[str, str]]:
        """Read the archive to its end, and return the digests of its contents."""
        reading = ArchiveReader(AgeDecryptor(io.BytesIO(self.archive.getvalue()).read, PASSPHRASE), SCHEMAS)
        digests: dict[str, str] = {}
        for member in reading.members():
            digests[member.name] = hashlib.sha256(b"".join(member.chunks())).hexdigest()
        return reading, digests


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """An installation without blobs."""
    return Installation(tmp_path)


async def make_archive(installation: Installation) -> None:
    """Make the whole archive."""
    backup = installation.begun()
    await backup.begin({KEY: b"key"})
    async with installation.databases.snapshot() as snapshot:
        assert await backup.end(snapshot, is_last_try=True) is not None


def test_an_archive_contains_every_blob_at_its_path(installation: Installation) -> None:
    async def run() -> list[str]:
        digests = [await installation.add(b"%d" % number * number) for number in (0, 1, 40)]
        digests.append(await installation.add(random.Random(1).randbytes(3 << 20)))
        await make_archive(installation)
        return digests

    digests = asyncio.run(run())
    reading, digest_by_name = installation.read()

    assert {blob_name(sha256): sha256 for sha256 in digests}.items() <= digest_by_name.items()
    assert digest_by_name.keys() - {blob_name(sha256) for sha256 in digests} == {KEY, "distribution.sqlite"}
    assert reading.manifest is not None
    assert (reading.manifest.blobs, reading.manifest.unreadable) == (len(digests), ())


def test_a_blob_that_is_removed_between_the_moment_and_its_copy_asks_for_another_moment(
    installation: Installation,
) -> None:
    async def run() -> str:
        kept_sha256 = await installation.add(b"kept")
        backup = installation.begun()
        await backup.begin({})
        gone_sha256 = await installation.add(b"gone")
        async with installation.databases.snapshot() as snapshot:
            await installation.remove(gone_sha256)
            assert await backup.end(snapshot, is_last_try=False) is None
        async with installation.databases.snapshot() as snapshot:
            assert await backup.end(snapshot, is_last_try=False) is not None
        return kept_sha256

    kept_sha256 = asyncio.run(run())
    reading, digests = installation.read()

    assert reading.manifest is not None
    assert (reading.manifest.blobs, reading.manifest.unreadable) == (1, ())
    assert digests.keys() == {blob_name(kept_sha256), "distribution.sqlite"}


def test_a_blob_that_was_lost_before_is_named_and_everything_else_is_kept(installation: Installation) -> None:
    async def run() -> tuple[str, str]:
        lost_sha256, changed_sha256 = await installation.add(b"lost"), await installation.add(b"changed")
        await installation.add(b"kept")
        await installation.store.delete(lost_sha256)
        path = await installation.store.file(changed_sha256, Path())
        path.chmod(0o600)
        path.write_bytes(b"chanced")
        await make_archive(installation)
        return lost_sha256, changed_sha256

    damaged = asyncio.run(run())
    reading, _ = installation.read()

    assert reading.manifest is not None
    assert set(reading.manifest.unreadable) == set(damaged)
    assert reading.manifest.blobs == 1


def test_a_store_that_ends_too_early_makes_no_archive_that_cannot_be_read(installation: Installation) -> None:
    class CutBlobStore(LocalBlobs):
        """A store that loses its large blobs halfway."""

        async def read(self, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
            """Return half of the bytes."""
            async for piece in super().read(sha256, start, stop // 2):
                yield piece

    async def run() -> str:
        sha256 = await installation.add(random.Random(1).randbytes(3 << 20))
        installation.store = CutBlobStore(installation.path.parent / "blobs", reserve_bytes=0)
        await make_archive(installation)
        return sha256

    sha256 = asyncio.run(run())

    manifest = installation.read()[0].manifest
    assert manifest is not None
    assert manifest.unreadable == (sha256,)


def test_every_flipped_bit_is_found_and_placed(installation: Installation, is_full: bool, figures: Figures) -> None:
    async def run() -> None:
        for number in range(5):
            await installation.add(random.Random(number).randbytes(30_000))
        await make_archive(installation)

    asyncio.run(run())
    archive_bytes = installation.archive.getvalue()
    rng = random.Random(7)
    missed = misplaced = 0
    for _ in range(FLIPS_FULL if is_full else FLIPS):
        bit = rng.randrange(8 * len(archive_bytes))
        changed_bytes = bytearray(archive_bytes)
        changed_bytes[bit // 8] ^= 1 << bit % 8
        damaged_places = damaged_ranges(bytes(changed_bytes))
        missed += not damaged_places
        misplaced += bool(damaged_places) and not any(start <= bit // 8 < stop for start, stop in damaged_places)

    figures |= {"flips": FLIPS_FULL if is_full else FLIPS, "missed": missed, "misplaced": misplaced}
    assert (missed, misplaced) == (0, 0)


def damaged_ranges(archive: bytes) -> list[tuple[int, int]]:
    """Return the places of the damage, as `verify` finds them."""
    try:
        reading = ArchiveReader(AgeDecryptor(io.BytesIO(archive).read, PASSPHRASE), SCHEMAS)
        for _ in reading.members():
            continue
    except WrongPassphrase:
        return [(0, HEADER_BYTES)]
    except Damaged as error:
        damaged_spans = [(error.start, error.stop)]
        with suppress(Damaged):
            damaged_spans = [damage[:2] for damage in find_damage(io.BytesIO(archive).read, PASSPHRASE)]
        # The nonce comes before the first chunk, which cannot be decrypted without it.
        return [(start - 16 if start == HEADER_BYTES else start, stop) for start, stop in damaged_spans]
    return []


@pytest.mark.parametrize("schemas", [("../escaped",), ("/elsewhere",), ("./distribution",), ("records", "records")])
def test_an_archive_of_other_schemas_is_refused_before_anything_is_written(schemas: tuple[str, ...]) -> None:
    archive = io.BytesIO()
    writing = ArchiveWriter(AgeEncryptor(archive.write, PASSPHRASE, work=WORK))
    archive_about = About(FORMAT, "1.0.0", "sqlite", schemas, "2026-01-01T00:00:00Z")
    writing.add(ABOUT, msgspec.json.encode(archive_about))
    writing.finish(Manifest(clock.now(), "", 0, 0, dict(writing.digests), {}, ()))

    with pytest.raises(Damaged, match="does not have"):
        ArchiveReader(AgeDecryptor(io.BytesIO(archive.getvalue()).read, PASSPHRASE), SCHEMAS)


ABOUT_SQLITE = msgspec.json.encode(About(FORMAT, "1.0.0", "sqlite", ("distribution",), "2026-01-01T00:00:00Z"))


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, size: int | None = None) -> bytes:
    """Return a member of a tar file. Its header may state a wrong size."""
    header = tarfile.TarInfo(name)
    header.size, header.type = len(content) if size is None else size, kind
    return header.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


HOSTILE = {
    "negative_size_first": member(ABOUT, size=-5),
    "negative_size": member(ABOUT, ABOUT_SQLITE) + member(KEY, size=-512),
    "huge_size": member(ABOUT, ABOUT_SQLITE) + member(KEY, b"x", size=1 << 70),
    "link": member(ABOUT, ABOUT_SQLITE) + member(KEY, kind=tarfile.SYMTYPE),
    "folder": member(ABOUT, ABOUT_SQLITE) + member(KEY, kind=tarfile.DIRTYPE),
    "long_name": member(ABOUT, ABOUT_SQLITE) + member("x", b"../../a", kind=tarfile.GNUTYPE_LONGNAME),
    "twice": member(ABOUT, ABOUT_SQLITE) + member(KEY, b"a") + member(KEY, b"b"),
    "first_twice": member(ABOUT, ABOUT_SQLITE) * 2,
    "blob_twice": member(ABOUT, ABOUT_SQLITE) + member(blob_name(hashlib.sha256(b"x").hexdigest()), b"x") * 2,
    "deep_first": member(ABOUT, b'{"x":' + b"[" * 200_000),
    "deep_manifest": member(ABOUT, ABOUT_SQLITE) + member(MANIFEST, b'{"x":' + b"[" * 200_000),
    "no_hexadecimal": member(ABOUT, ABOUT_SQLITE) + member(f"{BLOBS}sealed/zz/zz/{'z' * 64}", b"x"),
    "capitals": member(ABOUT, ABOUT_SQLITE) + member(f"{BLOBS}sealed/AA/AA/{'A' * 64}", b"x"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_content_that_no_backup_writes_is_detected_at_once(kind: str) -> None:
    archive = io.BytesIO()
    sealing = AgeEncryptor(archive.write, PASSPHRASE, work=WORK)
    sealing.write(HOSTILE[kind] + bytes(1024))
    sealing.finish()

    with pytest.raises(Damaged, match=r"not a file|duplicate|cannot be read|not the name of a blob|ends too early"):
        list(ArchiveReader(AgeDecryptor(io.BytesIO(archive.getvalue()).read, PASSPHRASE), SCHEMAS).members())
