"""Roles and grants in their tables: read for one person, seeded from what the modules declare."""

from collections.abc import Iterable, Sequence
from typing import cast

from countersign.declare import ADMINISTRATOR, Declared, Grant, Role
from countersign.declare.access import Names
from countersign.declare.registry import Registry
from countersign.kernel import telemetry
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.records.access.grant_rows import BadGrant, read_rows, write_rows
from countersign.records.access.inserting import insert
from countersign.records.access.model import GrantRecord, RoleRecord
from countersign.records.access.visibility import UNMASK, Standing

_PERSON = 'SELECT username FROM "user" WHERE id = $1 AND is_active = 1'
_ROLES = """
SELECT held.title, held.rights
FROM "user_role" AS member
JOIN "role" AS held ON held.id = member."role"
WHERE member."user" = $1
"""
_GRANTS = """
SELECT given.model, given.commands, given.clear, given.masked, given.write, given."rows"
FROM "user_role" AS member
JOIN "grant" AS given ON given."role" = member."role"
WHERE member."user" = $1
ORDER BY given.id
"""
COLUMNS = ("model", "commands", "clear", "masked", "write", "rows")
"""The fields of a grant's record that `read_grant` takes, in its order."""

_SEEDED = "SELECT role, model FROM seeded_grant"
_SEED = "INSERT INTO seeded_grant (role, model) VALUES ($1, $2)"
_ONE_AT_A_TIME = "UPDATE version SET number = number WHERE name = 'access'"
_ROLE = 'SELECT id FROM "role" WHERE title = $1'


async def standing_of(reader: Reader, registry: Registry, user_id: str) -> Standing | None:
    """Roles, rights and grants of a person now; None when there is no such person, or it is switched off.

    A grant whose rows cannot be understood grants nothing, and that is logged.
    """
    person = await reader.fetch_one(_PERSON, user_id)
    if person is None:
        return None
    roles = await reader.fetch(_ROLES, user_id)
    rights = frozenset(right for row in roles for right in listed(row[1]))
    grants = tuple(grant for row in await reader.fetch(_GRANTS, user_id) if (grant := read_grant(registry, row)))
    return Standing(user_id, person[0], frozenset(row[0] for row in roles), rights, grants)


def listed(text: str | None) -> tuple[str, ...]:
    """The names in a comma separated list."""
    return tuple(name for each in (text or "").split(",") if (name := each.strip()))


def _names(text: str | None) -> Names:
    names = listed(text)
    return "*" if "*" in names else names


def _fields(model: Declared, text: str | None) -> Names:
    names = _names(text)
    return names if names == "*" else tuple(map(model.present_name, names))


def read_grant(registry: Registry, row: Row) -> Grant | None:
    """The grant of a row: model, commands, clear, masked, write, rows. None when there is no such model at the moment,
    or the rows cannot be understood, which is logged.
    """
    model = registry.models.get(row[0])
    if model is None:
        # Its module is switched off at the moment.
        return None
    try:
        rows = read_rows(model, row[5])
    except BadGrant as error:
        telemetry.logger("access").error("a grant was left out", model=model.name, detail=error.detail)
        return None
    return Grant(
        model=model.name,
        commands=_names(row[1]),
        clear=_fields(model, row[2]),
        masked=_fields(model, row[3]),
        write=_fields(model, row[4]),
        rows=rows,
    )


async def seed_roles(transaction: Transaction, registry: Registry) -> bool:
    """Write down the declared roles and grants that were never written down before; whether there were any.

    What has been seeded once is not looked at again: what an administrator changed or removed stays so. There is
    always a role `administrator`, which needs no grants.
    """
    declared = dict.fromkeys([(ADMINISTRATOR, ""), *_pairs(registry)])
    if not await _unseeded(transaction, declared):
        return False
    await transaction.run(_ONE_AT_A_TIME)
    missing = await _unseeded(transaction, declared)
    for role, model in missing:
        role_id = await _role(transaction, role, registry.roles.get(role, ()))
        for grant in (each for part in registry.roles.get(role, ()) for each in part.grants if each.model == model):
            await insert(transaction, GrantRecord.declared, _values(role_id, grant))
        await transaction.run(_SEED, role, model)
    if missing:
        await versions.bump(transaction, "access")
    return bool(missing)


def _pairs(registry: Registry) -> list[tuple[str, str]]:
    """Every declared role by itself, and with each of the models it has grants on."""
    return [
        (name, model)
        for name, parts in registry.roles.items()
        for model in ("", *(grant.model for part in parts for grant in part.grants))
    ]


async def _unseeded(transaction: Transaction, declared: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    seeded = {(row[0], row[1]) for row in await transaction.fetch(_SEEDED)}
    return [pair for pair in declared if pair not in seeded]


async def _role(transaction: Transaction, name: str, parts: Sequence[Role]) -> str:
    row = await transaction.fetch_one(_ROLE, name)
    if row is not None:
        return cast(str, row[0])
    rights = dict.fromkeys(right for part in parts for right in part.rights)
    if name == ADMINISTRATOR:
        rights[UNMASK] = None
    label = parts[0].label if parts else "Everything there is"
    values = {"title": name, "description": label, "rights": ",".join(rights) or None}
    return await insert(transaction, RoleRecord.declared, values)


def _values(role_id: str, grant: Grant) -> dict[str, str | None]:
    return {
        "role": role_id,
        "model": grant.model,
        "commands": _list(grant.commands),
        "clear": _list(grant.clear) or None,
        "masked": _list(grant.masked) or None,
        "write": _list(grant.write) or None,
        "rows": write_rows(grant.rows),
    }


def _list(names: Names) -> str:
    return "*" if names == "*" else ",".join(names)
