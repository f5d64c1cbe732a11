"""Writing what says who may do what: a role, a grant, somebody's role give nothing that their writer lacks."""

from collections.abc import Mapping

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.records.access import giving, grants, invitations, people
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run

Values = Mapping[str, Stored]


async def require_own(
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
        is_own = grant is None or giving.has_grant(run.caller, run.engine.commands, grant)
    elif model.name == "user_role":
        engine, role = run.engine, str(after["role"])
        is_own = await giving.has_role(run.transaction, engine.registry, engine.commands, run.caller, role)
    else:
        if model.name == "user":
            await require_username(run, record_id, before, after)
        return
    if not is_own:
        raise BadInput(f"{command} is refused: it would give more than you have yourself; ask an administrator")


async def settle(run: Run, model: Declared, record_id: str, after: Values) -> None:
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
    known = await giving.known_titles(run.transaction, run.engine.registry)
    if before is None and run.caller.is_administrator:
        return
    if {before, after} & known:
        raise BadInput(
            f"{command} is refused: modules or settings know a role by this title; make another role beside it"
        )
