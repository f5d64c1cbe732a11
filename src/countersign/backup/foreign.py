"""Whether a database of an archive consists of what its migrations make, and of tables that modules may have.

An archive is data: whoever could seal one must not get to run anything by it. A rule, an index or a computed column of
theirs would run with each statement of ours. So everything is compared before the first of ours writes. Only an index
of columns as they are, which runs nothing, may have been added: operators do so, and their backups must be of use.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.postgres_snapshot import ENGINE_TABLES
from countersign.backup.schema_description import describe_tables, normalize_statement
from countersign.backup.statements import is_plain
from countersign.kernel.database import migrate
from countersign.kernel.database.open import SQLITE, open_database
from countersign.kernel.database.port import Database, Reader
from countersign.kernel.errors import Refused

_NAME = r'"[a-z][a-z0-9_]*"'
_COLUMN = rf", {_NAME} (?:TEXT|INTEGER|REAL|BLOB)(?: REFERENCES {_NAME} \(id\))?"
_TABLE = re.compile(
    rf"CREATE TABLE {_NAME} \(id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, changed INTEGER NOT NULL"
    rf"(?:{_COLUMN})*\) STRICT"
)
_INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX {_NAME} ON {_NAME} (\(.*\))( WHERE {_NAME} IS NOT NULL)?")

_WORD = r'(?:[A-Za-z_]\w*|"[^"]+")'
_SOME = rf"\({_WORD}(?: ASC| DESC)?(?:, ?{_WORD}(?: ASC| DESC)?)*\)"
# Made by whoever runs the service; PostgreSQL says the words that may be left out.
_ADDED = re.compile(rf"(?:index )?CREATE INDEX {_WORD} ON {_WORD} ?(?:USING btree )?{_SOME}")

# Seen by nobody: they begin and end within the transaction that restores.
_MADE = "countersign_made"
_MAKE = "CREATE SCHEMA countersign_made"
_DROP = "DROP SCHEMA countersign_made CASCADE"

OwnTables = Callable[[Reader], Awaitable[frozenset[str]]]
"""The tables that a service has beside those of its migrations, by what its database says is installed."""


class ForeignParts(Refused):
    """A database of the archive holds what neither Countersign nor a module has made, or lacks what they make."""

    status = 422
    code = "foreign_parts"
    title = "Foreign parts in a database"
    resolution = (
        "If you have added or changed it yourself, undo that in the original and make another backup; else restore "
        "another one, and find out who has made this one."
    )


async def require_own(database: Database, migrations: str, own_tables: OwnTables, *, beside: Path) -> None:
    """Insist that a SQLite file holds nothing foreign; nothing of it is run by that. What it should be is made in
    the folder `beside`, and removed again.

    Raises:
        ForeignParts: it does, or something is missing.
        SchemaMismatch: it was made by a newer version.
    """
    found = await describe_tables(database, "sqlite")
    if found.get(migrate.LEDGER) != [normalize_statement(migrate.ledger("sqlite"))]:
        raise _otherwise(migrate.LEDGER)
    leaving = len(await migrate.pending(database, migrations))
    with TemporaryDirectory(dir=beside) as folder:
        scratch = await open_database(f"{SQLITE}{folder}/made.sqlite", schema="", reserve_bytes=0)
        try:
            await migrate.upgrade(scratch, migrations, leaving=leaving)
            made = await describe_tables(scratch, "sqlite")
        finally:
            await scratch.close()
    for table in await _beside(found, made, own_tables, database):
        if not all(map(_is_of_module, found[table])):
            raise _unknown(table)


async def require_own_within(
    filling: PostgresBulkLoad, schema: str, migrations: str, own_tables: OwnTables, *, is_served: bool = False
) -> None:
    """The same of a schema of PostgreSQL whose tables were made, by plain statements, in a transaction under way; or
    of one that `is_served`, where what no backup takes along is passed over.

    Raises:
        ForeignParts, SchemaMismatch: as `require_own`.
    """
    restored = await filling.transaction(schema)
    found = await describe_tables(restored, "postgres")
    if is_served:
        found = {table: said for table, said in found.items() if not table.startswith(ENGINE_TABLES)}
    if migrate.LEDGER not in found:
        raise _otherwise(migrate.LEDGER)
    leaving = await migrate.count_pending_within(restored, migrations)
    await restored.run(_MAKE)
    scratch = await filling.transaction(_MADE)
    await migrate.create_scratch(scratch, migrations, "postgres", leaving=leaving)
    made = await describe_tables(scratch, "postgres")
    await scratch.run(_DROP)
    await _beside(found, made, own_tables, await filling.transaction(schema))


async def _beside(
    found: Mapping[str, list[str]], made: Mapping[str, list[str]], own_tables: OwnTables, reader: Reader
) -> list[str]:
    """The tables of modules, when those of migrations are as these make them, and there are no others."""
    for table, said in made.items():
        if _without_added(found.get(table, []), said) != said:
            raise _otherwise(table)
    try:
        own = await own_tables(reader)
    except msgspec.MsgspecError as error:
        raise ForeignParts("what it says of its modules cannot be read") from error
    beside = sorted(found.keys() - made.keys())
    for table in beside:
        if table not in own:
            raise _unknown(table)
    return beside


def _without_added(found: Sequence[str], made: Sequence[str]) -> list[str]:
    return [each for each in found if each in made or _ADDED.fullmatch(each) is None]


def _otherwise(table: str) -> ForeignParts:
    return ForeignParts(f"the table {table!r}, or an index of it, is not as Countersign makes it")


def _unknown(table: str) -> ForeignParts:
    return ForeignParts(f"the table {table!r}, or an index of it, is none that Countersign or a module makes")


def _is_of_module(statement: str) -> bool:
    index = _INDEX.fullmatch(statement)
    if index is not None:
        return is_plain(index[1])
    return any(kind.fullmatch(statement) for kind in (_TABLE, _ADDED))
