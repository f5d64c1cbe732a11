"""Validates the schema of a restored database before any other statement of Countersign uses it.

An archive is untrusted data: restoring it must not execute code that its author chose. A check constraint, an index
expression or a generated column would run with every later statement. So the statements of an archive are validated
before PostgreSQL executes them, and each restored schema is compared with the one that the migrations and modules
create. Only plain indexes on columns, which execute nothing, may be added: operators add them, and their backups must
stay restorable.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from countersign.backup.archive import invalid_archive
from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.postgres_snapshot import ENGINE_TABLES
from countersign.backup.schema_description import describe_tables, normalize_statement
from countersign.backup.snapshot import Table
from countersign.kernel.database import migrate
from countersign.kernel.database.open import SQLITE, open_database
from countersign.kernel.database.port import Database, Reader
from countersign.kernel.errors import Refused

# These patterns match the statements in an archive from PostgreSQL.
_NAME = r'(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")'
_TEXT = re.compile(r"'(?:[^']|'')*'")
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_CREATE_TABLE = re.compile(rf"CREATE TABLE {_NAME} (\(.*\))", re.DOTALL)
_CONSTRAINT_KINDS = "PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY"
_CONSTRAINT = re.compile(rf"ALTER TABLE {_NAME} ADD CONSTRAINT {_NAME} ((?:{_CONSTRAINT_KINDS}) \(.*)", re.DOTALL)
_ON_TABLE = rf"ON (?:{_NAME}\.)?{_NAME}"
_CREATE_INDEX = re.compile(
    rf"CREATE (?:UNIQUE )?INDEX {_NAME} {_ON_TABLE} (USING (?:btree|gin|gist|hash) \(.*)", re.DOTALL
)
_REFERENCE = re.compile(rf"REFERENCES (?:{_NAME}\.)?{_NAME}\(")
# The pattern matches every run of these characters once, even if no parenthesis follows, so that it takes linear time.
_CALL = re.compile(r"([A-Za-z0-9_.]+)(\s*\(|)")
# Keywords that may precede a parenthesis although they are not functions, and functions without side effects.
_SAFE_WORDS = frozenset(
    {
        *("and", "any", "array", "btree", "case", "character", "char", "check", "else", "gin", "gist", "hash", "in"),
        *("include", "key", "not", "numeric", "or", "references", "then", "unique", "varying", "when", "where"),
        *("coalesce", "length", "lower", "octet_length", "upper"),
    }
)
_UNSAFE = re.compile(r";|\$|--|/\*|\bselect\b", re.IGNORECASE)

# These patterns match the statements of modules in a SQLite file.
_MODULE_NAME = r'"[a-z][a-z0-9_]*"'
_MODULE_COLUMN = rf", {_MODULE_NAME} (?:TEXT|INTEGER|REAL|BLOB)(?: REFERENCES {_MODULE_NAME} \(id\))?"
_MODULE_TABLE = re.compile(
    rf"CREATE TABLE {_MODULE_NAME} \(id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, changed INTEGER NOT NULL"
    rf"(?:{_MODULE_COLUMN})*\) STRICT"
)
_MODULE_INDEX = re.compile(
    rf"CREATE (?:UNIQUE )?INDEX {_MODULE_NAME} ON {_MODULE_NAME} (\(.*\))( WHERE {_MODULE_NAME} IS NOT NULL)?"
)

_WORD = r'(?:[A-Za-z_]\w*|"[^"]+")'
_COLUMN_LIST = rf"\({_WORD}(?: ASC| DESC)?(?:, ?{_WORD}(?: ASC| DESC)?)*\)"
# Matches an index that an operator added. The optional words are those that PostgreSQL writes out.
_OPERATOR_INDEX = re.compile(rf"(?:index )?CREATE INDEX {_WORD} ON {_WORD} ?(?:USING btree )?{_COLUMN_LIST}")

# The scratch schema is created and dropped in the transaction of the restore, so others never see it.
_SCRATCH = "countersign_made"
_CREATE_SCRATCH = "CREATE SCHEMA countersign_made"
_DROP_SCRATCH = "DROP SCHEMA countersign_made CASCADE"

OwnTables = Callable[[Reader], Awaitable[frozenset[str]]]
"""Reads the names of the tables that the modules of a service create, from the installed modules in its database."""


class UnknownSchemaObjects(Refused):
    """A database of the archive has tables or indexes that neither Countersign nor a module creates, or lacks some."""

    status = 422
    code = "foreign_parts"
    title = "Unknown tables or indexes in a database"
    resolution = (
        "If you added or changed the table or index yourself, undo the change in the original and make another "
        "backup. Otherwise restore another backup, and find out who made this one."
    )


def require_plain(table: Table) -> None:
    """Check that the statements create only a table and its constraints and indexes.

    Raises:
        Damaged: a statement does something else, or calls a function that is not known to be safe.
    """
    create_match = _CREATE_TABLE.fullmatch(table.create)
    if create_match is None or not _is_one_list(create_match[1]):
        raise invalid_archive(f"the statement that creates {table.name!r} is not a CREATE TABLE")
    bodies = [create_match[1]]
    for statement in (*table.finish, *table.references):
        match = _CONSTRAINT.fullmatch(statement) or _CREATE_INDEX.fullmatch(statement)
        if match is None:
            raise invalid_archive(f"a statement of {table.name!r} is neither a constraint nor an index")
        bodies.append(_REFERENCE.sub("REFERENCES (", match[1]))
    if not all(map(_is_safe, bodies)):
        raise invalid_archive(f"a statement of {table.name!r} calls a function that is not allowed")


def _is_safe(body: str) -> bool:
    """Whether the body of a statement calls only safe functions, and contains no other statement."""
    code = _without_literals(body)
    function_names = {name.lstrip("0123456789.").lower() for name, parenthesis in _CALL.findall(code) if parenthesis}
    return _UNSAFE.search(code) is None and function_names <= _SAFE_WORDS


def _without_literals(statement: str) -> str:
    """The statement with string literals and quoted names replaced."""
    return _QUOTED.sub("q", _TEXT.sub("''", statement))


def _is_one_list(text: str) -> bool:
    """Whether the first parenthesis is closed by the last character."""
    depth = 0
    code = _without_literals(text)
    for position, letter in enumerate(code):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return position == len(code) - 1
    return False


async def require_own(database: Database, migrations: str, own_tables: OwnTables, *, scratch_folder: Path) -> None:
    """Check that a SQLite file contains only objects that its migrations and modules create.

    No code in the file is executed. The expected schema is created in `scratch_folder`, and removed afterwards.

    Raises:
        UnknownSchemaObjects: the file contains other objects, or lacks an object.
        SchemaMismatch: a newer version created the file.
    """
    tables = await describe_tables(database, "sqlite")
    if tables.get(migrate.LEDGER) != [normalize_statement(migrate.ledger("sqlite"))]:
        raise _altered(migrate.LEDGER)
    pending_count = len(await migrate.pending(database, migrations))
    with TemporaryDirectory(dir=scratch_folder) as folder:
        scratch = await open_database(f"{SQLITE}{folder}/made.sqlite", schema="", reserve_bytes=0)
        try:
            await migrate.upgrade(scratch, migrations, leaving=pending_count)
            expected_tables = await describe_tables(scratch, "sqlite")
        finally:
            await scratch.close()
    for table in await _module_tables(tables, expected_tables, own_tables, database):
        if not all(map(_is_of_module, tables[table])):
            raise _unknown(table)


async def require_own_within(
    bulk_load: PostgresBulkLoad, schema: str, migrations: str, own_tables: OwnTables, *, is_served: bool = False
) -> None:
    """Like `require_own`, but check a PostgreSQL schema in the transaction of a bulk load.

    `is_served` means that the schema is in use. Tables that backups do not contain are then ignored.

    Raises:
        UnknownSchemaObjects, SchemaMismatch: see `require_own`.
    """
    restored_schema = await bulk_load.transaction(schema)
    tables = await describe_tables(restored_schema, "postgres")
    if is_served:
        tables = {table: lines for table, lines in tables.items() if not table.startswith(ENGINE_TABLES)}
    if migrate.LEDGER not in tables:
        raise _altered(migrate.LEDGER)
    pending_count = await migrate.count_pending_within(restored_schema, migrations)
    await restored_schema.run(_CREATE_SCRATCH)
    scratch = await bulk_load.transaction(_SCRATCH)
    await migrate.create_scratch(scratch, migrations, "postgres", leaving=pending_count)
    expected_tables = await describe_tables(scratch, "postgres")
    await scratch.run(_DROP_SCRATCH)
    await _module_tables(tables, expected_tables, own_tables, await bulk_load.transaction(schema))


async def _module_tables(
    tables: Mapping[str, list[str]], expected_tables: Mapping[str, list[str]], own_tables: OwnTables, reader: Reader
) -> list[str]:
    """Compare the tables with the expected ones, and return the names of the tables of modules.

    Raises:
        UnknownSchemaObjects: a table differs from what the migrations create, or belongs neither to them nor to a
            module.
    """
    for table, lines in expected_tables.items():
        if _without_operator_indexes(tables.get(table, []), lines) != lines:
            raise _altered(table)
    try:
        own_names = await own_tables(reader)
    except msgspec.MsgspecError as error:
        raise UnknownSchemaObjects("the list of installed modules cannot be read") from error
    other_names = sorted(tables.keys() - expected_tables.keys())
    for table in other_names:
        if table not in own_names:
            raise _unknown(table)
    return other_names


def _without_operator_indexes(lines: Sequence[str], expected_lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line in expected_lines or _OPERATOR_INDEX.fullmatch(line) is None]


def _altered(table: str) -> UnknownSchemaObjects:
    return UnknownSchemaObjects(f"the table {table!r}, or an index of it, differs from what Countersign creates")


def _unknown(table: str) -> UnknownSchemaObjects:
    return UnknownSchemaObjects(f"the table {table!r}, or an index of it, was not created by Countersign or a module")


def _is_of_module(statement: str) -> bool:
    index = _MODULE_INDEX.fullmatch(statement)
    if index is not None:
        return _is_safe(index[1])
    return any(kind.fullmatch(statement) for kind in (_MODULE_TABLE, _OPERATOR_INDEX))
