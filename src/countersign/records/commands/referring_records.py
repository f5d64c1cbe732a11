"""The command `related`: returns the records that refer to one record, grouped by model and reference field."""

import msgspec

from countersign.declare import Ref
from countersign.records.access.view import ModelView
from countersign.records.commands import crud, limits, list_search
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.record_names import Names
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import Record


class RelatedRecords(msgspec.Struct):
    """The records of one model that refer to a record by one ref: their number, the newest of them in `items`, and the
    names of the records to which the items refer by other refs."""

    model: str
    field: str
    count: int
    items: list[Record]
    names: Names


async def related(run: Run, model: str, body: Body) -> list[RelatedRecords]:
    """Return the records that refer to a record, for each ref that the caller sees in a model that it can list. Only
    records that the caller may see count.

    Raises:
        BadInput: a key is unknown, the limit is out of range, or the record does not exist for the caller.
    """
    refuse_unknown_keys(body, ("id", "limit"), f"{model}.related")
    limit = body.get("limit", limits.DEFAULT_RELATED)
    if type(limit) is not int or not 0 <= limit <= limits.MAX_RELATED:
        raise BadInput(f"limit must be an integer from 0 to {limits.MAX_RELATED}")
    await crud.read_record(run, model, body.get("id"))
    related_records: list[RelatedRecords] = []
    for referrer in run.engine.registry.referrers[model]:
        view = run.caller.view.models.get(referrer.model.name)
        if view is not None and view.sees_in_clear(referrer.ref.name) and _lists(view):
            related_records.append(await _related_by(run, view, referrer.ref, str(body["id"]), limit))
            run.mentioned_models.add(view.model.name)
    return related_records


def _lists(view: ModelView) -> bool:
    return "search" in view.commands or "list" in view.commands


async def _related_by(run: Run, view: ModelView, ref: Ref, record_id: str, limit: int) -> RelatedRecords:
    query: Body = {
        "filter": [{"field": ref.name, "op": "eq", "value": record_id}],
        "order": _newest_first(view),
        "limit": max(limit, 1),
        "expand": [name for name in view.fields if _is_other_ref(view, name, ref)][: limits.MAX_REFS],
    }
    command = "search" if "search" in view.commands else "list"
    page = await list_search.search(run, view.model.name, query, command)
    names: Names = {} if page.names is msgspec.UNSET or not limit else page.names
    return RelatedRecords(view.model.name, ref.name, page.total, page.rows[:limit], names)


def _is_other_ref(view: ModelView, name: str, ref: Ref) -> bool:
    return name != ref.name and isinstance(view.model.fields[name], Ref)


def _newest_first(view: ModelView) -> list[dict[str, str]]:
    """Return an order that begins with the newest, by the first date or instant field that the caller reads."""
    fields = view.model.fields
    days = [
        name
        for name in view.fields
        if fields[name].kind in ("date", "moment") and fields[name].sortable and view.sees_in_clear(name)
    ]
    return [{"field": day, "dir": "desc"} for day in days[:1]]
