"""Values of fields as the columns of a SQLite file of others store them.

A column of SQLite accepts values of any type, so a value is written as the field reads it, and is read again after the
write.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, cast

from countersign.declare import Bool, Date, Decimal, Field, Moment, Money, Select, Text
from countersign.declare.fields.field import Stored
from countersign.declare.table import quoted
from countersign.kernel import clock
from countersign.kernel.clock import Instant

IS_UTF8 = "countersign_is_utf8"
"""The function of statements on SQLite that says whether a text in hexadecimal is UTF-8."""
HASH = "countersign_hash"
"""The function of statements on SQLite that hashes a text."""

Affinity: TypeAlias = Literal["integer", "text", "none", "real", "numeric"]
"""The type to which SQLite converts the values of a column if it can."""

_HASH_BYTES = 8
_MILLISECOND = "milliseconds"


def hash_of(text: str | None) -> int:
    """Return the hash of a text as SQLite stores it."""
    digest = hashlib.blake2b((text or "").encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, signed=True)


def row_hash(names: Iterable[str], alias: str) -> str:
    """Return the expression for a hash of these columns, with the types of their values."""
    parts = [
        f"CASE typeof({each}) WHEN 'text' THEN 't' || hex({each}) WHEN 'blob' THEN 'b' || hex({each}) "
        f"ELSE quote({each}) END"
        for each in (f"{alias}.{quoted(name)}" for name in names)
    ]
    text = " || ',' || ".join(parts)
    return f"{HASH}({text})"


def affinity_of(declared: str) -> Affinity:
    """Return the affinity of a column with this declared type (https://sqlite.org/datatype3.html)."""
    name = declared.upper()
    if "INT" in name:
        return "integer"
    if any(each in name for each in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if not name or "BLOB" in name:
        return "none"
    return "real" if any(each in name for each in ("REAL", "FLOA", "DOUB")) else "numeric"


def has_time(declared: str) -> bool:
    """Return whether the declared type has a time of day."""
    return "TIME" in declared.upper()


def obstacles(field: Field, column: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield each condition that a row has a value in the column which must not be overwritten, and why, with the
    remedy. `value` is the expression for the value of the field."""
    yield (
        f"{column} NOTNULL AND {value} ISNULL",
        "has a value that the field does not show: change it with the application that has written it",
    )
    if isinstance(field, Text):
        is_cut = f"instr(CAST({column} AS BLOB), x'00') > 0 OR NOT {IS_UTF8}(hex({column}))"
        yield (
            f"typeof({column}) IN ('text', 'blob') AND ({is_cut})",
            "has bytes that are no text: change it with the application that has written it",
        )
    if isinstance(field, Bool):
        yield (
            f"typeof({column}) = 'text'",
            "cannot be set: its column has texts, so declare Select(values=…) with those for true and false",
        )
    if isinstance(field, Date):
        yield f"length({column}) > 10", "cannot be set: its column has a time of day, so declare Moment"


def operand(field: Field, value: Stored) -> Stored:
    """Return the value that `expression` converts. The value of a select is the one that the file has for it."""
    if isinstance(field, Moment):
        moment = clock.to_datetime(Instant(cast("int", value))).replace(tzinfo=None)
        return moment.isoformat(" ", _MILLISECOND)
    if not isinstance(field, Select) or not field.values:
        return value
    return next(each for each, option in field.values.items() if option == value)


def expression(field: Field, placeholder: str, earlier: str) -> str:
    """Return the expression that converts a stored value to the value of a column. `earlier` is the expression for the
    value that the row has, or another row if it has none."""
    if isinstance(field, Money):
        return f"(CAST({placeholder} AS REAL) / {10**field.scale})" if field.scale else placeholder
    if isinstance(field, Decimal):
        return f"CAST({placeholder} AS NUMERIC)"
    return _moment(placeholder, earlier) if isinstance(field, Moment) else placeholder


def deletion_mark(declared: str, other: str) -> str:
    """Return the expression for the value that marks a row as deleted now: a day, an instant, or in a column of numbers
    1 or the seconds or milliseconds since 1970, as another row has it."""
    if declared.upper() == "DATE":
        return "date('now')"
    if affinity_of(declared) == "integer" or "BOOL" in declared.upper():
        seconds = "CAST(strftime('%s', 'now') AS INTEGER)"
        return f"(CASE WHEN {other} > 100000000000 THEN {seconds} * 1000 WHEN {other} > 1 THEN {seconds} ELSE 1 END)"
    return _moment("strftime('%Y-%m-%d %H:%M:%f', 'now')", other)


def _moment(placeholder: str, earlier: str) -> str:
    """Return the expression for an instant with the separator, the fraction and the zone that the earlier value has, so
    that the texts of a column are ordered."""
    is_whole = f"{placeholder} LIKE '%.000' AND earlier NOT LIKE '%.%'"
    text = f"CASE WHEN {is_whole} THEN substr({placeholder}, 1, 19) ELSE {placeholder} END"
    separated = f"CASE WHEN substr(earlier, 11, 1) = 'T' THEN replace({text}, ' ', 'T') ELSE {text} END"
    has_offset = "earlier GLOB '*[+-][0-9][0-9]:[0-9][0-9]'"
    zone = f"CASE WHEN earlier LIKE '%Z' THEN 'Z' WHEN {has_offset} THEN '+00:00' ELSE '' END"
    return f"(SELECT {separated} || {zone} FROM (SELECT coalesce({earlier}, '') AS earlier))"
