"""Protection against escalation of rights: writing roles, grants and memberships cannot give rights that the caller
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
from countersign.records.access.visibility import Commands, bind_caller
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
    """The titles by which modules, restricted fields and approval settings refer to roles: a role with such a title
    gives more than its grants."""
    fields = (each for model in registry.models.values() for each in model.fields.values())
    restricted = {role for each in fields for role in each.restricted}
    groups: set[str] = set()
    for (text,) in await reader.fetch(_APPROVALS):
        try:
            found = msgspec.json.decode(text, type=_Approval)
        except msgspec.DecodeError:
            # An unreadable setting requires approval, but of no role.
            continue
        groups |= {found.group} if found.group else set()
    return frozenset({ADMINISTRATOR, *registry.roles, *restricted, *groups})


def has_grant(caller: Caller, commands: Commands, grant: Grant) -> bool:
    """Whether the caller has all rights of the grant: its commands on all of its records, and its fields. A condition
    on a field that the caller cannot read is refused: the matching records would reveal the value."""
    if caller.is_administrator:
        return True
    view = caller.view.models.get(grant.model)
    if view is None or not all(each.field == "id" or view.sees_in_clear(each.field) for each in grant.rows):
        return False
    rows = [bind_caller(each, caller.user_id) for each in grant.rows]
    given = commands[grant.model] if grant.commands == "*" else grant.commands
    return all(_has_command(view, each, rows) for each in given) and _has_fields(view, grant)


def _has_command(view: ModelView, command: str, rows: Sequence[Where]) -> bool:
    """Whether the view allows the command on every record that these conditions match."""
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
    """The named fields; those that the model no longer has are ignored."""
    return [each for each in view.model.fields if names == "*" or each in names]


async def has_role(reader: Reader, registry: Registry, commands: Commands, caller: Caller, role_id: str) -> bool:
    """Whether the caller has the role or, unless the title gives additional rights, all of its rights."""
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
    """Whether the caller has every role of the person, or all of their rights."""
    roles = [str(row[0]) for row in await reader.fetch(_ROLES_OF, user_id)]
    return all([await has_role(reader, registry, commands, caller, each) for each in roles])


Values = Mapping[str, Stored]


async def require_no_escalation(
    run: Run, model: Declared, record_id: str, before: Values, after: Values, command: str
) -> None:
    """Require that the caller who writes the record has all rights that it gives, and that user names are
    distinguishable; `before` and `record_id` are empty for a new record.

    Raises:
        BadInput: it gives more rights; the title of a role is in use by modules or settings; or a user name is not
            plain.
    """
    if model.name == "role":
        await _require_title(run, before.get("title"), str(after["title"]), command)
        more = frozenset(_rights(after)) - frozenset(_rights(before))
        is_own = run.caller.is_administrator or more <= run.caller.view.rights
    elif model.name == "grant":
        grant = grants.read_grant(run.engine.registry, tuple(after.get(each) for each in grants.COLUMNS))
        # An unreadable grant is refused by its own check.
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
    """End set-up links after such a record is written: their creators may have fewer rights than the person has now."""
    role = {"role": record_id, "grant": after.get("role"), "user_role": after.get("role")}.get(model.name)
    if role is not None:
        await invitations.end_links_of_members(run.transaction, str(role))


async def require_username(run: Run, user_id: str, before: Values, after: Values) -> None:
    """Require that a new user name cannot be confused with another; `user_id` and `before` are empty for a new person.

    Raises:
        BadInput: it can be, or another person has it, ignoring case.
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
    """Require that a title to which modules, restricted fields or settings refer is neither changed nor taken by
    another role."""
    if before == after:
        return
    known = await known_titles(run.transaction, run.engine.registry)
    if before is None and run.caller.is_administrator:
        return
    if {before, after} & known:
        raise BadInput(
            f"{command} is refused: modules or settings know a role by this title; make another role beside it"
        )
