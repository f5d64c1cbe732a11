"""Ids of records that earlier steps of a plan are going to make: {"$step": 0} in an input, until they are there."""

from collections.abc import Mapping
from typing import cast

from countersign.declare import Declared, Ref
from countersign.records.commands.refusals import BadInput

STEP = "$step"
MAX_STEPS = 20
_BEGINNING = "0" * 20


def promised(step: int) -> str:
    """Stands for the record that the step makes; a real id is random and never begins like it."""
    return f"{step:024x}"


def step_of(stored: object) -> int | None:
    """The step that makes the record of this id; None for the id of a record that is there."""
    return int(stored, 16) if isinstance(stored, str) and stored.startswith(_BEGINNING) else None


def redeemed(model: Declared, body: Mapping[str, object], made: Mapping[str, str]) -> dict[str, object]:
    """The input with promised ids in place of {"$step": n}; `made` says by promised id what its step makes.

    Raises:
        BadInput: it stands in no ref, or names no earlier step that creates a record.
    """
    found = dict(body)
    for name, value in body.items():
        if not isinstance(value, dict) or STEP not in value:
            continue
        members = cast("dict[str, object]", value)
        step = members[STEP]
        record_id = promised(step) if type(step) is int and 0 <= step < MAX_STEPS and len(members) == 1 else ""
        if record_id not in made or not isinstance(model.fields.get(name), Ref):
            raise BadInput(f'{name}: {{"{STEP}": n}} stands in a ref and names an earlier step that creates a record')
        found[name] = record_id
    return found
