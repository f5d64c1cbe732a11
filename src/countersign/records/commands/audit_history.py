"""The command `history`, and the rules for which audit entries a caller sees."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.records.access.view import Caller, ModelView, Rows, View
from countersign.records.commands import crud, limits, mask_output, outside_changes, unmask_input
from countersign.records.commands.errors import refuse_unknown_keys
from countersign.records.commands.filters import DelegatedParameters, Parameters, Scope, any_of
from countersign.records.commands.outside_changes import OutsideChange
from countersign.records.commands.run import Body, Run
from countersign.records.masking import placeholder_tokens

_POSITION = ("lane", "number")


@dataclass(frozen=True, eq=False)
class AuditVisibility:
    """An SQL condition that selects the audit entries about records and fields that the caller can see now."""

    view: View
    dialect: Dialect

    def sql(self, alias: str, add_parameter: Callable[[Value], str]) -> str:
        """Return the condition. A caller sees entries about deleted records of a model, and about records of a
        connected table, only if it sees every record of the model."""
        visible_entries = [
            self._visible_entries(alias, name, view, add_parameter)
            for name, view in self.view.models.items()
            if view.model.table is None or view.visible is None
        ]
        return f"({' OR '.join(visible_entries)})"

    def _visible_entries(self, alias: str, name: str, view: ModelView, add_parameter: Callable[[Value], str]) -> str:
        tests = [f"{alias}.model = {add_parameter(name)}"]
        if view.visible is not None:
            reach_condition = any_of(
                Scope(self.dialect, DelegatedParameters(add_parameter), "record"), view.model, view.visible
            )
            tests.append(
                f'EXISTS (SELECT 1 FROM "{name}" AS record WHERE record.id = {alias}.record_id AND {reach_condition})'
            )
        if view.denied:
            # The underscore is the only LIKE wildcard that a field name can contain, and it also matches itself.
            former_names = (name for field in view.fields if (name := view.model.fields[field].former_name))
            field_names = (*view.fields, *former_names)
            field_conditions = [
                f"',' || {alias}.fields || ',' LIKE {add_parameter(f'%,{field_name},%')}" for field_name in field_names
            ]
            tests.append(f"({' OR '.join([f'{alias}.fields = {add_parameter(str())}', *field_conditions])})")
        return f"({' AND '.join(tests)})"


def _without_positions(view: ModelView) -> ModelView:
    """Hide the position of an entry in the audit chain, and mark the list of changed fields as rewritten.

    The position would reveal how many entries are hidden, and the original list which fields are hidden. For
    administrators, who see every entry, neither is changed.
    """
    fields = {name: sight for name, sight in view.fields.items() if name not in _POSITION}
    denied_names = tuple(sorted({*view.denied, *(f"{view.model.name}.{name}" for name in _POSITION)}))
    return replace(view, fields=fields, denied=denied_names, rewritten=frozenset({"fields"}))


def with_audit(caller: Caller, dialect: Dialect) -> Caller:
    """Return the caller with a view of the audit that contains only the entries visible to the caller."""
    view = caller.view.models.get("audit_entry")
    if view is None:
        return caller
    condition = AuditVisibility(caller.view, dialect)

    def narrowed(rows: Rows) -> Rows:
        return ((condition,),) if rows is None else tuple((*row, condition) for row in rows)

    audit = replace(view, rows={command: narrowed(rows) for command, rows in view.rows.items()})
    if not caller.is_administrator:
        audit = _without_positions(audit)
    if caller.domain is not None and any(each.model.table is not None for each in caller.view.models.values()):
        # The role of another application may have the name of a person, and so may its name (see `without_role`).
        audit = replace(audit, rewritten=audit.rewritten | {"user_id", "request_id"})
    return replace(caller, view=replace(caller.view, models={**caller.view.models, "audit_entry": audit}))


def without_role(user_id: str) -> str:
    """Return the user of an audit entry without the role of a database."""
    return outside_changes.ROLE if user_id.startswith(outside_changes.ROLE) else user_id


def without_application(request_id: str) -> str:
    """Return the request of an audit entry without the name of another application."""
    return request_id.partition(" ")[0]


_ATTEMPTS = 3

MAX_RECORDED = 2_000
"""The number of recorded changes of other applications that one history reads. Other applications may change a record
any number of times."""
_RECORDED = ", ".join(f"'{command}'" for command in sorted(outside_changes.COMMANDS))

_ENTRIES = f"""
SELECT e.at, e.command, u.username, e.agent, e.changes, e.user_id, e.fields
FROM audit_entry AS e
LEFT JOIN "user" AS u ON u.id = e.user_id
WHERE e.record_id = $1 AND e.model = $2 AND (e.command NOT IN ({_RECORDED}) OR e.id IN (
    SELECT o.id
    FROM audit_entry AS o
    WHERE o.record_id = $1 AND o.model = $2 AND o.command IN ({_RECORDED})
    ORDER BY o.at DESC, o.number DESC
    LIMIT {MAX_RECORDED}
))
ORDER BY e.at DESC, e.number DESC
"""

_CHANGES = """
SELECT e.at, e.command, u.username, e.agent, e.changes, e.user_id, e.model, e.record_id
FROM audit_entry AS e
LEFT JOIN "user" AS u ON u.id = e.user_id
WHERE e.at >= $1 AND e.model IN ({named}) AND e.record_id IS NOT NULL AND {visible}
ORDER BY e.at DESC, e.id
LIMIT {limit}
"""

ChangeRenderer: TypeAlias = Callable[
    [Run, ModelView | None, Mapping[str, list[object]]], Awaitable[dict[str, list[object]]]
]
"""A function that returns the old and new values of the changed fields that a viewer can see."""


_Names: TypeAlias = Callable[[str | None, str | None], str | None]


class HistoryEntry(msgspec.Struct):
    """One change of the record. `by` is the name of the user, or None if the caller does not see that user.

    The commands that begin with `outside.` are changes of a connected record that were not made through Countersign.
    With `since`, the change was noticed at `at` and happened after `since`. Otherwise the database has recorded it:
    `by` is the role of the database, and `fields` are the changed fields whose values are not known.
    """

    at: str
    command: str
    by: str | None
    agent: str | None
    changes: dict[str, list[object]]
    since: str | msgspec.UnsetType = msgspec.UNSET
    fields: list[str] | msgspec.UnsetType = msgspec.UNSET


@dataclass(slots=True)
class _Event:
    """An entry with its moment. A change that was noticed has the moments after which each field has changed, and one
    that was recorded has the names of its fields."""

    entry: HistoryEntry
    at: Instant
    since: Mapping[str, Instant]
    recorded_names: list[str]


async def history(run: Run, model: str, body: Body, render: ChangeRenderer) -> list[HistoryEntry]:
    """Return the changes of a record, newest first. A change that affects only hidden fields is omitted.

    Raises:
        BadInput: a key is unknown, or the record does not exist for the caller.
    """
    refuse_unknown_keys(body, ("id",), f"{model}.history")
    await crud.read_record(run, model, body.get("id"))
    view = run.view_of(model)
    rows, outside = await _entries(run, view, str(body["id"]))
    names = await names_of(run, rows)
    events = [] if outside[0] is None else [_outside(outside[0])]
    for row, before in zip(rows, outside[1:], strict=True):
        events.append(_event(run, view, names, row))
        events += [] if before is None else [_outside(before)]
    _name_recorded_values(events)
    visible_entries: list[HistoryEntry] = []
    for event in events:
        is_visible = await _render(run, view, event, render)
        # Apply the limit after filtering: otherwise hidden changes would displace visible ones.
        if is_visible and len(visible_entries) < limits.MAX_HISTORY_ENTRIES:
            visible_entries.append(event.entry)
    return visible_entries


async def _render(run: Run, view: ModelView, event: _Event, render: ChangeRenderer) -> bool:
    """Fill in what the caller sees of the changes, and return whether that is anything."""
    entry = event.entry
    entry.changes = await render(run, view, entry.changes)
    if event.since and entry.changes:
        # The times of hidden fields would say when these were changed.
        entry.since = clock.rfc3339(min(event.since[name] for name in entry.changes))
    visible_names = [name for name in event.recorded_names if name in view.fields]
    if visible_names and entry.command == outside_changes.COMMAND:
        entry.fields = visible_names
    return bool(entry.changes or visible_names)


def _event(run: Run, view: ModelView, names: _Names, row: Row) -> _Event:
    changed_at, command, username, agent, changes, user_id, fields = row
    entry = HistoryEntry(
        clock.rfc3339(changed_at), command, names(user_id, username), names(None, agent), msgspec.json.decode(changes)
    )
    if command not in outside_changes.COMMANDS:
        return _Event(entry, changed_at, {}, [])
    if run.caller.domain is None:
        # A role may have the name of a person.
        entry.by = user_id.removeprefix(outside_changes.ROLE)
    return _Event(entry, changed_at, {}, [view.model.present_name(name) for name in fields.split(",") if name])


def _name_recorded_values(events: Sequence[_Event]) -> None:
    """Take each change that was noticed out of the events if it was recorded as well. If it was recorded once, its
    values are those of the record."""
    recorded_events = [each for each in events if each.recorded_names]
    # Earlier ones were not read.
    read_from = recorded_events[-1].at if len(recorded_events) >= MAX_RECORDED else 0
    for noticed in events:
        for name, since in noticed.since.items():
            if since >= read_from:
                _name_recorded_value(recorded_events, noticed, name, since)


def _name_recorded_value(recorded_events: Sequence[_Event], noticed: _Event, name: str, since: Instant) -> None:
    recorded = [each for each in recorded_events if name in each.recorded_names and since < each.at <= noticed.at]
    values = noticed.entry.changes.pop(name) if recorded else None
    if values is not None and len(recorded) == 1:
        recorded[0].entry.changes[name] = values
        recorded[0].recorded_names.remove(name)


async def _entries(
    run: Run, view: ModelView, record_id: str
) -> tuple[Sequence[Row], Sequence[OutsideChange | None]]:
    """Return the audit entries of a record, and what was not made through Countersign: since the newest of them, and
    before each of them."""
    rows = await run.reader.fetch(_ENTRIES, record_id, view.model.name)
    if view.model.table is None:
        return rows, [None] * (len(rows) + 1)
    outside = await _outside_changes(run, view, record_id, rows)
    for _ in range(_ATTEMPTS):
        newer_rows = await run.reader.fetch(_ENTRIES, record_id, view.model.name)
        if len(newer_rows) == len(rows):
            return rows, outside
        # The record may have been read after a change through Countersign whose entry was not read.
        rows, outside = newer_rows, await _outside_changes(run, view, record_id, newer_rows)
    return rows, [None, *outside[1:]]


async def _outside_changes(
    run: Run, view: ModelView, record_id: str, rows: Sequence[Row]
) -> Sequence[OutsideChange | None]:
    known = [(row[0], msgspec.json.decode(row[4])) for row in reversed(rows)]
    return (await outside_changes.find(run, view.model, record_id, known))[::-1]


def _outside(change: OutsideChange) -> _Event:
    noticed_at = clock.rfc3339(change.noticed_at)
    entry = HistoryEntry(noticed_at, outside_changes.COMMAND, None, None, dict(change.changes))
    return _Event(entry, change.noticed_at, change.since, [])


async def names_of(run: Run, rows: Sequence[Row]) -> _Names:
    """Return a function that gives the caller the name of a person or an agent.

    The function returns None for a person that the caller cannot see.
    """
    people = await seen_people(run, {row[5] for row in rows if row[5]})
    literals = await mask_output.literals(run, [text for row in rows for text in (row[2], row[3]) if text])

    def name(user_id: str | None, text: str | None) -> str | None:
        if text is None or (user_id is not None and user_id not in people):
            return None
        return placeholder_tokens.replace_tokens(run.engine.grammar, text, literals)

    return name


async def seen_people(run: Run, user_ids: Collection[str]) -> Collection[str]:
    """Return the ids of the people whose names the caller may know: its own user and the users visible to it."""
    view = run.caller.view.models.get("user")
    visible_people = {run.caller.user_id}
    if view is None or not view.sees_in_clear("username") or not user_ids:
        return visible_people
    return visible_people | await unmask_input.visible_ids(run, "user", sorted(user_ids))


class RecordChange(msgspec.Struct):
    """A change of a record. `by` is the name of the user, or None if the caller does not see that user."""

    at: str
    by: str | None
    agent: str | None
    command: str
    model: str
    record_id: str


async def newest_changes(run: Run, models: Collection[str], since_instant: Instant, limit: int) -> list[RecordChange]:
    """Return the newest changes, since an instant, of records of these models that the caller sees."""
    parameters = Parameters(since_instant)
    # The caller's view of the audit itself is limited by such a condition, which cannot contain another one.
    view = replace(run.caller.view, models={model: run.view_of(model) for model in models})
    visible_condition = AuditVisibility(view, run.engine.dialect).sql("e", parameters.put)
    model_list = ", ".join(parameters.put(model) for model in models)
    statement = _CHANGES.format(visible=visible_condition, named=model_list, limit=parameters.put(limit))
    rows = await run.engine.records.database.scan(statement, *parameters.values)
    names = await names_of(run, rows)
    return [
        RecordChange(clock.rfc3339(row[0]), names(row[5], row[2]), names(None, row[3]), row[1], row[6], row[7])
        for row in rows
    ]
