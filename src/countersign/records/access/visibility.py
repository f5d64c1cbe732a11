"""What a caller may see and do: the scopes of agents, and the view that results from all grants of a caller."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias, cast

from countersign.declare import ADMINISTRATOR, CALLER, Declared, Field, Grant, Ref, Where, where
from countersign.declare.module import Names
from countersign.declare.registry import Registry
from countersign.records.access.view import READING, ModelView, Rows, View, Visibility
from countersign.records.base_models import PAGE_MODELS

READS: Final = frozenset({"get", "list", "search"})
"""The commands that a scope may name for all models at once."""

ALWAYS_ALLOWED: Final = frozenset({("plan", "get"), ("plan", "list"), ("plan", "search"), ("plan", "withdraw")})
"""The commands that every agent may run on its own plans, even if no scope of its token includes them (decisions,
4)."""

NEVER_FOR_AGENTS: Final = frozenset(
    {
        *(("plan", "reject"), ("user", "invite"), ("session", "revoke"), ("audit_entry", "verify")),
        *(("user", "home"), ("user", "find"), ("user", "recent"), ("user", "deactivate"), ("agent_token", "calls")),
        *(("setting", "data_map"), ("setting", "decide"), ("comment", "people")),
    }
)
"""The commands that agents may never run, whatever their scopes. With some of them, an agent could decide on plans,
obtain a set-up link, end sessions of people, or verify the whole audit. The other commands are only for pages."""

FOR_ADMINISTRATORS: Final[Mapping[str, frozenset[str]]] = {"setting": frozenset({"data_map", "decide"})}
"""Maps a model to the commands that only administrators have. No grant includes them."""

_SCOPE = re.compile(r"\*|\*\.(?:get|list|search)|[a-z][a-z0-9_]*\.(?:\*|[a-z][a-z0-9_]*)")


def is_scope(text: str) -> bool:
    """Return whether the text is a scope: `model.command`, `model.*`, `*.get`, `*.list`, `*.search` or `*`."""
    return _SCOPE.fullmatch(text) is not None


def covers(scope: str, model: str, command: str) -> bool:
    """Return whether the scope includes the command. No scope includes a command in `NEVER_FOR_AGENTS`."""
    if (model, command) in NEVER_FOR_AGENTS or model in PAGE_MODELS:
        return False
    wanted_model, _, wanted_name = scope.partition(".")
    if wanted_model == "*":
        return not wanted_name or (wanted_name == command and command in READS)
    return wanted_model == model and wanted_name in ("*", command)


UNMASK = "base.unmask"
"""The right to let agents read specific fields in clear."""

RIGHTS = frozenset({UNMASK})
"""All rights that do not concern models."""

_OF_CALLER = (where("user", eq=CALLER),)
_READ_AND_REVOKE = ("get", "list", "search", "revoke")
_TOKENS = (*_READ_AND_REVOKE, "calls")

_CRUD = ("get", "list", "search", "create", "update", "delete")
_BY_OWNER = (where("owner", eq=CALLER),)
_SHARED = (where("shared", eq=True),)
_READ = ("get", "list", "search")
_PAGES = (
    # Only roles with a grant to write `shared` share views and dashboards.
    Grant(
        model="view",
        commands=_CRUD,
        clear="*",
        write=("model", "name", "query", "columns", "density"),
        rows=_BY_OWNER,
    ),
    Grant(model="view", commands=_READ, clear="*", rows=_SHARED),
    Grant(model="dashboard", commands=_CRUD, clear="*", write=("name", "tiles"), rows=_BY_OWNER),
    Grant(model="dashboard", commands=_READ, clear="*", rows=_SHARED),
    Grant(model="favourite", commands=_CRUD, clear="*", write="*", rows=_BY_OWNER),
    Grant(model="comment", commands=(*_READ, "create", "people"), clear="*", write="*"),
    Grant(model="comment", commands=("update", "delete"), rows=(where("author", eq=CALLER),)),
)
"""The grants of every person on the models of pages: the person's own views, dashboards and favourites, shared views
and dashboards, and comments."""

GRANTS_OF_EVERY_PERSON = (
    Grant(model="session", commands=_READ_AND_REVOKE, clear="*", rows=_OF_CALLER),
    Grant(model="agent_token", commands=_TOKENS, clear="*", rows=_OF_CALLER),
    # In its own user record, the caller sees only the name. If more fields were clear here, they would be clear in
    # every user record that the caller sees.
    Grant(
        model="user", commands=("get", "home", "find", "recent"), clear=("username",), rows=(where("id", eq=CALLER),)
    ),
    *_PAGES,
    # The module `approvals/rights.py`, and not a role, determines which plans a person may use.
    Grant(model="plan", commands="*", clear="*"),
)
"""The grants that every person has on the built-in models."""

_OWN_REFS = frozenset({("plan", "person"), ("plan", "agent_token"), ("session", "user"), ("agent_token", "user")})
"""The refs, as model and field, of plans, sessions and tokens to their owners. An agent that cannot read users or
tokens sees only its own person and its own token in these refs."""

Commands: TypeAlias = Mapping[str, frozenset[str]]
"""Maps each model to the names of all its commands."""

_Visibilities: TypeAlias = Mapping[str, Mapping[str, Visibility]]


@dataclass(frozen=True, slots=True)
class Rights:
    """The stored rights of a person who may sign in: the names of the roles, the grants, and the rights that do not
    concern models. `external_id` and `tenant` identify the person in the policies of a connected database."""

    user_id: str
    username: str
    roles: frozenset[str] = frozenset()
    rights: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    external_id: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeLimit:
    """The limits of an agent's rights: its scopes, and the fields (`model.field`) that it may read in clear."""

    scopes: tuple[str, ...]
    unmask: frozenset[str] = frozenset()


def grantable(commands: Commands) -> Commands:
    """Return the commands that a grant may include."""
    return {name: command - FOR_ADMINISTRATORS.get(name, frozenset()) for name, command in commands.items()}


def view_of(registry: Registry, commands: Commands, person: Rights, limit: ScopeLimit | None = None) -> View:
    """Return the view of the person or, with a limit, of an agent of the person (decisions, 4).

    The rights of all grants are combined, and the greatest visibility applies. A field is hidden if no grant includes
    it. It is also hidden in these cases:

    - A restricted field is hidden from people who have none of its roles.
    - A ref is hidden from callers who cannot read its target.
    - A computed field is hidden if one of its sources is hidden, unless the field is declassified.
    - A total is hidden if some of the records that it counts are hidden.

    An agent never has more rights than its person has now.
    """
    grants = _grants_by_model(registry, commands, person)
    granted_commands_by_model = _commands_of(commands, person, grants)
    limited_commands = {
        name: _commands_within_scope(granted_commands, name, limit)
        for name, granted_commands in granted_commands_by_model.items()
    }
    readable = frozenset(
        name for name, visible_commands in limited_commands.items() if not visible_commands.isdisjoint(READING)
    )
    granted_visibilities = _granted_fields(registry, grants, person, limit, readable)
    visibilities = _visibilities(
        registry, granted_visibilities, _fully_visible_models(grants, granted_commands_by_model, person.user_id)
    )
    allowed_commands_by_model = {
        name: visible_commands - _blocked_commands(registry.models[name], _hidden_refs(registry.models[name], readable))
        for name, visible_commands in limited_commands.items()
    }
    models: dict[str, ModelView] = {}
    for name, allowed_commands in allowed_commands_by_model.items():
        if allowed_commands:
            rows = _rows_by_command(grants[name], granted_commands_by_model[name], allowed_commands, person.user_id)
            models[name] = _model_view(registry.models[name], allowed_commands, visibilities[name], grants[name], rows)
    models = {name: replace(view, partly_visible=_partly_visible_refs(view, models)) for name, view in models.items()}
    is_masked = any("masked" in view.fields.values() for view in models.values())
    return View(models, _rights_of(person, limit), is_masked, _own_user_refs(registry, readable, person.user_id))


def _commands_of(
    commands: Commands, person: Rights, grants: Mapping[str, Sequence[Grant]]
) -> dict[str, frozenset[str]]:
    known_commands = commands if _is_administrator(person) else grantable(commands)
    return {name: _granted_commands(known_commands.get(name, frozenset()), grant) for name, grant in grants.items()}


def _commands_within_scope(granted_commands: frozenset[str], model: str, limit: ScopeLimit | None) -> frozenset[str]:
    if limit is None:
        return granted_commands
    return frozenset(command for command in granted_commands if _is_in_scope(limit, model, command))


def _rights_of(person: Rights, limit: ScopeLimit | None) -> frozenset[str]:
    """Return the person's rights that do not concern models. Agents have no such rights."""
    return frozenset[str]() if limit is not None else _rights(person)


def _partly_visible_refs(view: ModelView, models: Mapping[str, ModelView]) -> frozenset[str]:
    """Return the refs whose target may not exist for the caller."""
    refs = [ref for ref in _refs_of_model(view.model) if ref.name in view.fields]
    return frozenset(
        ref.name
        for ref in refs
        if ref.target not in models or not models[ref.target].is_readable or models[ref.target].visible is not None
    )


@lru_cache(maxsize=1024)
def _refs_of_model(model: Declared) -> tuple[Ref, ...]:
    return tuple(field for field in model.fields.values() if isinstance(field, Ref))


@lru_cache(maxsize=1024)
def _derived_fields(model: Declared) -> frozenset[str]:
    """Return the fields of the model that are derived from other fields."""
    derived_fields = [
        field for field in model.fields.values() if field.computed is not None or field.sum_of is not None
    ]
    return frozenset(derived_field.name for derived_field in derived_fields)


def _hidden_refs(model: Declared, readable: frozenset[str]) -> frozenset[str]:
    """Return the refs to models that the caller cannot read. These refs are hidden. If they appeared as empty, the
    caller could not distinguish them from refs that are empty."""
    return frozenset(
        ref.name
        for ref in _refs_of_model(model)
        if ref.target not in readable and (model.name, ref.name) not in _OWN_REFS
    )


def _blocked_commands(model: Declared, hidden_refs: frozenset[str]) -> frozenset[str]:
    """Return the commands that a caller cannot run because they need one of these refs, which the caller cannot set."""
    required_refs = [model.fields[name] for name in hidden_refs if model.fields[name].required]
    is_ref_required = any(required_ref.default is None and not required_ref.readonly for required_ref in required_refs)
    moves = {} if model.workflow is None else model.workflow.moves
    blocked_actions = [name for name, move in moves.items() if not hidden_refs.isdisjoint(move.inputs)]
    return frozenset((*blocked_actions, *(("create", "import") if is_ref_required else ())))


def _own_user_refs(registry: Registry, readable: frozenset[str], user_id: str) -> dict[Field, str]:
    """If the caller cannot read users, map each ref to a user that shows the caller's own person to the id of this
    person."""
    fields = [registry.models[model].fields[name] for model, name in _OWN_REFS if model in registry.models]
    users = [field for field in fields if isinstance(field, Ref) and field.target == "user"]
    return {} if "user" in readable else dict.fromkeys(users, user_id)


def _is_administrator(person: Rights) -> bool:
    return ADMINISTRATOR in person.roles


def _rights(person: Rights) -> frozenset[str]:
    return RIGHTS if _is_administrator(person) else person.rights


def _is_in_scope(limit: ScopeLimit, model: str, command: str) -> bool:
    return (model, command) in ALWAYS_ALLOWED or any(covers(scope, model, command) for scope in limit.scopes)


def _grants_by_model(registry: Registry, commands: Commands, person: Rights) -> dict[str, list[Grant]]:
    """Return the grants on each model, with the commands that follow from others (`IMPLIED_COMMANDS`)."""
    grants_by_model: dict[str, list[Grant]] = {name: [] for name in registry.models}
    if _is_administrator(person):
        return {name: [Grant(model=name, commands="*", clear="*", write="*")] for name in grants_by_model}
    for grant in (*GRANTS_OF_EVERY_PERSON, *person.grants):
        if grant.model in grants_by_model:
            grants_by_model[grant.model].append(_with_implied(grant))
    return grants_by_model


IMPLIED_COMMANDS: Final[Mapping[str, str]] = {"create": "import", "get": "related", "search": "series"}
"""Maps a command to another command that a grant of it includes. `import` creates records like `create`. `related`
returns records that the caller can also find in the referring models. `series` returns sums that the caller can also
compute from the results of `search`."""


def _with_implied(grant: Grant) -> Grant:
    if grant.commands == "*":
        return grant
    implied_commands = tuple(
        implied_names for name, implied_names in IMPLIED_COMMANDS.items() if name in grant.commands
    )
    return replace(grant, commands=(*grant.commands, *implied_commands))


def _granted_commands(known_commands: frozenset[str], grants: Iterable[Grant]) -> frozenset[str]:
    named_commands = _union(grant.commands for grant in grants)
    return known_commands if named_commands is None else known_commands & named_commands


def _union(items: Iterable[Names]) -> frozenset[str] | None:
    """Return the union of the names, or None if one of the items is `*`, which means all names."""
    union: set[str] = set()
    for names in items:
        if names == "*":
            return None
        union.update(names)
    return frozenset(union)


def _includes(names: Names, name: str) -> bool:
    return names == "*" or name in names


def _granted_fields(
    registry: Registry,
    grants: Mapping[str, Sequence[Grant]],
    person: Rights,
    limit: ScopeLimit | None,
    readable: frozenset[str],
) -> dict[str, dict[str, Visibility]]:
    """Map each model to the visibility of its granted fields. Refs to models that are not `readable` are left out."""
    unmasked_fields = frozenset[str]() if limit is None or UNMASK not in _rights(person) else limit.unmask
    granted_visibilities: dict[str, dict[str, Visibility]] = {}
    for name, model in registry.models.items():
        hidden_refs = _hidden_refs(model, readable)
        visibilities = _granted_visibilities(model, grants[name], person)
        own_visibilities: dict[str, Visibility] = {
            item: sight for item, sight in visibilities.items() if item not in hidden_refs
        }
        granted_visibilities[name] = (
            own_visibilities if limit is None else _visibilities_for_agent(model, own_visibilities, unmasked_fields)
        )
    return granted_visibilities


def _visibilities(
    registry: Registry, granted_visibilities: _Visibilities, fully_visible: frozenset[str]
) -> dict[str, dict[str, Visibility]]:
    """Map each model to the visibility of its visible fields. A computed field is never more visible than its sources.
    `fully_visible` names the models whose records are all visible."""
    derived_visibilities = _DerivedVisibility(registry, granted_visibilities, fully_visible)
    visibilities: dict[str, dict[str, Visibility]] = {}
    for name, model in registry.models.items():
        derived_fields, field_visibilities = _derived_fields(model), granted_visibilities[name]
        visibilities[name] = {
            field_visibility: sight
            for field_visibility in field_visibilities
            if (
                sight := derived_visibilities.visibility(name, field_visibility)
                if field_visibility in derived_fields
                else field_visibilities[field_visibility]
            )
            is not None
        }
    return visibilities


def _granted_visibilities(model: Declared, grants: Sequence[Grant], person: Rights) -> dict[str, Visibility]:
    visibilities: dict[str, Visibility] = {}
    clear_fields, masked_fields = _union(grant.clear for grant in grants), _union(grant.masked for grant in grants)
    for name, field in model.fields.items():
        if field.restricted and _is_restricted_for(field, person):
            continue
        is_masked = _names_include(masked_fields, name)
        if _names_include(clear_fields, name) or (is_masked and not field.personal):
            visibilities[name] = "clear"
        elif is_masked:
            visibilities[name] = "masked"
    return visibilities


def _names_include(names: frozenset[str] | None, name: str) -> bool:
    return names is None or name in names


def _is_restricted_for(field: Field, person: Rights) -> bool:
    """Return whether the field is restricted and the person has none of the roles to which it is restricted."""
    return bool(field.restricted) and not _is_administrator(person) and person.roles.isdisjoint(field.restricted)


def _visibilities_for_agent(
    model: Declared, visibilities: Mapping[str, Visibility], unmasked: frozenset[str]
) -> dict[str, Visibility]:
    return {
        name: "masked" if model.fields[name].personal and f"{model.name}.{name}" not in unmasked else sight
        for name, sight in visibilities.items()
    }


class _DerivedVisibility:
    """The visibility of fields, limited by the visibility of their sources (leaks, L23).

    A computed field reveals its sources. It is therefore hidden if one of its sources is hidden. If one of its sources
    is masked, the computed field is masked too, or hidden if it has no tokens. A total would reveal hidden records. It
    is therefore hidden from callers who do not see all of its records.
    """

    def __init__(self, registry: Registry, granted_visibilities: _Visibilities, fully_visible: frozenset[str]) -> None:
        self._registry = registry
        self._granted = granted_visibilities
        self._fully_visible = fully_visible
        self._known: dict[tuple[str, str], Visibility | None] = {}

    def visibility(self, model: str, name: str) -> Visibility | None:
        """Return the visibility of the field, or None if the field is hidden."""
        key = (model, name)
        if key not in self._known:
            # If fields are derived from each other, they stay hidden.
            self._known[key] = None
            self._known[key] = self._compute(model, name)
        return self._known[key]

    def _compute(self, model: str, name: str) -> Visibility | None:
        model_declaration = self._registry.models.get(model)
        field = None if model_declaration is None else model_declaration.fields.get(name)
        granted_visibility = self._granted.get(model, {}).get(name)
        if field is None or granted_visibility is None or field.declassify:
            return granted_visibility
        sources = [self.visibility(*source) for source in _sources(model, field)]
        if None in sources or not self._sees_all_counted(field):
            return None
        if "masked" not in sources:
            return granted_visibility
        return "masked" if field.personal else None

    def _sees_all_counted(self, field: Field) -> bool:
        return field.sum_of is None or field.sum_of.split(".")[0] in self._fully_visible


@lru_cache(maxsize=8192)
def _sources(model: str, field: Field) -> tuple[tuple[str, str], ...]:
    """Return the sources of a field, as pairs of a model and a field name."""
    own_sources = () if field.computed is None else tuple(inspect.signature(field.computed).parameters)
    of_child = () if field.sum_of is None else (cast("tuple[str, str]", tuple(field.sum_of.split("."))),)
    return (*((model, source) for source in own_sources), *of_child)


def _rows_by_command(
    grants: Sequence[Grant], granted_commands: frozenset[str], allowed_commands: frozenset[str], user_id: str
) -> dict[str, Rows]:
    """Map each command to the records that it may use. The records of `get` are set even for an agent without that
    command, because they are the records that exist for its person. For a caller that may `list` but not `get`, they
    are the records that it may list."""
    rows_by_command = {command: _reachable_rows(grants, (command,), user_id) for command in allowed_commands}
    return {**rows_by_command, "get": _visible_rows(grants, granted_commands, user_id)}


def _fully_visible_models(
    grants: Mapping[str, Sequence[Grant]], granted_commands: Mapping[str, frozenset[str]], user_id: str
) -> frozenset[str]:
    """Return the models of which the person sees all records."""
    visible_rows = {name: _visible_rows(grant, granted_commands[name], user_id) for name, grant in grants.items()}
    return frozenset(name for name, rows in visible_rows.items() if rows is None)


def _visible_rows(grants: Sequence[Grant], granted_commands: frozenset[str], user_id: str) -> Rows:
    """Return the filter of the records that the person sees."""
    return _reachable_rows(grants, ("get",) if "get" in granted_commands else ("list", "search"), user_id)


def _reachable_rows(grants: Sequence[Grant], commands: tuple[str, ...], user_id: str) -> Rows:
    reachable_rows: list[tuple[Where, ...]] = []
    for grant in grants:
        if not any(_includes(grant.commands, command) for command in commands):
            continue
        if not grant.rows:
            return None
        alternative = tuple(bind_caller(row, user_id) for row in grant.rows)
        if alternative not in reachable_rows:
            reachable_rows.append(alternative)
    return tuple(reachable_rows)


def bind_caller(condition: Where, user_id: str) -> Where:
    """Return the condition with CALLER replaced by the person. TODAY is replaced later, when a command runs."""
    value = condition.value
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return replace(condition, value=[user_id if item is CALLER else item for item in items])
    return replace(condition, value=user_id) if value is CALLER else condition


def _model_view(
    model: Declared,
    commands: frozenset[str],
    fields: Mapping[str, Visibility],
    grants: Sequence[Grant],
    rows: Mapping[str, Rows],
) -> ModelView:
    named_fields = _union(grant.write for grant in grants)
    writable_fields = fields if named_fields is None else named_fields & fields.keys()
    writable = frozenset(name for name in writable_fields if not model.fields[name].readonly)
    denied_fields = tuple(sorted(f"{model.name}.{name}" for name in model.fields if name not in fields))
    return ModelView(model, commands, fields, writable, denied_fields, rows)
