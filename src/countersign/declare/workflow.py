"""Workflows: the actions that move a record between states, and what the effect of an action may do."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias

from countersign.declare.condition import Where


class Work(Protocol):
    """The interface of an effect. Values are JSON values as in commands; all changes commit with the action."""

    @property
    def record(self) -> Mapping[str, object]:
        """The record before the action, every field in clear, `id` included."""
        ...

    @property
    def today(self) -> str:
        """The current day, YYYY-MM-DD in UTC."""
        ...

    async def change(self, **values: object) -> None:
        """Set fields of the record, also ones that are readonly to callers."""
        ...

    async def create(self, model: str, /, **values: object) -> str:
        """Create a record and return its id.

        Raises:
            Refused: a value does not fit, or the target of a ref does not exist.
        """
        ...

    async def find(self, model: str, /, **values: object) -> str | None:
        """The id of a record with exactly these values, or None."""
        ...

    async def read(self, model: str, record_id: str, /, *, locks: bool = True) -> Mapping[str, object] | None:
        """The record of that id, every field in clear, `id` included; None if it does not exist.

        With `locks`, the record is locked until the action ends; without, the action does not wait for locks.
        """
        ...

    async def setting(self, name: str, /) -> str:
        """The value of a setting that a module declares: the stored one, or the default.

        Raises:
            LookupError: no module declares it.
        """
        ...

    async def count(self, model: str, /, **values: object) -> int:
        """The number of records with exactly these values."""
        ...

    async def next_number(self, sequence: str) -> int:
        """The next number of the sequence, from 1: without gaps, since it is rolled back when the action fails.

        Call the sequence <model>-<prefix> where the record's number is written <prefix>-<n>: it goes on after the
        numbers of records that an import restores.
        """
        ...

    def refuse(self, reason: str) -> None:
        """Abort and roll back the action with this reason for the caller.

        Raises:
            Refused: always.
        """
        ...


Effect: TypeAlias = Callable[[Work], Awaitable[None]]

Approval: TypeAlias = bool | Literal["default"]
"""Whether agents can only propose an action; "default": unless a setting lifts this."""


class Move:
    """One action of a workflow, a command of its model.

    sources         the states it starts from
    to              the state it leads to; None: it stays where it is
    guards          conditions the record must meet; a caller who may not read their fields learns no more than
                    "not allowed in this state"
    rules           conditions on the record with its inputs, as `rules` of a model: also on fields of a record that a
                    ref leads to
    inputs          fields the action takes beside `id`; they must be given or set before
    optional        fields that it takes and that may be left out, with the value that each gets then: a JSON value,
                    TODAY (the day on which the action is done) or None; they may be readonly to other commands
    needs_records   models of which at least one record must refer to this one
    clears          fields that the action empties
    needs_approval  an agent can only propose it; "default": unless a setting lifts it
    effect          what happens beside the move
    reads           models whose records the effect reads: those that a ref of the record leads to, and those that
                    refer to these; a plan goes stale when one of them is added, changed or deleted
    """

    def __init__(
        self,
        *sources: str,
        to: str | None = None,
        label: str = "",
        help: str = "",
        guards: tuple[Where, ...] = (),
        rules: tuple[Where, ...] = (),
        inputs: tuple[str, ...] = (),
        optional: Mapping[str, object] | None = None,
        needs_records: tuple[str, ...] = (),
        clears: tuple[str, ...] = (),
        needs_approval: Approval = False,
        effect: Effect | None = None,
        reads: tuple[str, ...] = (),
    ) -> None:
        self.name = ""
        self._label = label
        self.help = help
        self.sources = sources
        self.to = to
        self.guards = guards
        self.rules = rules
        self.inputs = inputs
        self.optional: Mapping[str, object] = optional or {}
        self.needs_records = needs_records
        self.clears = clears
        self.needs_approval: Approval = needs_approval
        self.effect = effect
        self.reads = reads

    @property
    def accepted_fields(self) -> tuple[str, ...]:
        """The fields that may be given beside `id`."""
        return (*self.inputs, *self.optional)

    @property
    def label(self) -> str:
        """What people read on the button."""
        return self._label or self.name.replace("_", " ").capitalize()


class Workflow:
    """Governs one select field: it starts at its first option and is moved by the actions alone."""

    def __init__(self, field: str, **moves: Move) -> None:
        self.field = field
        self.moves = moves
        for name, move in moves.items():
            move.name = name

    def between(self, source: str, target: str) -> Move | None:
        """The first declared action that leads from one state to another."""
        return next((move for move in self.moves.values() if source in move.sources and move.to == target), None)
