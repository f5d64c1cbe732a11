"""User accounts: user names, passwords, and inserting rows of built-in models."""

import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel import ids
from countersign.kernel.database.port import Reader, Transaction, Value
from countersign.kernel.normalization import normalized


def folded(text: str) -> str:
    """The text without case: full case folding, in NFC before and after (Unicode 3.13, D145)."""
    if text.isascii():
        return text.lower()
    return normalized("NFC", normalized("NFC", text).casefold())


async def insert(transaction: Transaction, model: Declared, values: Mapping[str, Stored]) -> str:
    """Insert a record with these stored values, all others empty, and return its id.

    Raises:
        LookupError: the model does not have a field, or it is a personal one, which only the vault writes.
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
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    await transaction.run(f'INSERT INTO "{model.name}" ({names}) VALUES ({places})', *columns.values())
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
# Changes nothing, but locks the row: until the transaction ends, the person cannot be deactivated.
_LOCK_ACTIVE = 'UPDATE "user" SET is_active = is_active WHERE id = $1 AND is_active = 1'


class Account(NamedTuple):
    """A person who can sign in, and the hash of the password."""

    id: str
    password_hash: str


async def find_account(reader: Reader, username: str) -> Account | None:
    """The person with this user name, ignoring case; None if there is no such person with a password, or it is
    inactive."""
    row = await reader.fetch_one(BY_USERNAME, folded(username), username)
    return None if row is None else Account(row[0], row[1])


async def lock_active(transaction: Transaction, user_id: str) -> bool:
    """Whether the person exists and is active; if so, it stays active until the transaction ends."""
    return await transaction.run(_LOCK_ACTIVE, user_id) == 1


async def has_password(transaction: Transaction, user_id: str, password_hash: str) -> bool:
    """Whether this is still the hash of the person's password."""
    row = await transaction.fetch_one(_HASH, user_id)
    return row is not None and row[0] == password_hash


async def set_password(transaction: Transaction, user_id: str, password_hash: str) -> None:
    """Set or replace the person's password."""
    await transaction.run(_SET_HASH, user_id, password_hash)


SIGNS = "._-@+"
RULE = f"must be letters of one script, digits and {' '.join(SIGNS)}, without spaces"

_PLAIN = frozenset(f"0123456789{SIGNS}")
_TAKEN = 'SELECT 1 FROM "user" WHERE username__folded = $1 AND id <> $2 LIMIT 1'

_WRITTEN_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HANGUL": "CJK"}
"""Scripts that one name may mix, since their letters do not resemble those of another script."""


def is_plain(username: str) -> bool:
    """Whether the name consists of letters of one script with their marks, digits 0 to 9 and `SIGNS`, contains at least
    one character that is not a sign, and is in NFKC form."""
    letters = [each for each in username if each not in _PLAIN]
    return (
        username == unicodedata.normalize("NFKC", username)
        and bool(username.strip(SIGNS))
        and all(unicodedata.category(each)[0] in "LM" for each in letters)
        and len(set(map(_script, letters))) <= 1
    )


def _script(letter: str) -> str:
    """The script by the first word of the letter's name, which is where Unicode says it: LATIN SMALL LETTER A."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return _WRITTEN_TOGETHER.get(script, script)


async def is_taken(reader: Reader, username: str, user_id: str = "") -> bool:
    """Whether another person has the name, ignoring case."""
    return await reader.fetch_one(_TAKEN, folded(username), user_id) is not None
