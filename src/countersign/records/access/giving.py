"""Nobody gives more than he has: whether a caller has all that a grant, a role or a person's roles give."""

from collections.abc import Sequence

import msgspec

from countersign.declare import ADMINISTRATOR, Grant, Where
from countersign.declare.access import Names
from countersign.declare.registry import Registry
from countersign.kernel.database.port import Reader
from countersign.records.access.grants import read_grant, split_list
from countersign.records.access.view import Caller, ModelView
from countersign.records.access.visibility import Commands, bind_caller

_ROLE = 'SELECT title, rights FROM "role" WHERE id = $1'
_GRANTS = 'SELECT model, commands, clear, masked, write, "rows" FROM "grant" WHERE "role" = $1'
_ROLES_OF = 'SELECT "role" FROM "user_role" WHERE "user" = $1'
_APPROVALS = "SELECT value FROM setting WHERE title >= 'approval:' AND title < 'approval;'"


class _Approval(msgspec.Struct):
    """What a setting of approvals says of roles."""

    group: str | None = None


async def known_titles(reader: Reader, registry: Registry) -> frozenset[str]:
    """The titles by which modules, restricted fields and settings of approvals know roles: whoever has a role of such
    a title has more than its grants say."""
    fields = (each for model in registry.models.values() for each in model.fields.values())
    restricted = {role for each in fields for role in each.restricted}
    groups: set[str] = set()
    for (text,) in await reader.fetch(_APPROVALS):
        try:
            found = msgspec.json.decode(text, type=_Approval)
        except msgspec.DecodeError:
            # What cannot be read asks for approval, and of no role.
            continue
        groups |= {found.group} if found.group else set()
    return frozenset({ADMINISTRATOR, *registry.roles, *restricted, *groups})


def has_grant(caller: Caller, commands: Commands, grant: Grant) -> bool:
    """Whether the caller has all that the grant gives: its commands on all records they reach, its fields, and no
    condition on a field the caller does not read, whose value it could find out by the records it then reaches."""
    if caller.is_administrator:
        return True
    view = caller.view.models.get(grant.model)
    if view is None or not all(each.field == "id" or view.sees_in_clear(each.field) for each in grant.rows):
        return False
    rows = [bind_caller(each, caller.user_id) for each in grant.rows]
    given = commands[grant.model] if grant.commands == "*" else grant.commands
    return all(_has_command(view, each, rows) for each in given) and _has_fields(view, grant)


def _has_command(view: ModelView, command: str, rows: Sequence[Where]) -> bool:
    """Whether the command reaches, for whoever has the view, every record that these conditions let through."""
    if command not in view.commands:
        return False
    own = view.rows.get(command, ())
    return own is None or any(all(each in rows for each in alternative) for alternative in own)


def _has_fields(view: ModelView, grant: Grant) -> bool:
    fields = view.model.fields
    return (
        all(view.fields.get(each) == "clear" for each in _named(view, grant.clear))
        and all(
            each in view.fields and (bool(fields[each].personal) or view.fields[each] == "clear")
            for each in _named(view, grant.masked)
        )
        and all(each in view.writable for each in _named(view, grant.write) if not fields[each].readonly)
    )


def _named(view: ModelView, names: Names) -> Sequence[str]:
    """The fields that are named; what the model no longer has gives nothing."""
    return [each for each in view.model.fields if names == "*" or each in names]


async def has_role(reader: Reader, registry: Registry, commands: Commands, caller: Caller, role_id: str) -> bool:
    """Whether the caller has the role itself or, unless the role is known by its title, all it gives."""
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
    return all(each is not None and has_grant(caller, commands, each) for each in grants)


async def has_all_of(reader: Reader, registry: Registry, commands: Commands, caller: Caller, user_id: str) -> bool:
    """Whether the caller has every role that the person has, or all they give."""
    roles = [str(row[0]) for row in await reader.fetch(_ROLES_OF, user_id)]
    return all([await has_role(reader, registry, commands, caller, each) for each in roles])
