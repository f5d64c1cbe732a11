"""Reconstructs the definition that a table had when its fingerprint was computed. A fingerprint is a hash, so earlier
definitions are guessed and then verified: renamed columns, columns that have exchanged their names, and renumbered
columns."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice, permutations, product
from typing import Any

from countersign.kernel.database.table_fingerprints import TableDefinition

MAX_COLUMNS = 60
"""The maximum number of columns of a table whose former definition is guessed."""
MAX_RENAMED = 4
"""The maximum number of renamed columns in one guess."""
MAX_GUESSES = 5_000
MAX_NUMBERINGS = 1_000
"""The maximum number of guesses."""

_TYPES = (
    *("int4", "int8", "text", "varchar", "bpchar", "bool", "date", "timestamp", "timestamptz", "numeric", "int2"),
    *("float4", "float8", "uuid", "json", "jsonb", "bytea", "inet", "time", "interval"),
)
"""The former types that are guessed for a column."""


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
    """Map the former names of columns to their current names if renaming alone explains the changed fingerprint;
    otherwise return None. `key` is the former key of the records, and `missing` are columns that the table no longer
    has."""
    last = last_number(fingerprint)
    present = [name for name, number in numbers(definition).items() if number <= last]
    if len(present) > MAX_COLUMNS:
        return None
    for count, renamed in enumerate(_guesses(sorted(missing), present)):
        if count >= MAX_GUESSES:
            return None
        if _before(definition, renamed).matches(fingerprint, key):
            return renamed
    return None


def recreated_columns(definition: TableDefinition, fingerprint: str, key: Collection[str]) -> frozenset[str]:
    """Return the last column of a SQLite table if the fingerprint proves that it was dropped and created again. At most
    one such column is found."""
    last = last_number(fingerprint)
    columns = [each for each in definition.columns if int(each[0]) <= last]
    for place in range(len(columns) - 1):
        moved = [*columns[:place], columns[-1], *columns[place:-1]]
        before = tuple((number, *each[1:]) for number, each in enumerate(moved, start=1))
        if replace(definition, columns=before).matches(fingerprint, key):
            return frozenset({str(columns[-1][1])})
    return frozenset()


def restored_number(definition: TableDefinition, fingerprint: str, key: Collection[str]) -> int:
    """Return the number of columns that the fingerprint covers if renumbering alone, in the same order, explains the
    changed fingerprint; otherwise return 0. Restoring a dump of a table renumbers its columns, because the numbers of
    dropped columns are reused."""
    last, columns = last_number(fingerprint), definition.columns
    if [int(each[0]) for each in columns] != list(range(1, len(columns) + 1)):
        return 0
    for numbers_before in islice(_numberings(min(len(columns), last - 1), last), MAX_NUMBERINGS):
        before = tuple((number, *each[1:]) for number, each in zip(numbers_before, columns, strict=False))
        if replace(definition, columns=before).matches(fingerprint, key):
            return len(numbers_before)
    return 0


def _numberings(count: int, last: int) -> Iterator[tuple[int, ...]]:
    """Yield possible former numbers of at most `count` columns, of which the highest is `last`."""
    for each in range(count, 0, -1):
        yield from ((*numbers_before, last) for numbers_before in combinations(range(1, last), each - 1))


def explanation(
    definition: TableDefinition, fingerprint: str, key: Collection[str], gone: Collection[str]
) -> str:
    """Describe the change of a PostgreSQL table if a single change explains the fingerprint: of its row-level security,
    a foreign key, the primary key or the type of one column, or the removal of one column. Otherwise return an empty
    text."""
    parts = json.loads(definition.table_facts)
    if not isinstance(parts[1], bool):
        return ""
    guesses = chain(
        _other_parts(definition, parts, key), _other_types(definition), _dropped(definition, gone, fingerprint)
    )
    for words, before in islice(guesses, MAX_GUESSES):
        if before.matches(fingerprint, key):
            return words
    return ""


def facts(definition: TableDefinition) -> str:
    """Describe the facts about a PostgreSQL table that its fingerprint covers in addition to the columns."""
    parts: list[Any] = json.loads(definition.table_facts)
    if not isinstance(parts[1], bool):
        return ""
    found: list[tuple[str, str, list[str], list[str]]] = parts[3] or []
    references = [f"{', '.join(each[2])} refers to {each[0]}.{each[1]}" for each in found]
    kind = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}.get(str(parts[0]), "a table")
    primary = [f"its primary key is ({', '.join(parts[2])})"] if parts[2] else []
    row_rules = f"row-level security is {'on' if parts[1] else 'off'}"
    return "; ".join([f"it is {kind}", row_rules, *primary, *references])


def _other_parts(
    definition: TableDefinition, parts: list[Any], key: Collection[str]
) -> Iterator[tuple[str, TableDefinition]]:
    """Yield former definitions that differ in one fact other than the columns, each with a description of the
    change."""

    def before(at: int, part: object) -> TableDefinition:
        facts_before = [*parts[:at], part, *parts[at + 1 :]]
        return replace(definition, table_facts=json.dumps(facts_before, ensure_ascii=False))

    yield f"row-level security is now {'on' if parts[1] else 'off'}", before(1, not parts[1])
    references: list[list[object]] = parts[3] or []
    for at, each in enumerate(references):
        yield f"a foreign key to {each[0]}.{each[1]} is new", before(3, references[:at] + references[at + 1 :] or None)
    for columns in (None, list(key), *([name] for name in numbers(definition))):
        yield f"the primary key is now {_list(parts[2])}, and was {_list(columns)}", before(2, columns)


def _list(columns: Sequence[str] | None) -> str:
    """Return the columns of a key in words."""
    return f"({', '.join(columns)})" if columns else "none"


def _other_types(definition: TableDefinition) -> Iterator[tuple[str, TableDefinition]]:
    """Yield former definitions in which one column has another type, each with a description of the change."""
    columns = definition.columns
    for at, (number, name, _, type_name, *_) in enumerate(columns):
        for other in _TYPES:
            before = (*columns[:at], (number, name, "pg_catalog", other), *columns[at + 1 :])
            words = f"the type of {name} is now {type_name}, and was {other}"
            yield words, replace(definition, columns=before)


def _dropped(
    definition: TableDefinition, gone: Collection[str], fingerprint: str
) -> Iterator[tuple[str, TableDefinition]]:
    """Yield former definitions with one of the removed columns, each with a description of the change."""
    present = {int(each[0]) for each in definition.columns}
    free = [each for each in range(1, last_number(fingerprint) + 1) if each not in present]
    for name, number, type_name in product(sorted(gone), free, _TYPES):
        columns = sorted((*definition.columns, (number, name, "pg_catalog", type_name)), key=lambda each: int(each[0]))
        yield f"the column {name} is gone, and the others are as they were", replace(definition, columns=tuple(columns))


def _guesses(missing: list[str], present: list[str]) -> Iterator[dict[str, str]]:
    """Yield possible renames: every missing column was renamed, or two columns have exchanged their names."""
    if 0 < len(missing) <= MAX_RENAMED:
        for names in permutations(present, len(missing)):
            yield dict(zip(missing, names, strict=True))
    elif not missing:
        for first, second in combinations(present, 2):
            yield {first: second, second: first}


def _before(definition: TableDefinition, renamed: Mapping[str, str]) -> TableDefinition:
    """Return the definition with the former names of the columns."""
    former = {new: old for old, new in renamed.items()}
    columns = tuple((each[0], former.get(str(each[1]), each[1]), *each[2:]) for each in definition.columns)
    unique_keys = frozenset(frozenset(former.get(name, name) for name in each) for each in definition.unique_keys)
    return replace(definition, columns=columns, unique_keys=unique_keys)
