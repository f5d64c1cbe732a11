"""Rules about modules and names: versions, needed modules, settings, and the names of models, fields and actions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from countersign.declare.fields.field import Field
from countersign.declare.model import EXTRA, GENERATED, Declared
from countersign.declare.module import Module
from countersign.declare.rules.declarations import BASE, Declarations, member_error, model_error, module_error

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def modules_named(declarations: Declarations) -> Iterator[str]:
    """Require that a module has a unique name in snake_case and a version."""
    seen: set[str] = set()
    for module in declarations.modules:
        if not _NAME.fullmatch(module.name):
            yield module_error(module, "the name must be lower-case letters, digits and single underscores: rename it")
        if module.name in seen:
            yield module_error(module, "there are two modules of this name: rename one")
        if not module.version.strip():
            yield module_error(module, 'it has no version: give it one, such as version="1.0.0"')
        seen.add(module.name)


def settings_named(declarations: Declarations) -> Iterator[str]:
    """Require that the name of a setting begins with its module's name, and that its options exist and are distinct."""
    for module in declarations.modules:
        for name in [setting.name for setting in module.settings]:
            prefix, _, rest = name.partition(".")
            if prefix != module.name or not _NAME.fullmatch(rest):
                yield module_error(module, f"the setting {name!r} must be called {module.name}.<name>: rename it")
        for setting in module.settings:
            if not setting.options or len(set(setting.options)) != len(setting.options):
                yield module_error(module, f"the setting {setting.name!r} needs options, each named once: correct them")


SESSION_VALUES = ("user.id", "user.username", "user.external_id", "user.tenant")
"""The fields of a person that can supply the value of a setting for row-level security policies."""
SESSION_ROLE = "user.role"
"""What the setting `role` is taken from: the one role of the person that `session_roles` names."""
_SETTING_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+", re.ASCII)
_MAX_SETTING_LENGTH, _MAX_SETTINGS = 63, 10


def sessions_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that `session` has valid settings, and that all modules take a setting from the same field."""
    given: dict[str, str] = {}
    for module in declarations.modules:
        if len(module.session) > _MAX_SETTINGS:
            yield module_error(module, f"its session has more than {_MAX_SETTINGS} settings: take some out")
        for name, value in module.session.items():
            if not _SETTING_NAME.fullmatch(name) or len(name) > _MAX_SETTING_LENGTH:
                yield module_error(module, f'the setting {name!r} of session must be like "app.tenant": correct it')
            if value not in SESSION_VALUES:
                known = ", ".join(SESSION_VALUES)
                yield module_error(module, f"session takes {name} from {value!r}: take it from one of {known}")
            if given.setdefault(name, value) != value:
                yield module_error(module, f"another module takes {name} from {given[name]}: take it from one field")


def session_roles_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that roles of people are mapped to names of database roles, and that modules agree on them."""
    given: dict[str, str] = {}
    for module in declarations.modules:
        for name, role in module.session_roles.items():
            if not name or not role or "\0" in role or len(role.encode()) > _MAX_SETTING_LENGTH:
                yield module_error(
                    module, f"session_roles maps {name!r} to {role!r}, which cannot be the name of a role: correct it"
                )
            if given.setdefault(name, role) != role:
                yield module_error(module, f"another module maps {name} to {given[name]}: map it to one role")


def needs_enabled(declarations: Declarations) -> Iterator[str]:
    """Require that every module that a module needs is enabled."""
    names = {module.name for module in declarations.modules}
    for module in declarations.modules:
        for need in module.needs:
            if need not in names:
                yield module_error(
                    module,
                    f"it needs {need!r}, which is not switched on: add {need} to COUNTERSIGN_MODULES, or take it out "
                    "of needs",
                )


def needs_acyclic(declarations: Declarations) -> Iterator[str]:
    """Require that no module needs itself, directly or indirectly."""
    for module in declarations.modules:
        if module.name in all_needs(declarations.modules, module):
            yield module_error(
                module, "it needs itself, by way of those it needs: move what both use into a module both need"
            )


def all_needs(modules: Iterable[Module], module: Module) -> set[str]:
    """Return the names of all modules that a module needs, directly or indirectly, without `base`."""
    needs: Mapping[str, tuple[str, ...]] = {each.name: each.needs for each in modules}
    names: set[str] = set()
    left = list(module.needs)
    while left:
        name = left.pop()
        if name not in names and name != BASE:
            names.add(name)
            left += needs.get(name, ())
    return names


MAX_LENGTH = 40
"""The maximum length of a model or field name. PostgreSQL limits identifiers to 63 bytes, and the engine adds prefixes
and suffixes."""

MAX_TOOL_NAME_LENGTH = 64
"""The maximum length of a tool name, `model__command`, that MCP clients accept."""

RESERVED_PATHS = frozenset({"auth", "approve", "commands", "meta", "platform", "openapi"})
"""Path segments that the API uses itself. They cannot be model names."""

ENGINE_TABLES = frozenset(
    {
        *("version", "service_key", "module_state", "credential", "password", "sign_in_failure", "token_domain"),
        *("pii_value", "pii_value_new", "pii_alias", "literal", "record_change", "audit_lane", "sequence"),
        "seeded_grant", "seen_value", "suspended_model", "suspension_letter", "comment_mention",
        "mention_letter",
        *("plan_step", "plan_value", "plan_key", "plan_approval", "plan_change", "plan_notice", "plan_letter"),
        *("webhook", "webhook_event", "webhook_delivery", "delivery_hold", "idempotency", "installation"),
        *("schema_migration", "agent_call", "recent_record"),
        *("seen_place", "value_sweep", "connected_model", "watched_table"),
    }
)
"""The names of the engine's own tables, which cannot be model names."""

RESERVED_FIELDS = frozenset({"id", "revision", "changed"})
"""The keys of records and command inputs that are not fields. They cannot be field names."""

SYSTEM_COLUMNS = frozenset({"oid", "rowid", "tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"})
"""The names of columns that a database adds to every table. They cannot be field names."""

_FIELD_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_SHAPE = f"lower-case letters, digits and single underscores, {MAX_LENGTH} at most"


def models_named(declarations: Declarations) -> Iterator[str]:
    """Require that a model name is in snake_case and is neither a reserved API path segment nor an engine table."""
    for model in declarations.models.values():
        if not is_name(model.name):
            yield model_error(model, f'the name must be {_SHAPE}: rename the class, or say name="…" in its statement')
        if model.name in RESERVED_PATHS:
            yield model_error(model, f"{model.name!r} is an address of the API: rename it")
        if model.name in ENGINE_TABLES or model.name.startswith(("sqlite_", "pg_")):
            yield model_error(model, f"{model.name!r} is a table of the engine: rename it")


def fields_named(declarations: Declarations) -> Iterator[str]:
    """Require that a field name is in snake_case and is neither a reserved key nor a system column."""
    for model in declarations.models.values():
        for name, field in model.fields.items():
            yield from (member_error(model, name, text) for text in _name_errors(name, field))


def former_names_free(declarations: Declarations) -> Iterator[str]:
    """Require that a former name is not the name of a current field and belongs to only one field."""
    for model in declarations.models.values():
        counts = Counter(field.former_name for field in model.fields.values() if field.former_name)
        for name, field in model.fields.items():
            if field.former_name in model.fields or counts[field.former_name] > 1:
                yield member_error(model, name, f"former_name {field.former_name!r} is another field's: leave it out")


def is_name(text: str) -> bool:
    """Return whether the text is a valid name of a model or field."""
    return _FIELD_NAME.fullmatch(text) is not None and len(text) <= MAX_LENGTH


def _name_errors(name: str, field: Field) -> Iterator[str]:
    if not is_name(name):
        yield f"the name must be {_SHAPE}: rename it"
    if name in RESERVED_FIELDS:
        yield f"every record has {', '.join(sorted(RESERVED_FIELDS))} by itself: rename it"
    if name in SYSTEM_COLUMNS:
        yield "databases have a column of this name in every table: rename it"
    if field.name != name:
        yield f"the same field object is also {field.name}: declare each field by a call of its own"


def actions_named(declarations: Declarations) -> Iterator[str]:
    """Require that an action name is in snake_case, is not a generated command, and is short enough for a tool name."""
    for model in declarations.models.values():
        for name in () if model.workflow is None else model.workflow.moves:
            yield from (member_error(model, name, text) for text in _action_errors(model, name))


def _action_errors(model: Declared, name: str) -> Iterator[str]:
    if not is_name(name):
        yield f"an action's name must be {_SHAPE}: rename it"
    if name in GENERATED + EXTRA:
        yield "a generated command has this name: rename the action"
    if len(f"{model.name}__{name}") > MAX_TOOL_NAME_LENGTH:
        yield f"{model.name}__{name} is longer than the {MAX_TOOL_NAME_LENGTH} characters of a tool's name: shorten it"
