"""Which updates are prepared: from the builds that people who will update most likely have, to a new one."""

import msgspec

from countersign.distribution.context import Store
from countersign.distribution.jobs import queue
from countersign.distribution.jobs.kinds import BACKGROUND
from countersign.distribution.processing import queries
from countersign.distribution.processing.queries import Artifact
from countersign.distribution.processing.schemas import DeltaPayload
from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader, Transaction
from countersign.updates.wire import Stretches

DELTA_JOB = "delta.make"

WANT = """
    INSERT INTO delta_pair (from_artifact, to_artifact, state, created_at)
    VALUES ($1, $2, 'wanted', $3)
    ON CONFLICT DO NOTHING
"""
READY = "UPDATE delta_pair SET state = 'ready' WHERE from_artifact = $1 AND to_artifact = $2 AND state = 'wanted'"
ADD = """
    INSERT INTO delta (id, from_artifact, to_artifact, sha256, size, listing, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
STATE = "SELECT state FROM delta_pair WHERE from_artifact = $1 AND to_artifact = $2"
OF_PAIR = """
    SELECT sha256, size, listing
    FROM delta
    WHERE from_artifact = $1 AND to_artifact = $2
    ORDER BY id
"""


class Listed(msgspec.Struct, frozen=True):
    """What a delta is about: the `old` files it reads and the `files` it makes, by their places in the two manifests,
    and the memory that applying it takes."""

    old: Stretches
    files: Stretches
    memory: int


async def want(store: Store, transaction: Transaction, made: Artifact, created_by: str) -> None:
    """Have updates prepared to the new build from the builds before it in its channel."""
    earlier = await queries.earlier_builds(transaction, made, made.platform or "", store.settings.delta_history)
    for from_artifact in earlier:
        await want_pair(store, transaction, from_artifact, made.id, org_id=made.org_id, created_by=created_by)


async def want_pair(
    store: Store, transaction: Transaction, from_artifact: str, to_artifact: str, *, org_id: str, created_by: str
) -> None:
    """Have the update from one build to another prepared, unless that was asked for before."""
    if await transaction.run(WANT, from_artifact, to_artifact, clock.now()):
        payload = DeltaPayload(from_artifact, to_artifact)
        await queue.enqueue(
            transaction, store, DELTA_JOB, payload, org_id=org_id, created_by=created_by, priority=BACKGROUND
        )


async def state(reader: Reader, from_artifact: str, to_artifact: str) -> str | None:
    """'wanted', 'ready', or None for a pair that nobody asked for."""
    row = await reader.fetch_one(STATE, from_artifact, to_artifact)
    return None if row is None else row[0]


async def deltas(reader: Reader, from_artifact: str, to_artifact: str) -> list[tuple[str, int, str]]:
    """The prepared deltas of a pair: digest and size of the blob, and its listing as JSON."""
    return [
        (sha256, size, listing) for sha256, size, listing in await reader.fetch(OF_PAIR, from_artifact, to_artifact)
    ]


async def finish(transaction: Transaction, from_artifact: str, to_artifact: str) -> bool:
    """Mark the pair as prepared; False when it is so already, or a build of it was removed."""
    return bool(await transaction.run(READY, from_artifact, to_artifact))


async def add(
    transaction: Transaction, from_artifact: str, to_artifact: str, sha256: str, size: int, listed: Listed
) -> None:
    """Keep a delta of the pair."""
    said = msgspec.json.encode(listed).decode()
    await transaction.run(ADD, ids.new_uuid(), from_artifact, to_artifact, sha256, size, said, clock.now())
