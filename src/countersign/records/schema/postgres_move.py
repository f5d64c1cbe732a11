"""The move of module tables to PostgreSQL. The tables are created empty, the rows of a SQLite file are copied into
them, and the installation is then completed."""

from countersign.declare.registry import Registry
from countersign.kernel.database import migrate
from countersign.kernel.database.migrate import SchemaMismatch, in_dialect
from countersign.kernel.database.port import Dialect, Reader, Transaction
from countersign.records.audit.chain import Chain
from countersign.records.schema import install
from countersign.records.schema.difference import desired_snapshot, steps_between
from countersign.records.schema.snapshot import EMPTY, Snapshot

TARGET: Dialect = "postgres"


def target_snapshot(registry: Registry, snapshot: Snapshot) -> Snapshot:
    """Return the PostgreSQL schema that corresponds to the schema installed on SQLite. Fields keep their bits in the
    masks of records."""
    return desired_snapshot(registry, snapshot, TARGET)


async def require_same(reader: Reader, snapshot: Snapshot) -> None:
    """Require that the installed schema is unchanged.

    Raises:
        SchemaMismatch: the installed schema was changed meanwhile.
    """
    if await install.installed(reader) != snapshot:
        raise SchemaMismatch("the modules were changed while the databases were moved: run the command again")


async def create_tables(transaction: Transaction, snapshot: Snapshot) -> None:
    """Create all tables in the transaction. They are empty.

    Raises:
        NotEmpty: the tables exist already.
    """
    await migrate.create_within(transaction, install.MIGRATIONS, TARGET)
    for step in steps_between(EMPTY, snapshot):
        for statement in step.statements:
            await transaction.run(in_dialect(statement, TARGET))


async def complete_installation(transaction: Transaction, snapshot: Snapshot, secret: bytes) -> None:
    """Complete the installation after the rows are copied: record the installed schema, and add the audit lanes that
    only PostgreSQL has. `secret` is the secret of the database."""
    await install.record_snapshot(transaction, install.ALL, snapshot)
    await Chain(TARGET, secret).add_missing_lanes(transaction)
