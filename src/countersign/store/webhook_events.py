"""Webhook events of an organisation, written to the outbox in the transaction that causes them.

A subject is the path of the resource below the versioned API, if it has one. Events contain no titles, names, e-mail
addresses or network addresses.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import quote

from countersign.kernel.database.port import Transaction
from countersign.kernel.webhooks import outbox
from countersign.kernel.webhooks.outbox import Outbox
from countersign.store import scopes
from countersign.store.context import Store

EventType: TypeAlias = Literal["release.published", "release.yanked", "job.ended", "key.added", "agent.added"]


def outbox_of(store: Store) -> Outbox:
    """The store's outbox."""
    settings = store.settings
    return Outbox(store.database, store.master, store.base_url, settings.private_webhooks, settings.webhook_days)


async def release_published(transaction: Transaction, org_id: str, product_id: str, version: str) -> None:
    """Emit the event that a release of one of the organisation's products was published."""
    await _emit(transaction, org_id, "release.published", _release(product_id, version))


async def release_yanked(transaction: Transaction, org_id: str, product_id: str, version: str) -> None:
    """Emit the event that a release of one of the organisation's products was yanked."""
    await _emit(transaction, org_id, "release.yanked", _release(product_id, version))


async def job_ended(transaction: Transaction, org_id: str, job_id: str) -> None:
    """Emit the event that a job of the organisation was completed or failed."""
    await _emit(transaction, org_id, "job.ended", f"jobs/{job_id}")


async def key_added(transaction: Transaction, org_id: str, keyid: str) -> None:
    """Emit the event that the organisation has a new signing key."""
    await _emit(transaction, org_id, "key.added", f"org/signing-keys/{keyid}")


async def agent_added(
    transaction: Transaction, registration_id: str, granted_scopes: frozenset[str], roles: Mapping[str, str]
) -> None:
    """Emit the event that an agent got write access to the organisations in which its person has these roles.

    For an agent with only read access no event is sent, because such an agent is private to the person.
    """
    for org_id, role in roles.items():
        if granted_scopes & scopes.OF_ROLE[role] - scopes.READING:
            await _emit(transaction, org_id, "agent.added", f"agents/{registration_id}")


async def _emit(transaction: Transaction, org_id: str, kind: EventType, subject: str) -> None:
    await outbox.emit(transaction, org_id, kind, subject)


def _release(product_id: str, version: str) -> str:
    return f"products/{product_id}/releases/{quote(version, safe='')}"
