"""Bringing a database from what is installed to what the modules declare, one small transaction after another."""

import msgspec

from countersign.declare.registry import Registry
from countersign.kernel.database.dialect import in_dialect
from countersign.kernel.database.migrate import upgrade as upgrade_engine
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.records.access.folding import folded
from countersign.records.schema.snapshot import EMPTY, Snapshot
from countersign.records.schema.steps import Step, between, wanted

MIGRATIONS = "countersign.records.migrations"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('countersign:records:modules'))"
_INSTALLED = "SELECT snapshot FROM module_state WHERE module = 'all'"
_NOTE = """
INSERT INTO module_state (module, version, snapshot) VALUES ('all', '1', $1)
ON CONFLICT (module) DO UPDATE SET snapshot = excluded.snapshot
"""
_BATCH = 500


class WouldDestroy(Exception):
    """The declarations leave out tables or columns that hold data; the text lists them and names the remedy."""


async def plan(database: Database, registry: Registry) -> list[Step]:
    """The steps an upgrade would take now; changes nothing but the engine's own tables."""
    await upgrade_engine(database, MIGRATIONS)
    before = await _installed(database)
    return between(before, wanted(registry, before), database.dialect)


async def upgrade(database: Database, registry: Registry, *, destroy: bool = False) -> list[Step]:
    """Take the steps; those that this call took. Killed at any moment, the next call goes on from there.

    Raises:
        WouldDestroy: a step loses data and `destroy` was not said; nothing was changed then.
    """
    steps = await plan(database, registry)
    lost = [step.sentence for step in steps if step.is_destructive]
    if lost and not destroy:
        raise WouldDestroy(
            f"the modules no longer declare what holds data: {'; '.join(lost)}. Switch the module on again, or run "
            "`countersign modules apply --destroy`"
        )
    taken: list[Step] = []
    while True:
        async with database.transaction() as transaction:
            if database.dialect == "postgres":
                await transaction.run("SET LOCAL lock_timeout = 0")
                await transaction.fetch(_ONE_AT_A_TIME)
            before = await _installed(transaction)
            left = between(before, wanted(registry, before), database.dialect)
            if not left:
                return taken
            await _take(database, transaction, left[0])
        taken.append(left[0])


async def _take(database: Database, transaction: Transaction, step: Step) -> None:
    for statement in step.statements:
        await transaction.run(in_dialect(statement, database.dialect))
    if step.fill is not None and step.fill.endswith("__folded"):
        await _fill_folded(transaction, *step.fill.split("."))
    await transaction.run(_NOTE, msgspec.json.encode(step.after).decode())


async def _fill_folded(transaction: Transaction, table: str, column: str) -> None:
    """Make the folded copies of texts that were there before."""
    source = column.removesuffix("__folded")
    last = ""
    while True:
        rows = await transaction.fetch(
            f'SELECT id, "{source}" FROM "{table}" WHERE id > $1 AND "{source}" IS NOT NULL ORDER BY id LIMIT {_BATCH}',
            last,
        )
        if not rows:
            return
        last = rows[-1][0]
        changes = [(record_id, folded(text)) for record_id, text in rows]
        await transaction.run_many(f'UPDATE "{table}" SET "{column}" = $2 WHERE id = $1', changes)


async def _installed(reader: Reader) -> Snapshot:
    row = await reader.fetch_one(_INSTALLED)
    return EMPTY if row is None else msgspec.json.decode(row[0], type=Snapshot)


async def bits(database: Database) -> dict[str, dict[str, int]]:
    """By model, which bit of a record's masks stands for which field, as installed."""
    return {name: each.bits for name, each in (await _installed(database)).tables.items()}
