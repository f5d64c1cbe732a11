"""The upgrade of a database from the installed schema to the declared schema, in small transactions."""

from dataclasses import dataclass

import msgspec

from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database import migrate
from countersign.kernel.database.migrate import SchemaBehind, SchemaMismatch, in_dialect
from countersign.kernel.database.port import Database, Dialect, Reader, Transaction
from countersign.kernel.security.masterkey import MasterKey
from countersign.records import migrations, root_secret
from countersign.records.masking.vault import Vault
from countersign.records.schema.checks import obstacle, without_mark_if_harmless
from countersign.records.schema.difference import desired_snapshot, steps_between
from countersign.records.schema.rows import RowTaskRunner
from countersign.records.schema.snapshot import EMPTY, Snapshot, Step

MIGRATIONS = migrations.__name__
SCHEMA = migrations.SCHEMA
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('modules.' || current_schema()))"
_STATE = "SELECT snapshot FROM module_state WHERE module = $1"
_NOTE = """
INSERT INTO module_state (module, version, snapshot) VALUES ($1, '1', $2)
ON CONFLICT (module) DO UPDATE SET snapshot = excluded.snapshot
"""
_FORGET = "DELETE FROM module_state WHERE module = $1"

# These are rows of module_state. The first contains the installed schema, the second the progress of the current step.
ALL = "all"
_UNDER_WAY = "all/under way"

_SHOWN = 3


class DataLoss(SchemaMismatch):
    """The declarations lack tables, fields or options that contain data. The error lists them and names the remedy."""


class ConflictingData(SchemaMismatch):
    """Some records do not fit the declarations. The error names the records and the remedy."""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a step. `last` is the id of the last processed record."""

    sentence: str
    last: str


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """The steps of an upgrade, and the reasons why it cannot be done now."""

    steps: tuple[Step, ...]
    obstacles: tuple[str, ...]

    @property
    def losses(self) -> tuple[str, ...]:
        """Return the sentences of the steps that lose data."""
        return tuple(step.sentence for step in self.steps if step.is_destructive)

    def require(self, *, destroy: bool) -> None:
        """Require that the upgrade may start.

        Raises:
            DataLoss: a step would lose data, and `destroy` is false.
            ConflictingData: some records do not fit the declarations.
        """
        if self.losses and not destroy:
            raise DataLoss(
                f"data would be lost: {'; '.join(self.losses)}. Declare it again or switch its module on again "
                "(COUNTERSIGN_MODULES); or make a backup and run `countersign modules apply --destroy`"
            )
        if self.obstacles:
            raise ConflictingData("; ".join(self.obstacles))


async def plan_upgrade(database: Database, registry: Registry) -> UpgradePlan:
    """Return what an upgrade would do now, without changing anything.

    Raises:
        SchemaMismatch: newer code has changed the database.
    """
    if not await is_installed(database):
        return from_empty(registry, database.dialect)
    # Use a transaction, because scanning all rows may exceed the time limit of a read.
    async with database.transaction() as transaction:
        installed_before = await installed(transaction)
        steps = steps_between(
            installed_before, desired_snapshot(registry, installed_before, database.dialect), registry.kinds.values()
        )
        checked_steps = tuple([await without_mark_if_harmless(transaction, step) for step in steps])
        obstacles = [await obstacle(transaction, registry, step, earlier_steps_pending=True) for step in steps]
    return UpgradePlan(checked_steps, tuple(text for text in obstacles if text))


def from_empty(registry: Registry, dialect: Dialect) -> UpgradePlan:
    """Return what an upgrade of an empty database would do."""
    desired_state = desired_snapshot(registry, EMPTY, dialect)
    return UpgradePlan(tuple(steps_between(EMPTY, desired_state, registry.kinds.values())), ())


async def require_applied(database: Database, registry: Registry) -> None:
    """Require that the tables match the declarations, without changing anything.

    Raises:
        SchemaBehind: migrations or steps are pending, or the modules differ. The error lists them and names the remedy.
        SchemaMismatch: newer code has changed the database.
    """
    await migrate.require_applied(database, MIGRATIONS, SCHEMA)
    installed_before = await installed(database)
    desired_state = desired_snapshot(registry, installed_before, database.dialect)
    steps = steps_between(installed_before, desired_state, registry.kinds.values())
    if not steps:
        return
    # After an interrupted first installation, no modules are recorded.
    if not installed_before.versions or installed_before.versions.keys() == desired_state.versions.keys():
        more_text = f"; and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
        text = f"steps of modules are pending: {'; '.join(step.sentence for step in steps[:_SHOWN])}{more_text}"
        raise SchemaBehind(text, "Run: countersign db upgrade")
    raise SchemaBehind(
        f"the database has the modules {_installed_text(installed_before)}, and the settings (COUNTERSIGN_MODULES) "
        f"name {_installed_text(desired_state)}",
        "Say the same COUNTERSIGN_MODULES as the server. Where the database is to change, stop the service, and run: "
        "countersign modules apply",
    )


def _installed_text(snapshot: Snapshot) -> str:
    return ", ".join(sorted(snapshot.versions))


async def upgrade(database: Database, registry: Registry, master: MasterKey, *, destroy: bool = False) -> list[Step]:
    """Upgrade the database, and return the steps that this call took. If the process is killed, the next call continues
    the upgrade.

    If several upgrades run at the same time, one of them takes each step, and the others wait.

    Raises:
        DataLoss, ConflictingData: the upgrade may not start (see `UpgradePlan.require`). Nothing has changed, unless
            rows changed during the upgrade.
        SchemaMismatch: newer code has changed the database.
        DecryptionFailed: the master key does not belong to the database.
        PrivilegeMissing: the PostgreSQL role may not create or alter tables.
    """
    await migrate.upgrade(database, MIGRATIONS)
    upgrade_plan = await plan_upgrade(database, registry)
    upgrade_plan.require(destroy=destroy)
    if not upgrade_plan.steps:
        return []
    await migrate.require_rights(database)
    upgrade_run = _Upgrade(database.dialect, registry, Vault(await root_secret.secret(database, master)))
    taken_steps: list[Step] = []
    is_first = not (await installed(database)).versions
    first_s = began_s = clock.monotonic_s()
    while True:
        async with database.transaction() as transaction:
            if database.dialect == "postgres":
                await transaction.run("SET LOCAL lock_timeout = 0")
                await transaction.fetch(_ONE_AT_A_TIME)
            step = await upgrade_run.next_step(transaction)
            if step is None:
                break
            is_taken = await upgrade_run.run_batch(transaction, step, destroy=destroy)
        if is_taken:
            taken_steps.append(step)
            if not is_first:
                migrate.log_applied(MIGRATIONS, step.sentence, began_s)
            began_s = clock.monotonic_s()
    if is_first and taken_steps:
        migrate.log_applied(MIGRATIONS, f"modules: {len(taken_steps)} steps", first_s)
    return taken_steps


class _Upgrade:
    """Runs the transactions of an upgrade, one at a time."""

    def __init__(self, dialect: Dialect, registry: Registry, vault: Vault) -> None:
        self._dialect: Dialect = dialect
        self._registry = registry
        self._rows = RowTaskRunner(registry, vault)
        self._steps: list[Step] = []
        self._start: Snapshot | None = None

    async def next_step(self, reader: Reader) -> Step | None:
        """Return the next step, or None if all steps are taken. The result is correct even if another process took the
        previous step."""
        installed_before = await installed(reader)
        if self._steps and installed_before == self._steps[0].after:
            self._start = self._steps.pop(0).after
        elif installed_before != self._start:
            self._start = installed_before
            desired_state = desired_snapshot(self._registry, installed_before, self._dialect)
            self._steps = steps_between(installed_before, desired_state, self._registry.kinds.values())
        return self._steps[0] if self._steps else None

    async def run_batch(self, transaction: Transaction, step: Step, *, destroy: bool) -> bool:
        """Run one batch of the step's task or, after the last batch, the statements of the step. Return whether the
        step is complete."""
        state = await transaction.fetch_one(_STATE, _UNDER_WAY)
        progress = None if state is None else msgspec.json.decode(state[0], type=Progress)
        if progress is None or progress.sentence != step.sentence:
            await self._require_step(transaction, step, destroy=destroy)
            progress = Progress(step.sentence, "")
        row_task = step.row_task
        last_row_id = None if row_task is None else await self._rows.batch(transaction, row_task, progress.last)
        if last_row_id is not None:
            await record_snapshot(transaction, _UNDER_WAY, Progress(step.sentence, last_row_id))
            return False
        for statement in step.statements:
            await transaction.run(in_dialect(statement, self._dialect))
        await record_snapshot(transaction, ALL, step.after)
        await transaction.run(_FORGET, _UNDER_WAY)
        return True

    async def _require_step(self, transaction: Transaction, step: Step, *, destroy: bool) -> None:
        """Check the step again, because rows may have changed since the upgrade was planned."""
        if step.loses_from and self._dialect == "postgres":
            # No row may be added between the check and the loss.
            await transaction.run(f'LOCK TABLE "{step.loses_from}" IN SHARE ROW EXCLUSIVE MODE')
        obstacle_text = await obstacle(transaction, self._registry, step, earlier_steps_pending=False)
        checked_step = await without_mark_if_harmless(transaction, step)
        UpgradePlan((checked_step,), (obstacle_text,) if obstacle_text else ()).require(destroy=destroy)


async def record_snapshot(transaction: Transaction, name: str, state: msgspec.Struct) -> None:
    """Record the installed schema, or the progress of a step."""
    await transaction.run(_NOTE, name, msgspec.json.encode(state).decode())


async def is_installed(database: Database) -> bool:
    """Return whether any part of the modules was ever installed, without changing anything."""
    return not any(name.startswith("0001") for name in await migrate.pending(database, MIGRATIONS))


async def installed(reader: Reader) -> Snapshot:
    """Return the installed schema as recorded in the database."""
    row = await reader.fetch_one(_STATE, ALL)
    return EMPTY if row is None else msgspec.json.decode(row[0], type=Snapshot)


async def tables(reader: Reader) -> frozenset[str]:
    """Return the names of the installed tables of modules."""
    return frozenset((await installed(reader)).tables)


async def bits(database: Database) -> dict[str, dict[str, int]]:
    """Map each model to its fields, and each field to its bit in the masks of records, as installed."""
    return {name: table.bits for name, table in (await installed(database)).tables.items()}
