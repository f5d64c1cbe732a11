"""The records that a module declares as `reads` of its commands: a plan of such a command becomes stale when one of
these records changes, in any module."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import FieldOf, Grant, Model, Move, Number, Ref, Select, Text, Workflow, where
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService


class Depot(Model):
    """A place for crates."""

    title = Text(required=True)
    room = Number(default=9)


class Shelf(Model):
    """Refers to the depot to which a crate refers."""

    title = Text(required=True)
    depot = Ref("depot", required=True)


class Label(Model):
    """A model that no command reads."""

    title = Text(required=True)


class Crate(Model, needs_approval=("create", "update"), reads=("depot", "shelf")):
    """Can be created if the depot has room."""

    title = Text(required=True)
    depot = Ref("depot")
    label = Ref("label")


class Parcel(Model, needs_approval=("create",), rules=(where("size", lte=FieldOf("depot.room")),)):
    """Reads records because of a rule."""

    title = Text(required=True)
    size = Number(default=1)
    depot = Ref("depot")
    label = Ref("label")


class Order(Model):
    """Can be sent if the depot has room, which the effect of the action checks."""

    title = Text(required=True)
    depot = Ref("depot")
    place = Text(readonly=True)
    state = Select("open", "sent")

    workflow = Workflow(
        "state",
        send=Move(
            "open",
            to="sent",
            rules=(where("depot.room", gt=0, remedy="make room"), where("place", ne="nowhere")),
            optional={"place": "anywhere"},
        ),
    )


@pytest.fixture
async def yard(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service with these models."""
    async with inside.open_service(database_url, tmp_path, Depot, Shelf, Label, Crate, Parcel, Order) as service:
        yield service


async def create_record(yard: InProcessService, model: str, /, **values: object) -> str:
    """Create a record as a person, and return it."""
    return str((await yard.value(yard.administrator(), model, "create", **values))["id"])


@pytest.mark.parametrize("model", ["crate", "parcel"])
@pytest.mark.parametrize("change", ["depot", "shelf changed", "shelf added", "shelf gone", "label", "other depot", ""])
async def test_a_plan_depends_on_the_records_that_its_model_and_its_rules_declare(
    yard: InProcessService, model: str, change: str
) -> None:
    root = await yard.member()
    agent = await yard.caller_of(await yard.issue_agent_token(root))
    depot, other_depot, label = (
        await create_record(yard, "depot", title="a"),
        await create_record(yard, "depot", title="b"),
        "",
    )
    label = await create_record(yard, "label", title="l")
    shelf = await create_record(yard, "shelf", title="s", depot=depot)
    values: dict[str, Any] = {"title": "c", "depot": depot, "label": label}
    proposal = (await yard.service.dispatch.run(agent, agent.view.models[model], "create", values, "request")).value
    assert isinstance(proposal, Proposal)

    changes: dict[str, tuple[str, str, dict[str, Any]]] = {
        "depot": ("depot", "update", {"id": depot, "title": "x"}),
        "shelf changed": ("shelf", "update", {"id": shelf, "title": "x"}),
        "shelf added": ("shelf", "create", {"title": "x", "depot": depot}),
        "shelf gone": ("shelf", "delete", {"id": shelf}),
        "label": ("label", "update", {"id": label, "title": "x"}),
        "other depot": ("depot", "update", {"id": other_depot, "title": "x"}),
    }
    if change:
        name, command, body = changes[change]
        await yard.value(root, name, command, **body)

    is_bound = change == "depot" or (model == "crate" and change.startswith("shelf"))
    assert await ends(yard, root, proposal.plan_id) == ("stale" if is_bound else "executed")


async def ends(yard: InProcessService, person: Any, plan_id: str) -> str:
    """Approve the plan, and return its state."""
    try:
        return (await decisions.approve(yard.run(person), yard.service.callers, plan_id)).state
    except decisions.NotPending as not_pending:
        return str(not_pending.members["state"])


async def test_an_action_insists_on_its_rules_and_takes_what_may_be_left_out(yard: InProcessService) -> None:
    root = yard.administrator()
    full, free = await create_record(yard, "depot", title="a", room=0), await create_record(yard, "depot", title="b")
    refused_order = await create_record(yard, "order", title="o", depot=full)
    with pytest.raises(BadInput, match=r"order\.send is refused: it requires that depot\.room is greater than 0; make"):
        await yard.value(root, "order", "send", id=refused_order)
    with pytest.raises(BadInput, match="place is not nowhere"):
        await yard.value(
            root, "order", "send", id=await create_record(yard, "order", title="o", depot=free), place="nowhere"
        )
    for inputs, expected_place in (({}, "anywhere"), ({"place": None}, "anywhere"), ({"place": "here"}, "here")):
        sent_order = await yard.value(
            root, "order", "send", id=await create_record(yard, "order", title="o", depot=free), **inputs
        )
        assert (sent_order["place"], sent_order["state"]) == (expected_place, "sent")


async def test_an_agent_only_proposes_an_action_with_rules_on_hidden_fields(yard: InProcessService) -> None:
    everything = Grant(model="order", commands="*", clear="*", write="*")
    member = await yard.member()
    token, user_id = await yard.issue_agent_token(member), member.user_id
    seeing = await yard.agent("sees", everything, Grant(model="depot", clear="*"), user_id=user_id)
    blind = await yard.agent("blind", everything, Grant(model="depot", clear=("title",)), user_id=user_id)
    blind = replace(blind, credential_id=token)
    for room in (0, 9):
        depot = await create_record(yard, "depot", title="a", room=room)
        order = await create_record(yard, "order", title="o", depot=depot)
        view = blind.view.models["order"]
        proposal = (await yard.service.dispatch.run(blind, view, "send", {"id": order}, "request")).value
        assert isinstance(proposal, Proposal)
        if room:
            assert (await yard.value(seeing, "order", "send", id=order))["state"] == "sent"
        else:
            with pytest.raises(BadInput, match=r"depot\.room is greater than 0"):
                await yard.value(seeing, "order", "send", id=order)


async def test_a_refusal_names_the_sent_value_and_not_the_default_of_a_hidden_field(yard: InProcessService) -> None:
    depot = await create_record(yard, "depot", title="a", room=0)
    parcel = Grant(model="parcel", commands="*", clear=("title", "depot"), write="*")
    blind = await yard.person(parcel, Grant(model="depot", clear="*"))
    seeing = await yard.person(replace(parcel, clear="*"), Grant(model="depot", clear="*"))
    for who, reason in ((blind, "refused"), (seeing, r"refused: it requires that size is at most depot\.room")):
        with pytest.raises(BadInput, match=rf"^parcel\.create is {reason}$"):
            await yard.value(who, "parcel", "create", title="p", depot=depot)
