"""The records around the one that a plan is about: they must be unchanged when the plan is carried out."""

from collections.abc import Container, Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from countersign.declare import Declared, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.records.commands import command as commands
from countersign.records.commands import dependents
from countersign.records.commands.record_rules import refs_of
from countersign.records.commands.run import Run

Row: TypeAlias = tuple[str, str, int]
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


Linked: TypeAlias = Mapping[tuple[str, str], Mapping[str, Iterable[str]]]
"""By model and id of a record, the ids that commands of one plan give to each of its refs."""


def linked(registry: Registry, several: Iterable[Asked]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """What the commands of a plan link their records to: a later one reads what an earlier one set."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for asked in several:
        for name, each in asked.given.items() if asked.record_id is not None else ():
            if isinstance(registry.models[asked.model].fields[name], Ref) and each.stored is not None:
                refs = found.setdefault((asked.model, asked.record_id or ""), {})
                refs.setdefault(name, set()).add(str(each.stored))
    return found


async def fingerprint(run: Run, asked: Asked, known: Linked, *, locks: bool = False) -> str:
    """Another text when a record was added, changed or taken away that refers to one that the command deletes, is
    locked by it, or is read with one that it reads; empty where there is none. With `locks`, the rows are locked until
    the transaction ends."""
    declared = run.engine.registry.models[asked.model]
    lock = _lock(run, locks=locks)
    along: list[Row] = []
    if asked.command in commands.moves(declared) and asked.record_id is not None:
        along += await _locked_along(run, declared, asked.record_id, lock)
    along += await _read_along(run, asked, known, lock)
    found: object = along
    if asked.command == "delete" and asked.record_id is not None:
        gone = await _dependents(run, asked.model, asked.record_id, cascade=asked.cascade, locks=locks)
        found = [gone, along] if along else gone
    return run.engine.vault.keyed(msgspec.json.encode(found)).hex() if found else ""


async def reads(
    run: Run, asked: Asked, known: Linked, *, locks: bool = False, by: Container[str] | None = None
) -> list[Row]:
    """The records that the command reads beside its own, as they are: those that its refs lead to, before it and after,
    whose state, values or totals decide whether it is right. With `locks`, they are locked until the transaction
    ends; `by` leaves out what other refs lead to."""
    found: list[Row] = []
    refs = refs_read(run.engine.registry, asked.model, asked.command)
    for ref in refs if by is None else [each for each in refs if each.name in by]:
        for target in await _targets(run, asked, known, ref.name):
            found += await _rows(run, ref.target, "id", target, _lock(run, locks=locks))
    return found


def refs_read(registry: Registry, model: str, command: str) -> list[Ref]:
    """The refs to records that a command reads: what locks its record, what rules of the model look at, what it counts
    into, and what its declaration names."""
    declared = registry.models[model]
    named = _declared_reads(declared, command)
    needed = {declared.locked_with, *(total.by for total in registry.totals[model])}
    needed |= {name for rule in (*declared.rules, *_move_rules(declared, command)) for name in refs_of(rule)}
    refs = (field for field in declared.fields.values() if isinstance(field, Ref))
    return [ref for ref in refs if ref.name in needed or ref.target in named]


def _declared_reads(model: Declared, command: str) -> tuple[str, ...]:
    if command in commands.moves(model) and model.workflow is not None:
        return model.workflow.moves[command].reads
    return model.reads


def _move_rules(model: Declared, command: str) -> tuple[Where, ...]:
    if command in commands.moves(model) and model.workflow is not None:
        return model.workflow.moves[command].rules
    return ()


def _lock(run: Run, *, locks: bool) -> str:
    return " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""


async def _dependents(run: Run, model: str, record_id: str, *, cascade: bool, locks: bool) -> object:
    found = await dependents.find(run, model, record_id, cascade=cascade, locks=locks)
    return [[*link.source, link.field, link.revision] for link in found.links] if found.complete else _MANY


async def _locked_along(run: Run, model: Declared, record_id: str, lock: str) -> list[Row]:
    found: list[Row] = []
    for each in run.engine.registry.referrers[model.name]:
        if each.model.locked_with == each.ref.name:
            found += await _rows(run, each.model.name, each.ref.name, record_id, lock)
    return found


async def _read_along(run: Run, asked: Asked, known: Linked, lock: str) -> list[Row]:
    """The records that the declaration names and that refer to one that the command reads."""
    registry = run.engine.registry
    named = _declared_reads(registry.models[asked.model], asked.command)
    found: list[Row] = []
    for ref in refs_read(registry, asked.model, asked.command) if named else ():
        for each in (each for each in registry.referrers[ref.target] if each.model.name in named):
            for target in await _targets(run, asked, known, ref.name):
                found += await _rows(run, each.model.name, each.ref.name, target, lock)
    return found


async def _targets(run: Run, asked: Asked, known: Linked, ref: str) -> list[str]:
    """The ids that the ref has now, and that the commands of the plan give it."""
    found: set[Stored] = set()
    if asked.record_id is not None:
        row = await run.transaction.fetch_one(f'SELECT "{ref}" FROM "{asked.model}" WHERE id = $1', asked.record_id)
        found |= {None if row is None else row[0], *known.get((asked.model, asked.record_id), {}).get(ref, ())}
    elif ref in asked.given:
        found.add(asked.given[ref].stored)
    return sorted(str(each) for each in found if each is not None)


async def _rows(run: Run, model: str, column: str, value: str, lock: str) -> list[Row]:
    text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 ORDER BY id{lock}'
    return [(model, *row) for row in await run.transaction.fetch(text, value)]
