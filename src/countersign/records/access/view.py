"""What one caller may see and do, compiled from roles and scopes into plain values the SQL is made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from countersign.declare import ADMINISTRATOR, Declared, Field, Where
from countersign.kernel.database.port import Value

READING = ("get", "list", "search")
"""The commands that read records; who has none of them of a model does not see refs to it."""

Visibility: TypeAlias = Literal["clear", "masked"]


class Condition(Protocol):
    """A condition on a record that no field's value can say, as SQL."""

    def sql(self, alias: str, put: Callable[[Value], str]) -> str:
        """The condition for the table of that alias; `put` takes a value and gives the placeholder for it."""
        ...


Rows: TypeAlias = tuple[tuple[Where | Condition, ...], ...] | None
"""Which records: None means all; else any of the alternatives, each holding when all of its conditions do. Their
values are plain JSON values: whoever calls is filled in already."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """One model as a caller sees it.

    `fields` holds the fields it sees, in declared order; `denied` the others as `model.field`, sorted; `rows` the
    records each of its commands reaches (`get` tells which records exist for it at all). `rewritten` are fields whose
    values are changed on their way out for this caller: nothing may be asked of what is stored in them. `partly` are
    the refs among `fields` that may be to records which do not exist for it, and are empty to it then. A ref to a model
    of which the caller reads nothing is not among `fields`.
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
        """Whether the caller reads the field as it is stored, so that it may be filtered and ordered on; `id` and
        `revision` have rules of their own."""
        return self.fields.get(name) == "clear" and name not in self.rewritten

    def knows(self, name: str) -> bool:
        """Whether what it sees of the field is all there is to it: in clear, and no ref to what may be hidden."""
        return self.sees_in_clear(name) and name not in self.partly

    @property
    def is_readable(self) -> bool:
        """Whether records of the model can be read at all; else refs to it are hidden fields."""
        return not self.commands.isdisjoint(READING)

    @property
    def visible(self) -> Rows:
        """The records that exist for the caller."""
        return self.rows.get("get", ())

    def reads_any_by(self, *commands: str) -> bool:
        """Whether one of these commands is had and reaches every record: then being told of one is nothing new."""
        return any(each in self.commands and self.reach(each) is None for each in commands)

    def reach(self, command: str) -> Rows:
        """The records a command may be run on: those it is granted for, as far as they exist for the caller."""
        granted, seen = self.rows.get(command, ()), self.visible
        if granted is None or seen is None:
            return seen if granted is None else granted
        return granted if granted == seen else tuple((*each, *other) for each in granted for other in seen)


@dataclass(frozen=True, eq=False)
class View:
    """All models a caller may use at all, by name. Equal rights of equal callers may share one view.

    `rights` are those beyond models; `is_masked` tells that some field of some model is masked: then the caller's
    texts are read for placeholder tokens, and token-like text is sent to it as LITERAL tokens. `own` are refs to models
    of which the caller reads nothing, each with the id of the one record that it is shown: its person, or its token.
    """

    models: Mapping[str, ModelView]
    rights: frozenset[str] = frozenset()
    is_masked: bool = False
    own: Mapping[Field, str] = field(default_factory=dict[Field, str])


@dataclass(frozen=True)
class Domain:
    """Within which placeholder tokens mean something: one person's agents of one label, or one person."""

    id: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Caller:
    """Who calls: a person with a session, or an agent on behalf of a person.

    `credential_id` is the id of the session or agent_token record; `agent` the token's label (None for people);
    `scopes` are an agent's as they were given.
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
        """Identifies the caller in the log: the person, and the token of an agent that acts for them."""
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
        """Whether it can only propose what needs approval."""
        return self.kind == "agent"

    @property
    def is_administrator(self) -> bool:
        """Whether it is a person to whom everything there is, is granted."""
        return self.kind == "person" and ADMINISTRATOR in self.roles
