"""Which commands a model has, and what each of them is: the table the rest of the engine asks."""

from collections.abc import Awaitable, Callable, Mapping

from countersign.declare import Declared
from countersign.declare.registry import Registry
from countersign.records.access.view import ModelView
from countersign.records.commands import action, count_by, create, delete, get, listing, update
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run

Answering = Callable[[Run, str, Body], Awaitable[object]]
"""A command that reads, or one of the engine's own: the value it answers."""

READING: Mapping[str, Answering] = {
    "get": get.get,
    "list": listing.records,
    "search": listing.search,
    "count_by": count_by.count_by,
}

READ_ONLY = frozenset({"get", "list", "search", "count_by", "export", "history", "watch", "verify"})
"""The names of all commands that change nothing, the engine's own included."""


def names_of(registry: Registry, own: Mapping[str, Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """By model, the names of all its commands: generated, workflow actions, and the engine's `own`."""
    return {
        name: frozenset((*model.commands, *moves(model), *own.get(name, {})))
        for name, model in registry.models.items()
    }


def moves(model: Declared) -> tuple[str, ...]:
    """The names of the model's workflow actions."""
    return () if model.workflow is None else tuple(model.workflow.moves)


def is_writing(model: Declared, name: str) -> bool:
    """Whether the command is one of those that are prepared first, so that an agent's can become a plan."""
    return name in ("create", "update", "delete") or name in moves(model)


def writes(model: Declared, name: str) -> bool:
    """Whether the command may change anything, so that it takes an Idempotency-Key."""
    return is_writing(model, name) or name not in READ_ONLY


async def check(run: Run, view: ModelView, name: str, body: Body) -> Prepared:
    """Read a writing command's input and find out whether it may be done.

    Raises:
        BadInput: it may not; the detail says why.
    """
    if name == "create":
        return await create.check(run, view, body)
    if name == "update":
        return await update.check(run, view, body)
    if name == "delete":
        return await delete.check(run, view, body)
    return await action.check(run, view, name, body)


async def apply(run: Run, prepared: Prepared) -> str:
    """Do what was prepared; the id of the record it was about.

    Raises:
        BadInput: it cannot be done.
    """
    if prepared.command == "create":
        return await create.apply(run, prepared)
    if prepared.command == "update":
        return await update.apply(run, prepared)
    if prepared.command == "delete":
        return await delete.apply(run, prepared)
    return await action.apply(run, prepared)


async def result(run: Run, prepared: Prepared, record_id: str) -> object:
    """What a writing command answers: the record as its caller sees it now, or of a deleted one its id."""
    if prepared.command == "delete":
        return {"id": record_id}
    if prepared.model not in run.caller.view.models:
        return {"id": record_id}
    try:
        return await get.read(run, prepared.model, record_id)
    except BadInput:
        # The change took it out of the caller's sight.
        return {"id": record_id}
