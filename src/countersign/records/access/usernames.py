"""User names nobody can mistake for another's: one script, plain signs, and no two that differ in case alone."""

import unicodedata

from countersign.kernel.database.port import Reader
from countersign.records.access.folding import folded

SIGNS = "._-@+"
RULE = f"must be letters of one script, digits and {' '.join(SIGNS)}, without spaces"

_PLAIN = frozenset(f"0123456789{SIGNS}")
_TAKEN = 'SELECT 1 FROM "user" WHERE username__folded = $1 AND id <> $2 LIMIT 1'

_WRITTEN_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HANGUL": "CJK"}
"""Scripts that one name mixes, and that look like no other."""


def is_plain(username: str) -> bool:
    """Whether the name is letters of one script with their marks, digits 0 to 9 and `SIGNS`, at least one of them no
    sign, in the one form (NFKC) that looks as it does."""
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
    """Whether somebody else has the name, in whatever case."""
    return await reader.fetch_one(_TAKEN, folded(username), user_id) is not None
