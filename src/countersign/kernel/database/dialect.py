"""One portable schema text, said in the dialect of each engine.

The text is written for SQLite's STRICT tables with four types: TEXT, BIGINT, REAL, BLOB. On PostgreSQL every TEXT
column compares by code point (COLLATE "C"), as it does on SQLite. `WITHOUT ROWID` after a table is for SQLite alone.
What only one engine understands stands between a line `-- only: sqlite` (or `postgres`) and a line `-- end`.
"""

import re

from countersign.kernel.database.port import Dialect

_BLOCK = re.compile(r"^-- only: (\w+)[ \t]*\n(.*?)^-- end[ \t]*$", re.DOTALL | re.MULTILINE)
_PIECE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|(?:[^'"\-/;]|-(?!-)|/(?!\*))+""", re.DOTALL
)
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
_COLUMNS = re.compile(r"\s*(CREATE|ALTER)\s+TABLE\b", re.IGNORECASE)
_ROWID = re.compile(r"\)\s*WITHOUT\s+ROWID\s*$", re.IGNORECASE)
_TYPE = re.compile(r"(?<!AS )\b(TEXT|BIGINT|INTEGER|REAL|BLOB)\b")
_TYPES: dict[Dialect, dict[str, str]] = {
    "sqlite": {"BIGINT": "INTEGER"},
    "postgres": {"TEXT": 'TEXT COLLATE "C"', "INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA"},
}


class NotPortable(Exception):
    """The schema text says something the two engines do not both do; the text names it."""


def in_dialect(text: str, dialect: Dialect) -> str:
    """The schema text as the engine understands it.

    Raises:
        NotPortable: a constraint is DEFERRABLE (on SQLite it would fail the COMMIT that many transactions share), or
            a block is for an engine that is not known.
    """
    if re.search(r"\bDEFERRABLE\b", text, re.IGNORECASE):
        raise NotPortable("DEFERRABLE: check the rule at once, or in the code")
    return "".join(_said(pieces, dialect) for pieces in _statements(_of_engine(text, dialect)))


def _of_engine(text: str, dialect: Dialect) -> str:
    def kept(block: re.Match[str]) -> str:
        if block[1] not in ("sqlite", "postgres"):
            raise NotPortable(f"-- only: {block[1]}: the engines are sqlite and postgres")
        return block[2] if block[1] == dialect else ""

    return _BLOCK.sub(kept, text)


def _statements(text: str) -> list[list[str]]:
    """Each statement as its pieces: words, literals, comments; the semicolon begins the piece list after it."""
    found: list[list[str]] = [[]]
    for piece in _PIECE.findall(text):
        if piece == ";":
            found.append([])
        found[-1].append(piece)
    return found


def _said(pieces: list[str], dialect: Dialect) -> str:
    words = [number for number, piece in enumerate(pieces) if _is_words(piece)]
    said = "".join(pieces[number] for number in words)
    if _COLUMNS.match(said):
        names = _TYPES[dialect]
        for number in words:
            pieces[number] = _TYPE.sub(lambda found: names.get(found[1], found[1]), pieces[number])
    if _TABLE.match(said):
        last = [number for number in words if pieces[number].strip()][-1]
        pieces[last] = _ended(pieces[last].rstrip(), dialect)
    return "".join(pieces)


def _is_words(piece: str) -> bool:
    return piece[0] not in "'\";" and not piece.startswith(("--", "/*"))


def _ended(piece: str, dialect: Dialect) -> str:
    if dialect == "postgres":
        return _ROWID.sub(")", piece)
    return piece + (", STRICT" if _ROWID.search(piece) else " STRICT")
