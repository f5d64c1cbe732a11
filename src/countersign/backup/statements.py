"""The statements of an archive that make tables, looked at before one is run.

An archive is data: whoever could seal one must not get to run anything by it.
"""

import re

from countersign.backup.reading import disagrees
from countersign.backup.snapshot import Table

_NAME = r'(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")'
_TEXT = re.compile(r"'(?:[^']|'')*'")
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_TABLE = re.compile(rf"CREATE TABLE {_NAME} (\(.*\))", re.DOTALL)
_KINDS = "PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY"
_RULE = re.compile(rf"ALTER TABLE {_NAME} ADD CONSTRAINT {_NAME} ((?:{_KINDS}) \(.*)", re.DOTALL)
_PLACE = rf"ON (?:{_NAME}\.)?{_NAME}"
_INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX {_NAME} {_PLACE} (USING (?:btree|gin|gist|hash) \(.*)", re.DOTALL)
_REFERENCE = re.compile(rf"REFERENCES (?:{_NAME}\.)?{_NAME}\(")
# Every run of such characters is passed once, whether a parenthesis follows it or not.
_CALLED = re.compile(r"([A-Za-z0-9_.]+)(\s*\(|)")
# Words before a parenthesis that call nothing, and functions that only look at what they are given.
_HARMLESS = frozenset(
    {
        *("and", "any", "array", "btree", "case", "character", "char", "check", "else", "gin", "gist", "hash", "in"),
        *("include", "key", "not", "numeric", "or", "references", "then", "unique", "varying", "when", "where"),
        *("coalesce", "length", "lower", "octet_length", "upper"),
    }
)
_MEANS_MORE = re.compile(r";|\$|--|/\*|\bselect\b", re.IGNORECASE)


def require_plain(table: Table) -> None:
    """Insist that the statements make a table, its rules and indexes, and nothing else.

    Raises:
        Damaged: one does more, or calls a function that could.
    """
    plain = _TABLE.fullmatch(table.create)
    if plain is None or not _is_one_list(plain[1]):
        raise disagrees(f"the statement that makes {table.name!r} makes no table")
    bodies = [plain[1]]
    for statement in (*table.finish, *table.references):
        found = _RULE.fullmatch(statement) or _INDEX.fullmatch(statement)
        if found is None:
            raise disagrees(f"a statement about {table.name!r} is neither a rule nor an index")
        bodies.append(_REFERENCE.sub("REFERENCES (", found[1]))
    if not all(map(is_plain, bodies)):
        raise disagrees(f"a statement about {table.name!r} does more than make it")


def is_plain(body: str) -> bool:
    """Whether what a statement says of columns calls nothing but what only looks at them, and ends with itself."""
    bare = _bare(body)
    called = {name.lstrip("0123456789.").lower() for name, opening in _CALLED.findall(bare) if opening}
    return _MEANS_MORE.search(bare) is None and called <= _HARMLESS


def _bare(statement: str) -> str:
    """The statement without its texts and quoted names."""
    return _QUOTED.sub("q", _TEXT.sub("''", statement))


def _is_one_list(text: str) -> bool:
    """Whether the parenthesis that the text begins with is closed by its last character alone."""
    depth = 0
    bare = _bare(text)
    for at, letter in enumerate(bare):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at == len(bare) - 1
    return False
