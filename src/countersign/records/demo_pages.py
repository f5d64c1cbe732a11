"""The data that people of the demonstration have in the work app: saved views, a favourite and comments; and the
currency of its amounts."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.records.base_models import CURRENCY
from countersign.records.commands import workflow
from countersign.records.commands.run import Run


class _View(NamedTuple):
    """A saved view of a list: conditions as field, operator and value, and the fields of its order."""

    owner: str
    model: str
    name: str
    conditions: tuple[tuple[str, str, object], ...]
    order: tuple[str, ...]
    shared: bool = True


class _Comment(NamedTuple):
    """A comment on an open lead, by a person or an agent of the person. `place` selects the lead: one of the three that
    close first, or the lead with a long history."""

    author: str
    place: int
    hours: int
    text: str
    agent: str | None = None


BUSY = 3
"""The place of the lead with a long history."""
_OPEN = ("stage", "in", ["new", "qualified", "proposed"])
_VIEWS = (
    _View("alice", "lead", "Offers", (("stage", "eq", "proposed"),), ("-expected_revenue_minor",), shared=False),
    _View("bob", "lead", "Without a party", (_OPEN, ("party", "is_null", True)), ("expected_close",)),
    _View("bob", "lead", "Won", (("stage", "eq", "won"),), ("-expected_close",)),
    _View("alice", "ticket", "Waiting", (("state", "eq", "waiting"),), ("opened",)),
    _View("carol", "invoice", "Not paid", (("state", "eq", "posted"),), ("due",)),
)
_TILES: tuple[Mapping[str, object], ...] = (
    {"kind": "kpi", "model": "lead", "fn": "sum", "field": "expected_revenue_minor", "x": 0, "y": 0, "w": 4},
    {"kind": "kpi", "model": "lead", "fn": "count", "x": 4, "y": 0, "w": 4},
    {"kind": "kpi", "model": "ticket", "fn": "count", "x": 8, "y": 0, "w": 4},
    {"kind": "bar", "model": "lead", "by": "stage", "x": 0, "y": 1, "w": 4},
    {"kind": "bars", "model": "ticket", "fn": "count", "by": "priority", "x": 4, "y": 1, "w": 4},
    {"kind": "list", "model": "lead", "x": 8, "y": 1, "w": 4},
)
"""The tiles of the dashboard that is shared."""
_COMMENTS = (
    _Comment("bob", 0, 30, "They asked for the terms in writing. I have sent them."),
    _Comment("alice", 0, 21, "Thank you. I will call on the day before it closes."),
    _Comment("bob", 1, 26, "Their purchasing department needs two weeks for a signature."),
    _Comment("alice", 1, 25, "Two invoices of this customer are overdue.", "inbox-triage"),
    _Comment("alice", 2, 5, "@bob Please keep the price of the last offer."),
    _Comment("bob", BUSY, 27, "Budget approved by the board; the order goes through purchasing."),
    _Comment("alice", BUSY, 4, "I will send the revised offer on Monday."),
)
_LEADS = (
    "SELECT id FROM lead WHERE stage IN ('new', 'qualified', 'proposed') AND expected_close >= $1 "
    "ORDER BY expected_close, id LIMIT 3"
)


async def add_pages(run: Run, people: Mapping[str, str], now: Instant, lead: str) -> None:
    """Add the views, a favourite of one of them, a dashboard, the currency and the comments, some of them on this lead.
    `people` has the ids by user name."""
    for view in _VIEWS:
        order = [{"field": key.removeprefix("-"), "dir": "desc" if key[0] == "-" else "asc"} for key in view.order]
        filters = [{"field": field, "op": operator, "value": value} for field, operator, value in view.conditions]
        query = json.dumps({"filter": filters, "order": order})
        values = {"owner": people[view.owner], "model": view.model, "name": view.name, "shared": view.shared}
        view_id = await _create(run, people[view.owner], "view", query=query, **values)
        if not view.shared:
            path = f"/models/{view.model}?view={view_id}"
            await _create(run, people[view.owner], "favourite", owner=people[view.owner], name=view.name, path=path)
    tiles = json.dumps(_TILES)
    await _create(run, people["alice"], "dashboard", owner=people["alice"], name="Week", shared=True, tiles=tiles)
    await _create(run, people["root"], "setting", title=CURRENCY.name, value=json.dumps("EUR"))
    leads = [row[0] for row in await run.transaction.fetch(_LEADS, clock.rfc3339(now)[:10])]
    leads.append(lead)
    for comment in _COMMENTS:
        written_at = clock.later(now, seconds=-comment.hours * 3_600)
        author = people[comment.author]
        with clock.fixed(written_at):
            about = {"model": "lead", "record": leads[comment.place], "written_at": clock.rfc3339(written_at)}
            await _create(run, author, "comment", author=author, agent=comment.agent, text=comment.text, **about)


async def _create(run: Run, person: str, model: str, /, **values: object) -> str:
    """Create a record as its person does; return its id."""
    as_person = replace(run, actor=replace(run.actor, user_id=person))
    model_declaration = run.engine.registry.models[model]
    return await workflow.EffectContext(as_person, model_declaration, "", {}, f"{model}.create").create(model, **values)
