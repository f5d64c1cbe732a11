"""Warns of a role that may do more in the existing database than read."""

import json
from collections.abc import Collection

from countersign.kernel import telemetry
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.records.adopted.columns import schema_and_table

_RIGHTS = """
SELECT r.rolsuper, r.rolbypassrls, coalesce(bool_or(pg_has_role(c.relowner, 'USAGE')), false),
    coalesce(bool_or(has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), false)
FROM pg_catalog.pg_roles AS r
LEFT JOIN (
    SELECT c.oid, c.relowner
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
) AS c ON true
WHERE r.rolname = current_user
GROUP BY r.rolsuper, r.rolbypassrls
"""
_SUPERUSER = "is a superuser"
_REASONS = (_SUPERUSER, "bypasses row-level security", "owns tables", "may change tables")


async def log_excess(database: ExistingDatabase, relations: Collection[str]) -> None:
    """Log a warning if the role of a PostgreSQL database may do more than read. A superuser, an owner and a role that
    bypasses row-level security also read the rows that policies hide from others.

    Raises:
        Unavailable: the database cannot answer now.
    """
    if database.dialect != "postgres":
        return
    named = json.dumps([dict(zip("st", schema_and_table(each), strict=True)) for each in relations])
    (rights,) = await database.scan(_RIGHTS, named)
    reasons = [reason for reason, is_held in zip(_REASONS, rights, strict=True) if is_held]
    if _SUPERUSER in reasons:
        reasons = [_SUPERUSER]
    if reasons:
        telemetry.logger("connected-database").warning(
            "the role of the connected database may do more than read; use a role that has SELECT only",
            role=", ".join(reasons),
        )
