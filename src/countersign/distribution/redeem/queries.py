"""SQL of code batches, codes and redemptions."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Row, Transaction

CODE = """
    SELECT b.id, b.products, b.max_uses, b.valid_from, b.expires_at, b.status, c.uses,
           EXISTS (SELECT 1 FROM redemption r WHERE r.code_hash = c.code_hash AND r.owner = $2)
    FROM code c
    JOIN code_batch b ON b.id = c.batch_id
    WHERE c.code_hash = $1 AND b.status <> 'preparing'
"""
REMEMBER_REDEMPTION = """
    INSERT INTO redemption (code_hash, owner, redeemed_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""
USE_CODE = "UPDATE code SET uses = uses + 1 WHERE code_hash = $1 AND uses < $2"
INSERT_BATCH = """
    INSERT INTO code_batch
        (id, org_id, kind, products, count, max_uses, valid_from, expires_at, status, sealed_seed, created_by,
         created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'preparing', NULL, $9, $10)
"""
INSERT_CODE = "INSERT INTO code (code_hash, batch_id, uses) VALUES ($1, $2, 0)"
ACTIVATE_BATCH = "UPDATE code_batch SET status = 'active', sealed_seed = $2 WHERE id = $1 AND status = 'preparing'"
SEALED_SEED = "SELECT sealed_seed, count FROM code_batch WHERE id = $1"
REVOKE_BATCH = "UPDATE code_batch SET status = 'revoked' WHERE id = $1 AND org_id = $2 AND status <> 'preparing'"
BATCHES = """
    SELECT b.id, b.kind, b.products, b.count, b.max_uses, b.valid_from, b.expires_at, b.status, b.created_at,
           (SELECT coalesce(sum(c.uses), 0) FROM code c WHERE c.batch_id = b.id) AS uses
    FROM code_batch b
    WHERE b.org_id = $1 AND b.status <> 'preparing' AND (b.created_at, b.id) < ($2, $3)
    ORDER BY b.created_at DESC, b.id DESC
    LIMIT $4
"""
ABANDONED = "SELECT id FROM code_batch WHERE status = 'preparing' AND created_at < $1 LIMIT 10"
DELETE_CODES = "DELETE FROM code WHERE batch_id = $1"
DELETE_BATCH = "DELETE FROM code_batch WHERE id = $1 AND status = 'preparing'"


class Code(NamedTuple):
    """A code as redeeming sees it: its batch's terms, its uses so far, and whether this owner used it."""

    batch_id: str
    products: list[str]
    max_uses: int
    valid_from: Instant | None
    expires_at: Instant | None
    status: str
    uses: int
    is_redeemed: bool


async def code(reader: Reader, code_hash: bytes, owner: str) -> Code | None:
    """The code with this hash, for this owner."""
    row = await reader.fetch_one(CODE, code_hash, owner)
    if row is None:
        return None
    batch_id, products, max_uses, valid_from, expires_at, status, uses, is_redeemed = row
    names = msgspec.json.decode(products, type=list[str])
    return Code(batch_id, names, max_uses, valid_from, expires_at, status, uses, bool(is_redeemed))


async def batches(database: Database, org_id: str, after: Sequence[int | str], limit: int) -> list[Row]:
    """The organisation's batches with their usage, newest first. Every code of theirs is counted, millions perhaps.

    Raises:
        Unavailable: that took longer than the read deadline.
    """
    return await database.scan(BATCHES, org_id, after[0], after[1], limit)


async def delete_batch(transaction: Transaction, batch_id: str) -> None:
    """Remove a batch that never became active, with its codes."""
    await transaction.run(DELETE_CODES, batch_id)
    await transaction.run(DELETE_BATCH, batch_id)
