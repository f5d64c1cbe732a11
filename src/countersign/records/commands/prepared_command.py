"""Commands with parsed input: their field inputs, and references to records of earlier steps."""

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

    `record_id` is its record (None for create); `revision` is that of the stored record. `cascade` is set for a
    deletion that also applies `on_delete` of the references to the record.
    """

    model: str
    command: str
    record_id: str | None = None
    revision: int = 0
    given: Mapping[str, FieldInput] = {}
    cascade: bool = False

    @property
    def id(self) -> str:
        """The id of the command, such as lead.update."""
        return f"{self.model}.{self.command}"


class PreparedCommand(PlannedCommand, frozen=True):
    """A writing command that is ready to run, with all its values."""


STEP = "$step"
MAX_STEPS = 20
_PREFIX = "0" * 20


def step_ref(step: int) -> str:
    """The placeholder id of the record that the step creates; real ids are random and never have this prefix."""
    return f"{step:024x}"


def step_index(stored: object) -> int | None:
    """The step that creates the record with this id; None for the id of an existing record."""
    return int(stored, 16) if isinstance(stored, str) and stored.startswith(_PREFIX) else None


def resolve_step_refs(model: Declared, body: Mapping[str, object], made: Mapping[str, str]) -> dict[str, object]:
    """The input with placeholder ids in place of {"$step": n}; `made` is the model by placeholder id.

    Raises:
        BadInput: {"$step": n} is not in a ref, or does not name an earlier step that creates a record.
    """
    found = dict(body)
    for name, value in body.items():
        if not isinstance(value, dict) or STEP not in value:
            continue
        members = cast("dict[str, object]", value)
        step = members[STEP]
        record_id = step_ref(step) if type(step) is int and 0 <= step < MAX_STEPS and len(members) == 1 else ""
        if record_id not in made or not isinstance(model.fields.get(name), Ref):
            raise BadInput(f'{name}: {{"{STEP}": n}} must be in a ref and name an earlier step that creates a record')
        found[name] = record_id
    return found
