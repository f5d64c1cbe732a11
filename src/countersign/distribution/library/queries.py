"""SQL of entitlements: granting, revoking, and an owner's library."""

from collections.abc import Sequence

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction

GRANT = """
    INSERT INTO entitlement (owner, product_id, granted_at, source, revoked_at)
    VALUES ($1, $2, $3, $4, NULL)
    ON CONFLICT (owner, product_id) DO UPDATE
        SET granted_at = excluded.granted_at, source = excluded.source, revoked_at = NULL
        WHERE entitlement.revoked_at IS NOT NULL
"""
REVOKE_BY_SOURCE = "UPDATE entitlement SET revoked_at = $2 WHERE source = $1 AND revoked_at IS NULL"
OWNED_FIRST = """
    SELECT c.card, e.granted_at, e.product_id, c.newest
    FROM entitlement e
    JOIN catalog_entry c ON c.product_id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL
    ORDER BY e.granted_at DESC, e.product_id DESC
    LIMIT $2
"""
OWNED_AFTER = """
    SELECT c.card, e.granted_at, e.product_id, c.newest
    FROM entitlement e
    JOIN catalog_entry c ON c.product_id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL AND (e.granted_at, e.product_id) < ($3, $4)
    ORDER BY e.granted_at DESC, e.product_id DESC
    LIMIT $2
"""


async def grant(transaction: Transaction, owner: str, products: Sequence[str], source: str, now: Instant) -> int:
    """Give the owner each of the products that it does not own; how many that were. `source` says why, such as
    `batch:<id>`, and is what a revocation goes by."""
    return sum([await transaction.run(GRANT, owner, product, now, source) for product in sorted(products)])


async def revoke_by_source(transaction: Transaction, source: str, now: Instant) -> int:
    """Take back every entitlement that came from the source; how many there were."""
    return await transaction.run(REVOKE_BY_SOURCE, source, now)


async def owned(reader: Reader, owner: str, limit: int, after: tuple[int, str] | None) -> list[Row]:
    """The owner's products, newest entitlement first: encoded card, moment granted, product id, encoded newest
    releases."""
    if after is None:
        return await reader.fetch(OWNED_FIRST, owner, limit)
    return await reader.fetch(OWNED_AFTER, owner, limit, *after)
