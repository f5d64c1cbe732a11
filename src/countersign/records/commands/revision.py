"""Optimistic locking: whether a record is still as its caller read it."""

from countersign.records.access.view import ModelView
from countersign.records.commands import select
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run
from countersign.records.commands.stored import StoredRecord


async def require_revision(run: Run, view: ModelView, record: StoredRecord, body: Body) -> None:
    """Insist that the record is still as the caller read it, if it says which revision it read.

    Raises:
        BadInput: it has changed, as far as the caller can see, or `revision` is no integer.
    """
    if "revision" not in body:
        return
    if type(body["revision"]) is not int:
        raise BadInput("revision must be an integer")
    reading = run.engine.reading(run.caller, view)
    statement = select.one(reading, None, record.id)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is None or row[1] != body["revision"]:
        raise BadInput("record has changed")
