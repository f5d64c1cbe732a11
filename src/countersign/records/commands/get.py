"""The command `get`: one record, as its caller may see it."""

from countersign.records.commands import outgoing, select
from countersign.records.commands.reading import Record
from countersign.records.commands.refusals import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.run import Body, Run


async def get(run: Run, model: str, body: Body) -> Record:
    """The record of `id`.

    Raises:
        BadInput: an unknown key; or no such record, which is also said of those the caller may not see.
    """
    refuse_unknown_keys(body, ("id",), f"{model}.get")
    return await read(run, model, body.get("id"))


async def read(run: Run, model: str, record_id: object) -> Record:
    """The record as the caller may see it.

    Raises:
        BadInput: the id is no string, or there is no such record for the caller.
    """
    if not isinstance(record_id, str):
        raise BadInput("id must be a string")
    view = run.view_of(model)
    reading = run.engine.reading(run.caller, view)
    statement = select.one(reading, view.visible, record_id)
    row = await run.reader.fetch_one(statement.text, *statement.values)
    if row is None:
        raise no_such_record()
    return (await outgoing.records(run, reading, [row]))[0]
