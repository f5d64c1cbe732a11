"""Stores the steps of plans, with their personal values encrypted and with fingerprints of the records on which they
depend."""

import asyncio
import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from countersign.declare import Declared, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import Reader, Transaction
from countersign.records.commands import command as commands
from countersign.records.commands import dependents
from countersign.records.commands.errors import BadInput
from countersign.records.commands.preconditions import refs_of
from countersign.records.commands.prepared_command import FieldInput, PlannedCommand, PreparedCommand
from countersign.records.commands.run import Run
from countersign.records.masking.vault import Vault

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


_ADD_VALUE = "INSERT INTO plan_value (plan_id, value_id, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_VALUES = "SELECT value_id, sealed FROM plan_value WHERE plan_id = $1"
_DELETE_VALUES = "DELETE FROM plan_value WHERE plan_id = $1"

VALUES_PER_TURN = 200
"""The number of values to decrypt or render before yielding to the event loop. It applies to work that needs no
statement for each value."""


class Step(PlannedCommand, frozen=True):
    """A stored command of a plan. It contains the value ids of personal values instead of the values.

    `dependents_fingerprint` is the fingerprint of the records on which the command depends indirectly. `read_revisions`
    lists the records that the command reads, with their revisions. Both were determined when the plan was proposed (see
    `Dependencies`).
    """

    dependents_fingerprint: str = msgspec.field(default="", name="hanging")
    read_revisions: list[ReadRow] = msgspec.field(default_factory=list[ReadRow], name="reads")


def decode_steps(text: str) -> list[Step]:
    """Return the steps of a stored plan."""
    return msgspec.json.decode(text, type=list[Step])


async def store_steps(run: Run, plan_id: str, prepared_commands: Sequence[PreparedCommand]) -> list[Step]:
    """Return the steps to store, and store their personal values, encrypted with keys of the vault, until the plan is
    decided."""
    dependencies = Dependencies(run, prepared_commands)
    return [
        Step(
            command.model,
            command.command,
            command.record_id,
            command.revision,
            {
                name: await _store_value(run, plan_id, command.model, name, field_input)
                for name, field_input in command.given.items()
            },
            command.cascade,
            await dependencies.fingerprint(command),
            await dependencies.reads(command),
        )
        async for command in CooperativeIterator(prepared_commands)
    ]


async def _store_value(run: Run, plan_id: str, model: str, name: str, field_input: FieldInput) -> FieldInput:
    field = run.engine.registry.models[model].fields[name]
    if field.personal is None or field_input.stored is None:
        return FieldInput(field_input.stored, is_default=field_input.is_default)
    vault, domain = run.engine.vault, run.caller.domain
    value_key = (
        None if field_input.value_id is None else await vault.hold_existing(run.transaction, field_input.value_id)
    )
    if value_key is None:
        value_key = await vault.create_alias_id(run.transaction, field.personal, "" if domain is None else domain.id)
    sealed_text = vault.seal(value_key.key, str(field_input.stored))
    if not await run.transaction.run(_ADD_VALUE, plan_id, value_key.id, sealed_text):
        await vault.release(run.transaction, [value_key.id])
    return FieldInput(
        None, field_input.value_id, field_input.is_plain_text, field_input.origins, sealed_id=value_key.id
    )


def stored_copy(value: FieldInput) -> object:
    """Return the value of a step in the form in which the plan's diff stores it. A personal value is stored as its
    value id."""
    return value.stored if value.sealed_id is None else {"value": value.sealed_id}


async def prepared_of(run: Run, plan_id: str, steps: Sequence[Step]) -> list[PreparedCommand]:
    """Convert the steps back to prepared commands, with their personal values in clear.

    Raises:
        BadInput: a personal value has been erased.
    """
    texts = await stored_texts(run, run.transaction, plan_id)
    return [
        PreparedCommand(
            step.model,
            step.command,
            step.record_id,
            step.revision,
            {name: _with_text(value, texts) for name, value in step.given.items()},
            step.cascade,
        )
        async for step in CooperativeIterator(steps, VALUES_PER_TURN)
    ]


def _with_text(value: FieldInput, texts: Mapping[int, str]) -> FieldInput:
    if value.sealed_id is None:
        return value
    if value.sealed_id not in texts:
        raise BadInput("a personal value of the plan was erased; propose it again")
    return FieldInput(texts[value.sealed_id], value.value_id, value.is_plain_text, value.origins)


async def stored_texts(run: Run, reader: Reader, plan_id: str) -> dict[int, str]:
    """Map the value ids of a pending plan to their texts in clear."""
    sealed_texts: dict[int, str] = dict(await reader.fetch(_VALUES, plan_id))
    keys = await run.engine.vault.keys(reader, list(sealed_texts))
    text_by_id = {
        value_id: run.engine.vault.unseal(keys[value_id], text)
        async for value_id, text in CooperativeIterator(sealed_texts.items(), VALUES_PER_TURN)
        if value_id in keys
    }
    return {value_id: text for value_id, text in text_by_id.items() if text is not None}


async def release_values(vault: Vault, transaction: Transaction, plan_id: str) -> None:
    """Release the personal values that a decided plan keeps in the vault."""
    rows = await transaction.fetch(_VALUES, plan_id)
    await transaction.run(_DELETE_VALUES, plan_id)
    await vault.release(transaction, [row[0] for row in rows])


def proposal_key(run: Run, prepared_commands: Sequence[PreparedCommand], visible_revisions: Sequence[object]) -> bytes:
    """Return the key that equal proposals of one agent share. It covers the input as sent, and the records as the agent
    sees them. A token and the same value in clear have different keys. Otherwise, the agent would learn that they are
    equal."""
    domain, proposer = run.caller.domain, [run.caller.user_id, run.caller.agent]
    steps = [
        [
            prepared_command.model,
            prepared_command.command,
            prepared_command.record_id,
            prepared_command.cascade,
            _sent_values(prepared_command),
        ]
        for prepared_command in prepared_commands
    ]
    text = msgspec.json.encode([None if domain is None else domain.id, proposer, steps, list(visible_revisions)])
    return run.engine.vault.keyed(text)


def _sent_values(prepared_command: PreparedCommand) -> list[tuple[str, Stored, int | None, bool, tuple[int, ...]]]:
    return sorted(
        (name, field_input.stored, field_input.value_id, field_input.is_plain_text, field_input.origins)
        for name, field_input in prepared_command.given.items()
    )


def digest(vault: Vault, plan_id: str, steps: Sequence[Step], diff: Sequence[Any], effects: Sequence[Any]) -> str:
    """Return the digest with which an approver identifies the plan that was shown. The digest is keyed, because it
    covers hidden values, which could be guessed from a plain hash."""
    text = msgspec.json.encode([plan_id, list(steps), list(diff), list(effects)])
    return f"sha256:{hashlib.sha256(vault.keyed(text)).hexdigest()}"
