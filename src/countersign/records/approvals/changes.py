"""Which plans changed after which: each change takes a number under a lock, so that none is committed out of turn."""

from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction

VERSION = "plan"
MAX_ROWS = 500

_NOTE = """
INSERT INTO plan_change (plan_id, number) VALUES ($1, $2)
ON CONFLICT (plan_id) DO UPDATE SET number = excluded.number
"""
_BETWEEN = f"""
SELECT plan_id, number
FROM plan_change
WHERE number > $1 AND number <= $2
ORDER BY number
LIMIT {MAX_ROWS}
"""
_NEWEST = f"""
SELECT plan_id, number
FROM plan_change
WHERE number <= $1
ORDER BY number DESC
LIMIT {MAX_ROWS}
"""


async def note(transaction: Transaction, plan_id: str) -> None:
    """Tell that the plan changed. Call it last in the transaction: until that ends nobody else changes a plan."""
    await transaction.run(_NOTE, plan_id, await versions.bump(transaction, VERSION))


async def between(reader: Reader, after: int, up_to: int) -> dict[str, int]:
    """The plans that changed last with a number above the one and up to the other, with it: the first `MAX_ROWS`."""
    return dict(await reader.fetch(_BETWEEN, after, up_to))


async def newest(reader: Reader, up_to: int) -> dict[str, int]:
    """The plans of the last `MAX_ROWS` changes up to that number, with theirs."""
    return dict(await reader.fetch(_NEWEST, up_to))
