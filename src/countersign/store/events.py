"""What an organisation's webhooks tell of, put into the outbox by whoever makes it happen.

A subject is the path of the thing below the versioned API where it has one. Nothing else of it is told: no title, no
name, no e-mail address, no address of a machine.
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
    """A release of one of the organisation's products became public."""
    await _emit(transaction, org_id, "release.published", _release(product_id, version))


async def release_yanked(transaction: Transaction, org_id: str, product_id: str, version: str) -> None:
    """A release of one of the organisation's products was taken back."""
    await _emit(transaction, org_id, "release.yanked", _release(product_id, version))


async def job_ended(transaction: Transaction, org_id: str, job_id: str) -> None:
    """A job of the organisation's was completed, or failed."""
    await _emit(transaction, org_id, "job.ended", f"jobs/{job_id}")


async def key_added(transaction: Transaction, org_id: str, keyid: str) -> None:
    """The organisation signs with another key from now on."""
    await _emit(transaction, org_id, "key.added", f"org/signing-keys/{keyid}")


async def agent_added(
    transaction: Transaction, registration_id: str, granted: frozenset[str], roles: Mapping[str, str]
) -> None:
    """An agent may change something in the organisations in which its person has these roles. Of one that only reads
    for its person no organisation is told: that is the person's own business."""
    for org_id, role in roles.items():
        if granted & scopes.OF_ROLE[role] - scopes.READING:
            await _emit(transaction, org_id, "agent.added", f"agents/{registration_id}")


async def _emit(transaction: Transaction, org_id: str, kind: EventType, subject: str) -> None:
    await outbox.emit(transaction, org_id, kind, subject)


def _release(product_id: str, version: str) -> str:
    return f"products/{product_id}/releases/{quote(version, safe='')}"
