"""What is done to a store that was put back to an earlier moment, before anybody may use it."""

from countersign.kernel.database.port import Transaction
from countersign.kernel.security.masterkey import MasterKey
from countersign.store.auth import accounts, tokens
from countersign.store.auth import queries as identity
from countersign.store.auth.agents import registrations
from countersign.store.auth.oauth import consents
from countersign.store.releases import uploads


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
    await tokens.replace_keys(transaction, master)
    await identity.end_every_session(transaction)
    await accounts.end_every_link(transaction)
    await registrations.revoke_all(transaction)
    await consents.revoke_all(transaction)
