"""Creates records of any model, with a value in every required field, and records that refer to them."""

from itertools import count

from countersign.declare import CALLER, Bool, Date, Declared, Number, Ref, Select, Text
from countersign.declare.registry import Referrer, Registry
from countersign.records.access.view import Caller, View
from countersign.records.commands import workflow
from countersign.records.commands.run import Actor, Run
from tests.records.office import Office

GIVEN = {
    "grant": {"model": "lead", "commands": "get"},
    "address": {"country": "AT"},
    "view": {"model": "lead"},
    "favourite": {"path": "/models/lead"},
}
"""Values for fields that do not accept arbitrary text."""

_numbers = count(1)


def referrers(registry: Registry) -> list[tuple[Declared, Referrer]]:
    """Return every reference to a model whose records can be deleted, with that model."""
    return [
        (registry.models[name], record)
        for name, several in registry.referrers.items()
        for record in several
        if "delete" in registry.models[name].commands
    ]


async def make(office: Office, model: Declared, /, **values: object) -> str:
    """Create a record and return its id. An action's effect creates it, because an effect may set readonly fields."""
    engine = office.service.engine
    values = {**GIVEN.get(model.name, {}), **values}
    for field in model.fields.values():
        if field.default is CALLER:
            values.setdefault(field.name, None)
        if field.required and field.default is None and field.name not in values:
            values[field.name] = await _value(office, model, field.name)
    async with engine.records.database.transaction() as transaction:
        run = Run(engine, Caller("person", "", "", "", View({})), transaction, Actor("0" * 24), transaction)
        return await workflow.EffectContext(run, model, "", {}, "made").create(model.name, **values)


async def _value(office: Office, model: Declared, name: str) -> object:
    field = model.fields[name]
    if isinstance(field, Ref):
        return await make(office, office.service.records.registry.models[field.target])
    if isinstance(field, Select):
        return field.options[0]
    if isinstance(field, Number):
        return 1
    if isinstance(field, Bool):
        return True
    if isinstance(field, Date):
        return "2026-01-02"
    return f"AT{next(_numbers)}"[-field.max_length :] if isinstance(field, Text) else None


async def pair(office: Office, target: Declared, referrer: Referrer) -> tuple[str, str]:
    """Create a record, and another record that refers to it."""
    # A payment needs a posted invoice, which is locked. The invoice becomes a draft again afterwards.
    is_payment = referrer.model.name == "payment"
    record_id = await make(office, target)
    if is_payment:
        await _put(office, record_id, "posted")
    referring_id = await make(office, referrer.model, **{referrer.ref.name: record_id})
    if is_payment:
        await _put(office, record_id, "draft")
    return record_id, referring_id


async def _put(office: Office, invoice: str, state: str) -> None:
    async with office.service.records.database.transaction() as transaction:
        await transaction.run("UPDATE invoice SET state = $1 WHERE id = $2", state, invoice)


async def stored_value(office: Office, model: Declared, record_id: str, field: str = "id") -> list[object]:
    """Return a list with the stored value of a field. The list is empty if the record does not exist."""
    text = f'SELECT "{field}" FROM "{model.name}" WHERE id = $1'
    return [row[0] for row in await office.service.records.database.fetch(text, record_id)]
