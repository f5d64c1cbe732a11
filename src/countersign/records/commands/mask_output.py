"""Masks the records in responses of all commands and protocols."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from countersign.declare.fields.field import LITERAL
from countersign.kernel.database import port
from countersign.kernel.database.port import Row
from countersign.records.commands.run import Run
from countersign.records.commands.select import Record, RecordReader
from countersign.records.masking import placeholder_tokens

_LITERALS = "SELECT text, value_id FROM literal WHERE text IN ({places})"
_LITERALS_AT_ONCE = 1_000


async def masked_records(
    run: Run, record_reader: RecordReader, rows: Sequence[Row], length: int | None = None
) -> list[Record]:
    """Return the rows as the caller sees them. A masked field becomes a placeholder token. Ordinary text that looks
    like a token becomes a LITERAL token, so everything in a response that looks like a token is one. Other requests can
    run between batches of long texts. `length` is the number of characters of the texts if it is known."""
    is_short = length is not None and length <= port.MAX_BYTES and len(rows) <= port.MAX_ROWS
    if is_short or len(rows) == 1 or not record_reader.has_long_texts:
        return await _masked_records(run, record_reader, rows)
    records: list[Record] = []
    for batch in _batches(record_reader, rows):
        if records:
            await asyncio.sleep(0)
        records += await _masked_records(run, record_reader, batch)
    return records


async def masked_values(run: Run, record_reader: RecordReader, rows: Sequence[Row]) -> Sequence[Sequence[Any]]:
    """Return the values of the members of the records that `masked_records` returns."""
    if not record_reader.has_long_texts:
        return await _masked_values(run, record_reader, rows)
    values: list[Sequence[Any]] = []
    for batch in _batches(record_reader, rows):
        if values:
            await asyncio.sleep(0)
        values += await _masked_values(run, record_reader, batch)
    return values


def _batches(record_reader: RecordReader, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield all rows in batches. A batch whose texts are too long together is split row by row."""
    for start in range(0, len(rows), port.MAX_ROWS):
        batch = rows[start : start + port.MAX_ROWS]
        if record_reader.length(batch) <= port.MAX_BYTES:
            yield batch
        else:
            yield from port.batches(batch)


async def _masked_records(run: Run, record_reader: RecordReader, rows: Sequence[Row]) -> list[Record]:
    return [record_reader.shape(*values) for values in await _masked_values(run, record_reader, rows)]


async def _masked_values(run: Run, record_reader: RecordReader, rows: Sequence[Row]) -> Sequence[Sequence[Any]]:
    if not run.caller.view.is_masked and record_reader.is_plain:
        return rows
    values = record_reader.values(rows, run.masks)
    if run.caller.view.is_masked:
        await _literals(run, record_reader, values)
    if record_reader.structures:
        await run.engine.render(run, record_reader, values)
    return values


async def _literals(run: Run, record_reader: RecordReader, values: list[list[Any]]) -> None:
    texts = [text for text_index in record_reader.texts for row in values if (text := row[text_index]) is not None]
    tokens = await literals(run, texts)
    if tokens:
        for row in values:
            for text_index in record_reader.texts:
                if row[text_index] is not None:
                    row[text_index] = placeholder_tokens.replace_tokens(run.engine.grammar, row[text_index], tokens)


async def literals(run: Run, texts: Sequence[str]) -> Mapping[str, str]:
    """Map each part of these clear texts that looks like a token to its LITERAL token. The map is empty if the caller's
    view is not masked."""
    grammar = run.engine.grammar
    if not run.caller.view.is_masked or not grammar.might_hold_token("\n".join(texts)):
        return {}
    token_texts = {token.text for text in texts for token in grammar.tokens(text)}
    return await literal_tokens(run, sorted(token_texts)) if token_texts else {}


async def literal_tokens(run: Run, texts: Sequence[str]) -> dict[str, str]:
    """Map texts that look like tokens to the LITERAL tokens that the caller sees instead."""
    alias_by_text: dict[str, int] = {}
    for start in range(0, len(texts), _LITERALS_AT_ONCE):
        text_batch = texts[start : start + _LITERALS_AT_ONCE]
        places = ", ".join(f"${number}" for number in range(1, len(text_batch) + 1))
        alias_by_text |= dict(await run.reader.fetch(_LITERALS.format(places=places), *text_batch))
    masks = run.masks
    numbers = (
        masks.numbers([alias_by_text[text] for text in texts if text in alias_by_text]) if masks is not None else []
    )
    tokens = dict(zip([text for text in texts if text in alias_by_text], numbers, strict=True))
    # A text that was stored before its label was registered has no id. It gets an invisible character, so that it does
    # not look like a token.
    return {
        text: f"{LITERAL}_{tokens[text]}" if text in tokens else text.replace("_", "\N{LOW LINE}\N{WORD JOINER}")
        for text in texts
    }
