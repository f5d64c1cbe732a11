"""A command whose input has been read: its field inputs, and references to records of earlier steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from countersign.declare import Declared, Ref
from countersign.declare.fields.field import Stored
from countersign.records.commands.errors import BadInput


@dataclass(frozen=True, slots=True)
class FieldInput:
    """One value for one field.

    `value_id` is set when the value came as one placeholder token: the link to that value is kept. `is_plain_text`
    tells that a masked caller wrote it in clear: it must not learn whether an equal value was there before.
    `origins` are the values whose tokens stand anywhere in it. `is_default` tells that it was not sent: the
    declaration says so, or an effect or another command does.
    """

    stored: Stored
    value_id: int | None = None
    is_plain_text: bool = False
    origins: tuple[int, ...] = ()
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """What a writing command is going to do.

    `record_id` is the record it is about (None for create); `revision` the number its stored record had. `cascade` says
    of a deletion that what the declarations name goes along.
    """

    model: str
    command: str
    record_id: str | None = None
    revision: int = 0
    given: Mapping[str, FieldInput] = field(default_factory=dict[str, FieldInput])
    cascade: bool = False

    @property
    def id(self) -> str:
        """The command as it is called: lead.update."""
        return f"{self.model}.{self.command}"


STEP = "$step"
MAX_STEPS = 20
_PREFIX = "0" * 20


def step_ref(step: int) -> str:
    """Stands for the record that the step makes; a real id is random and never begins like it."""
    return f"{step:024x}"


def step_index(stored: object) -> int | None:
    """The step that makes the record of this id; None for the id of a record that is there."""
    return int(stored, 16) if isinstance(stored, str) and stored.startswith(_PREFIX) else None


def resolve_step_refs(model: Declared, body: Mapping[str, object], made: Mapping[str, str]) -> dict[str, object]:
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
        record_id = step_ref(step) if type(step) is int and 0 <= step < MAX_STEPS and len(members) == 1 else ""
        if record_id not in made or not isinstance(model.fields.get(name), Ref):
            raise BadInput(f'{name}: {{"{STEP}": n}} stands in a ref and names an earlier step that creates a record')
        found[name] = record_id
    return found
