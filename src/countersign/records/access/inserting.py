"""Rows of the engine's own models, written without a caller: people, roles, grants, sessions, agent tokens."""

from collections.abc import Mapping

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel import ids
from countersign.kernel.database.port import Transaction, Value
from countersign.records.access.folding import folded


async def insert(transaction: Transaction, model: Declared, values: Mapping[str, Stored]) -> str:
    """A new record with these stored values, all others empty; its id.

    Raises:
        LookupError: a value is for a field the model does not have, or for a personal one: those go through the vault.
        ConstraintViolation: a value that must be unique is taken.
    """
    record_id = ids.new_record_id()
    columns: dict[str, Value] = {"id": record_id, "revision": 1, "changed": 0}
    for name, value in values.items():
        field = model.fields.get(name)
        if field is None or field.personal:
            raise LookupError(f"{model.name}.{name} cannot be written here")
        columns[name] = value
        if field.is_folded:
            columns[f"{name}__folded"] = folded(value) if isinstance(value, str) else None
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    await transaction.run(f'INSERT INTO "{model.name}" ({names}) VALUES ({places})', *columns.values())
    return record_id
