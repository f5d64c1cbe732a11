"""Finds tables that are not connected but can prevent deletions, for `countersign connect check`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from countersign.connect import postgres
from countersign.connect.fit import Misfit
from countersign.connect.schema import Database
from countersign.declare import Declared, Ref
from countersign.declare.registry import Referrer
from countersign.kernel.database import postgres_admin
from countersign.kernel.database.port import Row
from countersign.kernel.database.postgres_admin import AdminConnection
from countersign.records.adopted import foreign_keys
from countersign.records.adopted.foreign_keys import ForeignKey
from countersign.records.commands.errors import BadInput


async def obstacles(address: str, models: Mapping[str, Declared], database: Database) -> list[Misfit]:
    """Return the obstacles to deletions of records of these models. A model that marks deleted rows has no obstacles.

    Raises:
        Unavailable: the database cannot be reached.
    """
    deletable = [each for each in models.values() if each.table and each.table.deletes and not each.table.deleted]
    found: list[Misfit] = []
    if not deletable or database.is_sqlite:
        return found
    async with (
        postgres_admin.admin_session(address, application=postgres.APPLICATION) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
        for model in deletable:
            try:
                keys = await foreign_keys.read("postgres", partial(_fetch, connection), model)
            except BadInput as refused:
                found.append(Misfit(model.name, refused.detail, "take deletes out"))
                continue
            found += _model_obstacles(model, keys, models)
    return found


async def _fetch(connection: AdminConnection, text: str, values: Sequence[str]) -> list[Row]:
    return [tuple(row) for row in await connection.fetch(text, *values)]


def _model_obstacles(model: Declared, keys: Sequence[ForeignKey], models: Mapping[str, Declared]) -> Iterator[Misfit]:
    """Yield the foreign keys that can prevent deletions of the model, one for each table."""
    referrers = list(_referrers(model, models))
    unconnected = [key for key in keys if not any(key.is_of(each, model) for each in referrers)]
    changing = {key.table for key in unconnected if key.changes_rows}
    for table in sorted({key.table for key in unconnected}):
        name = ".".join(table)
        remedy = f"declare {name} with a ref to {model.name}, or delete such records with another application"
        text = f"{name} is not connected, and its rows prevent the deletion of a record that they refer to"
        if table in changing:
            text = f"{name} is not connected, and could lose rows or values with a record, so all deletions are refused"
        yield Misfit(model.name, text, remedy)


def _referrers(model: Declared, models: Mapping[str, Declared]) -> Iterator[Referrer]:
    for each in models.values():
        for field in each.fields.values():
            if isinstance(field, Ref) and field.target == model.name:
                yield Referrer(each, field)
