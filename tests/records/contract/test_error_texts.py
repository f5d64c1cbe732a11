"""Error texts and descriptions of commands are sentences in the terms of the API, for any input."""

from collections.abc import Iterator
from typing import Any

import pytest

from countersign.declare import where
from countersign.records.commands.filters import clause, clauses
from tests.contract.error_texts import complaint
from tests.records.office import Office

WRONG = (None, True, 7, 1.5, "text", "", [], {"a": 1}, 2**60, "a\0b")
OPERATORS = ("eq", "contains", "in", "gt", "is_null", "like")


def wrong_inputs(model: dict[str, Any]) -> Iterator[tuple[str, dict[str, object]]]:
    """Return commands of the model with inputs that are mostly invalid."""
    name = model["name"]
    for number, field in enumerate(model["fields"]):
        value, other_value = WRONG[number % len(WRONG)], WRONG[(number + 3) % len(WRONG)]
        yield f"{name}.create", {field["name"]: value}
        yield f"{name}.update", {"id": "none", field["name"]: other_value}
        for op in OPERATORS:
            yield f"{name}.list", {"filter": [{"field": field["name"], "op": op, "value": other_value}]}
        yield f"{name}.search", {"order": [{"field": field["name"], "dir": other_value}]}
    for action in model["actions"]:
        yield action["id"], {"id": "none"}
        yield action["id"], {"id": other_value, "unknown": value}


async def test_every_refusal_of_a_wrong_input_is_in_plain_english(office: Office) -> None:
    meta = (await office.http.get("/api/meta", headers=office.headers("root"))).json()
    refused_texts = set[str]()
    for model in meta["models"]:
        commands = {*model["commands"], *(action["id"] for action in model["actions"])}
        for command, body in wrong_inputs(model):
            if command not in commands:
                continue
            answer = await office.call("root", command, body)
            if answer.status_code == 400:
                assert complaint(answer.json()["error"]) is None, (command, body, answer.text)
                refused_texts.add(answer.json()["error"])

    assert len(refused_texts) > 200


async def test_the_refusal_of_an_action_names_the_current_and_the_required_state(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="Sails", contact_name="Ada")
    await office.value("alice", "lead.qualify", id=lead["id"])

    assert (
        await office.refusal_of("alice", "lead.win", id=lead["id"])
        == "lead.win is not allowed in this state: it requires that party is set"
    )


async def test_a_description_names_effect_states_inputs_and_approval(office: Office) -> None:
    agent = await office.agent("alice", "lead.*", "party.list")
    commands = (await office.http.get("/api/commands", headers=office.headers(agent))).json()["commands"]
    descriptions = {command["id"]: command["description"] for command in commands}

    assert descriptions["lead.win"] == (
        "Marks the lead as won. From qualified or proposed to won. Requires that party is set. "
        "An agent can only propose it: the call returns a plan_id, and a person approves the plan."
    )
    assert descriptions["lead.lose"] == (
        "Marks the lead as lost. From new, qualified or proposed to lost. "
        "Requires lost_reason, given as input or set before."
    )
    assert descriptions["lead.convert"].endswith(
        "An agent can only propose it: the call returns a plan_id, and a person approves the plan."
    )
    assert [text for text in descriptions.values() if not text.endswith(".") or complaint(text)] == []


@pytest.mark.parametrize(
    ("condition", "clause_text"),
    [
        (where("party", is_null=False), "party is set"),
        (where("party", is_null=True), "party is empty"),
        (where("paid_minor", eq=0), "paid_minor is 0"),
        (where("stage", ne="won"), "stage is not won"),
        (where("stage", in_=["new", "won", "lost"]), "stage is new, won or lost"),
        (where("open_minor", lte=0), "open_minor is at most 0"),
        (where("is_active", eq=True), "is_active is true"),
    ],
)
def test_a_condition_is_described_by_a_clause(condition: Any, clause_text: str) -> None:
    assert clause(condition) == clause_text
    assert clauses([condition, where("title", contains="x")]) == f"{clause_text} and title contains x"
