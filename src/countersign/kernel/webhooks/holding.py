"""Holding back what would go out by itself: events for receivers, and letters that tell of what waits.

A restored installation begins so. What waited at the moment of its backup is known to its receivers by now, and a copy
that was made for a trial must not speak to them at all. The hold is a row beside what it holds: it is there for every
node, after every start and on whatever the installation is moved to, until an operator takes it away.
"""

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction

COMMAND = "countersign webhooks resume"
"""What ends it, for those who are told of it."""

SINCE = "SELECT since FROM delivery_hold"
HOLD = "INSERT INTO delivery_hold (id, since) VALUES (1, $1) ON CONFLICT (id) DO NOTHING"
RESUME = "DELETE FROM delivery_hold"
BEGIN_ANEW = "UPDATE webhook_delivery SET queued_at = $1 WHERE state = 'waiting'"


async def since(reader: Reader) -> Instant | None:
    """Since when all that would go out is held; None: it is not."""
    row = await reader.fetch_one(SINCE)
    return None if row is None else Instant(row[0])


async def hold(transaction: Transaction) -> None:
    """Let nothing go out from now on; what is held already is held since then."""
    await transaction.run(HOLD, clock.now())


async def resume(transaction: Transaction) -> bool:
    """Let go out what waits, none of which is given up for the time that it was held; False: nothing was held."""
    if not await transaction.run(RESUME):
        return False
    await transaction.run(BEGIN_ANEW, clock.now())
    return True


async def told(reader: Reader) -> str:
    """In words whether something is held, and what ends that."""
    held_since = await since(reader)
    return "not held" if held_since is None else f"held since {clock.rfc3339(held_since)}, until `{COMMAND}`"
