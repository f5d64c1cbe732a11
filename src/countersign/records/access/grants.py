"""Reads stored grants and the rights of a person, seeds the declared roles, and checks grants and roles that are
written."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

import msgspec

from countersign.declare import ADMINISTRATOR, CALLER, TODAY, Declared, Grant, Role, Where
from countersign.declare.condition import OPERATORS, Operator, RuntimeValue
from countersign.declare.fields.field import Stored
from countersign.declare.module import Names
from countersign.declare.registry import Registry
from countersign.declare.rules.conditions import condition_error
from countersign.kernel import telemetry
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.validation_messages import sentence
from countersign.records.access.people import insert
from countersign.records.access.visibility import RIGHTS, UNMASK, Commands, Rights
from countersign.records.base_models import GrantRecord, RoleRecord

MAX_CONDITIONS = 50

_PLACEHOLDERS = {"CALLER": CALLER, "TODAY": TODAY}


class BadGrant(Refused):
    """The rows of a grant are not valid conditions on its model. The detail of the error gives the reason."""

    code = "bad_grant"
    title = "Grant not understood"
    resolution = 'Write rows as [{"field": "owner", "op": "eq", "value": {"stand": "CALLER"}}], or leave them empty.'


class _Condition(msgspec.Struct, forbid_unknown_fields=True):
    field: str
    op: str
    value: object


_conditions = msgspec.json.Decoder(list[_Condition])


def read_rows(model: Declared, text: str | None) -> tuple[Where, ...]:
    """Return the conditions in a grant's rows. Without conditions, the grant applies to every record.

    Raises:
        BadGrant: the text is not a JSON list of conditions, or a condition does not fit its field.
    """
    if not (text or "").strip():
        return ()
    try:
        conditions = _conditions.decode(text or "")
    except msgspec.DecodeError as error:
        raise BadGrant(f"rows: {sentence(error)}") from error
    if len(conditions) > MAX_CONDITIONS:
        raise BadGrant(f"rows: at most {MAX_CONDITIONS} conditions")
    return tuple(_parse_condition(model, condition) for condition in conditions)


def write_rows(rows: Iterable[Where]) -> str | None:
    """Return the conditions as the text of a grant's rows, or None if there are no conditions."""
    conditions = [_Condition(row.field, row.operator, _json_value(row.value)) for row in rows]
    return msgspec.json.encode(conditions).decode() if conditions else None


def _json_value(value: object) -> object:
    if isinstance(value, RuntimeValue):
        return {"stand": value.name}
    if isinstance(value, list | tuple):
        return [_json_value(member) for member in cast("Sequence[object]", value)]
    return value


def _parse_condition(model: Declared, condition: _Condition) -> Where:
    operator: Operator | None = next((operator for operator in OPERATORS if operator == condition.op), None)
    setting_name = f"rows: {model.name}.{condition.field}"
    if operator is None:
        raise BadGrant(f"{setting_name}: op must be one of {', '.join(OPERATORS)}")
    row_condition = Where(model.present_name(condition.field), operator, _condition_value(condition.value))
    # Validate the condition now, because an invalid one would make every call of a person with the role fail.
    text = condition_error(model, row_condition, is_row_rule=True)
    if text:
        raise BadGrant(f"{setting_name}: {text}")
    return row_condition


def _condition_value(value: object) -> object:
    if isinstance(value, dict):
        name = cast("dict[str, object]", value).get("stand")
        if len(cast("dict[str, object]", value)) == 1 and isinstance(name, str) and name in _PLACEHOLDERS:
            return _PLACEHOLDERS[name]
        raise BadGrant('rows: an object as value must read {"stand": "CALLER"} or {"stand": "TODAY"}')
    if isinstance(value, list):
        return [_condition_value(member) for member in cast("list[object]", value)]
    return value


_ACTIVE_USER = 'SELECT username, external_id, tenant FROM "user" WHERE id = $1 AND is_active = 1'
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
"""The fields of a grant's record, in the order in which `read_grant` expects them."""

_SEEDED = "SELECT role, model FROM seeded_grant"
_MARK_SEEDED = "INSERT INTO seeded_grant (role, model) VALUES ($1, $2)"
_LOCK_ACCESS_VERSION = "UPDATE version SET number = number WHERE name = 'access'"
_ROLE = 'SELECT id FROM "role" WHERE title = $1'


async def rights_of(reader: Reader, registry: Registry, user_id: str) -> Rights | None:
    """Return the current roles, rights and grants of a person, or None if the person does not exist or is inactive.

    A grant with invalid rows grants nothing and is logged as an error.
    """
    person = await reader.fetch_one(_ACTIVE_USER, user_id)
    if person is None:
        return None
    roles = await reader.fetch(_ROLES, user_id)
    rights = frozenset(right for row in roles for right in split_list(row[1]))
    grants = tuple(grant for row in await reader.fetch(_GRANTS, user_id) if (grant := read_grant(registry, row)))
    username, external_id, tenant = person
    return Rights(user_id, username, frozenset(row[0] for row in roles), rights, grants, external_id, tenant)


def split_list(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(name for word in (text or "").split(",") if (name := word.strip()))


def _parse_names(text: str | None) -> Names:
    names = split_list(text)
    return "*" if "*" in names else names


def _parse_fields(model: Declared, text: str | None) -> Names:
    names = _parse_names(text)
    return names if names == "*" else tuple(map(model.present_name, names))


def read_grant(registry: Registry, row: Row) -> Grant | None:
    """Return the grant in a row with the columns model, commands, clear, masked, write and rows. Return None if no
    enabled module has the model, or if the rows are invalid. Invalid rows are logged."""
    model = registry.models.get(row[0])
    if model is None:
        # The module of the model is disabled at the moment.
        return None
    try:
        rows = read_rows(model, row[5])
    except BadGrant as error:
        telemetry.logger("access").error("a grant was left out", model=model.name, detail=error.detail)
        return None
    return Grant(
        model=model.name,
        commands=_parse_names(row[1]),
        clear=_parse_fields(model, row[2]),
        masked=_parse_fields(model, row[3]),
        write=_parse_fields(model, row[4]),
        rows=rows,
    )


async def seed_roles(transaction: Transaction, registry: Registry) -> bool:
    """Insert the declared roles and grants that were never inserted before. Return whether there were any.

    Each role and grant is seeded only once, so that changes and removals by an administrator persist. The role
    `administrator` always exists and needs no grants.
    """
    declared_pairs = dict.fromkeys([(ADMINISTRATOR, ""), *_declared_pairs(registry)])
    if not await _missing_pairs(transaction, declared_pairs):
        return False
    await transaction.run(_LOCK_ACCESS_VERSION)
    missing_pairs = await _missing_pairs(transaction, declared_pairs)
    for role, model in missing_pairs:
        role_id = await _find_or_create_role(transaction, role, registry.roles.get(role, ()))
        for grant in (
            grant
            for role_declaration in registry.roles.get(role, ())
            for grant in role_declaration.grants
            if grant.model == model
        ):
            await insert(transaction, GrantRecord.declared, _record_values(role_id, grant))
        await transaction.run(_MARK_SEEDED, role, model)
    if missing_pairs:
        await versions.bump(transaction, "access")
    return bool(missing_pairs)


def _declared_pairs(registry: Registry) -> list[tuple[str, str]]:
    """Return a pair of each declared role and an empty model, and of each declared role and each model that its grants
    name."""
    return [
        (name, model)
        for name, role_declarations in registry.roles.items()
        for model in ("", *(grant.model for role_declaration in role_declarations for grant in role_declaration.grants))
    ]


async def _missing_pairs(transaction: Transaction, declared_pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    seeded_pairs = {(row[0], row[1]) for row in await transaction.fetch(_SEEDED)}
    return [pair for pair in declared_pairs if pair not in seeded_pairs]


async def _find_or_create_role(transaction: Transaction, name: str, role_declarations: Sequence[Role]) -> str:
    row = await transaction.fetch_one(_ROLE, name)
    if row is not None:
        return cast(str, row[0])
    rights = dict.fromkeys(right for role_declaration in role_declarations for right in role_declaration.rights)
    if name == ADMINISTRATOR:
        rights[UNMASK] = None
    label = role_declarations[0].label if role_declarations else "Everything there is"
    values = {"title": name, "description": label, "rights": ",".join(rights) or None}
    return await insert(transaction, RoleRecord.declared, values)


def _record_values(role_id: str, grant: Grant) -> dict[str, str | None]:
    return {
        "role": role_id,
        "model": grant.model,
        "commands": _joined_names(grant.commands),
        "clear": _joined_names(grant.clear) or None,
        "masked": _joined_names(grant.masked) or None,
        "write": _joined_names(grant.write) or None,
        "rows": write_rows(grant.rows),
    }


def _joined_names(names: Names) -> str:
    return "*" if names == "*" else ",".join(names)


def check_grant(registry: Registry, commands: Commands, values: Mapping[str, Stored]) -> None:
    """Require that a grant names an existing model, existing commands and fields of the model, and valid rows.

    Raises:
        BadGrant: the grant is invalid. The error names the field of the grant and its allowed values.
    """
    name = str(values["model"])
    model = registry.models.get(name)
    if model is None:
        raise BadGrant(f"grant.model: there is no model {name}; there are {', '.join(sorted(registry.models))}")
    _require_known(values, "commands", sorted(commands.get(name, ())), name)
    for list_name in ("clear", "masked", "write"):
        _require_known(values, list_name, list(model.fields), name)
    rows = values.get("rows")
    try:
        read_rows(model, None if rows is None else str(rows))
    except BadGrant as error:
        raise BadGrant(f"grant.{error.detail}. {error.remedy}") from error


def check_role(registry: Registry, commands: Commands, values: Mapping[str, Stored]) -> None:
    """Require that all rights of a role exist.

    Raises:
        BadGrant: a right does not exist.
    """
    rights = values.get("rights")
    for right in split_list(None if rights is None else str(rights)):
        if right not in RIGHTS:
            raise BadGrant(f"role.rights: there is no right {right}; there are {', '.join(sorted(RIGHTS))}")


def _require_known(values: Mapping[str, Stored], field: str, known_names: Collection[str], model: str) -> None:
    value = values.get(field)
    for name in split_list(None if value is None else str(value)):
        if name != "*" and name not in known_names:
            raise BadGrant(f"grant.{field}: {model} has no {name}; write * or some of {', '.join(known_names)}")
