"""Commands with parsed input: the inputs of their fields, and references to records that earlier steps of a plan
create."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from countersign.declare import Declared, Field, Ref
from countersign.declare.fields.field import Stored
from countersign.records.commands.errors import BadInput


class FieldInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value for one field.

    `value_id` is set if the input was one token of a linked field; the stored value keeps this value id.
    `is_plain_text` means that a masked caller wrote the value in clear. Such a caller must not learn whether the record
    had an equal value before. `origins` are the value ids of all tokens in the input. `is_default` means that the
    caller did not send the value: it comes from the declaration, an effect or another command. `sealed_id` is set in a
    stored plan: it is the value id of a personal value that the plan stores encrypted instead of in `stored`.
    """

    stored: Stored = None
    value_id: int | None = msgspec.field(default=None, name="linked")
    is_plain_text: bool = msgspec.field(default=False, name="is_plain")
    origins: tuple[int, ...] = ()
    is_default: bool = False
    sealed_id: int | None = msgspec.field(default=None, name="value")


class PlannedCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A writing command with its input, either prepared now or stored as a step of a plan.

    `record_id` is the id of the record to change (None for create), and `revision` the revision of the stored record.
    `cascade` is set for a deletion that also applies `on_delete` of the references to the record.
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
    """Return the placeholder id of the record that the step creates. It begins with `_PREFIX`; real ids are random and
    never do."""
    return f"{step:024x}"


def step_index(stored_id: object) -> int | None:
    """Return the number of the step that creates the record with this placeholder id, or None for the id of an existing
    record."""
    return int(stored_id, 16) if isinstance(stored_id, str) and stored_id.startswith(_PREFIX) else None


def resolve_step_refs(model: Declared, body: Mapping[str, object], created: Mapping[str, str]) -> dict[str, object]:
    """Return the input with placeholder ids instead of {"$step": n}. `created` maps placeholder ids to the models of
    the records.

    Raises:
        BadInput: {"$step": n} is not in a ref, or does not name an earlier step that creates a record.
    """
    resolved_body = dict(body)
    for name, value in body.items():
        if not isinstance(value, dict) or STEP not in value:
            continue
        members = cast("dict[str, object]", value)
        step = members[STEP]
        record_id = step_ref(step) if type(step) is int and 0 <= step < MAX_STEPS and len(members) == 1 else ""
        if record_id not in created or not isinstance(model.fields.get(name), Ref):
            raise BadInput(f'{name}: {{"{STEP}": n}} must be in a ref and name an earlier step that creates a record')
        resolved_body[name] = record_id
    return resolved_body


def step_ids_replaced(
    planned_command: PreparedCommand, fields: Mapping[str, Field], created: Sequence[str]
) -> PreparedCommand:
    """Replace the placeholder ids in the refs of a command by the ids of the records that earlier steps created."""
    field_inputs = dict(planned_command.given)
    for name, value in planned_command.given.items():
        step = step_index(value.stored) if isinstance(fields[name], Ref) else None
        if step is not None:
            field_inputs[name] = FieldInput(created[step])
    return msgspec.structs.replace(planned_command, given=field_inputs)
