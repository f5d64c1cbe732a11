"""The table of blobs, and the check that stored bytes match their digests.

A live blob may be referenced. An idle blob is known to be unreferenced since a certain time. A condemned blob is being
removed by the collector. A blob is sealed when all of its bytes are in the blob store, under their digest.

No transaction waits for the blob store. To reference a blob, a caller reserves it in one transaction, asks the blob
store whether the bytes are there, and then references it in another transaction, in which `keep` checks that no
removal has begun since (decision 0022). A removal is claimed in one transaction, its row is deleted in another, and the
bytes are deleted in between. A claim expires, so that another collector can finish the removal of a process that died.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import NotFound, Unavailable

RESERVE = """
    INSERT INTO blob (sha256, size, state, touched_at, token)
    VALUES ($1, $2, 'live', $3, $4)
    ON CONFLICT (sha256) DO UPDATE SET touched_at = excluded.touched_at
    WHERE blob.state = 'live'
    RETURNING token
"""
KEEP = """
    UPDATE blob SET touched_at = $3
    WHERE sha256 = $1 AND token = $2 AND state = 'live'
"""
FORGET_IDLE = "DELETE FROM idle_blob WHERE sha256 = $1"
FORGET_IDLE_SINCE = "DELETE FROM idle_blob WHERE sha256 = $1 AND since <= $2"
NOTE_IDLE = """
    INSERT INTO idle_blob (sha256, since) VALUES ($1, $2)
    ON CONFLICT (sha256) DO UPDATE SET since = excluded.since
"""
NOTE_FIRST_IDLE = "INSERT INTO idle_blob (sha256, since) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING"
LIVE = "SELECT sha256 FROM blob WHERE state = 'live' AND sha256 > $1 ORDER BY sha256 LIMIT $2"
"""Selects the blobs after a digest that are in use or were in use recently. Backups use this statement directly,
without the database port."""
IS_LIVE = "SELECT 1 FROM blob WHERE sha256 = $1 AND state = 'live'"
KNOWN = "SELECT 1 FROM blob WHERE sha256 = $1 UNION ALL SELECT 1 FROM idle_blob WHERE sha256 = $1"
KNOWN_AFTER = """
    SELECT sha256 FROM blob WHERE sha256 > $1
    UNION
    SELECT sha256 FROM idle_blob WHERE sha256 > $1
    ORDER BY sha256
    LIMIT $2
"""
# Selects at most 1000 blobs, used or unused, so that one statement reads a limited number of rows.
USES = """
    SELECT b.sha256,
           CASE WHEN b.state = 'live' AND b.touched_at < $2
                 AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM media m WHERE m.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM media_size s WHERE s.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM pack p WHERE p.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM build m WHERE m.envelope_sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM delta d WHERE d.sha256 = b.sha256)
                THEN 1 ELSE 0 END AS is_unused
    FROM blob b
    WHERE b.sha256 > $1
    ORDER BY b.sha256
    LIMIT 1000
"""
TAKE = "UPDATE blob SET state = state WHERE sha256 = $1"
CONDEMN = """
    UPDATE blob SET state = 'condemned', token = $3, claimed_until = 0
    WHERE sha256 = $1 AND state = 'live' AND touched_at < $2
      AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM media m WHERE m.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM media_size s WHERE s.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM pack p WHERE p.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM build m WHERE m.envelope_sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM delta d WHERE d.sha256 = blob.sha256)
      AND EXISTS (SELECT 1 FROM idle_blob i WHERE i.sha256 = blob.sha256 AND i.since <= $2)
"""
CONDEMN_UNUSED = """
    INSERT INTO blob (sha256, size, state, touched_at, token)
    SELECT i.sha256, 0, 'condemned', CAST($3 AS BIGINT), CAST($4 AS TEXT)
    FROM idle_blob i
    WHERE i.sha256 = $1 AND i.since <= $2
    ON CONFLICT DO NOTHING
"""
FORGET_REFERRED = """
    DELETE FROM idle_blob
    WHERE EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = idle_blob.sha256)
       OR EXISTS (SELECT 1 FROM media m WHERE m.sha256 = idle_blob.sha256)
       OR EXISTS (SELECT 1 FROM media_size s WHERE s.sha256 = idle_blob.sha256)
       OR EXISTS (SELECT 1 FROM pack p WHERE p.sha256 = idle_blob.sha256)
       OR EXISTS (SELECT 1 FROM build m WHERE m.envelope_sha256 = idle_blob.sha256)
       OR EXISTS (SELECT 1 FROM delta d WHERE d.sha256 = idle_blob.sha256)
"""
# Selects the digests due for removal, including digests that are only in idle_blob. Before it removes a blob, the
# collector checks again that the blob is unused.
DUE = """
    SELECT i.sha256
    FROM idle_blob i
    LEFT JOIN blob b ON b.sha256 = i.sha256
    WHERE i.sha256 > $1 AND i.since <= $2 AND coalesce(b.touched_at, 0) < $2
    ORDER BY i.sha256
    LIMIT $3
"""
# Ignore a claim that ends later than a new claim would end: the clock was set back after it was made.
_UNCLAIMED = "state = 'condemned' AND (claimed_until <= $1 OR claimed_until > $2)"
CONDEMNED = f"SELECT sha256, size FROM blob WHERE {_UNCLAIMED} ORDER BY touched_at LIMIT $3"
CLAIM = f"UPDATE blob SET token = $4, claimed_until = $2 WHERE {_UNCLAIMED} AND sha256 = $3"
STORED = "SELECT count(*), coalesce(sum(size), 0) FROM blob WHERE state = 'live'"
FORGET = "DELETE FROM blob WHERE sha256 = $1 AND token = $2 AND state = 'condemned'"
PAGE = 1000


CLAIM_S = 240
"""The time for which a removal belongs to one collector: longer than the blob store's client takes for a request with
all its retries, and shorter than the time between two runs of the collector."""


class BlobRemoved(Unavailable):
    """The collector removed the blob before it was referenced. The caller can store it again."""


class Reservation(NamedTuple):
    """A blob that may be referenced, as long as no removal has changed the token of its row."""

    sha256: str
    size: int
    token: str


async def reserve(database: Database, store: BlobStore, blobs: Sequence[tuple[str, int]]) -> list[Reservation]:
    """Reserve stored blobs, given by digest and size, so that a transaction can reference them. The collector spares a
    reserved blob for a day. An unused reservation needs no clean-up, because the collector then removes the blob.

    Raises:
        BlobRemoved: the blob store does not have a blob of this size.
        Unavailable: a blob is being removed, or the blob store or the database is unavailable.
    """
    if not blobs:
        return []
    async with database.transaction() as transaction:
        reservations = [await touch(transaction, sha256, size) for sha256, size in sorted(set(blobs))]
    for reservation in reservations:
        if await store.size(reservation.sha256) != reservation.size:
            await _drop_missing(database, store, reservation.sha256)
            raise BlobRemoved("a file that was just stored was removed", headers={"Retry-After": "1"})
    return reservations


async def _drop_missing(database: Database, store: BlobStore, sha256: str) -> None:
    """Remove a blob that was reserved although its bytes are not stored, because backups expect the bytes of every
    live blob."""
    await note_idle(database, sha256)
    await condemn(database, sha256, clock.later(clock.now(), seconds=1))
    await remove_condemned(database, store, sha256)


async def touch(transaction: Transaction, sha256: str, size: int) -> Reservation:
    """Reserve a blob without asking the blob store, or extend its reservation by a day.

    Raises:
        Unavailable: the blob is being removed. The staged parts still exist, and the caller can repeat the call.
    """
    row = await transaction.fetch_one(RESERVE, sha256, size, clock.now(), ids.new_uuid())
    if row is None:
        raise removal_in_progress()
    await transaction.run(FORGET_IDLE, sha256)
    return Reservation(sha256, size, row[0])


async def keep(transaction: Transaction, reservations: Iterable[Reservation]) -> None:
    """Mark reserved blobs as in use, in the transaction that references them. To avoid deadlocks, the rows are updated
    in the order of their digests.

    Raises:
        BlobRemoved: a removal of a blob has begun since it was reserved.
    """
    for reservation in sorted(reservations):
        if not await transaction.run(KEEP, reservation.sha256, reservation.token, clock.now()):
            raise BlobRemoved("a reserved file was removed", headers={"Retry-After": "1"})
        await transaction.run(FORGET_IDLE, reservation.sha256)


def removal_in_progress() -> Unavailable:
    """Return the error for a request whose content is identical to an unused blob that is being removed."""
    return Unavailable("an unused blob of the same content is being removed", headers={"Retry-After": "1"})


async def is_known(reader: Reader, sha256: str) -> bool:
    """Whether the blob has a row."""
    return await reader.fetch_one(KNOWN, sha256) is not None


async def is_live(reader: Reader, sha256: str) -> bool:
    """Whether the blob is live, so that its bytes must be stored."""
    return await reader.fetch_one(IS_LIVE, sha256) is not None


async def note_new(database: Database, store: BlobStore, sha256: str) -> None:
    """Record a blob that is about to be sealed, so that the collector can tell this blob from blobs that the database
    never knew. If the bytes are already stored but the database does not know them, the blob is not recorded, because
    the collector would later remove these bytes as unreferenced.
    """
    if await is_known(database, sha256) or await store.size(sha256) is None:
        await note_idle(database, sha256)


async def note_idle(database: Database, *digests: str) -> None:
    """Record these blobs as known and unreferenced from now on. Each page is written in a separate transaction."""
    await _note(database, NOTE_IDLE, digests, clock.now())


async def put(database: Database, store: BlobStore, data: bytes) -> str:
    """Store the bytes as a blob that the database knows; return its SHA-256.

    Raises:
        StorageFull, Unavailable: the blob store or the database cannot store the bytes.
    """
    await note_new(database, store, hashlib.sha256(data).hexdigest())
    return await store.put(data)


async def unused_blobs(database: Database, idle_before: Instant) -> AsyncIterator[str]:
    """Blobs that are unreferenced and were not touched since `idle_before`."""
    rows = await database.scan(USES, "", idle_before)
    while rows:
        for sha256, is_unused in rows:
            if is_unused:
                yield sha256
        rows = await database.scan(USES, rows[-1][0], idle_before)


async def note_unused(database: Database) -> None:
    """Record unreferenced blobs. Blobs that were not recorded before count as unreferenced from now on."""
    now = clock.now()
    async with database.transaction() as transaction:
        await transaction.run(FORGET_REFERRED)
    unused_digests = [sha256 async for sha256 in unused_blobs(database, now)]
    await _note(database, NOTE_FIRST_IDLE, unused_digests, now)


async def _note(database: Database, statement: str, digests: Sequence[str], since_instant: Instant) -> None:
    for start in range(0, len(digests), PAGE):
        async with database.transaction() as transaction:
            await transaction.run_many(statement, [(sha256, since_instant) for sha256 in digests[start : start + PAGE]])


async def due_blobs(database: Database, idle_before: Instant) -> set[str]:
    """Blobs that have been unreferenced since `idle_before` or longer."""
    checked_digests: set[str] = set()
    last_digest = ""
    while rows := await database.scan(DUE, last_digest, idle_before, PAGE):
        checked_digests.update(sha256 for (sha256,) in rows)
        last_digest = rows[-1][0]
    return checked_digests


async def known_digests(database: Database) -> AsyncIterator[str]:
    """Every digest that the database knows, in order."""
    last_digest = ""
    while rows := await database.scan(KNOWN_AFTER, last_digest, PAGE):
        for (sha256,) in rows:
            yield sha256
        last_digest = rows[-1][0]


async def condemned_blobs(reader: Reader, limit: int) -> list[tuple[str, int]]:
    """Blobs whose removal was started and not finished, and that no collector has claimed, with their size; 0 if the
    size is unknown."""
    now = clock.now()
    rows = await reader.fetch(CONDEMNED, now, clock.later(now, seconds=CLAIM_S), limit)
    return [(sha256, size) for sha256, size in rows]


async def condemn(database: Database, sha256: str, idle_before: Instant) -> None:
    """Start the removal of the blob, if it has been idle since `idle_before` and is unreferenced."""
    async with database.transaction() as transaction:
        # Lock the row in a separate statement: only the next statement sees references that were added while this
        # statement waited for the lock.
        await transaction.run(TAKE, sha256)
        if not await transaction.run(CONDEMN, sha256, idle_before, ids.new_uuid()):
            await transaction.run(CONDEMN_UNUSED, sha256, idle_before, clock.now(), ids.new_uuid())


async def remove_condemned(
    database: Database, store: BlobStore, sha256: str, *, idle_since: Instant | None = None
) -> bool:
    """Claim a condemned blob, delete its bytes, then its row. Return False if the blob is not condemned, or another
    collector has claimed it.

    The row of `idle_blob` is kept unless it is older than `idle_since`, because an upload of the same content may have
    written it, and may seal the blob just after the bytes were deleted.

    Raises:
        Unavailable: the blob store or the database is unavailable. The claim is kept until it expires, because the blob
            store may still delete the bytes.
    """
    claimed_at, token = clock.now(), ids.new_uuid()
    claimed_until = clock.later(claimed_at, seconds=CLAIM_S)
    async with database.transaction() as transaction:
        if not await transaction.run(CLAIM, claimed_at, claimed_until, sha256, token):
            return False
    if clock.now() >= clock.later(claimed_at, seconds=CLAIM_S / 4):
        # This process was suspended: the claim might expire while the bytes are deleted.
        return False
    await store.delete(sha256)
    async with database.transaction() as transaction:
        if not await transaction.run(FORGET, sha256, token):
            return False
        if idle_since is not None:
            await transaction.run(FORGET_IDLE_SINCE, sha256, idle_since)
    return True


async def remove_unused(database: Database, store: BlobStore, sha256: str, idle_before: Instant) -> bool:
    """Remove the blob unless it is referenced or was touched since `idle_before`; return whether it was removed."""
    await condemn(database, sha256, idle_before)
    return await remove_condemned(database, store, sha256, idle_since=idle_before)


async def remove_noted(database: Database, store: BlobStore, sha256: str) -> bool:
    """Remove a blob that was only noted, and never reserved or referenced; return whether it was removed."""
    async with database.transaction() as transaction:
        now = clock.now()
        await transaction.run(CONDEMN_UNUSED, sha256, now, now, ids.new_uuid())
    return await remove_condemned(database, store, sha256)


async def usage(database: Database) -> tuple[int, int]:
    """The number of blobs in use, and their total size."""
    ((count, size),) = await database.scan(STORED)
    return count, int(size)


BLOBS_PER_BATCH = 1000
MIN_SURPLUS_AGE_S = 3600

BlobDefect: TypeAlias = Literal["missing", "changed", "surplus"]
"""The defect of a blob: the blob is missing, its bytes do not match the digest, or the database does not know the blob
although it is not new."""


class BlobCheck(NamedTuple):
    """The result of a check: the blob, its size, and its defect, if any."""

    sha256: str
    size: int
    what: BlobDefect | None


async def verify(reader: Reader, store: BlobStore) -> AsyncIterator[BlobCheck]:
    """Check every blob in use by reading all of it; then list the unknown blobs.

    Raises:
        Unavailable: database or store cannot be read.
    """
    last_digest = ""
    while rows := await reader.fetch(LIVE, last_digest, BLOBS_PER_BATCH):
        for (sha256,) in rows:
            blob_check = await _read(store, sha256)
            # Report a defect only if the blob is still in use: otherwise the collector may have removed it.
            if blob_check.what is None or await is_live(reader, sha256):
                yield blob_check
        last_digest = rows[-1][0]
    surplus_before = clock.later(clock.now(), seconds=-MIN_SURPLUS_AGE_S)
    async for sha256, changed_at, _ in store.sealed_blobs():
        if changed_at < surplus_before and not await is_known(reader, sha256):
            yield BlobCheck(sha256, await store.size(sha256) or 0, "surplus")


async def _read(store: BlobStore, sha256: str) -> BlobCheck:
    size = await store.size(sha256)
    if size is None:
        return BlobCheck(sha256, 0, "missing")
    digest = hashlib.sha256()
    try:
        async for piece in store.read(sha256, 0, size):
            digest.update(piece)
    except NotFound:
        return BlobCheck(sha256, 0, "missing")
    return BlobCheck(sha256, size, None if digest.hexdigest() == sha256 else "changed")
