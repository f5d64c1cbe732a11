"""Collects the data of a person's first page: pending plans, due records, tickets, recent records, activity, and
mentions."""

from collections.abc import Sequence

import msgspec

from countersign.declare import Field, Ref, Select
from countersign.declare.rules.declarations import BASE
from countersign.kernel import clock
from countersign.records.access.view import ModelView
from countersign.records.approvals import plan_commands
from countersign.records.commands import audit_history, call_log, find, list_search, mentions
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.record_names import RecordLine
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import Record

ITEMS = 6
DUE_DAYS = 14
FEED_DAYS = 14
MAX_FEED = 20
MAX_RECENT = 20
_ASSIGNEE = "assignee"
"""The name of the ref by which tickets are assigned. Other refs to a person name the owner of a record."""
_OPEN_TONES = ("info", "cyan", "violet", "warn")


class RecentRecord(msgspec.Struct):
    """A record that the person opened, with the time."""

    record: RecordLine
    at: str


class DueRecord(msgspec.Struct):
    """An open record of the person with its date."""

    record: RecordLine
    due: object


class OpenRecords(msgspec.Struct):
    """The open records of the person in one model: their number, and the first of them in the order of their dates."""

    model: str
    owner_field: str
    date_field: str | None
    count: int
    items: list[DueRecord]


class FeedEntry(msgspec.Struct):
    """A change of a record by a person or an agent."""

    at: str
    by: str | None
    agent: str | None
    command: str
    record: RecordLine


class Mention(msgspec.Struct):
    """A comment that mentions the person, who has not opened the record since. `by` is empty if the person does not see
    the author, and `agent` is the label of the agent that wrote the comment."""

    at: str
    by: str | None
    agent: str | None
    comment: str
    record: RecordLine


class WaitingPlans(msgspec.Struct):
    """The pending plans: their number, the number of those with a high risk, and the newest of them."""

    count: int
    high: int
    items: list[Record]


class Home(msgspec.Struct):
    """The data of the first page."""

    waiting: WaitingPlans
    due: list[OpenRecords]
    tickets: list[OpenRecords]
    recent: list[RecentRecord]
    feed: list[FeedEntry]
    mentions: list[Mention]


async def home(run: Run, model: str, body: Body) -> Home:
    """Return the first page of the calling person.

    Raises:
        BadInput: the input is not empty.
    """
    refuse_unknown_keys(body, (), "user.home")
    views = [view for view in run.caller.view.models.values() if _has_work(run, view)]
    open_records = [
        view_records
        for view in views
        if (view_records := await _open_records(run, view)) is not None and view_records.count
    ]
    return Home(
        waiting=await _waiting_plans(run),
        due=[open_record for open_record in open_records if open_record.owner_field != _ASSIGNEE],
        tickets=[open_record for open_record in open_records if open_record.owner_field == _ASSIGNEE],
        recent=(await _recent_records(run))[:ITEMS],
        feed=await _newest_changes(run),
        mentions=(await _mentions(run))[:ITEMS],
    )


async def recent(run: Run, model: str, body: Body) -> list[RecentRecord]:
    """Return the records that the person opened last and still sees, the newest first.

    Raises:
        BadInput: the input is malformed.
    """
    refuse_unknown_keys(body, ("limit",), "user.recent")
    limit = body.get("limit", MAX_RECENT)
    if type(limit) is not int or not 1 <= limit <= call_log.MAX_RECENT:
        raise BadInput(f"limit must be an integer from 1 to {call_log.MAX_RECENT}")
    return (await _recent_records(run))[:limit]


async def _waiting_plans(run: Run) -> WaitingPlans:
    count, high_risk_count = await plan_commands.count_waiting(run)
    newest_query: Body = {
        "filter": [{"field": "state", "op": "eq", "value": "pending"}],
        "order": [{"field": "proposed_at", "dir": "desc"}],
        "limit": ITEMS,
    }
    return WaitingPlans(count, high_risk_count, await list_search.records(run, "plan", newest_query) if count else [])


def _has_work(run: Run, view: ModelView) -> bool:
    is_own = run.engine.registry.module_of[view.model.name].name == BASE
    return not is_own and "search" in view.commands and _owner_field(view) is not None


def _owner_field(view: ModelView) -> Ref | None:
    """Return the first ref to a person that the caller reads."""
    fields = (view.model.fields[name] for name in view.fields if view.sees_in_clear(name))
    return next((field for field in fields if isinstance(field, Ref) and field.target == "user"), None)


def _date_field(view: ModelView) -> Field | None:
    """Return the date field by which a record is due: the date field of the last measure that has one or, without such
    a measure, the last date field."""
    measure_dates = [
        measure.date for measure in view.model.measures if measure.date and view.sees_in_clear(measure.date)
    ]
    dates = [name for name in view.fields if view.model.fields[name].kind == "date" and view.sees_in_clear(name)]
    names = measure_dates or dates
    return view.model.fields[names[-1]] if names else None


async def _open_records(run: Run, view: ModelView) -> OpenRecords | None:
    """Return the person's open records: all records that are assigned to the person or, in models without an assignee,
    the person's records that are due within two weeks."""
    owner, day = _owner_field(view), _date_field(view)
    if owner is None or (day is None and owner.name != _ASSIGNEE):
        return None
    own_filter: dict[str, object] = {"field": owner.name, "op": "eq", "value": run.caller.user_id}
    conditions = [own_filter, *_open_state_conditions(view), *_due_conditions(owner, day)]
    order_field = "id" if day is None else day.name
    query: Body = {"filter": conditions, "order": [{"field": order_field}], "limit": ITEMS}
    page = await list_search.search(run, view.model.name, query)
    rows = run.engine.reading(run.caller, view).members(page.rows, ("id", order_field))
    days = {str(row["id"]): row[order_field] for row in rows}
    # Without a date field, the records are ordered by id, and no date is shown.
    shown_field = order_field if order_field != "id" else None
    items = [
        DueRecord(line, days[line.id] if shown_field else None) for line in await find.lines(run, view, list(days))
    ]
    return OpenRecords(view.model.name, owner.name, shown_field, page.total, items)


def _due_conditions(owner: Ref, day: Field | None) -> list[dict[str, object]]:
    """Return the condition that a record of the person is due within two weeks. For tickets, return no condition."""
    if owner.name == _ASSIGNEE or day is None:
        return []
    last_day = clock.rfc3339(clock.later(clock.now(), seconds=DUE_DAYS * 86_400))[:10]
    return [{"field": day.name, "op": "lte", "value": last_day}]


def _open_state_conditions(view: ModelView) -> list[dict[str, object]]:
    """Return the condition that the record is in a state that is neither final nor a draft."""
    name = view.model.state_field
    if name is None or not view.sees_in_clear(name):
        return []
    field = view.model.fields[name]
    states = (
        [choice.value for choice in field.choices if field.tone(choice, is_state=True) in _OPEN_TONES]
        if isinstance(field, Select)
        else []
    )
    return [{"field": name, "op": "in", "value": states}] if states else []


async def _recent_records(run: Run) -> list[RecentRecord]:
    await run.engine.calls.write()
    opened_records = await call_log.recent_records(run.reader, run.caller.user_id)
    lines = await _lines(run, [(model, record_id) for model, record_id, _ in opened_records])
    return [
        RecentRecord(lines[model, record_id], clock.rfc3339(opened_at))
        for model, record_id, opened_at in opened_records
        if (model, record_id) in lines
    ]


async def _mentions(run: Run) -> list[Mention]:
    notices = await mentions.unseen(run)
    lines = await _lines(run, [(notice.model, notice.record_id) for notice in notices])
    return [
        Mention(
            clock.rfc3339(notice.at), notice.by, notice.agent, notice.comment_id, lines[notice.model, notice.record_id]
        )
        for notice in notices
        if (notice.model, notice.record_id) in lines
    ]


async def _lines(run: Run, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], RecordLine]:
    """Return the lines of those records that exist for the caller, with one statement for each model."""
    ids_by_model: dict[str, list[str]] = {}
    for model, record_id in keys:
        ids_by_model.setdefault(model, []).append(record_id)
    line_by_record: dict[tuple[str, str], RecordLine] = {}
    for model, ids in ids_by_model.items():
        view = run.caller.view.models.get(model)
        if view is not None and view.is_readable and run.engine.registry.module_of[model].name != BASE:
            line_by_record |= {(model, line.id): line for line in await find.lines(run, view, list(dict.fromkeys(ids)))}
    return line_by_record


async def _newest_changes(run: Run) -> list[FeedEntry]:
    """Return the newest changes of records whose history the caller may read."""
    models = [
        name
        for name, view in run.caller.view.models.items()
        if "history" in view.commands and run.engine.registry.module_of[name].name != BASE
    ]
    if not models:
        return []
    since_instant = clock.later(clock.now(), seconds=-FEED_DAYS * 86_400)
    entries = await audit_history.newest_changes(run, models, since_instant, MAX_FEED)
    lines = await _lines(run, [(entry.model, entry.record_id) for entry in entries])
    return [
        FeedEntry(entry.at, entry.by, entry.agent, entry.command, lines[entry.model, entry.record_id])
        for entry in entries
        if (entry.model, entry.record_id) in lines
    ]

