"""Creates a person: a user record with its roles and an optional password."""

from collections.abc import Sequence

from countersign.declare import ADMINISTRATOR, BadValue, Field
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.records.access import people
from countersign.records.access.people import set_password
from countersign.records.commands import no_escalation, record_writer
from countersign.records.commands.errors import BadInput
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run

_ROLE = "SELECT id FROM role WHERE title = $1"
_TITLES = "SELECT title FROM role ORDER BY title"


def check_input(registry: Registry, username: str, name: str | None, email: str | None, roles: Sequence[str]) -> None:
    """Check the input of `add_user` as far as possible without a database.

    Raises:
        BadInput: a value is invalid, or a role is unknown.
    """
    _field_inputs(registry, username, name, email)
    if not people.is_unambiguous(username):
        raise BadInput(f"user.username {people.RULE}")
    known_roles = sorted({ADMINISTRATOR, *registry.roles})
    for role in roles:
        if role not in known_roles:
            raise _unknown_role_error(role, known_roles)


async def add_user(
    run: Run, username: str, name: str | None, email: str | None, roles: Sequence[str], password_hash: str | None
) -> str:
    """Create a person and return the id. `password_hash` is the hash of a password.

    Raises:
        BadInput: a value is invalid or already in use, or a role does not exist.
    """
    models = run.engine.registry.models
    field_inputs = {**_field_inputs(run.engine.registry, username, name, email), "is_active": FieldInput(1)}
    await no_escalation.require_username(run, "", {}, {"username": username})
    user_id = await record_writer.insert(run, models["user"], field_inputs, "user.create")
    for role in roles:
        row = await run.transaction.fetch_one(_ROLE, role)
        if row is None:
            raise _unknown_role_error(role, [str(title) for (title,) in await run.transaction.fetch(_TITLES)])
        member = {"user": FieldInput(user_id), "role": FieldInput(row[0])}
        await record_writer.insert(run, models["user_role"], member, "user_role.create")
    if password_hash is not None:
        await set_password(run.transaction, user_id, password_hash)
    return user_id


def _field_inputs(registry: Registry, username: str, name: str | None, email: str | None) -> dict[str, FieldInput]:
    fields = registry.models["user"].fields
    values = {"username": username, "name": name, "email": email}
    return {item: FieldInput(_read_field(fields[item], value)) for item, value in values.items()}


def _unknown_role_error(role: str, known_roles: Sequence[str]) -> BadInput:
    return BadInput(f"there is no role {role}, only {', '.join(known_roles)}")


def _read_field(field: Field, value: str | None) -> Stored:
    try:
        return None if value is None else field.read(value)
    except BadValue as error:
        raise BadInput(f"{field.name} {error}") from error
