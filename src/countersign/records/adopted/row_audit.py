"""The audit entry of a written row of a table of others, with what the vault stores of its personal values: their ids,
the keys of their copies, and the aliases of what an agent wrote in clear."""

from collections.abc import Awaitable, Callable, Collection, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.records.commands import outside_changes, record_writer
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord
from countersign.records.masking.connected_aliases import (
    AliasedRecord,
    Aliases,
    ConnectedAliases,
    NewAlias,
    personal_values,
)
from countersign.records.masking.seen_values import SeenValue, SeenValues
from countersign.records.masking.vault import ValueKey

_CHANGES = "SELECT changes FROM audit_entry WHERE model = $1 AND record_id = $2"
_DIFFS = """
SELECT p.diff
FROM plan AS p
WHERE p.id IN (SELECT s.plan_id FROM plan_step AS s WHERE s.model = $1 AND s.record_id = $2)
"""
_UNHASHED_IDS = "SELECT id, domain_id IS NOT NULL FROM pii_value WHERE id IN ({places}) AND hash IS NULL"

MayDerive: TypeAlias = Callable[[Run, Declared], Awaitable[bool]]
"""Returns whether the database may compute columns of a table from what is written."""


class _Copy(msgspec.Struct):
    """The copy of a personal value in an audit entry or a plan."""

    value: int


class _PlannedChange(msgspec.Struct):
    """A change in the diff of a plan, with the value that the record had when the plan was proposed."""

    model: str
    id: str | None
    field: str
    before: _Copy | Stored


class RowChange(NamedTuple):
    """A written row before and after, and what the writer has set: the inputs that count as a change."""

    before: StoredRecord | None
    after: StoredRecord | None
    inputs: Mapping[str, FieldInput] = MappingProxyType({})

    @property
    def record_id(self) -> str:
        """Return the id of the record."""
        return next(each.id for each in (self.after, self.before) if each is not None)

    @property
    def values_before(self) -> Mapping[str, Stored]:
        """Return the values before, which are empty for a new row."""
        return {} if self.before is None else self.before.values

    @property
    def values_after(self) -> Mapping[str, Stored]:
        """Return the values after, which are empty for a deleted row."""
        return {} if self.after is None else self.after.values

    def names(self, model: Declared, renewed: Container[str]) -> list[str]:
        """Return the fields that have changed, and those whose value has been written anew."""
        before, after = self.values_before, self.values_after
        return [
            name
            for name in model.fields
            if before.get(name) != after.get(name) or (name in renewed and after.get(name) is not None)
        ]


class RowAudit:
    """Stores what belongs to a written row in our own tables, in the transaction that writes the row."""

    def __init__(self, seen_values: SeenValues, aliases: ConnectedAliases, may_derive: MayDerive) -> None:
        self._seen_values = seen_values
        self._aliases = aliases
        self._may_derive = may_derive

    async def append(self, run: Run, command: str, model: Declared, change: RowChange) -> None:
        """Append the audit entry of a change, and replace the aliases of the changed fields. A field that an agent
        wrote counts as changed, also with an equal value: otherwise the entry would confirm a guess."""
        new_aliases = [] if change.after is None else await self._new_aliases(run, model, change, change.after)
        renewed = _renewed(run, model, change.inputs) | {each.value.field for each in new_aliases}
        changed = change.names(model, renewed)
        keys_before = await self._value_keys(run, model, change.record_id, _among(changed, change.values_before))
        keys_after = await self._value_keys(run, model, change.record_id, _among(changed, change.values_after))
        aliases_before: Aliases = {} if change.before is None else change.before.aliases
        aliases_after: Aliases = {}
        # A row that is only marked as deleted keeps its aliases, because another application may take the mark back.
        if change.after is not None:
            aliases_after = await self._replace_aliases(run, model, change.record_id, changed, new_aliases)
        changes = {
            name: [
                record_writer.audit_copy(run, before, keys_before.get(name), aliases_before.get(name)),
                record_writer.audit_copy(run, after, keys_after.get(name), aliases_after.get(name)),
                *outside_changes.reading_of(model.fields[name]),
            ]
            for name in changed
            for before, after in ((change.values_before.get(name), change.values_after.get(name)),)
        }
        await record_writer.record_audit(run, command, model, change.record_id, changes)

    async def _replace_aliases(
        self, run: Run, model: Declared, record_id: str, names: Sequence[str], new_aliases: Sequence[NewAlias]
    ) -> Aliases:
        domain_id = "" if run.domain is None else run.domain.id
        record = AliasedRecord(model, record_id, domain_id)
        return await self._aliases.replace(run, run.engine.vault, record, names, new_aliases)

    async def _new_aliases(
        self, run: Run, model: Declared, change: RowChange, after: StoredRecord
    ) -> list[NewAlias]:
        """Return the aliases to store for the writer: of each personal value that it wrote in clear, or copied from a
        value with an alias. The database may have computed other values of the row from them, or from text of an
        earlier write, also values that are as they were before. So these get aliases as well."""
        values = personal_values(model, after.id, after.values)
        new_aliases = [] if run.domain is None else await _written_aliases(run, values, change.inputs)
        before: Aliases = {} if change.before is None else change.before.aliases
        if not (new_aliases or before) or not await self._may_derive(run, model):
            return new_aliases
        writer_id = run.domain.id if run.domain is not None and new_aliases else ""
        others = {name: value for name, value in values.items() if name not in change.inputs}
        return [*new_aliases, *_aliases_of_others(others, change, before, writer_id)]

    async def value_ids(
        self, run: Run, model: Declared, record_id: str, values: Mapping[str, Stored]
    ) -> dict[str, int]:
        """Return the ids of the personal values of a record by field. They are stored with the record."""
        seen_values = personal_values(model, record_id, values)
        if not seen_values:
            return {}
        value_ids = await self._seen_values.stored_ids(run, list(seen_values.values()), run.caller.user_id)
        return dict(zip(seen_values, value_ids, strict=True))

    async def _value_keys(
        self, run: Run, model: Declared, record_id: str, values: Mapping[str, Stored]
    ) -> dict[str, ValueKey]:
        """Return the ids of the personal values, and the keys that encrypt copies of them."""
        value_ids = await self.value_ids(run, model, record_id, values)
        keys = await run.engine.vault.keys(run.transaction, list(value_ids.values()))
        return {name: ValueKey(value_id, keys.get(value_id, b"")) for name, value_id in value_ids.items()}

    async def erase(self, run: Run, model: Declared, record_id: str) -> None:
        """Delete the aliases of a deleted record, and the keys of the personal values that only this record has had, so
        that the copies of them become unreadable."""
        await self._replace_aliases(run, model, record_id, list(model.fields), ())
        copies = [*await _audit_copies(run, model, record_id), *await _plan_copies(run, model, record_id)]
        personal = [(model.fields.get(model.present_name(name)), each) for name, each in copies]
        value_ids = {
            each.value
            for field, each in personal
            if isinstance(each, _Copy) and field is not None and field.personal and not field.linked
        }
        await run.engine.vault.release(run.transaction, value_ids)


def _aliases_of_others(
    values: Mapping[str, SeenValue], change: RowChange, before: Aliases, writer_id: str
) -> Iterator[NewAlias]:
    """Yield the aliases of the values that the command did not write. `writer_id` is the token domain of a writer in
    clear, or an empty text."""
    domain_ids = {domain_id for aliases in before.values() for domain_id in aliases} | {writer_id} - {""}
    for name, value in values.items():
        is_computed = change.values_before.get(name) != change.values_after.get(name)
        if is_computed or writer_id:
            renewed_ids = domain_ids if is_computed else {writer_id}
            yield from _aliases_of_value(value, domain_ids, renewed_ids, before.get(name, {}))


def _aliases_of_value(
    value: SeenValue, domain_ids: Collection[str], renewed_ids: Collection[str], kept_ids: Mapping[str, int]
) -> Iterator[NewAlias]:
    """Yield an alias with a new id in each of the renewed domains, and with its present id in the others that have
    one."""
    for domain_id in sorted(domain_ids):
        if domain_id in renewed_ids:
            yield NewAlias(value, None, domain_id)
        elif domain_id in kept_ids:
            yield NewAlias(value, kept_ids[domain_id], domain_id)


def _among(names: Sequence[str], values: Mapping[str, Stored]) -> dict[str, Stored]:
    return {name: values.get(name) for name in names}


def _renewed(run: Run, model: Declared, changed_inputs: Mapping[str, FieldInput]) -> frozenset[str]:
    """Return the personal fields that a writer who sees tokens has written."""
    if run.domain is None:
        return frozenset()
    return frozenset(name for name in changed_inputs if model.fields[name].personal)


async def _written_aliases(
    run: Run, values: Mapping[str, SeenValue], inputs: Mapping[str, FieldInput]
) -> list[NewAlias]:
    """Return the aliases of what the writer wrote in clear, or copied from a value with an alias. A value of our own
    without a hash has an id for one field only, so the writer may have written it in clear there."""
    copied = await _unhashed_ids(run, inputs)
    return [
        NewAlias(values[name], each.value_id if copied.get(each.value_id) else None)
        for name, each in inputs.items()
        if name in values and (each.is_plain_text or each.value_id in copied)
    ]


async def _unhashed_ids(run: Run, inputs: Mapping[str, FieldInput]) -> dict[int | None, bool]:
    """Map the value ids of the inputs that have no hash to whether they are aliases."""
    value_ids = sorted({each.value_id for each in inputs.values() if each.value_id is not None})
    if not value_ids:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(value_ids) + 1))
    return dict(await run.transaction.fetch(_UNHASHED_IDS.format(places=places), *value_ids))


async def _audit_copies(run: Run, model: Declared, record_id: str) -> list[tuple[str, _Copy | Stored]]:
    """Return the copies of the values of a record in its audit entries, with the names of the fields."""
    rows = await run.transaction.fetch(_CHANGES, model.name, record_id)
    entries = [msgspec.json.decode(row[0], type=dict[str, list[_Copy | Stored]]) for row in rows]
    return [(name, each) for entry in entries for name, pair in entry.items() for each in pair]


async def _plan_copies(run: Run, model: Declared, record_id: str) -> list[tuple[str, _Copy | Stored]]:
    """Return the copies of the values of a record in plans, with the names of the fields. Another application may have
    changed a value since a plan showed it. The values that a plan writes are not those of the record."""
    rows = await run.transaction.fetch(_DIFFS, model.name, record_id)
    changes = [each for row in rows for each in msgspec.json.decode(row[0], type=list[_PlannedChange])]
    return [(each.field, each.before) for each in changes if (each.model, each.id) == (model.name, record_id)]
