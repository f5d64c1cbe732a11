"""The privileges of the database's role. They are checked before they are needed, so that a refusal can name the
GRANT."""

from typing import NamedTuple, NoReturn, Protocol

from countersign.kernel.database.port import Row, Value
from countersign.kernel.errors import NotEmpty, Refused

# Tables with the prefix of the job engine do not count as tables of the service.
_PRIVILEGES = """
SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident(s.name),
    s.oid IS NOT NULL,
    has_database_privilege(current_database(), 'CREATE'),
    coalesce(has_schema_privilege(s.oid, 'USAGE'), false),
    coalesce(has_schema_privilege(s.oid, 'CREATE'), false),
    coalesce((SELECT quote_ident(pg_get_userbyid(n.nspowner)) FROM pg_namespace AS n
        WHERE n.oid = s.oid AND NOT pg_has_role(n.nspowner, 'USAGE')), ''),
    EXISTS (SELECT 1 FROM pg_class AS c
        WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND c.relname NOT LIKE 'procrastinate%'),
    NOT EXISTS (SELECT 1 FROM pg_class AS c WHERE c.relnamespace = s.oid)
        AND NOT EXISTS (SELECT 1 FROM pg_proc AS p WHERE p.pronamespace = s.oid),
    NOT EXISTS (SELECT 1 FROM pg_class AS c
        WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND NOT (
            has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
            AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))),
    coalesce((SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(c.relowner)), ', ') FROM pg_class AS c
        WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND NOT pg_has_role(c.relowner, 'USAGE')), '')
FROM (
    SELECT asked.name, (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = asked.name) AS oid
    FROM (SELECT coalesce($1::text, current_schema()::text) AS name) AS asked
) AS s
"""


class PrivilegeMissing(Refused):
    """The database's role lacks a privilege; the resolution is the statement that grants it."""

    status = 500
    code = "database_right_missing"
    title = "Right missing"


class PrivilegeReader(Protocol):
    """A connection, or a database."""

    async def fetch(self, statement: str, /, *values: Value) -> list[Row]:
        """Return all rows."""
        ...


class Privileges(NamedTuple):
    """The privileges of the role on one schema. Names are quoted identifiers.

    has_schema, has_tables  whether the schema exists, and whether it has tables of a service
    is_empty                whether it has no objects
    schema_owner            the owner of the schema if it is a different role; otherwise empty
    owners                  the other roles that own tables in the schema
    """

    role: str
    database: str
    schema: str
    has_schema: bool
    may_make_schema: bool
    may_use: bool
    may_create: bool
    schema_owner: str
    has_tables: bool
    is_empty: bool
    may_write: bool
    owners: str

    def require_use(self) -> None:
        """Check that the schema can be used, or created.

        Raises:
            PrivilegeMissing: the role can neither use nor create the schema.
        """
        if not self.has_schema and not self.may_make_schema:
            self.require_schema_creation()
        if self.has_schema and not self.may_use:
            self._refuse("use", f"GRANT USAGE, CREATE ON SCHEMA {self.schema} TO {self.role};")

    def require_write(self) -> None:
        """Check, like `require_use`, that the schema can be used, and that its tables can be read and written.

        Raises:
            PrivilegeMissing: the role may not use the schema, or may not read or write a table.
        """
        self.require_use()
        if not self.may_write:
            statement = f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {self.schema} TO {self.role};"
            self._refuse("read and write every table of", statement)

    def require_upgrade(self) -> None:
        """Check, like `require_write`, that tables can be written, and that they can be created and altered.

        Raises:
            PrivilegeMissing: the role lacks one of the required privileges.
        """
        self.require_write()
        if self.has_schema and not self.may_create:
            self._refuse("create tables in", f"GRANT CREATE ON SCHEMA {self.schema} TO {self.role};")
        if self.owners:
            raise PrivilegeMissing(
                f"tables of the schema {self.schema} belong to {self.owners}, and {self.role} may not alter them",
                resolution=f"Use the role {self.owners} in the URL, or change the owner of each table: "
                f"ALTER TABLE … OWNER TO {self.role};",
            )

    def require_new(self) -> None:
        """Check that the schema does not exist, or is empty and owned by the role, and that it can be filled.

        Raises:
            NotEmpty: the schema has objects, or another role owns it.
            PrivilegeMissing: the role may not create the schema.
        """
        if not self.is_empty:
            owner_note = f"; its tables belong to the role {self.owners}" if self.owners else ""
            remedy = "Use an empty database, or drop the schema if a failed attempt left it."
            text = f"the schema {self.schema} of the database {self.database} is not empty{owner_note}"
            raise NotEmpty(text, resolution=remedy)
        self.require_use()
        if self.schema_owner:
            remedy = f"Drop it; or, as that role or a superuser, run: ALTER SCHEMA {self.schema} OWNER TO {self.role};"
            text = f"the schema {self.schema} of the database {self.database} belongs to the role {self.schema_owner}"
            raise NotEmpty(text, resolution=remedy)
        self.require_schema_creation()

    def require_schema_creation(self) -> None:
        """Check that the role may create schemas, which filling a schema requires even if the schema exists.

        Raises:
            PrivilegeMissing: the role may not create schemas.
        """
        if not self.may_make_schema:
            raise PrivilegeMissing(
                f"the role {self.role} may not create the schema {self.schema} in the database {self.database}",
                resolution=f"As the database's owner run: GRANT CREATE ON DATABASE {self.database} TO {self.role};",
            )

    def _refuse(self, what: str, statement: str) -> NoReturn:
        raise PrivilegeMissing(
            f"the role {self.role} may not {what} the schema {self.schema} of the database {self.database}",
            resolution=f"As the owner of the schema run: {statement}",
        )


async def privileges(reader: PrivilegeReader, schema: str | None = None) -> Privileges:
    """Return the privileges of the role on the schema, or without `schema` on the current schema."""
    (row,) = await reader.fetch(_PRIVILEGES, schema)
    return Privileges(*row)
