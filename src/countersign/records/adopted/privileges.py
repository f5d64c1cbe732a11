"""Refuses a role that reads rows which the policies of the existing database hide, and warns of one that may write."""

import json
from collections.abc import Collection

from countersign.declare import DeclarationError
from countersign.kernel import telemetry
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.errors import Refused
from countersign.records.adopted.columns import schema_and_table

_RIGHTS = """
SELECT r.rolname, r.rolname = current_user, pg_has_role(r.oid, 'MEMBER'), r.rolsuper, r.rolbypassrls,
    coalesce(bool_or(pg_has_role(r.oid, c.relowner, 'USAGE')), false),
    coalesce(bool_or(has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), false)
FROM pg_catalog.pg_roles AS r
LEFT JOIN (
    SELECT c.oid, c.relowner
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
) AS c ON true
WHERE r.rolname = current_user OR r.rolname IN (SELECT jsonb_array_elements_text($2::text::jsonb))
GROUP BY r.oid, r.rolname, r.rolsuper, r.rolbypassrls
"""
_SUPERUSER = "is a superuser"
_REFUSED = (_SUPERUSER, "bypasses row-level security", "owns tables")
_REASONS = (*_REFUSED, "may change tables")
ACCEPTING = "--accept-wide-rights"


class WideRights(Refused):
    """The role of the connected database is a superuser, bypasses row-level security, or owns tables."""

    status = 403
    code = "wide_rights"
    title = "The role of the connected database has wide rights"
    resolution = (
        "Create a role that has SELECT on these tables and nothing more, and use it in the URL. For a trial, "
        f"`countersign serve records --try {ACCEPTING}` accepts this role."
    )


async def require_narrow(
    database: ExistingDatabase, relations: Collection[str], roles: Collection[str] = (), *, accepts_wide: bool
) -> None:
    """Check that the role of a PostgreSQL database reads no rows that policies hide from others. Log a warning if the
    role may do more than read, or if such a role is accepted. `roles` are those that statements have instead.

    Raises:
        DeclarationError: one of the `roles` does not exist, or the role of the database is not its member.
        WideRights: the role is a superuser, bypasses row-level security or owns tables, and `accepts_wide` is false.
        Unavailable: the database cannot answer now.
    """
    if database.dialect != "postgres":
        return
    for role, reasons in (await _reasons(database, relations, roles)).items():
        _require_narrow(role, reasons, accepts_wide=accepts_wide)


def _require_narrow(role: str, reasons: Collection[str], *, accepts_wide: bool) -> None:
    refused = [each for each in reasons if each in _REFUSED]
    if refused and not accepts_wide:
        raise WideRights(
            f"the role{role} of the connected database {' and '.join(refused)}, so it reads rows that row-level "
            "security hides from others"
        )
    if reasons and not role:
        telemetry.logger("connected-database").warning(
            "the role of the connected database may do more than read; use a role that has SELECT only",
            role=", ".join(reasons),
        )


async def _reasons(
    database: ExistingDatabase, relations: Collection[str], roles: Collection[str]
) -> dict[str, list[str]]:
    """Map each role to the wide rights that it has. The name of the role that is connected is empty."""
    named = json.dumps([dict(zip("st", schema_and_table(each), strict=True)) for each in relations])
    rows = await database.scan(_RIGHTS, named, json.dumps(list(roles)))
    _require_members(roles, {str(name) for name, _, is_member, *_ in rows if is_member})
    found: dict[str, list[str]] = {}
    for name, is_connected, _, *rights in rows:
        reasons = [reason for reason, is_held in zip(_REASONS, rights, strict=True) if is_held]
        found["" if is_connected else f" {name}"] = [_SUPERUSER] if _SUPERUSER in reasons else reasons
    return found


def _require_members(roles: Collection[str], usable: Collection[str]) -> None:
    for role in roles:
        if role not in usable:
            raise DeclarationError(
                f"session_roles: the connected database has no role {role}, or the role of its URL is not a member of "
                "it: correct the name, or grant the role"
            )
