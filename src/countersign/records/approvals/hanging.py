"""The records around one that a plan deletes or moves: they must be unchanged when the plan is carried out."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

from countersign.declare import Declared, Ref
from countersign.declare.fields.field import Stored
from countersign.records.commands import command as commands
from countersign.records.commands import dependents
from countersign.records.commands.run import Run

_Row: TypeAlias = tuple[str, str, int]
"""Model, id and revision."""

_MANY = "more than a deletion takes along"


class _Value(Protocol):
    @property
    def stored(self) -> Stored: ...


class Asked(Protocol):
    """A command on a record: prepared now, or a step of a plan."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def command(self) -> str:
        """The command's."""
        ...

    @property
    def record_id(self) -> str | None:
        """The record; None for a new one."""
        ...

    @property
    def given(self) -> Mapping[str, _Value]:
        """The fields that it sets, by name."""
        ...

    @property
    def cascade(self) -> bool:
        """Whether a deletion takes along what the declarations name."""
        ...


async def fingerprint(run: Run, asked: Asked, *, locks: bool = False) -> str:
    """Another text when a record was added, changed or taken away that refers to one that the command deletes, is
    locked by it, or is read by its effect; empty where there is none. With `locks`, the rows are locked until the
    transaction ends."""
    declared = run.engine.registry.models[asked.model]
    if asked.record_id is None:
        return ""
    found: object = None
    if asked.command == "delete":
        found = await _dependents(run, asked.model, asked.record_id, cascade=asked.cascade, locks=locks)
    elif asked.command in commands.moves(declared):
        lock = " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""
        found = [*await _locked_along(run, declared, asked.record_id, lock), *await _read_along(run, asked, lock)]
    return run.engine.vault.keyed(msgspec.json.encode(found)).hex() if found else ""


async def _dependents(run: Run, model: str, record_id: str, *, cascade: bool, locks: bool) -> object:
    found = await dependents.find(run, model, record_id, cascade=cascade, locks=locks)
    return [[*link.source, link.field, link.revision] for link in found.links] if found.complete else _MANY


async def _locked_along(run: Run, model: Declared, record_id: str, lock: str) -> list[_Row]:
    found: list[_Row] = []
    for each in run.engine.registry.referrers[model.name]:
        if each.model.locked_with == each.ref.name:
            found += await _rows(run, each.model.name, each.ref.name, record_id, lock)
    return found


async def _read_along(run: Run, asked: Asked, lock: str) -> list[_Row]:
    """The records that the effect reads: those that refs of the record lead to once the command is done, and those that
    refer to these."""
    registry = run.engine.registry
    model = registry.models[asked.model]
    reads = () if model.workflow is None else model.workflow.moves[asked.command].reads
    found: list[_Row] = []
    for ref in model.fields.values():
        target = await _target(run, asked, ref.name) if isinstance(ref, Ref) and ref.target in reads else None
        if isinstance(ref, Ref) and target is not None:
            found += await _rows(run, ref.target, "id", target, lock)
            for each in (each for each in registry.referrers[ref.target] if each.model.name in reads):
                found += await _rows(run, each.model.name, each.ref.name, target, lock)
    return found


async def _target(run: Run, asked: Asked, ref: str) -> str | None:
    """The id that the ref has once the command is done."""
    if ref in asked.given:
        stored = asked.given[ref].stored
    else:
        row = await run.transaction.fetch_one(f'SELECT "{ref}" FROM "{asked.model}" WHERE id = $1', asked.record_id)
        stored = None if row is None else row[0]
    return None if stored is None else str(stored)


async def _rows(run: Run, model: str, column: str, value: str, lock: str) -> list[_Row]:
    text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 ORDER BY id{lock}'
    return [(model, *row) for row in await run.transaction.fetch(text, value)]
