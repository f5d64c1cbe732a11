"""User accounts with user names and passwords, and the insertion of records of built-in models."""

import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel import ids
from countersign.kernel.database.port import Reader, Transaction, Value
from countersign.kernel.normalization import normalized


def folded(text: str) -> str:
    """Return the text without case: in full case folding, with NFC normalization before and after it (Unicode 3.13,
    D145)."""
    if text.isascii():
        return text.lower()
    return normalized("NFC", normalized("NFC", text).casefold())


async def insert(transaction: Transaction, model: Declared, values: Mapping[str, Stored]) -> str:
    """Insert a record with these stored values and return its id. All other fields are empty.

    Raises:
        LookupError: the model does not have a field, or a field is personal. Only the vault writes personal fields.
        ConstraintViolation: a value that must be unique is taken.
    """
    record_id = ids.new_record_id()
    columns: dict[str, Value] = {"id": record_id, "revision": 1, "changed": 0}
    for name, value in values.items():
        field = model.fields.get(name)
        if field is None or field.personal:
            raise LookupError(f"{model.name}.{name} cannot be written here")
        columns[name] = value
        if field.is_folded:
            columns[f"{name}__folded"] = folded(value) if isinstance(value, str) else None
    names = ", ".join(f'"{name}"' for name in columns)
    placeholders = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    await transaction.run(f'INSERT INTO "{model.name}" ({names}) VALUES ({placeholders})', *columns.values())
    return record_id


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
# This statement changes nothing but locks the row. The person cannot be deactivated until the transaction ends.
_LOCK_ACTIVE_USER = 'UPDATE "user" SET is_active = is_active WHERE id = $1 AND is_active = 1'


class Account(NamedTuple):
    """A person who can sign in, with the hash of the person's password."""

    id: str
    password_hash: str


async def find_account(reader: Reader, username: str) -> Account | None:
    """Return the person with this user name, ignoring case. Return None if there is no such person, or if the person is
    inactive or has no password."""
    row = await reader.fetch_one(BY_USERNAME, folded(username), username)
    return None if row is None else Account(row[0], row[1])


async def lock_active(transaction: Transaction, user_id: str) -> bool:
    """Return whether the person exists and is active. An active person cannot be deactivated until the transaction
    ends."""
    return await transaction.run(_LOCK_ACTIVE_USER, user_id) == 1


async def has_password(transaction: Transaction, user_id: str, password_hash: str) -> bool:
    """Return whether the hash of the person's password is still this hash."""
    row = await transaction.fetch_one(_HASH, user_id)
    return row is not None and row[0] == password_hash


async def set_password(transaction: Transaction, user_id: str, password_hash: str) -> None:
    """Set or replace the person's password."""
    await transaction.run(_SET_HASH, user_id, password_hash)


SIGNS = "._-@+"
RULE = f"must be letters of one script, digits and {' '.join(SIGNS)}, without spaces"

_PLAIN = frozenset(f"0123456789{SIGNS}")
_TAKEN = 'SELECT 1 FROM "user" WHERE username__folded = $1 AND id <> $2 LIMIT 1'

_MIXABLE_SCRIPTS = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HANGUL": "CJK"}
"""Scripts that a user name may mix with each other, because their letters do not look alike."""


def is_unambiguous(username: str) -> bool:
    """Return whether the user name is in NFKC form, consists only of letters of one script with their marks, digits 0
    to 9 and `SIGNS`, and contains at least one character that is not a sign."""
    letters = [character for character in username if character not in _PLAIN]
    return (
        username == unicodedata.normalize("NFKC", username)
        and bool(username.strip(SIGNS))
        and all(unicodedata.category(letter)[0] in "LM" for letter in letters)
        and len(set(map(_script, letters))) <= 1
    )


def _script(letter: str) -> str:
    """Return the script of a letter. The Unicode name of a letter starts with its script, for example LATIN SMALL
    LETTER A."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return _MIXABLE_SCRIPTS.get(script, script)


async def is_username_taken(reader: Reader, username: str, user_id: str = "") -> bool:
    """Return whether another person has the user name, ignoring case."""
    return await reader.fetch_one(_TAKEN, folded(username), user_id) is not None
