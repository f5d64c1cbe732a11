"""Describes what a caller may see and do, in plain values. They are computed from roles and scopes, and SQL conditions
are built from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from countersign.declare import ADMINISTRATOR, Declared, Field, Where
from countersign.kernel.database.port import Value

READING = ("get", "list", "search")
"""The commands that read records. If a caller has none of these commands for a model, refs to the model are hidden from
it."""

Visibility: TypeAlias = Literal["clear", "masked"]


class Condition(Protocol):
    """A condition on a record that cannot be expressed with the values of its fields, only as SQL."""

    def sql(self, alias: str, add_parameter: Callable[[Value], str]) -> str:
        """Return the condition for the table with this alias. `add_parameter` takes a value and returns its SQL
        placeholder."""
        ...


Rows: TypeAlias = tuple[tuple[Where | Condition, ...], ...] | None
"""A filter of records. None matches all records. Otherwise, a record matches if it meets all conditions of at least one
alternative. The values are plain JSON values, in which CALLER is already replaced."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """A model as a caller sees it.

    `fields` are the visible fields in declared order. `denied` are the other fields as `model.field`, in alphabetical
    order. `rows` maps each command to a filter of the records that it may use. The records of `get` are all records
    that the caller sees. In this module, a record exists for a caller if the caller sees it.

    `rewritten` are fields whose values are changed in responses to this caller. The caller cannot filter by these
    fields, because a filter would apply to the stored values. `partly_visible` are those refs in `fields` whose target
    may be a record that the caller does not see. The ref then appears empty. A ref to a model that the caller cannot
    read is not in `fields`.
    """

    model: Declared
    commands: frozenset[str]
    fields: Mapping[str, Visibility]
    writable: frozenset[str]
    denied: tuple[str, ...]
    rows: Mapping[str, Rows]
    rewritten: frozenset[str] = frozenset()
    partly_visible: frozenset[str] = frozenset()

    def sees_in_clear(self, name: str) -> bool:
        """Return whether the caller reads the stored value of the field, and may therefore filter and order by the
        field. Other rules apply to `id` and `revision`."""
        return self.fields.get(name) == "clear" and name not in self.rewritten

    def knows(self, name: str) -> bool:
        """Return whether the caller sees every value of the field in clear. The result is False for a ref whose target
        may be hidden."""
        return self.sees_in_clear(name) and name not in self.partly_visible

    @property
    def is_readable(self) -> bool:
        """Return whether the caller can read records of the model. If not, refs to the model are hidden fields."""
        return not self.commands.isdisjoint(READING)

    @property
    def visible(self) -> Rows:
        """The records that exist for the caller."""
        return self.rows.get("get", ())

    @property
    def has_comments(self) -> bool:
        """Return whether records of the model have comments that the caller sees. Comments on a connected table are for
        callers who see all its records, because our own database cannot apply conditions to rows of another one."""
        return self.model.comments and self.is_readable and (self.model.table is None or self.visible is None)

    def reads_any_by(self, *commands: str) -> bool:
        """Return whether the caller may use at least one of these commands on every record. The caller can then find
        out whether a record exists."""
        return any(command in self.commands and self.reach(command) is None for command in commands)

    def reach(self, command: str) -> Rows:
        """Return the records on which the caller may run the command. The command must be granted for them, and they
        must exist for the caller."""
        granted_rows, visible_rows = self.rows.get(command, ()), self.visible
        if granted_rows is None or visible_rows is None:
            return visible_rows if granted_rows is None else granted_rows
        return (
            granted_rows
            if granted_rows == visible_rows
            else tuple((*granted_row, *visible_row) for granted_row in granted_rows for visible_row in visible_rows)
        )


@dataclass(frozen=True, eq=False)
class View:
    """The models that a caller may use. Callers with equal rights may share one view.

    `models` maps names to models. `rights` are the rights that do not concern models. `is_masked` is true if a field of
    any model is masked. In this case, the caller's texts are parsed for placeholder tokens, and token-like text is sent
    to the caller as LITERAL tokens.

    `own` maps refs to models that the caller cannot read to the only id that is shown in them: the id of the caller's
    person or of its token.
    """

    models: Mapping[str, ModelView]
    rights: frozenset[str] = frozenset()
    is_masked: bool = False
    own: Mapping[Field, str] = field(default_factory=dict[Field, str])

    @property
    def stored(self) -> Mapping[str, ModelView]:
        """Return the models whose records are stored in the tables of modules. The others have a table of an existing
        database."""
        return {name: model for name, model in self.models.items() if model.model.table is None}


@dataclass(frozen=True)
class Domain:
    """The scope in which placeholder tokens are valid: one person's agents with one label, or one person."""

    id: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Caller:
    """A caller: a person with a session, or an agent that acts for a person.

    `credential_id` is the id of the session or agent_token record. `agent` is the label of the token, or None for
    people. `scopes` are the scopes that were requested for the agent. `external_id` and `tenant` are those of the
    person. `withheld` maps models that the caller may use, but cannot use now, to the remedy.
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
    external_id: str | None = None
    tenant: str | None = None
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """Return the id of the caller in the log. It contains the person and, for an agent, the token."""
        return f"person:{self.user_id}" if self.agent is None else f"agent:{self.user_id}:{self.credential_id}"

    @property
    def quota(self) -> str:
        """Return an empty name, because requests are not counted."""
        return ""

    @property
    def is_anonymous(self) -> bool:
        """Return whether no credential was presented."""
        return not self.user_id

    @property
    def is_agent(self) -> bool:
        """Return whether the caller is an agent. For commands that need approval, agents can only make proposals."""
        return self.kind == "agent"

    @property
    def is_administrator(self) -> bool:
        """Return whether the caller is a person who has all grants."""
        return self.kind == "person" and ADMINISTRATOR in self.roles
