"""What is done to a store that was put back to an earlier moment, before anybody may use it."""

from countersign.distribution.auth import email_verification as accounts
from countersign.distribution.auth import queries as identity
from countersign.distribution.auth import token_keys
from countersign.distribution.auth.agents import registrations
from countersign.distribution.auth.oauth import consents
from countersign.distribution.releases import uploads
from countersign.kernel.database.port import Transaction
from countersign.kernel.security.masterkey import MasterKey


async def settle(transaction: Transaction) -> None:
    """Forget what was staged, which is in no backup."""
    await uploads.forget_every_part(transaction)


async def end_access(transaction: Transaction, master: MasterKey) -> None:
    """End every session, token, agent, consent and mailed link. Since that moment any of them may have been ended or
    spent, and would be alive again: which ones, nothing here knows. Passwords, secrets of clients and provided codes
    are as they were then.

    Raises:
        DecryptionFailed: the master key is not the store's.
    """
    await token_keys.renew(transaction, master)
    await identity.end_every_session(transaction)
    await accounts.end_every_link(transaction)
    await registrations.revoke_every(transaction)
    await consents.revoke_every(transaction)
