"""Receivers of webhooks: adding and removing them, and their encrypted secrets with rotation."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids, safe_http_client
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused, invalid_member
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.masterkey import MasterKey
from countersign.kernel.webhooks.outbox import ALL, Outbox
from countersign.kernel.webhooks.signatures import new_signing_secret

MAX_WEBHOOKS = 10
BOTH_S = 86_400
"""How long (in seconds) requests are signed with the previous secret as well as with the current secret."""
MAX_SECRETS = 3
PURPOSE = "webhook"

_COLUMNS = "id, url, types, created_at, failures, delivered_at"
OF_OWNER = f"SELECT {_COLUMNS} FROM webhook WHERE owner = $1 ORDER BY created_at, id"
BY_ID = f"SELECT {_COLUMNS} FROM webhook WHERE owner = $1 AND id = $2"
COUNT = "SELECT count(*) FROM webhook WHERE owner = $1"
# Without the lock, two concurrent transactions would not count each other's webhook. SQLite has a single writer.
ONE_ADDER = "SELECT pg_advisory_xact_lock(hashtext('webhook.' || $1))"
ADD = """
    INSERT INTO webhook (id, owner, url, types, secrets, created_at, lease, lease_until, rest_until, failures)
    VALUES ($1, $2, $3, $4, $5, $6, '', 0, 0, 0)
"""
HOLD = "UPDATE webhook SET url = url WHERE owner = $1 AND id = $2 RETURNING secrets"
SET_SECRETS = "UPDATE webhook SET secrets = $2, rest_until = 0 WHERE id = $1"
REMOVE = "DELETE FROM webhook WHERE owner = $1 AND id = $2"
REMOVE_DELIVERIES = "DELETE FROM webhook_delivery WHERE webhook_id = $1"

ENCRYPTED_COLUMN = EncryptedColumn(
    table="webhook",
    purpose=PURPOSE,
    page="SELECT secrets, id FROM webhook WHERE id > $2 ORDER BY id LIMIT $1",
    first_key=("",),
    smallest="SELECT secrets FROM webhook WHERE secrets >= $1 ORDER BY secrets LIMIT 1",
    replace="UPDATE webhook SET secrets = $2 WHERE secrets = $1 AND id = $3",
)


class WebhookNotFound(NotFound):
    """The owner has no webhook with this id."""

    resolution = "List the webhooks and use an id from there."


class TooManyWebhooks(Refused):
    """The owner has the maximum number of webhooks."""

    status = 409
    code = "too_many_webhooks"
    title = "Too many webhooks"
    resolution = "Remove a webhook that is no longer needed."


class Receiver(NamedTuple):
    """A receiver and its event types. `failures` is the number of failures in a row since the last success at
    `delivered_at`."""

    id: str
    url: str
    types: str
    created_at: Instant
    failures: int
    delivered_at: Instant | None

    @property
    def chosen(self) -> list[str]:
        """The chosen event types. An empty list means all types."""
        return [] if self.types == ALL else self.types.split()


class Secret(msgspec.Struct):
    """A stored secret. A previous secret signs together with the current secret until the moment `until`."""

    secret: str
    until: Instant | None = None


async def add(
    transaction: Transaction, outbox: Outbox, owner: str, url: str, types: Sequence[str]
) -> tuple[Receiver, str]:
    """Add a receiver, and return it with its secret, which is shown only once. Without `types`, the receiver gets all
    events.

    Raises:
        InvalidRequest: events cannot be sent to the URL.
        TooManyWebhooks: the owner already has ten webhooks.
    """
    try:
        safe_http_client.address(url, allows_private=outbox.is_private)
    except ValueError as error:
        raise invalid_member("/url", str(error)) from error
    if outbox.database.dialect == "postgres":
        await transaction.fetch(ONE_ADDER, owner)
    count_row = await transaction.fetch_one(COUNT, owner)
    if count_row is not None and count_row[0] >= MAX_WEBHOOKS:
        raise TooManyWebhooks(f"there are {MAX_WEBHOOKS} webhooks already")
    secret = new_signing_secret()
    type_list = f" {' '.join(dict.fromkeys(types))} " if types else ALL
    receiver = Receiver(ids.new_uuid(), url, type_list, clock.now(), 0, None)
    encrypted_secrets = _encrypted(outbox.master, [Secret(secret)])
    await transaction.run(ADD, receiver.id, owner, url, type_list, encrypted_secrets, receiver.created_at)
    return receiver, secret


async def list_receivers(reader: Reader, owner: str) -> list[Receiver]:
    """Return the owner's receivers, oldest first."""
    return [Receiver(*row) for row in await reader.fetch(OF_OWNER, owner)]


async def find(reader: Reader, owner: str, webhook_id: str) -> Receiver:
    """Return one of the owner's receivers.

    Raises:
        WebhookNotFound: the owner has no such receiver.
    """
    row = await reader.fetch_one(BY_ID, owner, webhook_id)
    if row is None:
        raise WebhookNotFound("there is no webhook with this id")
    return Receiver(*row)


async def rotate(transaction: Transaction, outbox: Outbox, owner: str, webhook_id: str) -> str:
    """Create and return a new secret, which is shown only once. For a day, the previous secret signs as well.

    Raises:
        WebhookNotFound: the owner has no such receiver.
        DecryptionFailed: the secrets were encrypted with another master key.
    """
    row = await transaction.fetch_one(HOLD, owner, webhook_id)
    if row is None:
        raise WebhookNotFound("there is no webhook with this id")
    now = clock.now()
    present_secret, *older_secrets = _decrypted(outbox.master, bytes(row[0]))
    present_secret.until = clock.later(now, seconds=BOTH_S)
    new_secret = Secret(new_signing_secret())
    kept_secrets = [
        new_secret,
        present_secret,
        *(
            older_secret
            for older_secret in older_secrets
            if older_secret.until is not None and older_secret.until > now
        ),
    ]
    await transaction.run(SET_SECRETS, webhook_id, _encrypted(outbox.master, kept_secrets[:MAX_SECRETS]))
    return new_secret.secret


async def remove(transaction: Transaction, owner: str, webhook_id: str) -> None:
    """Remove the receiver with its pending deliveries.

    Raises:
        WebhookNotFound: the owner has no such receiver.
    """
    if not await transaction.run(REMOVE, owner, webhook_id):
        raise WebhookNotFound("there is no webhook with this id")
    await transaction.run(REMOVE_DELIVERIES, webhook_id)


def signing_secrets(master: MasterKey, encrypted_secrets: bytes) -> list[str]:
    """Return the secrets that sign now, the current secret first.

    Raises:
        DecryptionFailed: the secrets were encrypted with another master key.
    """
    now = clock.now()
    return [
        stored_secret.secret
        for stored_secret in _decrypted(master, encrypted_secrets)
        if stored_secret.until is None or stored_secret.until > now
    ]


def _encrypted(master: MasterKey, secrets: Sequence[Secret]) -> bytes:
    return encrypt(master, msgspec.json.encode(secrets), PURPOSE)


def _decrypted(master: MasterKey, encrypted_secrets: bytes) -> list[Secret]:
    return msgspec.json.decode(decrypt(master, encrypted_secrets, PURPOSE), type=list[Secret])
