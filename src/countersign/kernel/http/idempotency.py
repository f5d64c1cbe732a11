"""Idempotency-Key: the first response is stored in the transaction of its effect, and replayed.

The first migration of each service creates the table `idempotency`. Its column `key_hash` is a hash of caller, method,
path and key. The column `request_hash` is a hash of parameters and body. The other columns contain the response. A body
with secrets is encrypted with the value of the key. Only a hash of that value is stored, so that the record alone
cannot be decrypted.
"""

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.kernel.security.encryption import decrypt_with_secret, encrypt_with_secret

VALID_S = 24 * 3600
MAX_STORED_BYTES = 1 << 20
PLAIN, SEALED, DERIVED = 0, 1, 2
HEADER = "idempotency-key"
REPLAYED = ("Idempotency-Replayed", "true")

SELECT_RESPONSE = """
    SELECT request_hash, status, headers, body, sealed
    FROM idempotency
    WHERE key_hash = $1 AND created_at > $2
"""
LOCK = "SELECT pg_try_advisory_xact_lock($1)"
# An expired response is replaced.
STORE = """
    INSERT INTO idempotency (key_hash, request_hash, status, headers, body, sealed, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (key_hash) DO UPDATE SET
        request_hash = excluded.request_hash, status = excluded.status, headers = excluded.headers,
        body = excluded.body, sealed = excluded.sealed, created_at = excluded.created_at
    WHERE idempotency.created_at <= $8
"""
REPLACE = "UPDATE idempotency SET status = $2, headers = $3, body = $4, sealed = $5 WHERE key_hash = $1"
FORGET_OLD = "DELETE FROM idempotency WHERE created_at <= $1"


class KeyReused(Refused):
    """The key was used for a different request."""

    status = 422
    code = "idempotency_key_reused"
    title = "Idempotency key reused"
    resolution = "Use a new Idempotency-Key for a different request."


class InProgress(Refused):
    """The first request with this key is still running."""

    status = 409
    code = "idempotency_in_progress"
    title = "Still in progress"
    resolution = "Repeat the request after the time in Retry-After."

    def __init__(self) -> None:
        super().__init__("the first request with this key is still running", headers={"Retry-After": "1"})


@dataclass(frozen=True, slots=True)
class Key:
    """One caller's key for one method and path, and the hash of parameters and body."""

    value: str
    hash: bytes
    request_hash: bytes


def key_of(headers: Headers, caller: str, method: str, path: str, content: bytes) -> Key | None:
    """Return the request's key, which may be quoted, or None if it has no key. A retry must have the same `content`.

    Raises:
        InvalidRequest: the key is not a UUID, or was sent twice.
    """
    raw = headers.get(HEADER)
    if raw is None:
        return None
    return scoped_key(raw if headers.count(HEADER) == 1 else None, (caller, method, path), content)


def scoped_key(sent: object, scope: Sequence[str], content: bytes) -> Key:
    """Return the key for requests of this scope; `sent` may be quoted. A retry must have the same `content`.

    Raises:
        InvalidRequest: the key is not a UUID.
    """
    value = sent.strip() if isinstance(sent, str) else ""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if not ids.is_uuid(value):
        raise invalid_parameter("Idempotency-Key", "must be one UUID, bare or in double quotes")
    value = value.lower()
    scoped_value = "\0".join((*scope, value)).encode()
    return Key(value, hashlib.sha256(scoped_value).digest(), hashlib.sha256(content).digest())


class RunningKeys:
    """The keys whose first request runs in this process. Concurrent requests with the same key are refused."""

    def __init__(self) -> None:
        self._hashes: set[bytes] = set()

    @contextmanager
    def acquire(self, key: Key) -> Generator[None, None, None]:
        """Hold the key during the block.

        Raises:
            InProgress: another request in this process holds the key.
        """
        if key.hash in self._hashes:
            raise InProgress
        self._hashes.add(key.hash)
        try:
            yield
        finally:
            self._hashes.discard(key.hash)


class StoredResponse(NamedTuple):
    """A stored response. If it `is_derived`, its body is not stored, and the route rebuilds it."""

    answer: Response
    is_derived: bool


async def find(reader: Reader, key: Key) -> StoredResponse | None:
    """Return the stored response of the key's first request, marked as replayed, or None if no response is stored.

    Raises:
        KeyReused: the first request had a different body.
    """
    oldest = clock.later(clock.now(), seconds=-VALID_S)
    row = await reader.fetch_one(SELECT_RESPONSE, key.hash, oldest)
    if row is None:
        return None
    request_hash, status, headers, body, encoding = row
    if bytes(request_hash) != key.request_hash:
        raise KeyReused("this Idempotency-Key was used for a different request")
    plain = decrypt_with_secret(key.value.encode(), key.hash, bytes(body)) if encoding == SEALED else bytes(body)
    media_type, *pairs = msgspec.json.decode(headers, type=list[tuple[str, str]])
    return StoredResponse(Response(status, plain, media_type[1], (*pairs, REPLAYED)), encoding == DERIVED)


async def lock(database: Database, transaction: Transaction, key: Key) -> None:
    """Prevent other nodes from running the same key until this transaction ends.

    SQLite has a single writer, so no further lock is needed.

    Raises:
        InProgress: another transaction holds the key.
    """
    if database.dialect == "sqlite":
        return
    number = int.from_bytes(key.hash[:8], "big", signed=True)
    row = await transaction.fetch_one(LOCK, number)
    if row is None or not row[0]:
        raise InProgress


async def store(
    transaction: Transaction, key: Key, answer: Response, *, secret: bool, is_derivable: bool = True
) -> None:
    """Store the response for the key, in the transaction of its effect.

    Streamed bodies and bodies over 1 MiB are not stored, since their routes rebuild them from stored data. A body that
    cannot be rebuilt is stored at any size. A transient response is not stored.

    Raises:
        InProgress: another node has concurrently stored a response; the effect must be rolled back.
    """
    if answer.is_transient:
        return
    headers, body, encoding = _stored(key, answer, secret=secret, is_derivable=is_derivable)
    now = clock.now()
    oldest = clock.later(now, seconds=-VALID_S)
    values = (key.hash, key.request_hash, answer.status, headers, body, encoding, now, oldest)
    if not await transaction.run(STORE, *values):
        raise InProgress


async def replace(transaction: Transaction, key: Key, answer: Response, *, secret: bool) -> None:
    """Replace the stored response with the final response."""
    await transaction.run(REPLACE, key.hash, answer.status, *_stored(key, answer, secret=secret))


def _stored(key: Key, answer: Response, *, secret: bool, is_derivable: bool = True) -> tuple[str, bytes, int]:
    """Return the headers and the body to store, and the form in which the body is stored."""
    encoding, body = PLAIN, answer.body
    if not isinstance(body, bytes) or (is_derivable and len(body) > MAX_STORED_BYTES):
        encoding, body = DERIVED, b""
    elif secret:
        encoding, body = SEALED, encrypt_with_secret(key.value.encode(), key.hash, body)
    return msgspec.json.encode([("Content-Type", answer.media_type), *answer.headers]).decode(), body, encoding


async def forget_old(transaction: Transaction) -> int:
    """Delete every record that is older than 24 hours, and return the number of deleted records."""
    return await transaction.run(FORGET_OLD, clock.later(clock.now(), seconds=-VALID_S))
