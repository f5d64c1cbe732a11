"""The interface of a model to the loop, and a stand-in for a model, which works on two leads of one contact by
rules."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

DONE = ("executed", "failed", "rejected", "expired", "withdrawn", "stale")
ASK_AGAIN_S = 1.0


@dataclass(frozen=True)
class Call:
    """A tool that the model wants to call after `after_s` seconds."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    after_s: float = 0


@dataclass(frozen=True)
class Said:
    """The model is done, and says this."""

    text: str


@dataclass(frozen=True)
class Result:
    """The result of a call. `status` is ok, approval_required, refused or unknown. `told` is the answer: an object, or
    the reason for a refusal."""

    status: str
    told: Any

    @property
    def value(self) -> Any:
        """The command's value."""
        return self.told["value"]


class Model(Protocol):
    """Decides which tool to call. Put a language model here. It gets the tools with their schemas, and the last
    result."""

    def next(self, tools: Sequence[Any], result: Result | None) -> Call | Said:
        """Return the next call, or the final text."""
        ...


class RuleBased:
    """A model without a model."""

    def __init__(self, wait_s: int) -> None:
        self._steps = day(wait_s)

    def next(self, tools: Sequence[Any], result: Result | None) -> Call | Said:
        """Return the next step of the day."""
        try:
            return self._steps.send(result)  # the first time, None starts it
        except StopIteration as end:
            return Said(end.value)


def day(wait_s: int) -> Generator[Call, Any, str]:
    """Work on two leads of one contact: update the first, propose to delete the other, and wait for a person's
    decision."""
    lead_list: Result = yield Call("lead__list", {"order": [{"field": "title"}]})
    pair = of_one_contact(lead_list.value)
    if pair is None:
        return "No contact has two new leads: nothing to do."
    lead, double = pair
    yield Call("lead__qualify", {"id": lead["id"]})

    # The address is a placeholder: where personal text belongs it becomes the address, anywhere else it is refused.
    token = lead["contact_email"]
    yield Call("lead__update", {"id": lead["id"], "notes": f"Write to {token} on Monday."})
    refused_update: Result = yield Call("lead__update", {"id": lead["id"], "title": f"Ask {token}"})

    proposed_deletion: Result = yield Call("lead__delete", {"id": double["id"], "cascade": True})
    if proposed_deletion.status != "approval_required":
        return f"Expected to propose, but: {proposed_deletion.told}"
    plan_id = proposed_deletion.told["plan_id"]
    state = yield from decision(plan_id, wait_s)
    return f"Worked lead {lead['id']} (a token in its title: {refused_update.told}). Plan {plan_id} is {state}."


def decision(plan_id: str, wait_s: int) -> Generator[Call, Any, str]:
    """Ask for the plan until somebody has decided, or for so long."""
    for _ in range(int(wait_s / ASK_AGAIN_S)):
        plan: Result = yield Call("plan__get", {"id": plan_id}, after_s=ASK_AGAIN_S)
        if plan.value["state"] in DONE:
            return str(plan.value["state"])
    return "still pending"


def of_one_contact(leads: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return two new leads of one contact. Their equal tokens show that the contact is the same, without revealing the
    address."""
    contacts_by_email: dict[str, dict[str, Any]] = {}
    for lead in leads:
        email = lead["contact_email"]
        if lead["stage"] != "new" or email is None:
            continue
        if email in contacts_by_email:
            return contacts_by_email[email], lead
        contacts_by_email[email] = lead
    return None
