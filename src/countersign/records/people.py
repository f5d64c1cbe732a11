"""Making people: a user record with its roles and, where one is given, a password."""

from collections.abc import Sequence

from countersign.declare import BadValue, Field
from countersign.declare.fields.field import Stored
from countersign.records.access.people import set_password
from countersign.records.commands import granting, writing
from countersign.records.commands.given import Given
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run

_ROLE = "SELECT id FROM role WHERE title = $1"


async def add(
    run: Run, username: str, name: str | None, email: str | None, roles: Sequence[str], hashed: str | None
) -> str:
    """A new person; its id. `hashed` is the hash of a password.

    Raises:
        BadInput: a value is taken or does not fit, or there is no such role.
    """
    models = run.engine.registry.models
    fields = models["user"].fields
    values = {"username": username, "name": name, "email": email}
    given = {
        **{each: Given(_read(fields[each], value)) for each, value in values.items()},
        "is_active": Given(1),
    }
    await granting.require_username(run, "", {}, {"username": username})
    user_id = await writing.insert(run, models["user"], given, "user.create")
    for role in roles:
        row = await run.transaction.fetch_one(_ROLE, role)
        if row is None:
            raise BadInput(f"there is no role {role}")
        member = {"user": Given(user_id), "role": Given(row[0])}
        await writing.insert(run, models["user_role"], member, "user_role.create")
    if hashed is not None:
        await set_password(run.transaction, user_id, hashed)
    return user_id


def _read(field: Field, value: str | None) -> Stored:
    try:
        return None if value is None else field.read(value)
    except BadValue as error:
        raise BadInput(f"{field.name} {error}") from error
