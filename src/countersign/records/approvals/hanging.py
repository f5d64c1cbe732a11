"""The records around the one that a plan is about: they must be unchanged when the plan is carried out."""

import asyncio
import hashlib
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


PlannedRefs: TypeAlias = Mapping[tuple[str, str], Mapping[str, Iterable[str]]]
"""By model and id of a record, the ids that commands of one plan give to each of its refs."""

_Lookup: TypeAlias = tuple[str, str, str]
"""Model, column and the value in it."""


def planned_refs(registry: Registry, several: Iterable[Asked]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """What the commands of a plan link their records to: a later one reads what an earlier one set."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for asked in several:
        for name, each in asked.given.items() if asked.record_id is not None else ():
            if isinstance(registry.models[asked.model].fields[name], Ref) and each.stored is not None:
                refs = found.setdefault((asked.model, asked.record_id or ""), {})
                refs.setdefault(name, set()).add(str(each.stored))
    return found


class Surroundings:
    """Finds the records around those that the commands of one plan are about. What was found once is remembered, so
    that thousands of commands about one record look it up, and lock it, once: it serves while nothing is written.

    With `locks`, the rows are locked until the transaction ends.
    """

    def __init__(self, run: Run, several: Iterable[Asked], *, locks: bool = False) -> None:
        self._run = run
        self._registry = run.engine.registry
        self._planned_refs: PlannedRefs = planned_refs(self._registry, several)
        self._locks = locks
        self._lock = " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""
        self._rows: dict[_Lookup, list[Row]] = {}
        self._fingerprints: dict[tuple[_Lookup, ...], str] = {}

    async def fingerprint(self, asked: Asked) -> str:
        """A fingerprint of the records the command depends on indirectly; it changes when one is added, changed or
        deleted; empty where there are none."""
        lookups = (*self._locked_along(asked), *await self._read_along(asked))
        if asked.command == "delete" and asked.record_id is not None:
            gone = await self._dependents(asked.model, asked.record_id, cascade=asked.cascade)
            along = await self._all(lookups)
            return self._keyed([gone, along] if along else gone)
        if lookups not in self._fingerprints:
            self._fingerprints[lookups] = self._keyed(await self._all(lookups))
        return self._fingerprints[lookups]

    async def reads(self, asked: Asked, *, by: Container[str] | None = None) -> list[Row]:
        """The records that the command reads beside its own, as they are: those that its refs lead to, before it and
        after, whose state, values or totals decide whether it is right. `by` leaves out what other refs lead to."""
        found: list[Row] = []
        refs = refs_read(self._registry, asked.model, asked.command)
        for ref in refs if by is None else [each for each in refs if each.name in by]:
            for target in await self._targets(asked, ref.name):
                found += await self._found((ref.target, "id", target))
        return found

    def _locked_along(self, asked: Asked) -> list[_Lookup]:
        """Where the records are that are locked with the one that an action moves."""
        if asked.record_id is None or asked.command not in commands.moves(self._registry.models[asked.model]):
            return []
        referrers = self._registry.referrers[asked.model]
        along = [each for each in referrers if each.model.locked_with == each.ref.name]
        return [(each.model.name, each.ref.name, asked.record_id) for each in along]

    async def _read_along(self, asked: Asked) -> list[_Lookup]:
        """Where the records are that the declaration names and that refer to one that the command reads."""
        named = _declared_reads(self._registry.models[asked.model], asked.command)
        found: list[_Lookup] = []
        for ref in refs_read(self._registry, asked.model, asked.command) if named else ():
            for each in (each for each in self._registry.referrers[ref.target] if each.model.name in named):
                targets = await self._targets(asked, ref.name)
                found += [(each.model.name, each.ref.name, target) for target in targets]
        return found

    async def _targets(self, asked: Asked, ref: str) -> list[str]:
        """The ids that the ref has now, and that the commands of the plan give it."""
        found: set[Stored] = set()
        if asked.record_id is not None:
            text = f'SELECT "{ref}" FROM "{asked.model}" WHERE id = $1'
            row = await self._run.transaction.fetch_one(text, asked.record_id)
            planned = self._planned_refs.get((asked.model, asked.record_id), {}).get(ref, ())
            found |= {None if row is None else row[0], *planned}
        elif ref in asked.given:
            found.add(asked.given[ref].stored)
        return sorted(str(each) for each in found if each is not None)

    async def _dependents(self, model: str, record_id: str, *, cascade: bool) -> object:
        found = await dependents.find(self._run, model, record_id, cascade=cascade, locks=self._locks)
        return [[*link.source, link.field, link.revision] for link in found.links] if found.complete else _MANY

    async def _all(self, lookups: Iterable[_Lookup]) -> list[Row]:
        return [row for each in lookups for row in await self._found(each)]

    async def _found(self, lookup: _Lookup) -> list[Row]:
        if lookup not in self._rows:
            self._rows[lookup] = await self._fetched(*lookup)
        return self._rows[lookup]

    async def _fetched(self, model: str, column: str, value: str) -> list[Row]:
        """The rows or, of more than a deletion may take along, one digest of all: no more are locked."""
        text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 ORDER BY id LIMIT $2{self._lock}'
        rows = await self._run.transaction.fetch(text, value, dependents.MAX_RECORDS + 1)
        if len(rows) <= dependents.MAX_RECORDS:
            return [(model, *row) for row in rows]
        return [(model, await self._digest(model, column, value), 0)]

    async def _digest(self, model: str, column: str, value: str) -> str:
        text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 AND id > $2 ORDER BY id LIMIT $3'
        digest, last = hashlib.sha256(), ""
        while True:
            rows = await self._run.transaction.fetch(text, value, last, dependents.MAX_RECORDS)
            digest.update(msgspec.json.encode([tuple(each) for each in rows]))
            if len(rows) < dependents.MAX_RECORDS:
                return digest.hexdigest()
            last = str(rows[-1][0])
            # Other requests have a turn.
            await asyncio.sleep(0)

    def _keyed(self, found: object) -> str:
        return self._run.engine.vault.keyed(msgspec.json.encode(found)).hex() if found else ""


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
