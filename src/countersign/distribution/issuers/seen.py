"""Tokens of others that may be used once: each is noted, by issuer and jti, until it has expired by itself."""

import hashlib
from typing import Literal

from countersign.distribution.issuers import queries
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction


async def note(
    transaction: Transaction, kind: Literal["id-jag", "event"], issuer: str, jti: str, expires_at: Instant
) -> bool:
    """Note the token's use; False when it was used before. Of two at the same moment one is first: the other waits
    for its transaction to end."""
    digest = hashlib.sha256(jti.encode()).digest()
    return bool(await transaction.run(queries.INSERT_SEEN, kind, issuer, digest, expires_at))
