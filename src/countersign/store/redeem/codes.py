"""Redeem codes: 80 random bits in Crockford base32, stored as a hash; their SQL, and issuing a batch of them."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Row, Transaction
from countersign.kernel.errors import invalid_member
from countersign.store.auth.callers import Caller
from countersign.store.auth.organisations import organisation_of
from countersign.store.catalog import products as catalog
from countersign.store.context import Store
from countersign.store.redeem.schemas import NewBatch

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS, GROUP_LENGTH = 4, 4
RANDOM_BITS = 5 * GROUPS * GROUP_LENGTH
SEED_BYTES = 32
MAX_INPUT = 128

_LOOKALIKES = str.maketrans({"O": "0", "I": "1", "L": "1"})
_SEPARATORS = str.maketrans("", "", " -\t")
_FULL = re.compile(f"[{ALPHABET}]{{{GROUPS * GROUP_LENGTH}}}")
_PERSON = b"countersign-code"


def normalize(text: str) -> str:
    """The normalized code: upper case, no spaces or dashes, O read as 0, I and L as 1."""
    return text.translate(_SEPARATORS).upper().translate(_LOOKALIKES)


def is_full_length(text: str) -> bool:
    """Whether the text has the form of a code with all its random bits."""
    return _FULL.fullmatch(normalize(text)) is not None


def digest(text: str) -> bytes:
    """The hash under which a code is stored. It does not depend on the case, spaces and dashes that a person types."""
    return hashlib.blake2b(normalize(text).encode("utf-8", "surrogatepass"), digest_size=20, person=_PERSON).digest()


def derive_codes(seed: bytes, start: int, stop: int) -> Iterator[str]:
    """Yield the formatted codes of the batch with this seed, from number `start` up to, but not including, `stop`."""
    for number in range(start, stop):
        yield _format_code(hmac.digest(seed, number.to_bytes(8, "big"), "sha256"))


def _format_code(random: bytes) -> str:
    value = int.from_bytes(random[:10], "big")
    letters = [ALPHABET[(value >> shift) & 31] for shift in range(RANDOM_BITS - 5, -1, -5)]
    text = "".join(letters)
    return "-".join(text[index : index + GROUP_LENGTH] for index in range(0, len(text), GROUP_LENGTH))


CODE = """
    SELECT b.id, b.products, b.max_uses, b.valid_from, b.expires_at, b.status, c.uses,
           EXISTS (SELECT 1 FROM redemption r WHERE r.code_hash = c.code_hash AND r.owner = $2)
    FROM code c
    JOIN code_batch b ON b.id = c.batch_id
    WHERE c.code_hash = $1 AND b.status <> 'preparing'
"""
INSERT_REDEMPTION = """
    INSERT INTO redemption (code_hash, owner, redeemed_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""
USE_CODE = """
    UPDATE code SET uses = uses + 1
    WHERE code_hash = $1 AND uses < $2
      AND EXISTS (SELECT 1 FROM code_batch b WHERE b.id = code.batch_id AND b.status = 'active')
"""
INSERT_BATCH = """
    INSERT INTO code_batch
        (id, org_id, kind, products, count, max_uses, valid_from, expires_at, status, sealed_seed, created_by,
         created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'preparing', NULL, $9, $10)
"""
INSERT_CODE = "INSERT INTO code (code_hash, batch_id, uses) VALUES ($1, $2, 0)"
ACTIVATE_BATCH = "UPDATE code_batch SET status = 'active', sealed_seed = $2 WHERE id = $1 AND status = 'preparing'"
SEALED_SEED = "SELECT sealed_seed, count FROM code_batch WHERE id = $1"
REVOKE_BATCH = "UPDATE code_batch SET status = 'revoked' WHERE id = $1 AND org_id = $2 AND status <> 'preparing'"
BATCHES = """
    SELECT b.id, b.kind, b.products, b.count, b.max_uses, b.valid_from, b.expires_at, b.status, b.created_at,
           (SELECT coalesce(sum(c.uses), 0) FROM code c WHERE c.batch_id = b.id) AS uses
    FROM code_batch b
    WHERE b.org_id = $1 AND b.status <> 'preparing' AND (b.created_at, b.id) < ($2, $3)
    ORDER BY b.created_at DESC, b.id DESC
    LIMIT $4
"""
ABANDONED = "SELECT id FROM code_batch WHERE status = 'preparing' AND created_at < $1 LIMIT 10"
DELETE_CODES = "DELETE FROM code WHERE batch_id = $1"
DELETE_BATCH = "DELETE FROM code_batch WHERE id = $1 AND status = 'preparing'"


class RedeemCode(NamedTuple):
    """A code to redeem: the terms of its batch, its uses so far, and whether this owner redeemed it."""

    batch_id: str
    products: list[str]
    max_uses: int
    valid_from: Instant | None
    expires_at: Instant | None
    status: str
    uses: int
    is_redeemed: bool


async def redeem_code(reader: Reader, code_hash: bytes, owner: str) -> RedeemCode | None:
    """The code with this hash, for this owner."""
    row = await reader.fetch_one(CODE, code_hash, owner)
    if row is None:
        return None
    batch_id, products, max_uses, valid_from, expires_at, status, uses, is_redeemed = row
    names = msgspec.json.decode(products, type=list[str])
    return RedeemCode(batch_id, names, max_uses, valid_from, expires_at, status, uses, bool(is_redeemed))


async def batches(database: Database, org_id: str, after_key: Sequence[int | str], limit: int) -> list[Row]:
    """The organisation's batches with their usage, newest first. The query reads every code, possibly millions.

    Raises:
        Unavailable: the query exceeded the read deadline.
    """
    return await database.scan(BATCHES, org_id, after_key[0], after_key[1], limit)


async def delete_batch(transaction: Transaction, batch_id: str) -> None:
    """Remove a batch that never became active, with its codes."""
    await transaction.run(DELETE_CODES, batch_id)
    await transaction.run(DELETE_BATCH, batch_id)


CHUNK_CODES = 5_000
QUICK_CODES = 500
"""Up to this number of codes are derived on the event loop, in a few milliseconds; more codes are derived in a thread.
An atomic batch derives them inside its transaction, where waiting for a thread delays every other writer."""
ABANDONED_AFTER_S = 3600


class PreparedBatch(msgspec.Struct):
    """A batch whose codes are stored but not valid yet."""

    batch_id: str
    seed: bytes
    count: int


async def prepare_batch(store: Store, caller: Caller, org_slug: str | None, body: NewBatch) -> PreparedBatch:
    """Store a batch and its codes. The codes are not valid until the batch is activated.

    Raises:
        InsufficientScope: the caller does not administer the organisation.
        InvalidRequest: a product is not the organisation's own, a licence has several uses, or the period of validity
            is empty or outside the range of dates.
    """
    org = await organisation_of(store.database, caller, org_slug, "admin:org")
    products = await _own_products(store.database, org.id, body.products)
    uses = _max_uses(body)
    start_instant = _instant("/valid_from", body.valid_from)
    end_instant = _instant("/expires_at", body.expires_at)
    if start_instant is not None and end_instant is not None and end_instant <= start_instant:
        raise invalid_member("/expires_at", "must be after valid_from")
    if end_instant is not None and end_instant <= clock.now():
        raise invalid_member("/expires_at", "must be in the future")
    batch_id = ids.new_uuid()
    members = (
        batch_id,
        org.id,
        body.kind,
        msgspec.json.encode(products).decode(),
        body.count,
        uses,
        start_instant,
        end_instant,
    )
    async with store.database.transaction() as transaction:
        await transaction.run(INSERT_BATCH, *members, caller.key, clock.now())
    seed = ids.random_bytes(SEED_BYTES)
    for start in range(0, body.count, CHUNK_CODES):
        stop = min(start + CHUNK_CODES, body.count)
        is_quick = stop - start <= QUICK_CODES
        derive = partial(_rows, seed, batch_id, start, stop)
        rows = derive() if is_quick else await asyncio.to_thread(derive)
        async with store.database.transaction() as transaction:
            await transaction.run_many(INSERT_CODE, rows)
    return PreparedBatch(batch_id, seed, body.count)


async def add_batch(
    transaction: Transaction,
    org_id: str,
    kind: Literal["license", "promo"],
    products: list[str],
    code_texts: Sequence[str],
    uses: int,
) -> None:
    """Add an active batch with the codes in `code_texts`. This function is used for demonstration data."""
    batch_id = ids.new_uuid()
    encoded_products = msgspec.json.encode(products).decode()
    members = (batch_id, org_id, kind, encoded_products, len(code_texts), uses, None, None, "demo", clock.now())
    await transaction.run(INSERT_BATCH, *members)
    await transaction.run_many(INSERT_CODE, [(digest(code), batch_id) for code in code_texts])
    await transaction.run(ACTIVATE_BATCH, batch_id, None)


def _rows(seed: bytes, batch_id: str, start: int, stop: int) -> list[tuple[bytes, str]]:
    return [(digest(code), batch_id) for code in derive_codes(seed, start, stop)]


def _instant(pointer: str, moment: datetime | None) -> clock.Instant | None:
    try:
        return None if moment is None else clock.from_datetime(moment)
    except ValueError as error:
        raise invalid_member(pointer, str(error)) from error


def _max_uses(body: NewBatch) -> int:
    if body.kind == "promo":
        if body.max_uses is None:
            raise invalid_member("/max_uses", "is required for promo codes")
        return body.max_uses
    if body.max_uses not in (None, 1):
        raise invalid_member("/max_uses", "is 1 for licence codes")
    return 1


async def _own_products(database: Database, org_id: str, names: list[str]) -> list[str]:
    """The ids of the named products, which must be the organisation's own."""
    product_ids: list[str] = []
    for index, name in enumerate(names):
        entry = await catalog.find_entry(database, name, is_id=ids.is_uuid(name))
        if entry is None or entry.org_id != org_id:
            raise invalid_member(f"/products/{index}", "does not belong to the organisation")
        if entry.status == "archived":
            raise invalid_member(f"/products/{index}", "is archived")
        product_ids.append(entry.product_id)
    if len(set(product_ids)) != len(product_ids):
        raise invalid_member("/products", "names a product twice")
    return product_ids


async def encode_codes(prepared_batch: PreparedBatch) -> AsyncIterator[bytes]:
    """The formatted codes of a batch, one a line, in chunks of several thousand lines."""
    for start in range(0, prepared_batch.count, CHUNK_CODES):
        stop = min(start + CHUNK_CODES, prepared_batch.count)
        is_quick = stop - start <= QUICK_CODES
        derive = partial(_lines, prepared_batch.seed, start, stop)
        yield derive() if is_quick else await asyncio.to_thread(derive)


def _lines(seed: bytes, start: int, stop: int) -> bytes:
    return "".join(f"{code}\n" for code in derive_codes(seed, start, stop)).encode()


async def delete_abandoned(store: Store) -> int:
    """Remove batches whose issuing was interrupted more than an hour ago; return their number."""
    oldest_kept = clock.later(clock.now(), seconds=-ABANDONED_AFTER_S)
    rows = await store.database.fetch(ABANDONED, oldest_kept)
    for (batch_id,) in rows:
        async with store.database.transaction() as transaction:
            await delete_batch(transaction, batch_id)
    return len(rows)
