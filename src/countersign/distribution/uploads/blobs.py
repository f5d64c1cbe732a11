"""The table of sealed blobs: what is in use is live; what nothing refers to is condemned, then removed.

Whoever refers to a blob touches its row in the same transaction (`keep`). Removing condemns the row first and
deletes the bytes while holding it, so that a blob is never deleted under somebody who starts to refer to it: they
wait, find it gone, and seal the bytes again.
"""

from collections.abc import AsyncIterator

from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Unavailable

KEEP = """
    INSERT INTO blob (sha256, size, state, touched_at)
    VALUES ($1, $2, 'live', $3)
    ON CONFLICT (sha256) DO UPDATE SET touched_at = excluded.touched_at
    WHERE blob.state = 'live'
"""
LIVE = "SELECT sha256 FROM blob WHERE state = 'live' AND sha256 > $1 ORDER BY sha256 LIMIT $2"
"""Blobs that are in use, or were until shortly, after a digest; for a backup, which reads past the port."""
IS_LIVE = "SELECT 1 FROM blob WHERE sha256 = $1 AND state = 'live'"
KNOWN = "SELECT 1 FROM blob WHERE sha256 = $1"
# Every blob is looked at, used or not: so that one statement's work is bounded, however few are unused.
USES = """
    SELECT b.sha256,
           CASE WHEN b.state = 'live' AND b.touched_at < $2
                 AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM media m WHERE m.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM pack p WHERE p.sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM build m WHERE m.envelope_sha256 = b.sha256)
                 AND NOT EXISTS (SELECT 1 FROM delta d WHERE d.sha256 = b.sha256)
                THEN 1 ELSE 0 END AS is_unused
    FROM blob b
    WHERE b.sha256 > $1
    ORDER BY b.sha256
    LIMIT 1000
"""
CONDEMN = """
    UPDATE blob SET state = 'condemned'
    WHERE sha256 = $1 AND state = 'live' AND touched_at < $2
      AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM media m WHERE m.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM pack p WHERE p.sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM build m WHERE m.envelope_sha256 = blob.sha256)
      AND NOT EXISTS (SELECT 1 FROM delta d WHERE d.sha256 = blob.sha256)
"""
CONDEMN_UNKNOWN = """
    INSERT INTO blob (sha256, size, state, touched_at)
    VALUES ($1, 0, 'condemned', $2)
    ON CONFLICT DO NOTHING
"""
CONDEMNED = "SELECT sha256 FROM blob WHERE state = 'condemned' ORDER BY touched_at LIMIT $1"
TAKE_CONDEMNED = "UPDATE blob SET state = 'condemned' WHERE sha256 = $1 AND state = 'condemned'"
STORED = "SELECT count(*), coalesce(sum(size), 0) FROM blob WHERE state = 'live'"
FORGET = "DELETE FROM blob WHERE sha256 = $1 AND state = 'condemned'"


async def keep(transaction: Transaction, sha256: str, size: int) -> None:
    """Hold on to a blob that the transaction is about to refer to.

    Raises:
        Unavailable: it is being removed at this moment; the staged bytes are still there, and the same call can be
            made again.
    """
    if not await transaction.run(KEEP, sha256, size, clock.now()):
        raise being_removed()


def being_removed() -> Unavailable:
    """The refusal when bytes that are no longer used are just being removed."""
    return Unavailable("older bytes of the same content are just being removed", headers={"Retry-After": "1"})


async def is_known(reader: Reader, sha256: str) -> bool:
    """Whether the blob has a row."""
    return await reader.fetch_one(KNOWN, sha256) is not None


async def is_live(reader: Reader, sha256: str) -> bool:
    """Whether the blob must be there."""
    return await reader.fetch_one(IS_LIVE, sha256) is not None


async def unused(database: Database, before: Instant) -> AsyncIterator[str]:
    """Blobs that nothing refers to and nobody touched since `before`."""
    rows = await database.scan(USES, "", before)
    while rows:
        for sha256, is_unused in rows:
            if is_unused:
                yield sha256
        rows = await database.scan(USES, rows[-1][0], before)


async def condemned(reader: Reader, limit: int) -> list[str]:
    """Blobs whose removal was begun and not ended."""
    return [sha256 for (sha256,) in await reader.fetch(CONDEMNED, limit)]


async def condemn(database: Database, sha256: str, before: Instant) -> None:
    """Begin to remove the blob, if still nothing refers to it and nobody touched it since `before`."""
    async with database.transaction() as transaction:
        if not await transaction.run(CONDEMN, sha256, before):
            await transaction.run(CONDEMN_UNKNOWN, sha256, clock.now())


async def remove_condemned(database: Database, store: BlobStore, sha256: str) -> bool:
    """Delete a condemned blob's bytes, then its row; False when it is not condemned (any more)."""
    async with database.transaction() as transaction:
        if not await transaction.run(TAKE_CONDEMNED, sha256):
            return False
        await store.delete(sha256)
        await transaction.run(FORGET, sha256)
        return True


async def remove_unused(database: Database, store: BlobStore, sha256: str, before: Instant) -> bool:
    """Remove the blob unless something refers to it or somebody touched it since `before`; whether it is gone."""
    await condemn(database, sha256, before)
    return await remove_condemned(database, store, sha256)


async def stored(database: Database) -> tuple[int, int]:
    """How many blobs are in use, and their bytes."""
    ((count, size),) = await database.scan(STORED)
    return count, int(size)
