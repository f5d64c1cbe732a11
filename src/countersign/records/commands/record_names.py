"""Reads the titles, subtitles and states of records as a caller sees them. References, search hits and sentences show
them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import msgspec

from countersign.declare import Ref
from countersign.records.access.view import ModelView
from countersign.records.commands import limits, mask_output, select
from countersign.records.commands.errors import BadInput, unknown_field
from countersign.records.commands.filters import Condition, Query
from countersign.records.commands.presentation import title_field
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import RecordReader

Names = Mapping[str, Mapping[str, object]]
"""Maps each ref to a map from the ids of the referenced records to their names."""


class RecordLine(msgspec.Struct):
    """One record in a list of hits: the model, the id, the title, the values of the subtitle, and the state."""

    model: str
    id: str
    title: object
    subtitle: list[object]
    state: object


def line_fields(view: ModelView) -> tuple[str, ...]:
    """Return the fields that a line shows: the title, the subtitle and the state, as far as the caller sees them."""
    names = (title_field(view), *view.model.subtitle_fields, view.model.state_field or "")
    return tuple(dict.fromkeys(name for name in names if name in view.fields))


def narrow_reader(run: Run, view: ModelView, names: Collection[str]) -> RecordReader:
    """Return a reader of a few fields of the caller's view."""
    fields = {name: sight for name, sight in view.fields.items() if name in names}
    return run.engine.new_reader(run.caller, replace(view, fields=fields))


async def values_of(
    run: Run, view: ModelView, record_ids: Iterable[str], names: Collection[str]
) -> dict[str, Mapping[str, object]]:
    """Map the ids of those records that exist for the caller to the values of these fields, as the caller sees them."""
    distinct_ids = list(dict.fromkeys(record_ids))
    record_reader = narrow_reader(run, view, names)
    values_by_id: dict[str, Mapping[str, object]] = {}
    for start in range(0, len(distinct_ids), limits.MAX_VALUES):
        condition = Condition("id", "in", distinct_ids[start : start + limits.MAX_VALUES])
        statement = select.page(record_reader, view.visible, Query(filter=(condition,)))
        rows = await run.read_all(record_reader, statement)
        for record in await mask_output.masked_records(run, record_reader, rows):
            values = dict(zip(record_reader.names, msgspec.structs.astuple(record), strict=True))
            values_by_id[values["id"]] = values
    return values_by_id


async def names(run: Run, model: str, record_ids: Iterable[str]) -> dict[str, object]:
    """Map the ids of those records that exist for the caller to their titles."""
    view = run.caller.view.models.get(model)
    ids = [record_id for record_id in record_ids if record_id]
    if view is None or not view.is_readable or not ids:
        return {}
    title = title_field(view)
    values_by_id = await values_of(run, view, ids, (title,))
    return {record_id: values[title] for record_id, values in values_by_id.items()}


def line_of(view: ModelView, values: Mapping[str, object]) -> RecordLine:
    """Return the line of a record with these values."""
    state = view.model.state_field or ""
    subtitle = [values[name] for name in view.model.subtitle_fields if name in view.fields]
    return RecordLine(
        view.model.name,
        str(values["id"]),
        values[title_field(view)],
        [part for part in subtitle if part is not None],
        values.get(state),
    )


def read_refs(view: ModelView, body: Body) -> tuple[Ref, ...]:
    """Return the refs in `expand` of an input.

    Raises:
        BadInput: `expand` is not an array of refs that the caller sees.
    """
    return tuple(_ref(view, name) for name in read_fields(body, "expand", limits.MAX_REFS))


def read_fields(body: Body, member: str, max_items: int) -> tuple[str, ...]:
    """Return the distinct names of fields in a member of an input.

    Raises:
        BadInput: the member is not an array of at most `max_items` strings.
    """
    value = body.get(member, [])
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else None
    if items is None or len(items) > max_items or not all(isinstance(item, str) for item in items):
        raise BadInput(f"{member} must be an array of at most {max_items} names of fields")
    return tuple(dict.fromkeys(cast("Sequence[str]", items)))


def _ref(view: ModelView, name: str) -> Ref:
    if name not in view.fields:
        raise unknown_field(view.model.name, name)
    field = view.model.fields[name]
    if not isinstance(field, Ref):
        raise BadInput(f"{view.model.name}.{name} cannot be expanded: it is not a reference")
    return field


async def names_of_refs(run: Run, refs: Sequence[Ref], rows: Sequence[Mapping[str, object]]) -> Names:
    """Return the names of the records that these rows refer to. One statement reads the names of each model."""
    ids_by_target: dict[str, list[str]] = {}
    for ref in refs:
        ids = [str(row[ref.name]) for row in rows if row.get(ref.name) is not None]
        ids_by_target.setdefault(ref.target, []).extend(ids)
    names_by_target = {target: await names(run, target, ids) for target, ids in ids_by_target.items()}
    run.mentioned_models.update(target for target, ids in ids_by_target.items() if ids)
    return {
        ref.name: {
            str(row[ref.name]): names_by_target[ref.target][str(row[ref.name])]
            for row in rows
            if row.get(ref.name) in names_by_target[ref.target]
        }
        for ref in refs
    }
