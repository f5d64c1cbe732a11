"""Idempotency-Key: the first answer is stored in its effect's own transaction, and replayed.

Table `idempotency` (each service's first migration creates it): `key_hash` names caller, method, path and key;
`request_hash` parameters and body; the answer follows. A body that holds secrets is sealed under the key's own value,
of which only a hash is kept, so that the stored record alone opens nothing.
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
FORGET_EXPIRED = "DELETE FROM idempotency WHERE key_hash = $1 AND created_at <= $2"
STORE = """
    INSERT INTO idempotency (key_hash, request_hash, status, headers, body, sealed, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""
REPLACE = "UPDATE idempotency SET status = $2, headers = $3, body = $4, sealed = $5 WHERE key_hash = $1"
FORGET_OLD = "DELETE FROM idempotency WHERE created_at <= $1"


class KeyReused(Refused):
    """The same key came with another request."""

    status = 422
    code = "idempotency_key_reused"
    title = "Idempotency key reused"
    resolution = "Use a new Idempotency-Key for a different request."


class InProgress(Refused):
    """The first call with this key has not ended yet."""

    status = 409
    code = "idempotency_in_progress"
    title = "Still in progress"
    resolution = "Repeat the request after the time in Retry-After."

    def __init__(self) -> None:
        super().__init__("the first request with this key is still running", headers={"Retry-After": "1"})


@dataclass(frozen=True, slots=True)
class Key:
    """One caller's key for one method and path, and the hash of the parameters and body it came with."""

    value: str
    hash: bytes
    request_hash: bytes


def key_of(headers: Headers, caller: str, method: str, path: str, content: bytes) -> Key | None:
    """The request's key, bare or quoted, or None when none was sent; `content` is what has to be the same again.

    Raises:
        InvalidRequest: it is no UUID, or was sent twice.
    """
    raw = headers.get(HEADER)
    if raw is None:
        return None
    return scoped_key(raw if headers.count(HEADER) == 1 else None, (caller, method, path), content)


def scoped_key(sent: object, scope: Sequence[str], content: bytes) -> Key:
    """The key that was sent, bare or quoted, for the calls of this scope; `content` as for `key_of`.

    Raises:
        InvalidRequest: it is not a UUID.
    """
    value = sent.strip() if isinstance(sent, str) else ""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if not ids.is_uuid(value):
        raise invalid_parameter("Idempotency-Key", "must be one UUID, bare or in double quotes")
    value = value.lower()
    scoped = "\0".join((*scope, value)).encode()
    return Key(value, hashlib.sha256(scoped).digest(), hashlib.sha256(content).digest())


class RunningKeys:
    """The keys whose first call runs in this process; a second call meanwhile is refused."""

    def __init__(self) -> None:
        self._hashes: set[bytes] = set()

    @contextmanager
    def acquire(self, key: Key) -> Generator[None, None, None]:
        """Take the key, and give it back at the end of the block.

        Raises:
            InProgress: another call in this process has it.
        """
        if key.hash in self._hashes:
            raise InProgress
        self._hashes.add(key.hash)
        try:
            yield
        finally:
            self._hashes.discard(key.hash)


class StoredResponse(NamedTuple):
    """A stored answer; `is_derived`: its body was left out, for the route to make anew."""

    answer: Response
    is_derived: bool


async def find(reader: Reader, key: Key) -> StoredResponse | None:
    """The stored answer of the key's first call, marked as replayed; None when there was no such call.

    Raises:
        KeyReused: that call had another body.
    """
    oldest = clock.later(clock.now(), seconds=-VALID_S)
    row = await reader.fetch_one(SELECT_RESPONSE, key.hash, oldest)
    if row is None:
        return None
    request_hash, status, headers, body, kept = row
    if bytes(request_hash) != key.request_hash:
        raise KeyReused("this Idempotency-Key was used for a different request")
    plain = decrypt_with_secret(key.value.encode(), key.hash, bytes(body)) if kept == SEALED else bytes(body)
    media_type, *pairs = msgspec.json.decode(headers, type=list[tuple[str, str]])
    return StoredResponse(Response(status, plain, media_type[1], (*pairs, REPLAYED)), kept == DERIVED)


async def lock(database: Database, transaction: Transaction, key: Key) -> None:
    """Keep other nodes from running the same key until this transaction ends.

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
    """Store the answer as the key's own, in the transaction of its effect. The bodies of streams and those over
    1 MiB are left out: their routes derive them anew from what they stored; a body that cannot be derived is stored
    whatever its size. A transient answer is not stored at all.

    Raises:
        InProgress: another node stored an answer meanwhile; the effect must be undone.
    """
    if answer.is_transient:
        return
    headers, body, kept = _stored(key, answer, secret=secret, is_derivable=is_derivable)
    now = clock.now()
    await transaction.run(FORGET_EXPIRED, key.hash, clock.later(now, seconds=-VALID_S))
    if not await transaction.run(STORE, key.hash, key.request_hash, answer.status, headers, body, kept, now):
        raise InProgress


async def replace(transaction: Transaction, key: Key, answer: Response, *, secret: bool) -> None:
    """Store another answer as the key's own: the one that was given in the end."""
    await transaction.run(REPLACE, key.hash, answer.status, *_stored(key, answer, secret=secret))


def _stored(key: Key, answer: Response, *, secret: bool, is_derivable: bool = True) -> tuple[str, bytes, int]:
    """Headers and body as they are stored, and in which way the body is."""
    kept, body = PLAIN, answer.body
    if not isinstance(body, bytes) or (is_derivable and len(body) > MAX_STORED_BYTES):
        kept, body = DERIVED, b""
    elif secret:
        kept, body = SEALED, encrypt_with_secret(key.value.encode(), key.hash, body)
    return msgspec.json.encode([("Content-Type", answer.media_type), *answer.headers]).decode(), body, kept


async def forget_old(transaction: Transaction) -> int:
    """Remove every record older than 24 hours; how many there were."""
    return await transaction.run(FORGET_OLD, clock.later(clock.now(), seconds=-VALID_S))
