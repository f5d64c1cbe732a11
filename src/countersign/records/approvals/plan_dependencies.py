"""Finds the records on which the commands of a plan depend, and their fingerprints and revisions."""

import asyncio
import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import TypeAlias

import msgspec

from countersign.declare import Declared, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.records.commands import command as commands
from countersign.records.commands import dependents
from countersign.records.commands.preconditions import refs_of
from countersign.records.commands.prepared_command import PlannedCommand
from countersign.records.commands.run import Run

ReadRow: TypeAlias = tuple[str, str, int]
"""The model, the id and the revision of a record."""

_TOO_MANY_LINKS = "more than a deletion takes along"


PlannedRefs: TypeAlias = Mapping[tuple[str, str], Mapping[str, Iterable[str]]]
"""Maps the model and id of a record to a map from its refs to the ids that the commands of one plan set in the ref."""

_Lookup: TypeAlias = tuple[str, str, str]
"""The model, the column, and the value to look up in the column."""


def planned_refs(
    registry: Registry, plan_commands: Iterable[PlannedCommand]
) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return the ids that the commands of a plan set in refs. A later command reads the refs that earlier commands
    set."""
    refs_by_record: dict[tuple[str, str], dict[str, set[str]]] = {}
    for planned_command in plan_commands:
        for name, field_input in planned_command.given.items() if planned_command.record_id is not None else ():
            if isinstance(registry.models[planned_command.model].fields[name], Ref) and field_input.stored is not None:
                refs = refs_by_record.setdefault((planned_command.model, planned_command.record_id or ""), {})
                refs.setdefault(name, set()).add(str(field_input.stored))
    return refs_by_record


class Dependencies:
    """Finds the records on which the commands of one plan depend. Results are cached, so that thousands of commands on
    one record read and lock the record only once. Do not use an object after the first write of the transaction.

    With `locks`, the rows are locked until the transaction ends.
    """

    def __init__(self, run: Run, plan_commands: Iterable[PlannedCommand], *, locks: bool = False) -> None:
        self._run = run
        self._registry = run.engine.registry
        self._planned_refs: PlannedRefs = planned_refs(self._registry, plan_commands)
        self._locks = locks
        self._lock = " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""
        self._rows: dict[_Lookup, list[ReadRow]] = {}
        self._fingerprints: dict[tuple[_Lookup, ...], str] = {}

    async def fingerprint(self, planned_command: PlannedCommand) -> str:
        """Return a fingerprint of the records on which the command depends indirectly. It changes when such a record is
        added, changed or deleted. It is empty if there are no such records."""
        lookups = (*self._lookups_of_locked(planned_command), *await self._lookups_of_reads(planned_command))
        if planned_command.command == "delete" and planned_command.record_id is not None:
            links = await self._dependents(
                planned_command.model, planned_command.record_id, cascade=planned_command.cascade
            )
            related_rows = await self._all(lookups)
            return self._keyed([links, related_rows] if related_rows else links)
        if lookups not in self._fingerprints:
            self._fingerprints[lookups] = self._keyed(await self._all(lookups))
        return self._fingerprints[lookups]

    async def reads(
        self, planned_command: PlannedCommand, *, read_fields: Container[str] | None = None
    ) -> list[ReadRow]:
        """Return the records that the command reads in addition to its own record: the old and new targets of its refs,
        whose state, values or totals decide whether the command is allowed. With `read_fields`, return only the targets
        of these refs."""
        read_rows: list[ReadRow] = []
        refs = refs_read(self._registry, planned_command.model, planned_command.command)
        for ref in refs if read_fields is None else [ref for ref in refs if ref.name in read_fields]:
            for target in await self._targets(planned_command, ref.name):
                read_rows += await self._rows_of((ref.target, "id", target))
        return read_rows

    def _lookups_of_locked(self, planned_command: PlannedCommand) -> list[_Lookup]:
        """Return the lookups of the records whose `locked_with` refers to the record of an action."""
        if planned_command.record_id is None or planned_command.command not in commands.moves(
            self._registry.models[planned_command.model]
        ):
            return []
        referrers = self._registry.referrers[planned_command.model]
        related_rows = [referrer for referrer in referrers if referrer.model.locked_with == referrer.ref.name]
        return [(row.model.name, row.ref.name, planned_command.record_id) for row in related_rows]

    async def _lookups_of_reads(self, planned_command: PlannedCommand) -> list[_Lookup]:
        """Return the lookups of the records that refer to a record that the command reads. Only records of the models
        that the declaration lists in `reads` are included."""
        read_names = _declared_reads(self._registry.models[planned_command.model], planned_command.command)
        lookups: list[_Lookup] = []
        for ref in refs_read(self._registry, planned_command.model, planned_command.command) if read_names else ():
            for referrer in (
                referrer for referrer in self._registry.referrers[ref.target] if referrer.model.name in read_names
            ):
                targets = await self._targets(planned_command, ref.name)
                lookups += [(referrer.model.name, referrer.ref.name, target) for target in targets]
        return lookups

    async def _targets(self, planned_command: PlannedCommand, ref: str) -> list[str]:
        """Return the id in the stored ref, and the ids that the commands of the plan set in the ref."""
        target_ids: set[Stored] = set()
        if planned_command.record_id is not None:
            text = f'SELECT "{ref}" FROM "{planned_command.model}" WHERE id = $1'
            row = await self._run.transaction.fetch_one(text, planned_command.record_id)
            set_by_plan = self._planned_refs.get((planned_command.model, planned_command.record_id), {}).get(ref, ())
            target_ids |= {None if row is None else row[0], *set_by_plan}
        elif ref in planned_command.given:
            target_ids.add(planned_command.given[ref].stored)
        return sorted(str(target_id) for target_id in target_ids if target_id is not None)

    async def _dependents(self, model: str, record_id: str, *, cascade: bool) -> object:
        dependent_records = await dependents.find(self._run, model, record_id, cascade=cascade, locks=self._locks)
        if not dependent_records.complete:
            return _TOO_MANY_LINKS
        return [[*link.source, link.field, link.revision] for link in dependent_records.links]

    async def _all(self, lookups: Iterable[_Lookup]) -> list[ReadRow]:
        return [row for lookup in lookups for row in await self._rows_of(lookup)]

    async def _rows_of(self, lookup: _Lookup) -> list[ReadRow]:
        if lookup not in self._rows:
            self._rows[lookup] = await self._fetch(*lookup)
        return self._rows[lookup]

    async def _fetch(self, model: str, column: str, value: str) -> list[ReadRow]:
        """Return the rows. If there are more rows than a cascading deletion may include, return one digest of all rows
        instead, without locking the remaining rows."""
        text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 ORDER BY id LIMIT $2{self._lock}'
        rows = await self._run.transaction.fetch(text, value, dependents.MAX_RECORDS + 1)
        if len(rows) <= dependents.MAX_RECORDS:
            return [(model, *row) for row in rows]
        return [(model, await self._digest(model, column, value), 0)]

    async def _digest(self, model: str, column: str, value: str) -> str:
        text = f'SELECT id, revision FROM "{model}" WHERE "{column}" = $1 AND id > $2 ORDER BY id LIMIT $3'
        digest, last_id = hashlib.sha256(), ""
        while True:
            rows = await self._run.transaction.fetch(text, value, last_id, dependents.MAX_RECORDS)
            digest.update(msgspec.json.encode([tuple(row) for row in rows]))
            if len(rows) < dependents.MAX_RECORDS:
                return digest.hexdigest()
            last_id = str(rows[-1][0])
            # Let other requests run.
            await asyncio.sleep(0)

    def _keyed(self, content: object) -> str:
        return self._run.engine.vault.keyed(msgspec.json.encode(content)).hex() if content else ""


def refs_read(registry: Registry, model: str, command: str) -> list[Ref]:
    """Return the refs to the records that a command reads: the record that locks its own record, the records that rules
    name, the records with totals, and the records that the declaration names."""
    model_declaration = registry.models[model]
    read_names = _declared_reads(model_declaration, command)
    needed_refs = {model_declaration.locked_with, *(total.by for total in registry.totals[model])}
    needed_refs |= {
        name for rule in (*model_declaration.rules, *_move_rules(model_declaration, command)) for name in refs_of(rule)
    }
    refs = (field for field in model_declaration.fields.values() if isinstance(field, Ref))
    return [ref for ref in refs if ref.name in needed_refs or ref.target in read_names]


def _declared_reads(model: Declared, command: str) -> tuple[str, ...]:
    if command in commands.moves(model) and model.workflow is not None:
        return model.workflow.moves[command].reads
    return model.reads


def _move_rules(model: Declared, command: str) -> tuple[Where, ...]:
    if command in commands.moves(model) and model.workflow is not None:
        return model.workflow.moves[command].rules
    return ()
