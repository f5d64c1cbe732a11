"""Prevents escalation of rights: a caller who writes roles, grants and role memberships cannot give rights that it
lacks."""

from collections.abc import Mapping, Sequence

import msgspec

from countersign.declare import ADMINISTRATOR, Declared, Grant, Where
from countersign.declare.fields.field import Stored
from countersign.declare.module import Names
from countersign.declare.registry import Registry
from countersign.kernel.database.port import Reader
from countersign.records.access import grants, invitations, people
from countersign.records.access.grants import read_grant, split_list
from countersign.records.access.view import Caller, ModelView
from countersign.records.access.visibility import Commands, bind_caller, grantable
from countersign.records.commands.errors import BadInput
from countersign.records.commands.run import Run

_ROLE = 'SELECT title, rights FROM "role" WHERE id = $1'
_GRANTS = 'SELECT model, commands, clear, masked, write, "rows" FROM "grant" WHERE "role" = $1'
_ROLES_OF = 'SELECT "role" FROM "user_role" WHERE "user" = $1'
_APPROVALS = "SELECT value FROM setting WHERE title >= 'approval:' AND title < 'approval;'"


class _Approval(msgspec.Struct):
    """The roles in an approval setting."""

    group: str | None = None


async def known_titles(reader: Reader, registry: Registry) -> frozenset[str]:
    """Return the titles of roles that modules, restricted fields and approval settings name. A role with such a title
    gives more rights than its grants."""
    fields = (field for model in registry.models.values() for field in model.fields.values())
    restricted_roles = {role for field in fields for role in field.restricted}
    groups: set[str] = set()
    for (text,) in await reader.fetch(_APPROVALS):
        try:
            approval = msgspec.json.decode(text, type=_Approval)
        except msgspec.DecodeError:
            # An unreadable setting requires approval but names no role.
            continue
        groups |= {approval.group} if approval.group else set()
    return frozenset({ADMINISTRATOR, *registry.roles, *restricted_roles, *groups})


def has_grant(caller: Caller, commands: Commands, grant: Grant) -> bool:
    """Return whether the caller has all rights of the grant: its commands on all of its records, and its fields. If the
    grant has a condition on a field that the caller cannot read, the result is False, because the matching records
    would reveal the value."""
    if caller.is_administrator:
        return True
    view = caller.view.models.get(grant.model)
    if view is None or not all(row.field == "id" or view.sees_in_clear(row.field) for row in grant.rows):
        return False
    rows = [bind_caller(row, caller.user_id) for row in grant.rows]
    command_names = grantable(commands)[grant.model] if grant.commands == "*" else grant.commands
    return all(_has_command(view, command_name, rows) for command_name in command_names) and _has_fields(view, grant)


def _has_command(view: ModelView, command: str, rows: Sequence[Where]) -> bool:
    """Return whether the view allows the command on every record that these conditions match."""
    if command not in view.commands:
        return False
    command_rows = view.rows.get(command, ())
    return command_rows is None or any(
        all(condition in rows for condition in alternative) for alternative in command_rows
    )


def _has_fields(view: ModelView, grant: Grant) -> bool:
    fields = view.model.fields
    return (
        all(view.fields.get(name) == "clear" for name in _named(view, grant.clear))
        and all(
            name in view.fields and (bool(fields[name].personal) or view.fields[name] == "clear")
            for name in _named(view, grant.masked)
        )
        and all(name in view.writable for name in _named(view, grant.write) if not fields[name].readonly)
    )


def _named(view: ModelView, names: Names) -> Sequence[str]:
    """Return the named fields. Names of fields that the model no longer has are ignored."""
    return [field for field in view.model.fields if names == "*" or field in names]


async def has_role(reader: Reader, registry: Registry, commands: Commands, caller: Caller, role_id: str) -> bool:
    """Return whether the caller has the role or all of its rights. If the title of the role gives additional rights,
    the caller must have the role."""
    if caller.is_administrator:
        return True
    role = await reader.fetch_one(_ROLE, role_id)
    if role is None:
        return False
    if not caller.is_agent and role[0] in caller.roles:
        return True
    if role[0] in await known_titles(reader, registry) or not frozenset(split_list(role[1])) <= caller.view.rights:
        return False
    grants = [read_grant(registry, row) for row in await reader.fetch(_GRANTS, role_id)]
    return all(grant is not None and has_grant(caller, commands, grant) for grant in grants)


async def has_all_of(reader: Reader, registry: Registry, commands: Commands, caller: Caller, user_id: str) -> bool:
    """Return whether the caller has each role of the person or all rights of the role."""
    roles = [str(row[0]) for row in await reader.fetch(_ROLES_OF, user_id)]
    return all([await has_role(reader, registry, commands, caller, role) for role in roles])


Values = Mapping[str, Stored]


async def require_no_escalation(
    run: Run, model: Declared, record_id: str, before_values: Values, after_values: Values, command: str
) -> None:
    """Require that the caller has all rights that the written record gives, and that user names are distinguishable.
    For a new record, `before_values` and `record_id` are empty.

    Raises:
        BadInput: the record gives more rights than the caller has; modules or settings name the title of a role; or a
            user name can be confused with another.
    """
    if model.name == "role":
        await _require_title(run, before_values.get("title"), str(after_values["title"]), command)
        added_rights = frozenset(_rights(after_values)) - frozenset(_rights(before_values))
        is_own = run.caller.is_administrator or added_rights <= run.caller.view.rights
    elif model.name == "grant":
        grant = grants.read_grant(run.engine.registry, tuple(after_values.get(column) for column in grants.COLUMNS))
        # The check of the model `grant` refuses an unreadable grant.
        is_own = grant is None or has_grant(run.caller, run.engine.commands, grant)
    elif model.name == "user_role":
        engine, role = run.engine, str(after_values["role"])
        is_own = await has_role(run.transaction, engine.registry, engine.commands, run.caller, role)
    else:
        if model.name == "user":
            await require_username(run, record_id, before_values, after_values)
        return
    if not is_own:
        raise BadInput(f"{command} is refused: it would give more than you have yourself; ask an administrator")


async def end_unsafe_links(run: Run, model: Declared, record_id: str, after_values: Values) -> None:
    """End the invitation links of people whose rights the written record may have extended. The creator of a link may
    now have fewer rights than the invited person."""
    role = {"role": record_id, "grant": after_values.get("role"), "user_role": after_values.get("role")}.get(model.name)
    if role is not None:
        await invitations.end_links_of_members(run.transaction, str(role))


async def require_username(run: Run, user_id: str, before_values: Values, after_values: Values) -> None:
    """Require that a new user name cannot be confused with another. For a new person, `user_id` and `before_values` are
    empty.

    Raises:
        BadInput: the name can be confused with another, or another person has it, ignoring case.
    """
    username = str(after_values["username"])
    if username == before_values.get("username"):
        return
    if not people.is_unambiguous(username):
        raise BadInput(f"user.username {people.RULE}")
    if await people.is_username_taken(run.transaction, username, user_id):
        raise BadInput("user.username must be unique: another record has this value, in whatever case")


def _rights(role: Values) -> tuple[str, ...]:
    rights = role.get("rights")
    return grants.split_list(None if rights is None else str(rights))


async def _require_title(run: Run, before_stored: Stored, stored_after: str, command: str) -> None:
    """Refuse to change the title of a role, or to give it a title, if modules, restricted fields or settings name the
    title. Only an administrator may create a role with such a title."""
    if before_stored == stored_after:
        return
    titles = await known_titles(run.transaction, run.engine.registry)
    if before_stored is None and run.caller.is_administrator:
        return
    if {before_stored, stored_after} & titles:
        raise BadInput(
            f"{command} is refused: modules or settings know a role by this title; make another role beside it"
        )
