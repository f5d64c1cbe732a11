"""CSV text, as exports write it and imports read it: separators, line ends, and the guard against formulas."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH
from countersign.records.commands.refusals import BadInput

Separator: TypeAlias = Literal[",", ";", "\t"]
DecimalMark: TypeAlias = Literal[".", ","]
DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]

SEPARATORS: tuple[Separator, ...] = (",", ";", "\t")
DECIMAL_MARKS: tuple[DecimalMark, ...] = (".", ",")
DATE_ORDERS: tuple[DateOrder, ...] = ("ymd", "dmy", "mdy")
NOTATION = ("separator", "decimal", "date_order")
"""The members of an input that say how a file is written."""

MAX_FIELD_LENGTH = MAX_LONGTEXT_LENGTH + 1
"""A text of the greatest length, with the apostrophe of the guard."""
# Of the whole process; the fields of the models have limits of their own.
csv.field_size_limit(MAX_FIELD_LENGTH)

# A spreadsheet runs a cell that begins with one of these as a formula (CWE-1236). An empty text has the guard too, so
# that it differs from an empty cell, which is no value.
_NEEDS_GUARD = re.compile("'*(?:[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]|$)")
_SEPARATOR_LINE = re.compile("sep=([,;\t])\n", re.IGNORECASE)

_T = TypeVar("_T", bound=str)


@dataclass(frozen=True, slots=True)
class Notation:
    """How a file is written: what separates its cells (None: whatever separates the names in its first row), the mark
    before the decimals of amounts, and the order of day, month and year."""

    separator: Separator | None = None
    decimal: DecimalMark = "."
    date_order: DateOrder = "ymd"


def read_notation(body: Mapping[str, object]) -> Notation:
    """The members of an input that say how the file is written.

    Raises:
        BadInput: one of them has no value that it can have.
    """
    separator = _one_of(body, "separator", SEPARATORS) if body.get("separator") is not None else None
    return Notation(separator, _one_of(body, "decimal", DECIMAL_MARKS), _one_of(body, "date_order", DATE_ORDERS))


def _one_of(body: Mapping[str, object], name: str, known: Sequence[_T]) -> _T:
    wanted = body.get(name, known[0])
    found = next((each for each in known if each == wanted), None)
    if found is None:
        raise BadInput(f"{name} must be {' or '.join('a tab' if each == chr(9) else each for each in known)}")
    return found


def guarded(text: str) -> str:
    """The text as a cell that no spreadsheet runs as a formula; `unguarded` gives it back."""
    return f"'{text}" if _NEEDS_GUARD.match(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell, without the apostrophe that `guarded` put before it."""
    return cell[1:] if cell[:1] == "'" and _NEEDS_GUARD.match(cell) else cell


def written(rows: Iterable[Sequence[str]], separator: Separator = ",") -> str:
    """The rows as RFC 4180 writes them, with this separator."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def table(text: str, separator: Separator | None, *, max_rows: int, max_lines: int) -> list[list[str]]:
    """The rows that are not empty, the first with the names; no more are read than it takes to see that there are too
    many. A byte order mark, a line `sep=;` and line ends of any kind are understood.

    Raises:
        BadInput: it cannot be read, or has too many lines.
    """
    found: list[list[str]] = []
    lines = 0
    reader = _reader(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), separator)
    try:
        for lines, row in enumerate(reader):
            if row:
                found.append(row)
            if len(found) > max_rows + 1 or lines > max_lines:
                break
    except csv.Error as error:
        reason = (
            f"csv cannot be read after row {len(found)}: it must be RFC 4180, with every quoted field closed, a "
            f"separator or a line break after it, and at most {MAX_LONGTEXT_LENGTH:,} characters in a field"
        )
        raise BadInput(reason) from error
    if len(found) <= max_rows and lines > max_lines:
        raise BadInput(f"csv may have {max_lines} lines at most, empty ones included")
    return found


def _reader(text: str, separator: Separator | None) -> Iterator[list[str]]:
    named = _SEPARATOR_LINE.match(text)
    if named is not None:
        text = text[named.end() :]
        separator = separator or next(each for each in SEPARATORS if each == named[1])
    return csv.reader(io.StringIO(text), delimiter=separator or _separator_of(text), strict=True)


def _separator_of(text: str) -> Separator:
    """What separates the names in the first line: the separator that is most often outside of quotes there."""
    start = len(text) - len(text.lstrip("\n"))
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    bare = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=bare.count)
