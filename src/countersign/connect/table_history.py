"""What a table was like when its fingerprint was written. A fingerprint is a hash, so earlier definitions are guessed
and proven: columns that were renamed, and columns that have exchanged their names."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, permutations

from countersign.kernel.database.table_fingerprints import TableDefinition

MAX_COLUMNS = 60
"""Guesses are made for tables with at most this many columns."""
MAX_RENAMED = 4
"""The largest number of renamed columns that is guessed."""
MAX_GUESSES = 5_000


def last_number(fingerprint: str) -> int:
    """Return the highest number of a column that the fingerprint covers, or 0 without a valid fingerprint."""
    try:
        return int(fingerprint[:4], 16)
    except ValueError:
        return 0


def numbers(definition: TableDefinition) -> dict[str, int]:
    """Map the names of the columns to their numbers."""
    return {str(each[1]): int(each[0]) for each in definition.columns}


def renamed_columns(
    definition: TableDefinition, fingerprint: str, key: Collection[str], missing: Collection[str]
) -> Mapping[str, str] | None:
    """Map the names that columns had to their present names, if that alone explains why the definition does not fit the
    fingerprint. Return None if it does not. `key` is the key of the records then, and `missing` are columns that the
    table no longer has."""
    last = last_number(fingerprint)
    present = [name for name, number in numbers(definition).items() if number <= last]
    if len(present) > MAX_COLUMNS:
        return None
    for count, renamed in enumerate(_guesses(sorted(missing), present)):
        if count >= MAX_GUESSES:
            return None
        if _before(definition, renamed).fits(fingerprint, key):
            return renamed
    return None


def recreated_columns(definition: TableDefinition, fingerprint: str, key: Collection[str]) -> frozenset[str]:
    """Return the last column of a SQLite table if the fingerprint proves that it was at another place: it was dropped
    and created again. Only one such column is found."""
    last = last_number(fingerprint)
    columns = [each for each in definition.columns if int(each[0]) <= last]
    for place in range(len(columns) - 1):
        moved = [*columns[:place], columns[-1], *columns[place:-1]]
        before = tuple((number, *each[1:]) for number, each in enumerate(moved, start=1))
        if replace(definition, columns=before).fits(fingerprint, key):
            return frozenset({str(columns[-1][1])})
    return frozenset()


def explanation(definition: TableDefinition, fingerprint: str, key: Collection[str]) -> str:
    """Return what alone has changed in a table of PostgreSQL besides its columns, or an empty text: its row-level
    security, or a new foreign key."""
    parts = json.loads(definition.others)
    if not isinstance(parts[1], bool):
        return ""

    def is_before(changed: list[object]) -> bool:
        others = json.dumps(changed, ensure_ascii=False)
        return replace(definition, others=others).fits(fingerprint, key)

    if is_before([parts[0], not parts[1], *parts[2:]]):
        return f"row-level security is now {'on' if parts[1] else 'off'}"
    references: list[list[object]] = parts[3] or []
    for each in references:
        left = [other for other in references if other is not each] or None
        if is_before([*parts[:3], left, *parts[4:]]):
            return f"a foreign key to {each[0]}.{each[1]} is new"
    return ""


def _guesses(missing: list[str], present: list[str]) -> Iterator[dict[str, str]]:
    """Yield possible renames: each missing column has another name now, or two columns have exchanged their names."""
    if 0 < len(missing) <= MAX_RENAMED:
        for names in permutations(present, len(missing)):
            yield dict(zip(missing, names, strict=True))
    elif not missing:
        for first, second in combinations(present, 2):
            yield {first: second, second: first}


def _before(definition: TableDefinition, renamed: Mapping[str, str]) -> TableDefinition:
    """Return the definition before the columns were renamed."""
    former = {new: old for old, new in renamed.items()}
    columns = tuple((each[0], former.get(str(each[1]), each[1]), *each[2:]) for each in definition.columns)
    unique = frozenset(frozenset(former.get(name, name) for name in each) for each in definition.unique)
    return replace(definition, columns=columns, unique=unique)
