"""Finds changes of a connected record that were not made through Countersign.

The audit entries of a record contain the values that it had before and after each change. If a value differs from the
one that the last entry left, another application or a trigger has changed it in between. Neither who nor when is known,
unless triggers record the changes of others (see `countersign connect watch`): the audit then has an entry for each,
with the names of the changed fields.
"""

import decimal
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

import msgspec

from countersign.declare import Decimal, Declared, Field, Moment, Money, Select
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database
from countersign.records.commands import record_writer
from countersign.records.commands.run import Run

COMMAND = "outside.change"
COMMANDS = frozenset({COMMAND, "outside.create", "outside.delete"})
"""The commands of audit entries about changes that triggers of the connected database have recorded."""
ROLE = "role:"
"""The prefix of the role of the database in the member `user_id` of such an entry."""

Changes: TypeAlias = Mapping[str, list[object]]
"""Maps each changed field to the copies of its value before and after the change, and to how its column was read then
(see `reading_of`), unless one reading alone is possible. Older entries do not say it."""


_COUNT = """
SELECT count(CASE WHEN command <> 'outside.unwatched' THEN 1 END),
    count(DISTINCT CASE WHEN command <> 'outside.unwatched' THEN model END),
    count(DISTINCT CASE WHEN command = 'outside.unwatched' THEN model END)
FROM audit_entry
WHERE command IN ('outside.change', 'outside.create', 'outside.delete', 'outside.unwatched')
    AND model IN (SELECT c.model FROM connected_model AS c)
"""
_CONNECTED = "SELECT model FROM connected_model"
_CONNECT = "INSERT INTO connected_model (model) VALUES ($1) ON CONFLICT (model) DO NOTHING"
_DISCONNECT = "DELETE FROM connected_model WHERE model = $1"


class OutsideCount(NamedTuple):
    """The number of connected models, of changes of other applications in the audit, of the models that they changed,
    and of the models for whose changes the recording was interrupted."""

    models: int
    changes: int
    changed_models: int
    interrupted_models: int


async def count(database: Database) -> OutsideCount:
    """Count the recorded changes of other applications.

    Raises:
        Unavailable: the database cannot answer in time.
    """
    # The whole audit is read, so the deadline of short reads does not apply.
    async with aclosing(database.stream(_COUNT)) as row_batches:
        ((changes, models, interrupted),) = [row async for rows in row_batches for row in rows]
    connected = await database.fetch(_CONNECTED)
    return OutsideCount(len(connected), changes, models, interrupted)


async def note_connected(database: Database, models: Collection[str]) -> None:
    """Store the names of the models with a table of an existing database.

    Raises:
        Unavailable, StorageFull: the database refuses a statement.
    """
    known = {str(row[0]) for row in await database.fetch(_CONNECTED)}
    if known == set(models):
        return
    async with database.transaction() as transaction:
        for model in sorted(set(models) - known):
            await transaction.run(_CONNECT, model)
        for model in sorted(known - set(models)):
            await transaction.run(_DISCONNECT, model)


class OutsideChange(NamedTuple):
    """A change that was noticed at `noticed_at`, and happened in each field after its time in `since`."""

    since: Mapping[str, Instant]
    noticed_at: Instant
    changes: Changes


class _Copy(msgspec.Struct):
    """The copy of a personal value: its id and its encrypted text."""

    value: int
    sealed: str = ""


class _Known(NamedTuple):
    """The copy of the value that an audit entry left, and how the column was read then."""

    copy: object
    at: Instant
    reading: Sequence[object]


def reading_of(field: Field) -> list[object]:
    """Return how the value of the field is computed from its column, if declarations of one field may differ in it."""
    if isinstance(field, Money):
        return [f"scale={field.scale}"]
    return [f"zone={field.zone}"] if isinstance(field, Moment) else []


async def find(
    run: Run, model: Declared, record_id: str, entries: Sequence[tuple[Instant, Changes]]
) -> list[OutsideChange | None]:
    """Return the change before each entry, and last the one since the newest entry: None if no change is known.
    `entries` are the audit entries of the record, the oldest first."""
    named = [(at, {model.present_name(name): pair for name, pair in changes.items()}) for at, changes in entries]
    names = sorted({name for _, changes in named for name in changes} & model.fields.keys())
    if not names:
        return [None] * (len(entries) + 1)
    async with run.writing() as write_run:
        record = await record_writer.find(write_run, model, None, record_id, locks=False)
        current = await record_writer.audit_copies(write_run, model.name, record, names)
        now = {name: [copy, copy, *reading_of(model.fields[name])] for name, copy in current.items()}
        seen = [*named, (clock.now(), now)]
        return await _between(write_run, model, seen)


async def _between(
    run: Run, model: Declared, entries: Sequence[tuple[Instant, Changes]]
) -> list[OutsideChange | None]:
    keys = await _keys(run, [copy for _, changes in entries for pair in changes.values() for copy in pair[:2]])
    known: dict[str, _Known] = {}
    outside_changes: list[OutsideChange | None] = []
    for at, changes in entries:
        pairs = _comparable_pairs(known, changes)
        gap = {name: list(pair) for name, pair in pairs.items() if _is_other(run, model, name, pair, keys)}
        outside_changes.append(_outside_change(known, at, gap))
        known |= {name: _Known(pair[1], at, pair[2:]) for name, pair in changes.items()}
    return outside_changes


def _comparable_pairs(known: Mapping[str, _Known], changes: Changes) -> dict[str, tuple[object, object]]:
    """Map the fields to the copy that was left and the one that was found, if both were read from the column in the
    same way."""
    pairs: dict[str, tuple[object, object]] = {}
    for name, (before, _, *reading) in changes.items():
        left = known.get(name)
        if left is not None and (not reading or not left.reading or reading == left.reading):
            pairs[name] = (left.copy, before)
    return pairs


def _outside_change(known: Mapping[str, _Known], at: Instant, gap: Changes) -> OutsideChange | None:
    return OutsideChange({name: known[name].at for name in gap}, at, gap) if gap else None


async def _keys(run: Run, copies: Sequence[object]) -> Mapping[int, bytes]:
    value_ids = {msgspec.convert(each, _Copy).value for each in copies if isinstance(each, dict)}
    return await run.engine.vault.keys(run.reader, sorted(value_ids))


def _is_other(
    run: Run, model: Declared, name: str, copies: tuple[object, object], keys: Mapping[int, bytes]
) -> bool:
    """Return whether two copies certainly have different values. A value that was erased, or that was written when the
    field was declared in another way, cannot be compared."""
    if None in copies:
        return copies[0] != copies[1]
    before, now = (_text(run, each, keys) for each in copies)
    field = model.fields[name]
    if isinstance(field, Decimal) and isinstance(before, str) and isinstance(now, str):
        # The column may have been given another number of decimals.
        return decimal.Decimal(before) != decimal.Decimal(now)
    is_known = not isinstance(field, Select) or before in field.options
    return before is not None and now is not None and before != now and is_known


def _text(run: Run, copy: object, keys: Mapping[int, bytes]) -> object:
    """Return the value of a copy, or None if it was erased."""
    if not isinstance(copy, dict):
        return copy
    sealed = msgspec.convert(copy, _Copy)
    key = keys.get(sealed.value)
    return run.engine.vault.unseal(key, sealed.sealed) if key is not None and sealed.sealed else None
