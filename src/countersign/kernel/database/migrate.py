"""Migrations: numbered SQL files of a service, applied once, in order, forward only.

A file is called `0001_what_it_does.sql` and never changes after it was shipped. Each file is applied in one transaction
together with its row in `schema_migration`, so that an interrupted upgrade continues where it stopped. If several
processes start at once, one process applies the migration and the other processes wait.

Both engines use the same text. It is written for SQLite's STRICT tables with four types: TEXT, BIGINT, REAL, BLOB. On
PostgreSQL every TEXT column compares by code point (COLLATE "C"), as it does on SQLite. `WITHOUT ROWID` after a table
applies to SQLite only.
SQL for a single engine is written between a line `-- only: sqlite` (or `postgres`) and a line `-- end`.
"""

import hashlib
import importlib
import re
from importlib import resources
from typing import NamedTuple

from countersign.kernel import clock, telemetry
from countersign.kernel.database.port import Database, Dialect, Reader, Transaction
from countersign.kernel.database.postgres_privileges import privileges
from countersign.kernel.errors import NotEmpty, Unavailable

_BLOCK = re.compile(r"^-- only: (\w+)[ \t]*\n(.*?)^-- end[ \t]*$", re.DOTALL | re.MULTILINE)
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|(?:[^'"\-/;]|-(?!-)|/(?!\*))+""", re.DOTALL)
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
_COLUMNS = re.compile(r"\s*(CREATE|ALTER)\s+TABLE\b", re.IGNORECASE)
_ROWID = re.compile(r"\)\s*WITHOUT\s+ROWID\s*$", re.IGNORECASE)
_TYPE = re.compile(r"(?<!AS )\b(TEXT|BIGINT|INTEGER|REAL|BLOB)\b")
_TYPES: dict[Dialect, dict[str, str]] = {
    "sqlite": {"BIGINT": "INTEGER"},
    "postgres": {"TEXT": 'TEXT COLLATE "C"', "INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA"},
}


class NotPortable(Exception):
    """The schema text uses a feature that only one of the engines supports; the message names the feature."""


def in_dialect(text: str, dialect: Dialect) -> str:
    """Translate the schema text to the dialect of the engine.

    Raises:
        NotPortable: a constraint is DEFERRABLE (on SQLite it would fail the COMMIT that many transactions share), or
            a block names an unknown engine.
    """
    if re.search(r"\bDEFERRABLE\b", text, re.IGNORECASE):
        raise NotPortable("DEFERRABLE: use an immediate constraint, or check in the code")
    return "".join(_translate(pieces, dialect) for pieces in _statements(_select_engine(text, dialect)))


def _select_engine(text: str, dialect: Dialect) -> str:
    def content_for_engine(block: re.Match[str]) -> str:
        if block[1] not in ("sqlite", "postgres"):
            raise NotPortable(f"-- only: {block[1]}: the engines are sqlite and postgres")
        return block[2] if block[1] == dialect else ""

    return _BLOCK.sub(content_for_engine, text)


def _statements(text: str) -> list[list[str]]:
    """Split the text into statements, each a list of tokens (words, literals, comments). A semicolon starts the next
    list."""
    statements: list[list[str]] = [[]]
    for piece in _PIECE.findall(text):
        if piece == ";":
            statements.append([])
        statements[-1].append(piece)
    return statements


def _translate(pieces: list[str], dialect: Dialect) -> str:
    words = [number for number, piece in enumerate(pieces) if _is_code(piece)]
    plain_sql = "".join(pieces[number] for number in words)
    if _COLUMNS.match(plain_sql):
        names = _TYPES[dialect]
        for number in words:
            pieces[number] = _TYPE.sub(lambda matched: names.get(matched[1], matched[1]), pieces[number])
    if _TABLE.match(plain_sql):
        last = [number for number in words if pieces[number].strip()][-1]
        pieces[last] = _with_table_options(pieces[last].rstrip(), dialect)
    return "".join(pieces)


def _is_code(piece: str) -> bool:
    return piece[0] not in "'\";" and not piece.startswith(("--", "/*"))


def _with_table_options(piece: str, dialect: Dialect) -> str:
    if dialect == "postgres":
        return _ROWID.sub(")", piece)
    return piece + (", STRICT" if _ROWID.search(piece) else " STRICT")


_NAME = re.compile(r"(\d{4})_\w+\.sql")
LEDGER = "schema_migration"
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migration (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at BIGINT NOT NULL
);
"""
_LEDGER_EXISTS: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migration'",
    "postgres": "SELECT 1 WHERE to_regclass('schema_migration') IS NOT NULL",
}
_APPLIED = "SELECT number, name, sha256 FROM schema_migration ORDER BY number"
_APPLY = "INSERT INTO schema_migration (number, name, sha256, applied_at) VALUES ($1, $2, $3, $4)"

# The lock is held until the transaction ends. Its key includes the schema, so that two services do not wait for each
# other.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('schema_migration.' || current_schema()))"


class SchemaMismatch(Exception):
    """The database does not match the code's migrations; the text or the remedy explains what to do."""

    remedy: str = ""


class SchemaBehind(SchemaMismatch):
    """Migrations are pending, and this process does not apply them."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy: str = remedy


class Migration(NamedTuple):
    """One file: its number, its name without the suffix, its text, and the SHA-256 of the text in hexadecimal."""

    number: int
    name: str
    text: str
    sha256: str


def migrations(package: str) -> list[Migration]:
    """Return the migrations in the package's folder, sorted by number.

    Raises:
        SchemaMismatch: a file is misnamed, or the numbers do not run from 1 without a gap.
    """
    found_migrations: list[Migration] = []
    for file in resources.files(package).iterdir():
        if not file.name.endswith(".sql"):
            continue
        name = _NAME.fullmatch(file.name)
        if name is None:
            raise SchemaMismatch(f"{file.name}: the name of a migration must be like 0001_what_it_does.sql")
        text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
        digest = hashlib.sha256(text.encode()).hexdigest()
        found_migrations.append(Migration(int(name[1]), file.name.removesuffix(".sql"), text, digest))
    found_migrations.sort()
    for expected_number, migration in enumerate(found_migrations, 1):
        if migration.number != expected_number:
            raise SchemaMismatch(f"{migration.name}: expected the number {expected_number:04d}")
    return found_migrations


async def pending(database: Database, package: str) -> list[str]:
    """Return the names of the pending migrations in order; read-only.

    Raises:
        SchemaMismatch: an applied file was changed, or newer code has migrated the database.
    """
    known_migrations = migrations(package)
    if await database.fetch_one(_LEDGER_EXISTS[database.dialect]) is None:
        return [migration.name for migration in known_migrations]
    return [migration.name for migration in await _unapplied(database, known_migrations)]


def ledger(dialect: Dialect) -> str:
    """Return the statement that creates the table LEDGER."""
    return in_dialect(_LEDGER, dialect)


async def check_current(database: Database, package: str) -> str:
    """Check that the database matches this code, for a health check.

    Raises:
        Unavailable: migrations are pending, or newer code has migrated the database.
    """
    try:
        pending_migrations = await pending(database, package)
    except SchemaMismatch as error:
        raise Unavailable(str(error)) from error
    if pending_migrations:
        raise Unavailable(f"pending migrations: {', '.join(pending_migrations)}")
    return "up to date"


async def require_applied(database: Database, package: str, schema: str) -> None:
    """Check that no migration is pending; read-only.

    Raises:
        SchemaBehind: migrations are pending; the remedy is the command that applies them.
        SchemaMismatch: an applied file was changed, or newer code has migrated the database.
    """
    names = await pending(database, package)
    if names:
        raise SchemaBehind(f"migrations of {schema} are pending: {', '.join(names)}", "Run: countersign db upgrade")


async def upgrade(database: Database, package: str, *, leaving: int = 0) -> list[str]:
    """Apply the pending migrations, except for the last `leaving`; returns the names of the applied ones.

    Raises:
        SchemaMismatch: an applied file was changed, or newer code has migrated the database.
        NotPortable: a file uses a feature that only one of the engines supports.
        PrivilegeMissing: the PostgreSQL role may not create or alter tables.
    """
    known_migrations = migrations(package)
    known_migrations = known_migrations[: len(known_migrations) - leaving]
    if not await pending(database, package):
        return []
    await require_rights(database)
    applied_names: list[str] = []
    while True:
        began_s = clock.monotonic_s()
        async with database.transaction() as transaction:
            await _lock_migrations(transaction, database.dialect)
            await transaction.run(in_dialect(_LEDGER, database.dialect))
            pending_migrations = await _unapplied(transaction, known_migrations)
            if not pending_migrations:
                return applied_names
            await _apply(transaction, pending_migrations[0], database.dialect)
        applied_names.append(pending_migrations[0].name)
        log_applied(package, pending_migrations[0].name, began_s)


def log_applied(package: str, name: str, began_s: float) -> None:
    """Log a committed migration, with its duration. On a terminal, the log level is debug, since a
    new database needs dozens of migrations."""
    elapsed_ms = round((clock.monotonic_s() - began_s) * 1000, 3)
    name_of_package = package.removesuffix(".migrations").rpartition(".")[2]
    service = getattr(importlib.import_module(package), "SERVICE", name_of_package)
    log = telemetry.logger("database")
    write = log.debug if telemetry.is_on_terminal() else log.info
    write("migration", service=service, name=name, elapsed_ms=elapsed_ms)


async def require_rights(database: Database) -> None:
    """Check that tables can be created and altered; on SQLite this is always possible.

    Raises:
        PrivilegeMissing: the PostgreSQL role may not create or alter tables.
    """
    if database.dialect == "postgres":
        (await privileges(database)).require_upgrade()


async def create_within(transaction: Transaction, package: str, dialect: Dialect) -> None:
    """Apply every migration in an open transaction, in a schema without migrations. Concurrent callers wait.

    Raises:
        NotEmpty: another process has already started to use the database.
        SchemaMismatch, NotPortable: for the same reasons as in `upgrade`.
    """
    await _lock_migrations(transaction, dialect)
    if await transaction.fetch_one(_LEDGER_EXISTS[dialect]) is not None:
        raise NotEmpty("another process has just started to use the database")
    await transaction.run(in_dialect(_LEDGER, dialect))
    await upgrade_within(transaction, package, dialect)


async def create_scratch(transaction: Transaction, package: str, dialect: Dialect, *, leaving: int) -> None:
    """Apply all migrations except for the last `leaving` in a temporary schema, to compare the result.

    Raises:
        NotPortable: a file uses a feature that only one of the engines supports.
    """
    known_migrations = migrations(package)
    await transaction.run(ledger(dialect))
    for migration in known_migrations[: len(known_migrations) - leaving]:
        await _apply(transaction, migration, dialect)


async def count_pending_within(reader: Reader, package: str) -> int:
    """Return the number of pending migrations of a database that has a ledger.

    Raises:
        SchemaMismatch: an applied file was changed, or newer code has migrated the database.
    """
    return len(await _unapplied(reader, migrations(package)))


async def upgrade_within(transaction: Transaction, package: str, dialect: Dialect) -> list[str]:
    """Apply the pending migrations in an open transaction, to tables that are not visible to others yet.

    Raises:
        SchemaMismatch, NotPortable: for the same reasons as in `upgrade`.
    """
    pending_migrations = await _unapplied(transaction, migrations(package))
    for migration in pending_migrations:
        await _apply(transaction, migration, dialect)
    return [migration.name for migration in pending_migrations]


async def _lock_migrations(transaction: Transaction, dialect: Dialect) -> None:
    """Lock out concurrent migrations. SQLite needs no lock, since a transaction is exclusive."""
    if dialect == "postgres":
        await transaction.run("SET LOCAL lock_timeout = 0")
        await transaction.fetch(_ONE_AT_A_TIME)
        await transaction.run("SET LOCAL client_min_messages = warning")


async def _apply(transaction: Transaction, migration: Migration, dialect: Dialect) -> None:
    text = in_dialect(migration.text, dialect)
    # A migration for the other engine leaves no statement, which asyncpg does not accept.
    if text.strip():
        await transaction.run(text)
    await transaction.run(_APPLY, migration.number, migration.name, migration.sha256, clock.now())


async def _unapplied(reader: Reader, known: list[Migration]) -> list[Migration]:
    applied_rows = await reader.fetch(_APPLIED)
    if len(applied_rows) > len(known):
        names = ", ".join(str(name) for _, name, _ in applied_rows[len(known) :])
        raise SchemaMismatch(f"a newer version migrated the database ({names}): install that version or a later one")
    for migration, (number, name, sha256) in zip(known, applied_rows, strict=False):
        if (migration.number, migration.sha256) != (number, sha256):
            raise SchemaMismatch(
                f"{name} was changed after it was applied to this database: restore the file, and put "
                "the change into a new migration"
            )
    return known[len(applied_rows) :]
