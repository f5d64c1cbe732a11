"""What one caller may see and do, compiled from roles and scopes into plain values from which SQL is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from countersign.declare import ADMINISTRATOR, Declared, Field, Where
from countersign.kernel.database.port import Value

READING = ("get", "list", "search")
"""The commands that read records. Refs to a model are hidden from callers that have none of its read commands."""

Visibility: TypeAlias = Literal["clear", "masked"]


class Condition(Protocol):
    """A condition on a record, as SQL, that cannot be expressed with the values of its fields."""

    def sql(self, alias: str, put: Callable[[Value], str]) -> str:
        """The condition for the table with this alias; `put` takes a value and returns its SQL placeholder."""
        ...


Rows: TypeAlias = tuple[tuple[Where | Condition, ...], ...] | None
"""A filter of records: None means all; else a record matches if all conditions of one alternative are true. Values are
plain JSON values; CALLER is replaced already."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """One model as a caller sees it.

    `fields` are the visible fields, in declared order; `denied` are the others as `model.field`, sorted; `rows` are the
    records that each command may use (those of `get` are all records that exist for the caller). `rewritten` are fields
    whose values are changed in responses to this caller, so that it cannot filter by the stored values. `partly` are
    the refs among `fields` whose target may not exist for the caller; such a ref appears empty. A ref to a model that
    the caller cannot read is not in `fields`.
    """

    model: Declared
    commands: frozenset[str]
    fields: Mapping[str, Visibility]
    writable: frozenset[str]
    denied: tuple[str, ...]
    rows: Mapping[str, Rows]
    rewritten: frozenset[str] = frozenset()
    partly: frozenset[str] = frozenset()

    def sees_in_clear(self, name: str) -> bool:
        """Whether the caller reads the stored value of the field, so that it may filter and order by it; `id` and
        `revision` have separate rules."""
        return self.fields.get(name) == "clear" and name not in self.rewritten

    def knows(self, name: str) -> bool:
        """Whether the caller sees the complete field: in clear, and not as a ref whose target may be hidden."""
        return self.sees_in_clear(name) and name not in self.partly

    @property
    def is_readable(self) -> bool:
        """Whether the caller can read records of the model; if not, refs to it are hidden fields."""
        return not self.commands.isdisjoint(READING)

    @property
    def visible(self) -> Rows:
        """The records that exist for the caller."""
        return self.rows.get("get", ())

    def reads_any_by(self, *commands: str) -> bool:
        """Whether the caller may use one of these commands on every record, so that the existence of a record is known
        to it."""
        return any(each in self.commands and self.reach(each) is None for each in commands)

    def reach(self, command: str) -> Rows:
        """The records on which the command may be run: those for which it is granted, if they exist for the caller."""
        granted, seen = self.rows.get(command, ()), self.visible
        if granted is None or seen is None:
            return seen if granted is None else granted
        return granted if granted == seen else tuple((*each, *other) for each in granted for other in seen)


@dataclass(frozen=True, eq=False)
class View:
    """The models that a caller may use, by name. Callers with equal rights may share one view.

    `rights` are those beyond models. `is_masked` is true if a field of any model is masked: then the caller's texts are
    parsed for placeholder tokens, and token-like text is sent to it as LITERAL tokens. `own` are refs to models that
    the caller cannot read, each with the id of the one record that is shown: its person, or its token.
    """

    models: Mapping[str, ModelView]
    rights: frozenset[str] = frozenset()
    is_masked: bool = False
    own: Mapping[Field, str] = field(default_factory=dict[Field, str])


@dataclass(frozen=True)
class Domain:
    """The scope in which placeholder tokens are valid: one person's agents with one label, or one person."""

    id: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Caller:
    """A caller: a person with a session, or an agent on behalf of a person.

    `credential_id` is the id of the session or agent_token record; `agent` the token's label (None for people);
    `scopes` are the agent's scopes as requested.
    """

    kind: Literal["person", "agent"]
    user_id: str
    username: str
    credential_id: str
    view: View
    roles: frozenset[str] = frozenset()
    domain: Domain | None = None
    agent: str | None = None
    scopes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The caller's id in the log: the person, and the token if an agent acts for the person."""
        return f"person:{self.user_id}" if self.agent is None else f"agent:{self.user_id}:{self.credential_id}"

    @property
    def quota(self) -> str:
        """Requests are not counted."""
        return ""

    @property
    def is_anonymous(self) -> bool:
        """Whether no credential was presented."""
        return not self.user_id

    @property
    def is_agent(self) -> bool:
        """Whether the caller is an agent, which can only propose commands that need approval."""
        return self.kind == "agent"

    @property
    def is_administrator(self) -> bool:
        """Whether the caller is a person with all grants."""
        return self.kind == "person" and ADMINISTRATOR in self.roles
