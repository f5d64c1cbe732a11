"""The tables of modules on the other engine: made empty for the rows of a SQLite file, settled when those are there."""

from countersign.declare.registry import Registry
from countersign.kernel.database import migrate
from countersign.kernel.database.migrate import SchemaMismatch, in_dialect
from countersign.kernel.database.port import Dialect, Reader, Transaction
from countersign.records.audit.chain import Chain
from countersign.records.schema import install
from countersign.records.schema.difference import desired_snapshot, steps_between
from countersign.records.schema.snapshot import EMPTY, Snapshot

TARGET: Dialect = "postgres"


def target(registry: Registry, installed: Snapshot) -> Snapshot:
    """What is to be installed on PostgreSQL where this is installed on SQLite: fields keep the bits that stand for
    them in records' masks."""
    return desired_snapshot(registry, installed, TARGET)


async def require_same(reader: Reader, installed: Snapshot) -> None:
    """Insist that this is still what is installed.

    Raises:
        SchemaMismatch: somebody has changed it meanwhile.
    """
    if await install.installed(reader) != installed:
        raise SchemaMismatch("the modules were changed while the databases were moved: run the command again")


async def make(transaction: Transaction, installed: Snapshot) -> None:
    """Make all tables, empty, in the transaction.

    Raises:
        NotEmpty: somebody else has just made them.
    """
    await migrate.create_within(transaction, install.MIGRATIONS, TARGET)
    for step in steps_between(EMPTY, installed):
        for statement in step.statements:
            await transaction.run(in_dialect(statement, TARGET))


async def settle(transaction: Transaction, installed: Snapshot, secret: bytes) -> None:
    """Once the rows are there: write down what is installed, and give the audit the lanes that only PostgreSQL has
    (`secret` is the database's)."""
    await install.record_snapshot(transaction, install.ALL, installed)
    await Chain(TARGET, secret).widen(transaction)
