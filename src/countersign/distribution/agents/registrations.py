"""Registrations of agents, as far as security events end them."""

from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction

REVOKE_SUBJECT = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE issuer = $1 AND subject = $2 AND status IN ('unclaimed', 'claimed')
"""
END_DELEGATION = "DELETE FROM delegation WHERE issuer = $1 AND subject = $2"


async def revoke_subject(transaction: Transaction, issuer: str, subject: str) -> int:
    """End every registration of the issuer's subject and what says whose it was; how many there were."""
    ended = await transaction.run(REVOKE_SUBJECT, issuer, subject)
    await transaction.run(END_DELEGATION, issuer, subject)
    await versions.bump(transaction, "identity")
    return ended
