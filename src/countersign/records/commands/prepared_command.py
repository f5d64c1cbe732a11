"""A command whose input has been read: its field inputs, and references to records of earlier steps."""

from collections.abc import Mapping
from typing import cast

import msgspec

from countersign.declare import Declared, Ref
from countersign.declare.fields.field import Stored
from countersign.records.commands.errors import BadInput


class FieldInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value for one field.

    `value_id` is set when the input was one placeholder token: the link to that value is kept. `is_plain_text` means
    that a masked caller wrote the value in clear: it must not learn whether an equal value was there before. `origins`
    are the values of all tokens in the input. `is_default` means that the value was not sent: it comes from the
    declaration, an effect or another command. `sealed_id` is the value id under which a plan keeps a personal value,
    which is not in `stored` then.
    """

    stored: Stored = None
    value_id: int | None = msgspec.field(default=None, name="linked")
    is_plain_text: bool = msgspec.field(default=False, name="is_plain")
    origins: tuple[int, ...] = ()
    is_default: bool = False
    sealed_id: int | None = msgspec.field(default=None, name="value")


class PlannedCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A writing command with its input: prepared now, or a step of a plan.

    `record_id` is the record it is about (None for create); `revision` the number its stored record had. `cascade` is
    set for a deletion that also deletes or empties what refers to the record, as declared.
    """

    model: str
    command: str
    record_id: str | None = None
    revision: int = 0
    given: Mapping[str, FieldInput] = {}
    cascade: bool = False

    @property
    def id(self) -> str:
        """The command as it is called: lead.update."""
        return f"{self.model}.{self.command}"


class PreparedCommand(PlannedCommand, frozen=True):
    """What a writing command is going to do, with every value at hand."""


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
