"""Redeem codes: 80 random bits in Crockford base32, stored as a hash; SQL of batches, codes and redemptions."""

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Row, Transaction

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS, GROUP_LENGTH = 4, 4
RANDOM_BITS = 5 * GROUPS * GROUP_LENGTH
SEED_BYTES = 32
MAX_INPUT = 128

_ALIKE = str.maketrans({"O": "0", "I": "1", "L": "1"})
_DROPPED = str.maketrans("", "", " -\t")
_FULL = re.compile(f"[{ALPHABET}]{{{GROUPS * GROUP_LENGTH}}}")
_PERSON = b"countersign-code"


def normal(text: str) -> str:
    """The code as it is compared: upper case, no spaces or dashes, O read as 0, I and L as 1."""
    return text.translate(_DROPPED).upper().translate(_ALIKE)


def is_full_length(text: str) -> bool:
    """Whether the text has the form of a code with all its random bits."""
    return _FULL.fullmatch(normal(text)) is not None


def digest(text: str) -> bytes:
    """The hash a code is stored and found by, whichever way it was typed."""
    return hashlib.blake2b(normal(text).encode("utf-8", "surrogatepass"), digest_size=20, person=_PERSON).digest()


def derived(seed: bytes, start: int, stop: int) -> Iterator[str]:
    """The codes number `start` up to `stop` of the batch with this seed, as they are shown."""
    for number in range(start, stop):
        yield _written(hmac.digest(seed, number.to_bytes(8, "big"), "sha256"))


def _written(random: bytes) -> str:
    value = int.from_bytes(random[:10], "big")
    letters = [ALPHABET[(value >> shift) & 31] for shift in range(RANDOM_BITS - 5, -1, -5)]
    text = "".join(letters)
    return "-".join(text[place : place + GROUP_LENGTH] for place in range(0, len(text), GROUP_LENGTH))


CODE = """
    SELECT b.id, b.products, b.max_uses, b.valid_from, b.expires_at, b.status, c.uses,
           EXISTS (SELECT 1 FROM redemption r WHERE r.code_hash = c.code_hash AND r.owner = $2)
    FROM code c
    JOIN code_batch b ON b.id = c.batch_id
    WHERE c.code_hash = $1 AND b.status <> 'preparing'
"""
REMEMBER_REDEMPTION = """
    INSERT INTO redemption (code_hash, owner, redeemed_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""
USE_CODE = "UPDATE code SET uses = uses + 1 WHERE code_hash = $1 AND uses < $2"
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


class Code(NamedTuple):
    """A code as redeeming sees it: its batch's terms, its uses so far, and whether this owner used it."""

    batch_id: str
    products: list[str]
    max_uses: int
    valid_from: Instant | None
    expires_at: Instant | None
    status: str
    uses: int
    is_redeemed: bool


async def code(reader: Reader, code_hash: bytes, owner: str) -> Code | None:
    """The code with this hash, for this owner."""
    row = await reader.fetch_one(CODE, code_hash, owner)
    if row is None:
        return None
    batch_id, products, max_uses, valid_from, expires_at, status, uses, is_redeemed = row
    names = msgspec.json.decode(products, type=list[str])
    return Code(batch_id, names, max_uses, valid_from, expires_at, status, uses, bool(is_redeemed))


async def batches(database: Database, org_id: str, after: Sequence[int | str], limit: int) -> list[Row]:
    """The organisation's batches with their usage, newest first. Every code of theirs is counted, millions perhaps.

    Raises:
        Unavailable: that took longer than the read deadline.
    """
    return await database.scan(BATCHES, org_id, after[0], after[1], limit)


async def delete_batch(transaction: Transaction, batch_id: str) -> None:
    """Remove a batch that never became active, with its codes."""
    await transaction.run(DELETE_CODES, batch_id)
    await transaction.run(DELETE_BATCH, batch_id)
