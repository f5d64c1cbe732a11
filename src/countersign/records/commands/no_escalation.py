"""No escalation of rights: writing roles, grants and memberships gives nothing that the caller lacks."""

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
from countersign.records.access.visibility import Commands, bind_caller
from countersign.records.commands.errors import BadInput
from countersign.records.commands.run import Run

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


Values = Mapping[str, Stored]


async def require_no_escalation(
    run: Run, model: Declared, record_id: str, before: Values, after: Values, command: str
) -> None:
    """Insist that whoever writes the record has all that it gives, and that names say who is who; `before` and
    `record_id` are empty for a new one.

    Raises:
        BadInput: it gives more; a role's title is one that others know it by, or a user name not plain.
    """
    if model.name == "role":
        await _require_title(run, before.get("title"), str(after["title"]), command)
        more = frozenset(_rights(after)) - frozenset(_rights(before))
        is_own = run.caller.is_administrator or more <= run.caller.view.rights
    elif model.name == "grant":
        grant = grants.read_grant(run.engine.registry, tuple(after.get(each) for each in grants.COLUMNS))
        # One that cannot be read is refused by its own check.
        is_own = grant is None or has_grant(run.caller, run.engine.commands, grant)
    elif model.name == "user_role":
        engine, role = run.engine, str(after["role"])
        is_own = await has_role(run.transaction, engine.registry, engine.commands, run.caller, role)
    else:
        if model.name == "user":
            await require_username(run, record_id, before, after)
        return
    if not is_own:
        raise BadInput(f"{command} is refused: it would give more than you have yourself; ask an administrator")


async def end_unsafe_links(run: Run, model: Declared, record_id: str, after: Values) -> None:
    """Call it once such a record is written: nobody keeps a link to a person who now has more rights than himself."""
    role = {"role": record_id, "grant": after.get("role"), "user_role": after.get("role")}.get(model.name)
    if role is not None:
        await invitations.end_links_of_members(run.transaction, str(role))


async def require_username(run: Run, user_id: str, before: Values, after: Values) -> None:
    """Insist that a new user name is one that nobody mistakes for another's; `user_id`
    and `before` are empty for a new person.

    Raises:
        BadInput: it is not, or somebody has it, in whatever case.
    """
    username = str(after["username"])
    if username == before.get("username"):
        return
    if not people.is_plain(username):
        raise BadInput(f"user.username {people.RULE}")
    if await people.is_taken(run.transaction, username, user_id):
        raise BadInput("user.username must be unique: another record has this value, in whatever case")


def _rights(role: Values) -> tuple[str, ...]:
    rights = role.get("rights")
    return grants.split_list(None if rights is None else str(rights))


async def _require_title(run: Run, before: Stored, after: str, command: str) -> None:
    """A role that modules, restricted fields or settings know by its title keeps it, and no other takes it."""
    if before == after:
        return
    known = await known_titles(run.transaction, run.engine.registry)
    if before is None and run.caller.is_administrator:
        return
    if {before, after} & known:
        raise BadInput(
            f"{command} is refused: modules or settings know a role by this title; make another role beside it"
        )
