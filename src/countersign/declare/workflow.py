"""Workflows: the actions that move a record between states, and the interface for the effects of actions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias

from countersign.declare.condition import Where
from countersign.declare.presentation import RiskLevel, Words


class Work(Protocol):
    """The interface that an effect uses. Values are JSON values, as in commands. All changes are committed together
    with the action."""

    @property
    def record(self) -> Mapping[str, object]:
        """Return the record before the action, with `id` and with every field in clear."""
        ...

    @property
    def now(self) -> Mapping[str, object]:
        """Return the record as the command writes it. After a deletion, it contains only `id`."""
        ...

    @property
    def was(self) -> Mapping[str, object]:
        """Return the record before the command. For a new record, it contains only `id`."""
        ...

    @property
    def caller_roles(self) -> frozenset[str]:
        """Return the names of the roles of the person who runs the command or approves its plan."""
        ...

    @property
    def today(self) -> str:
        """Return the current day in UTC, in the form YYYY-MM-DD."""
        ...

    async def change(self, **values: object) -> None:
        """Set fields of the record, including fields that are read-only for callers."""
        ...

    async def create(self, model: str, /, **values: object) -> str:
        """Create a record and return its id.

        Raises:
            Refused: a value is invalid for its field, or the target of a ref does not exist.
        """
        ...

    async def update(self, model: str, record_id: str, /, **values: object) -> None:
        """Set fields of another record.

        Raises:
            Refused: the record does not exist or is locked, or a value is invalid for its field.
        """
        ...

    async def find(self, model: str, /, **values: object) -> str | None:
        """Return the id of a record with exactly these values, or None if there is no such record."""
        ...

    async def read(self, model: str, record_id: str, /, *, locks: bool = True) -> Mapping[str, object] | None:
        """Return the record with this id, with `id` and every field in clear, or None if the record does not exist.

        With `locks`, the record is locked until the action ends, and the call waits for other locks on the record.
        """
        ...

    async def get(self, model: str, record_id: object, /) -> Mapping[str, object]:
        """Return the record with this id, with every field in clear and without a lock.

        Raises:
            LookupError: the record does not exist.
        """
        ...

    def each(self, model: str, /, *conditions: Where, limit: int = 1000) -> AsyncIterator[Mapping[str, object]]:
        """Yield the records that meet all conditions, in the order of their ids and at most 1000, with every field in
        clear."""
        ...

    async def setting(self, name: str, /) -> str:
        """Return the value of a setting that a module declares: the stored value, or the default.

        Raises:
            LookupError: no module declares the setting.
        """
        ...

    async def count(self, model: str, /, **values: object) -> int:
        """Return the number of records with exactly these values."""
        ...

    async def next_number(self, sequence: str) -> int:
        """Return the next number of the sequence, which begins with 1.

        If the action fails, the sequence is rolled back, so the sequence has no gaps. If the numbers of records have
        the form <prefix>-<n>, the name of the sequence must be <model>-<prefix>. The sequence then continues after the
        numbers of records that an import restores.
        """
        ...

    def refuse(self, reason: str) -> None:
        """Abort and roll back the action, and give this reason to the caller.

        Raises:
            Refused: always.
        """
        ...


Effect: TypeAlias = Callable[[Work], Awaitable[None]]

Approval: TypeAlias = bool | Literal["default"]
"""Whether agents can only propose an action. "default" means that they can only propose it, unless a setting permits
them to run it."""


class Move:
    """One action of a workflow, a command of its model.

    sources         the states in which the action is allowed
    to              the state after the action; None: the state does not change
    guards          conditions that the record must meet; a caller who may not read their fields receives only the
                    text "not allowed in this state"
    rules           conditions on the record with the inputs of the action; like `rules` of a model, they may name
                    fields of a referenced record
    inputs          fields that the action accepts in addition to `id`; each must be in the input or already set
    optional        fields that the action accepts and the input may omit, with the value for an omitted field: a JSON
                    value, TODAY (the day of the action) or None; other commands may treat them as read-only
    needs_records   models with at least one record that must refer to the record of the action
    clears          fields that the action sets to null
    needs_approval  whether an agent can only propose the action; see `Approval`
    effect          a function that makes further changes
    label_de, verb, verb_de
                    the label in German, and the verb of sentences and buttons ("Win 3 leads"); default: the label
    reversible      whether another action can undo it; default: see `Workflow.is_reversible`
    risk            the risk of a proposal of the action
    reads           models that the effect reads: models that a ref of the record refers to, and models that refer to
                    such models; a plan becomes stale when one of their records is added, changed or deleted
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
        label_de: str = "",
        verb: str = "",
        verb_de: str = "",
        reversible: bool | None = None,
        risk: RiskLevel = "medium",
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
        self._label_de = label_de
        self._verbs = (verb, verb_de)
        self.reversible = reversible
        self.risk: RiskLevel = risk

    @property
    def accepted_fields(self) -> tuple[str, ...]:
        """Return the fields that the input may contain in addition to `id`."""
        return (*self.inputs, *self.optional)

    @property
    def label(self) -> str:
        """Return the label of the button that runs the action."""
        return self._label or self.name.replace("_", " ").capitalize()

    @property
    def labels(self) -> Words:
        """Return the label by language."""
        return {"en": self.label, "de": self._label_de or self.label}

    @property
    def verb(self) -> Words:
        """Return the verb of sentences about the action, by language."""
        english, german = self._verbs
        labels = self.labels
        return {"en": english or labels["en"], "de": german or english or labels["de"]}


class Workflow:
    """A workflow of one select field. The field starts at its first option, and only actions change it."""

    def __init__(self, field: str, **moves: Move) -> None:
        self.field = field
        self.moves = moves
        for name, move in moves.items():
            move.name = name

    def between(self, source: str, target: str) -> Move | None:
        """Return the first declared action that leads from the state `source` to the state `target`, or None if there
        is no such action."""
        return next((move for move in self.moves.values() if source in move.sources and move.to == target), None)

    def is_reversible(self, move: Move) -> bool:
        """Return whether an action can undo this one. Unless the declaration says so, return whether the action only
        changes the state, and other actions lead back to all its source states."""
        if move.reversible is not None:
            return move.reversible
        if move.to is None or move.clears or move.effect is not None:
            return False
        return all(source == move.to or self.between(move.to, source) is not None for source in move.sources)
