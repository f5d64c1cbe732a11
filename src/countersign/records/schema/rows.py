"""Changes to existing rows during an upgrade. Each batch of rows is changed in its own transaction."""

from collections.abc import Mapping, Sequence

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import LARGEST
from countersign.declare.model import computed, out_of_range
from countersign.declare.registry import Registry, Total
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.port import Row, Transaction, Value
from countersign.records.access.people import folded
from countersign.records.masking.vault import PersonalValue, Vault
from countersign.records.schema.checks import sum_columns, total_of, value_for_existing
from countersign.records.schema.snapshot import FOLDED_SUFFIX, VALUE_ID_SUFFIX, RowTask

BATCH = 2_000


class RowTaskRunner:
    """Runs a `RowTask`, one batch at a time."""

    def __init__(self, registry: Registry, vault: Vault) -> None:
        """Create a runner for the declared models and the vault of the database."""
        self._registry = registry
        self._vault = vault

    async def batch(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        """Process up to `BATCH` records whose ids follow `last_id`. Return the id of the last processed record, or None
        if there was no record left."""
        match row_task.kind:
            case "default":
                return await self._fill(transaction, row_task, last_id)
            case "made":
                return await self._compute(transaction, row_task, last_id)
            case "folded":
                return await _fold(transaction, row_task, last_id)
            case "value":
                return await self._hold(transaction, row_task, last_id)
            case "options":
                return await self._remove_options(transaction, row_task, last_id)
            case "release":
                return await self._release(transaction, row_task, last_id)

    async def _fill(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        value = value_for_existing(self._registry, row_task.table, row_task.field)
        rows = await _rows(transaction, row_task.table, "", f'"{row_task.field}" IS NULL', last_id)
        return await _write(transaction, row_task.table, row_task.field, [(row[0], value) for row in rows])

    async def _remove_options(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        value = value_for_existing(self._registry, row_task.table, row_task.field)
        # A rule requires that options are plain words, so they are safe in a statement.
        removed_options = ", ".join(f"'{option}'" for option in row_task.options)
        rows = await _rows(transaction, row_task.table, "", f'"{row_task.field}" IN ({removed_options})', last_id)
        return await _write(transaction, row_task.table, row_task.field, [(row[0], value) for row in rows])

    async def _compute(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        model = self._registry.models[row_task.table]
        total = self._total(row_task)
        if total is not None:
            return await _compute_totals(transaction, total, last_id)
        names = list(model.fields)
        rows = await _rows(transaction, row_task.table, "".join(f', "{name}"' for name in names), "", last_id)
        changes: list[tuple[str, Value]] = []
        for record_id, *values in rows:
            known_values: dict[str, Stored] = dict(zip(names, values, strict=True))
            made_value = computed(model, known_values)[row_task.field]
            if made_value != known_values[row_task.field]:
                _require_in_range(model, record_id, {row_task.field: made_value})
                changes.append((record_id, made_value))
        if model.fields[row_task.field].personal:
            await self._release_changed(transaction, row_task, [record_id for record_id, _ in changes])
        await _write(transaction, row_task.table, row_task.field, changes)
        return _last(rows)

    def _total(self, row_task: RowTask) -> Total | None:
        totals = (total for model_totals in self._registry.totals.values() for total in model_totals)
        computed_field = (row_task.table, row_task.field)
        return next((total for total in totals if (total.parent.name, total.field) == computed_field), None)

    async def _release_changed(self, transaction: Transaction, row_task: RowTask, record_ids: Sequence[str]) -> None:
        """Release the value ids of values that are about to change. A later step assigns new value ids."""
        for record_id in record_ids:
            text = f'SELECT id, "{row_task.field}{VALUE_ID_SUFFIX}" FROM "{row_task.table}" WHERE id = $1'
            await self._release_values(transaction, row_task, await transaction.fetch(text, record_id))

    async def _hold(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        field = self._registry.models[row_task.table].fields[row_task.field]
        unheld_condition = f'"{row_task.field}" IS NOT NULL AND "{row_task.field}{VALUE_ID_SUFFIX}" IS NULL'
        rows = await _rows(transaction, row_task.table, f', "{row_task.field}"', unheld_condition, last_id)
        values = [PersonalValue(field.personal or "", text, field.linked) for _, text in rows]
        held_keys = await self._vault.hold(transaction, values)
        changes: list[tuple[str, Value]] = [
            (row[0], held_key.id) for row, held_key in zip(rows, held_keys, strict=True)
        ]
        return await _write(transaction, row_task.table, row_task.field + VALUE_ID_SUFFIX, changes)

    async def _release(self, transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
        column = f'"{row_task.field}{VALUE_ID_SUFFIX}"'
        rows = await _rows(transaction, row_task.table, f", {column}", f"{column} IS NOT NULL", last_id)
        await self._release_values(transaction, row_task, rows)
        return _last(rows)

    async def _release_values(self, transaction: Transaction, row_task: RowTask, rows: Sequence[Row]) -> None:
        held_rows = [(record_id, value_id) for record_id, value_id in rows if value_id is not None]
        for record_id, _ in held_rows:
            await self._vault.drop_aliases(transaction, row_task.table, record_id, row_task.field)
        await self._vault.release(transaction, [value_id for _, value_id in held_rows])
        changes: list[tuple[str, Value]] = [(record_id, None) for record_id, _ in held_rows]
        await _write(transaction, row_task.table, row_task.field + VALUE_ID_SUFFIX, changes)


async def _fold(transaction: Transaction, row_task: RowTask, last_id: str) -> str | None:
    rows = await _rows(transaction, row_task.table, f', "{row_task.field}"', "", last_id)
    changes: list[tuple[str, Value]] = [(record_id, text and folded(text)) for record_id, text in rows]
    return await _write(transaction, row_task.table, row_task.field + FOLDED_SUFFIX, changes)


async def _compute_totals(transaction: Transaction, total: Total, last_id: str) -> str | None:
    parent = total.parent.name
    child, group_condition = total.child.name, f'child."{total.by}" = "{parent}".id'
    columns = "".join(
        f', (SELECT {sum_column} FROM "{child}" AS child WHERE {group_condition})'
        for sum_column in sum_columns(f'child."{total.of}"')
    )
    rows = await _rows(transaction, parent, columns, "", last_id)
    totals: list[tuple[str, int]] = [
        (record_id, total_of(high_half, low_half)) for record_id, high_half, low_half in rows
    ]
    for record_id, value in totals:
        _require_in_range(total.parent, record_id, {total.field: value})
    return await _write(transaction, parent, total.field, totals)


def _require_in_range(model: Declared, record_id: str, values: Mapping[str, Stored]) -> None:
    name = out_of_range(model, values)
    if name is not None:
        raise SchemaMismatch(
            f"{model.name}.{name} of {record_id} is outside {-LARGEST} to {LARGEST}: correct the numbers that it "
            "is made from with the version before"
        )


async def _rows(transaction: Transaction, table: str, columns: str, condition: str, last_id: str) -> list[Row]:
    condition = f" AND {condition}" if condition else ""
    text = f'SELECT id{columns} FROM "{table}" WHERE id > $1{condition} ORDER BY id LIMIT {BATCH}'
    return await transaction.fetch(text, last_id)


async def _write(
    transaction: Transaction, table: str, column: str, changes: Sequence[tuple[str, Value]]
) -> str | None:
    """Set the column of each record and return the id of the last record."""
    await transaction.run_many(f'UPDATE "{table}" SET "{column}" = $2 WHERE id = $1', changes)
    return _last(changes)


def _last(rows: Sequence[Row]) -> str | None:
    return rows[-1][0] if rows else None
