"""People as far as signing in knows them: a row that may be switched off, and a password."""

from typing import NamedTuple

from countersign.kernel.database.port import Reader, Transaction
from countersign.records.access.folding import folded

BY_USERNAME = """
SELECT person.id, password.hash
FROM "user" AS person
JOIN password ON password.user_id = person.id
WHERE person.username__folded = $1 AND person.is_active = 1
ORDER BY CASE WHEN person.username = $2 THEN 0 ELSE 1 END
LIMIT 1
"""
_HASH = "SELECT hash FROM password WHERE user_id = $1"
_SET_HASH = """
INSERT INTO password (user_id, hash) VALUES ($1, $2)
ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash
"""
# Changes nothing, but until the end of the transaction nobody switches the person off.
_HOLD = 'UPDATE "user" SET is_active = is_active WHERE id = $1 AND is_active = 1'


class WithPassword(NamedTuple):
    """A person who can sign in, and the hash of the password."""

    id: str
    password_hash: str


async def with_password(reader: Reader, username: str) -> WithPassword | None:
    """The person of this user name in whatever case; None when there is none, without a password, or switched off."""
    row = await reader.fetch_one(BY_USERNAME, folded(username), username)
    return None if row is None else WithPassword(row[0], row[1])


async def hold_active(transaction: Transaction, user_id: str) -> bool:
    """Whether the person is there and not switched off; if so, it stays so until the transaction ends."""
    return await transaction.run(_HOLD, user_id) == 1


async def has_password(transaction: Transaction, user_id: str, password_hash: str) -> bool:
    """Whether this is still the hash of the person's password."""
    row = await transaction.fetch_one(_HASH, user_id)
    return row is not None and row[0] == password_hash


async def set_password(transaction: Transaction, user_id: str, password_hash: str) -> None:
    """Give the person a password, in place of the one before."""
    await transaction.run(_SET_HASH, user_id, password_hash)
