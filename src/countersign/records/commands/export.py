"""The command `export`: all matching records as CSV or NDJSON, through the same read gate as every answer."""

import csv
import io
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Literal, TypeAlias

import msgspec

from countersign.records.commands import listing
from countersign.records.commands.query import Query
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run

Format: TypeAlias = Literal["text/csv", "application/x-ndjson"]
FORMATS: tuple[Format, ...] = ("text/csv", "application/x-ndjson")
MOST_IN_ENVELOPE = 5_000

_encoder = msgspec.json.Encoder()


class Exported(msgspec.Struct):
    """The whole export as text."""

    content_type: str
    text: str


def read(run: Run, model: str, body: Body) -> tuple[Query, Format]:
    """The query and the format of an input.

    Raises:
        BadInput: the query is refused, or the format is none there is.
    """
    wanted = body.get("content_type", "text/csv")
    found: Format | None = next((each for each in FORMATS if each == wanted), None)
    if found is None:
        raise BadInput(f"content_type must be {' or '.join(FORMATS)}")
    rest = {name: value for name, value in body.items() if name != "content_type"}
    return listing.read(run, model, "export", rest), found


async def export(run: Run, model: str, body: Body) -> Exported:
    """The export inside an envelope.

    Raises:
        BadInput: the query is refused, or there is more than fits: ask for a stream by Accept.
    """
    asked, wanted = read(run, model, body)
    pieces: list[str] = []
    rows = size = 0
    async with aclosing(pieces_of(run, model, asked, wanted)) as found:
        async for piece, count in found:
            rows += count
            if rows > MOST_IN_ENVELOPE:
                raise BadInput(
                    f"more than {MOST_IN_ENVELOPE} records match: give a limit, or send Accept: {wanted} for a stream"
                )
            size += len(piece)
            if size > listing.LONGEST_PAGE:
                raise BadInput(
                    f"the export is longer than {listing.LONGEST_PAGE >> 20} MiB: give a limit, or send "
                    f"Accept: {wanted} for a stream"
                )
            pieces.append(piece)
    return Exported(wanted, "".join(pieces))


async def pieces_of(run: Run, model: str, asked: Query, wanted: Format) -> AsyncGenerator[tuple[str, int]]:
    """The text in pieces with the number of records in each; the first piece of CSV is its head."""
    names = run.engine.reading(run.caller, run.view_of(model)).names
    if wanted == "text/csv":
        yield _csv([names]), 0
    async with aclosing(listing.stream(run, model, asked, "export")) as found:
        async for records in found:
            if wanted == "text/csv":
                rows = [[_cell(value) for value in msgspec.structs.astuple(each)] for each in records]
                yield _csv(rows), len(records)
            else:
                yield "".join(_encoder.encode(each).decode() + "\n" for each in records), len(records)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _cell(value: object) -> str:
    """A value in a cell; what a spreadsheet would run as a formula begins with an apostrophe instead (CWE-1236)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if text[:1] in "=+-@\t\r" and not isinstance(value, int) else text
