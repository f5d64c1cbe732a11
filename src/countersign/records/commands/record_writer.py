"""Writes one record in one transaction: its row, its personal values in the vault (the encrypted store of personal
values), the totals that include it, and its audit entry.

Agents see personal values as placeholder tokens. A token is computed from a value id. An alias is a value id that only
one token domain (the scope in which tokens are valid) uses.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from countersign.declare import Declared, Field, Ref, Text
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import LARGEST
from countersign.declare.model import computed, indirect_sources, out_of_range
from countersign.declare.registry import Total
from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.joint_statements import Write, run_writes
from countersign.records.access import sessions
from countersign.records.access.people import folded
from countersign.records.access.view import Rows
from countersign.records.audit.chain import ChainEntry
from countersign.records.base_models import EDIT_STAMPS, RULING, STAMPED
from countersign.records.commands import checks, filters, preconditions, revisions, select, value_aliases
from countersign.records.commands.errors import BadInput, no_such_record
from countersign.records.commands.filters import Parameters
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import RecordWrite, Run
from countersign.records.commands.select import (
    StoredRecord,
    insert_statement,
    insert_values,
    personal_fields,
    record_of,
    update_statement,
)
from countersign.records.masking.vault import NewAlias, PersonalValue, ValueKey
from countersign.records.schema.checks import sum_columns, total_of
from countersign.records.schema.snapshot import ALIASED

_COMMENTS = "SELECT id FROM comment WHERE record = $2 AND model = $1 ORDER BY id"
MAX_LITERALS = 1_000
"""The maximum number of different texts in one record that look like placeholder tokens."""
_LOCK_VALUE = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_ADD_LITERAL = "INSERT INTO literal (text, value_id) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_ALIAS_OF = "SELECT value_id FROM pii_alias WHERE model = $1 AND record_id = $2 AND field = $3 AND domain_id = $4"


async def find(
    run: Run, model: Declared, rows: Rows, record_id: object, *, locks: bool = True, deletes: bool = False
) -> StoredRecord:
    """Return the record. With `locks`, also lock it until the transaction ends. With `deletes`, the lock is the one of
    a deletion: no new record can refer to the record.

    Raises:
        BadInput: the record does not exist, or `rows` do not include it. The error is the same in both cases.
    """
    if not isinstance(record_id, str):
        raise BadInput("id must be a string")
    store = run.engine.adopted.get(model.name)
    if store is not None:
        return await store.find(run, model, rows, record_id, locks=locks, deletes=deletes)
    statement = select.lock_existing(model, rows, record_id, run.engine.dialect, locks=locks)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is None:
        raise no_such_record()
    return record_of(model, row)


async def insert(
    run: Run,
    model: Declared,
    field_inputs: Mapping[str, FieldInput],
    command: str,
    *,
    record_id: str | None = None,
    is_restored: bool = False,
) -> str:
    """Insert a record with these values and return its id. The values must include the defaults. Without `record_id`,
    the record gets a random id.

    `is_restored` means that an import restores an exported record, which may come from an earlier version. The model's
    rules, validators and `shared_by` are then not checked, and two values of a `unique_with` field may differ in case
    alone.

    Raises:
        BadInput: another record has a unique value of this record, the record does not meet a rule, a validator refuses
            its values, or a number is out of range.
    """
    store = run.engine.adopted.get(model.name)
    values: dict[str, Stored] = {name: field_input.stored for name, field_input in field_inputs.items()}
    if store is not None:
        run.code_report.require_no_trial()
        checks.require_valid(run, model, values, list(model.fields), field_inputs, command)
        return await store.insert(run, model, field_inputs, command)
    record_id = record_id or ids.new_record_id()
    values |= _initial_values(model, values)
    values |= computed(model, values)
    require_in_range(run, model, values)
    await _check(run, model, values)
    if not is_restored:
        checks.require_valid(run, model, values, list(model.fields), field_inputs, command)
        await preconditions.require_rules(run, model, values, list(model.fields), field_inputs, command)
    await _require_unique(run, model, values, values, None, is_restored=is_restored)
    new_aliases = value_aliases.of_plain_texts(run, model, record_id, field_inputs)
    value_keys, alias_keys = await _take_value_ids(run, model, values, {}, new_aliases)
    alias_keys |= await value_aliases.link_copied(run, model, record_id, field_inputs)
    value_ids = {name: value_key.id for name, value_key in value_keys.items()}
    bound_values = insert_values(model, record_id, values, value_ids, ALIASED if alias_keys else 0)
    writes: list[Write] = [(insert_statement(model), bound_values)]
    aliases = value_aliases.by_field(run, alias_keys)
    has_computed = value_aliases.has_computed(model, values)
    if has_computed or _waits(run, model, values):
        await run_writes(run.transaction, run.engine.dialect, writes)
        writes = []
    if has_computed:
        await value_aliases.link_computed(run, model, record_id, field_inputs, values, {})
        aliases = await value_aliases.of_record(run, model, record_id, value_keys)
    await _after_write(run, model, record_id, values, {})
    changes = _changes_of_new_record(run, values, value_keys, aliases)
    await record_audit(run, command, model, record_id, changes, writes)
    write = RecordWrite(model, record_id, command, {}, values, field_inputs, is_restored=is_restored)
    await run.engine.run_hooks(run, write)
    return record_id


def _changes_of_new_record(
    run: Run,
    values: Mapping[str, Stored],
    value_keys: Mapping[str, ValueKey],
    aliases: value_aliases.Aliases,
) -> dict[str, Any]:
    """Return the changes that the audit entry of a new record contains: each value, after nothing."""
    return {
        name: [None, audit_copy(run, value, value_keys.get(name), aliases.get(name))]
        for name, value in values.items()
        if value is not None
    }


def _initial_values(model: Declared, given_values: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return the initial values that the service sets in a new record: totals of 0, and the current time in its time
    stamps."""
    stamps = {name: clock.now() for name in STAMPED.get(model.name, ()) if given_values.get(name) is None}
    return {name: 0 for name, field in model.fields.items() if field.sum_of is not None} | stamps


async def _check_changed(
    run: Run, model: Declared, values: Mapping[str, Stored], values_after: Mapping[str, Stored]
) -> None:
    """Run the check of the model (see `engine.checks`) on the values after the change. Skip the check if the deletion
    of another record only clears references of this record."""
    if not _is_cascade(model, values):
        await _check(run, model, values_after)


async def update(
    run: Run, model: Declared, record: StoredRecord, field_inputs: Mapping[str, FieldInput], command: str
) -> bool:
    """Set these fields of a locked record. Return whether any value changed.

    Raises:
        BadInput: another record has a unique value of this record, the changed record would not meet a rule, or a
            number is out of range.
    """
    store = run.engine.adopted.get(model.name)
    if store is not None:
        run.code_report.require_no_trial()
        changed = {
            name: each.stored
            for name, each in field_inputs.items()
            if await is_change(run, model, record, name, each)
        }
        checks.require_valid(run, model, {**record.values, **changed}, changed, field_inputs, command)
        return await store.update(run, model, record, field_inputs, command)
    return await _update_own(run, model, record, field_inputs, command)


async def _update_own(
    run: Run, model: Declared, record: StoredRecord, field_inputs: Mapping[str, FieldInput], command: str
) -> bool:
    changed_inputs = await _changed_inputs(run, model, record, field_inputs)
    values = _with_computed(
        run, model, record, {name: changed_input.stored for name, changed_input in changed_inputs.items()}
    )
    if not values:
        return False
    require_in_range(run, model, values)
    values_after = {**record.values, **values}
    await _check_changed(run, model, values, values_after)
    checks.require_valid(run, model, values_after, values, field_inputs, command)
    await preconditions.require_rules(run, model, values_after, values, field_inputs, command)
    await _require_unique(run, model, values, values_after, record.id)
    await _require_unshared(run, model, record.id, values, command)
    ids_before = await _value_ids_before(run, record, values)
    value_keys, _ = await _take_value_ids(run, model, values, ids_before)
    personal = [name for name in personal_fields(model) if name in values]
    value_ids = {name: value_keys[name].id if name in value_keys else None for name in personal}
    writes = _writes(run, model, record, values, value_ids)
    if personal or _waits(run, model, values):
        await run_writes(run.transaction, run.engine.dialect, writes)
        writes = []
    aliases_before = await value_aliases.of_record(run, model, record.id, ids_before)
    await _replace_aliases(
        run, model, record.id, changed_inputs, values, ids_before=ids_before, aliases_before=aliases_before
    )
    aliases_after = await value_aliases.of_record(run, model, record.id, value_keys)
    changes = {
        name: [
            audit_copy(run, record.values[name], ids_before.get(name), aliases_before.get(name)),
            audit_copy(run, value, value_keys.get(name), aliases_after.get(name)),
        ]
        for name, value in values.items()
    }
    await _after_write(run, model, record.id, {**record.values, **values}, record.values)
    await record_audit(run, command, model, record.id, changes, writes)
    write = RecordWrite(model, record.id, command, record.values, values_after, changed_inputs, frozenset(values))
    await run.engine.run_hooks(run, write)
    return True


async def _changed_inputs(
    run: Run, model: Declared, record: StoredRecord, field_inputs: Mapping[str, FieldInput]
) -> dict[str, FieldInput]:
    """Return the inputs that change their values (see `is_change`)."""
    return {
        name: field_input
        for name, field_input in field_inputs.items()
        if await is_change(run, model, record, name, field_input)
    }


async def _replace_aliases(
    run: Run,
    model: Declared,
    record_id: str,
    changed_inputs: Mapping[str, FieldInput],
    values: Mapping[str, Stored],
    *,
    ids_before: Mapping[str, ValueKey],
    aliases_before: value_aliases.Aliases,
) -> None:
    """Release the previous values of the changed fields with their aliases, and store the new aliases.

    The new aliases are taken first, because the caller may have copied one of the previous values.
    """
    new_aliases = await value_aliases.take(run, model, changed_inputs)
    await value_aliases.unlink(run, model, record_id, ids_before)
    await value_aliases.link(run, model, record_id, new_aliases)
    await value_aliases.link_computed(run, model, record_id, changed_inputs, values, aliases_before)


def _is_cascade(model: Declared, values: Mapping[str, Stored]) -> bool:
    """Return whether these values only clear readonly references. This happens only when a referenced record is
    deleted, because callers cannot set readonly references. The caller who deletes the referenced record may be unable
    to see the other values of this record."""
    return all(
        value is None and isinstance(model.fields[name], Ref) and model.fields[name].readonly
        for name, value in values.items()
    )


def _with_computed(run: Run, model: Declared, record: StoredRecord, values: dict[str, Stored]) -> dict[str, Stored]:
    """Return the values to set, including the computed values that change with them. If the caller sees tokens, a
    recomputed personal value always counts as changed. Otherwise the unchanged token would confirm to the caller that
    it has guessed a hidden value."""
    values = values | {stamp: clock.now() for name, stamp in EDIT_STAMPS.get(model.name, {}).items() if name in values}
    recomputed = computed(model, {**record.values, **values})
    return values | {
        name: value
        for name, value in recomputed.items()
        if value != record.values.get(name)
        or (run.domain is not None and model.fields[name].personal and indirect_sources(model, name) & values.keys())
    }


async def _value_ids_before(run: Run, record: StoredRecord, names: Iterable[str]) -> dict[str, ValueKey]:
    """Map each of these fields that has a value in the vault to the id of the value and the key that encrypts copies of
    it."""
    old_ids = {name: value_id for name in names if (value_id := record.value_ids.get(name)) is not None}
    keys = await run.engine.vault.keys(run.transaction, list(old_ids.values()))
    return {name: ValueKey(value_id, keys.get(value_id, b"")) for name, value_id in old_ids.items()}


async def delete(
    run: Run, model: Declared, record: StoredRecord, command: str, deleted_keys: Container[tuple[str, str]] = ()
) -> None:
    """Delete a locked record that no other record refers to. `deleted_keys` contains the model and the id of each
    record that the same transaction deletes. The totals of such records are not updated."""
    store = run.engine.adopted.get(model.name)
    if store is not None:
        run.code_report.require_no_trial()
        await store.delete(run, model, record, command)
        await _delete_comments(run, model, record.id, command)
        return
    ids_before = await _value_ids_before(run, record, record.value_ids)
    aliases = await value_aliases.of_record(run, model, record.id, ids_before)
    changes = {
        name: [audit_copy(run, value, ids_before.get(name), aliases.get(name)), None]
        for name, value in record.values.items()
        if value is not None
    }
    await run.transaction.run(f'DELETE FROM "{model.name}" WHERE id = $1', record.id)
    await run.transaction.run(revisions.REMOVE_CHANGES, model.name, record.id)
    await _delete_comments(run, model, record.id, command)
    await value_aliases.unlink(run, model, record.id, ids_before)
    await _after_write(run, model, record.id, {}, record.values, deleted_keys)
    await record_audit(run, command, model, record.id, changes)
    await run.engine.run_hooks(run, RecordWrite(model, record.id, command, record.values))


async def _delete_comments(run: Run, model: Declared, record_id: str, command: str) -> None:
    """Delete the comments on a deleted record."""
    comments = run.engine.registry.models.get("comment")
    if comments is None or model is comments:
        return
    for (comment_id,) in await run.transaction.fetch(_COMMENTS, model.name, record_id):
        await delete(run, comments, await find(run, comments, None, comment_id), command)


async def record_audit(
    run: Run,
    command: str,
    model: Declared | None,
    record_id: str | None,
    changes: dict[str, Any],
    writes: Sequence[Write] = (),
) -> None:
    """Append an audit entry in the same transaction, after the statements `writes`."""
    actor = run.actor
    entry = ChainEntry(
        at=clock.now(),
        user_id=actor.user_id,
        agent_token=actor.agent_token,
        agent=actor.agent,
        command=command,
        model="" if model is None else model.name,
        record_id=record_id,
        fields=",".join(changes),
        changes=msgspec.json.encode(changes).decode(),
        plan_id=actor.plan_id,
        request_id=actor.request_id,
    )
    await run.engine.chain.append(run.transaction, entry, writes)


def audit_copy(run: Run, value: Stored, key: ValueKey | None, by_domain: Mapping[str, int] | None = None) -> object:
    """Return the copy of a value for audit entries and plans. A personal value is encrypted with its key in the vault.
    When the vault deletes the key, the copy becomes unreadable.

    `by_domain` maps the id of a token domain to the alias of the value. An agent that wrote the value in clear sees the
    token of the alias.
    """
    if value is None or key is None:
        return value
    sealed_text = run.engine.vault.seal(key.key, str(value)) if key.key else ""
    copy: dict[str, object] = {"value": key.id, "sealed": sealed_text}
    return {**copy, "aliases": by_domain} if by_domain else copy


async def audit_copies(run: Run, model: str, record: StoredRecord, names: Collection[str]) -> dict[str, Any]:
    """Return copies of a record's fields for audit entries, plans and stored responses (see `audit_copy`)."""
    value_ids = {name: value_id for name in names if (value_id := record.value_ids.get(name)) is not None}
    keys = await run.engine.vault.keys(run.transaction, list(value_ids.values()))
    by_domain = record.aliases
    if model not in run.engine.adopted:
        by_domain = await run.engine.vault.aliases(run.transaction, model, record.id)
    copies: dict[str, Any] = {}
    for name in names:
        value_id = value_ids.get(name)
        key = ValueKey(value_id, keys[value_id]) if value_id is not None and value_id in keys else None
        copies[name] = audit_copy(run, record.values[name], key, by_domain.get(name))
    return copies


async def is_change(run: Run, model: Declared, record: StoredRecord, name: str, field_input: FieldInput) -> bool:
    """Return whether the input changes the value.

    A masked caller must not be able to confirm a guess of the value. Text that such a caller writes in clear therefore
    always counts as a change, and a token is compared with the token that the caller sees for the current value.
    """
    shown_id = _shown_id(run, record, name)
    contains_own_token = bool(field_input.origins) and field_input.origins == (shown_id,)
    if field_input.value_id is None and contains_own_token:
        return field_input.stored != record.values[name]
    if field_input.is_plain_text:
        return True
    if field_input.value_id is None or run.domain is None:
        return field_input.stored != record.values[name]
    if model.table is not None:
        return field_input.value_id != shown_id
    row = await run.transaction.fetch_one(_ALIAS_OF, model.name, record.id, name, run.domain.id)
    return field_input.value_id != (record.value_ids[name] if row is None else row[0])


def _shown_id(run: Run, record: StoredRecord, name: str) -> int | None:
    """Return the value id from which the writer's token of a field is computed. Aliases of records of our own are left
    out."""
    canonical_id = record.value_ids.get(name)
    return canonical_id if run.domain is None else record.aliases.get(name, {}).get(run.domain.id, canonical_id)


def _writes(
    run: Run,
    model: Declared,
    record: StoredRecord,
    values: Mapping[str, Stored],
    value_ids: Mapping[str, int | None],
) -> list[Write]:
    """Return the statements that set these values and record the change."""
    bits = run.engine.records.bits[model.name]
    mask = sum(1 << bits[name] for name in values)
    return [
        update_statement(model, record.id, values, value_ids, mask),
        (revisions.ADD_CHANGE, (model.name, record.id, record.revision + 1, mask)),
    ]


def _waits(run: Run, model: Declared, values: Mapping[str, Stored]) -> bool:
    """Return whether writing these values may wait for a concurrent transaction: the one that has locked the record of
    a ref or of a total, or the one that writes the same unique value.

    Such a write must not be one statement with its audit entry, which locks a lane of the audit. Otherwise, writes that
    wait could lock all lanes, and every other write would wait for them, also the write that they wait for.
    """
    return bool(run.engine.registry.totals[model.name]) or any(
        value is not None and (isinstance(model.fields[name], Ref) or model.fields[name].unique)
        for name, value in values.items()
    )


async def _take_value_ids(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    ids_before: Mapping[str, ValueKey],
    new_aliases: Sequence[NewAlias] = (),
) -> tuple[dict[str, ValueKey], dict[str, ValueKey]]:
    """Add the personal values and the new aliases to the vault. Return the value ids and keys of the values by field,
    and those of the aliases. The transaction releases the values in `ids_before` later (see `Vault.hold`)."""
    names = [name for name in personal_fields(model) if values.get(name) is not None]
    personal_values = [
        PersonalValue(model.fields[name].personal or "", str(values[name]), model.fields[name].linked) for name in names
    ]
    await _store_literals(
        run, [value for name, value in values.items() if isinstance(value, str) and name not in names]
    )
    released_ids = [id_.id for id_ in ids_before.values()]
    held_keys = await run.engine.vault.hold(run.transaction, personal_values, released_ids, new_aliases)
    alias_keys = held_keys[len(names) :]
    return (
        dict(zip(names, held_keys, strict=False)),
        {alias.field: key for alias, key in zip(new_aliases, alias_keys, strict=True)},
    )


async def _store_literals(run: Run, texts: Sequence[str]) -> None:
    """Store the parts of these texts that look like placeholder tokens but are ordinary text. Responses to masked
    callers contain LITERAL tokens instead."""
    grammar = run.engine.grammar
    literals = {token.text for text in texts if grammar.might_hold_token(text) for token in grammar.tokens(text)}
    if len(literals) > MAX_LITERALS:
        raise BadInput(f"a record must have {MAX_LITERALS} different texts of a placeholder token's shape at most")
    if literals:
        rows = [(literal, int.from_bytes(ids.random_bytes(6))) for literal in sorted(literals)]
        await run.transaction.run_many(_ADD_LITERAL, rows)


def require_in_range(run: Run, model: Declared, values: Mapping[str, Stored]) -> None:
    """Require that the numbers to write are within ±(2^53 - 1), so that every JSON client can represent them exactly.
    The numbers include computed numbers and totals.

    Raises:
        BadInput: a number is out of range. The text names the field if the caller sees it.
    """
    name = out_of_range(model, values)
    if name is not None:
        view = run.caller.view.models.get(model.name)
        is_seen = view is not None and name in view.fields
        field_text = f"{model.name}.{name}" if is_seen else "a computed number"
        raise BadInput(f"{field_text} would lie outside {-LARGEST} to {LARGEST}: use smaller amounts")


async def _check(run: Run, model: Declared, values: Mapping[str, Stored]) -> None:
    check = run.engine.checks.get(model.name)
    if check is not None:
        await check(run, values)


async def _require_unique(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    values_after: Mapping[str, Stored],
    own_id: str | None,
    *,
    is_restored: bool = False,
) -> None:
    """Require that no other record has a written value of a `unique` field, or of a `unique_with` field together with
    the same ref. `values_after` contains all values of the record after the write."""
    for name, value in values.items():
        if value is None or not model.fields[name].unique:
            continue
        text = f'SELECT id FROM "{model.name}" WHERE "{name}" = $1 AND id <> $2 LIMIT 1'
        if await run.transaction.fetch_one(text, value, own_id or "") is not None:
            raise not_unique(model, name)
    await _require_unique_with(run, model, values, values_after, own_id, is_restored=is_restored)


async def _require_unique_with(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    values_after: Mapping[str, Stored],
    own_id: str | None,
    *,
    is_restored: bool,
) -> None:
    for name, field in model.fields.items():
        value, parent_id = values_after.get(name), values_after.get(field.unique_with) if field.unique_with else None
        if value is None or parent_id is None or not {name, field.unique_with} & values.keys():
            continue
        await _lock(run, model, field.unique_with, str(parent_id))
        parameters = Parameters(parent_id, own_id or "")
        equal_condition = _equal_condition(field, value, parameters, is_exact=is_restored)
        text = (
            f'SELECT id FROM "{model.name}" WHERE "{field.unique_with}" = $1 AND id <> $2 AND {equal_condition} LIMIT 1'
        )
        if await run.transaction.fetch_one(text, *parameters.values) is not None:
            raise not_unique(model, name)
        if field.shared_by and not is_restored:
            await _require_shared(run, model, field, str(parent_id), value, own_id)


def _equal_condition(field: Field, value: Stored, parameters: Parameters, *, is_exact: bool) -> str:
    """Return the SQL condition for records whose value equals this value. If the field ignores case, so does the
    condition, unless `is_exact` is set."""
    column, term_value = _comparison_terms(field, value)
    test = f'"{column}" = {parameters.put(term_value)}'
    return f'{test} AND "{field.name}" = {parameters.put(value)}' if is_exact else test


def _comparison_terms(field: Field, value: Stored) -> tuple[str, Stored]:
    """Return the column and the value that a test for equality compares. For fields that ignore case, these are the
    case-folded column and value."""
    if isinstance(field, Text) and field.ignores_case:
        return f"{field.name}__folded", folded(str(value))
    return field.name, value


async def _require_shared(
    run: Run, model: Declared, field: Field, parent_id: str, value: Stored, own_id: str | None
) -> None:
    """Require that the field `shared_by` is equal in all parent records whose children have this value. The parent is
    the record to which the ref `unique_with` refers."""
    column, term_value = _comparison_terms(field, value)
    if run.engine.dialect == "postgres":
        # Serialize concurrent writes of the same value.
        await run.transaction.fetch_one(_LOCK_VALUE, f"{model.name}.{field.name} {term_value}")
    parent = cast("Ref", model.fields[field.unique_with]).target
    text = (
        f'SELECT 1 FROM "{model.name}" AS t JOIN "{parent}" AS p ON p.id = t."{field.unique_with}" '
        f'JOIN "{parent}" AS own ON own.id = $1 WHERE t."{column}" = $2 AND t.id <> $3 '
        f'AND (p."{field.shared_by}" <> own."{field.shared_by}" '
        f'OR (p."{field.shared_by}" IS NULL) <> (own."{field.shared_by}" IS NULL)) LIMIT 1'
    )
    if await run.transaction.fetch_one(text, parent_id, term_value, own_id or "") is not None:
        reason = f"is already used by a {model.name} of another {field.shared_by}"
        raise BadInput(f"{model.name}.{field.name} {reason}; correct it, or make it unique")


async def _require_unshared(
    run: Run, model: Declared, record_id: str, values: Mapping[str, Stored], command: str
) -> None:
    """Refuse to change a field that `shared_by` of a child model names while a child record has a value in the unique
    field. No child record can be added at the same time, because adding it locks this record first."""
    for referrer in run.engine.registry.referrers[model.name]:
        child, ref = referrer.model, referrer.ref
        for name, field in child.fields.items():
            if field.unique_with != ref.name or field.shared_by not in values:
                continue
            text = f'SELECT 1 FROM "{child.name}" WHERE "{ref.name}" = $1 AND "{name}" IS NOT NULL LIMIT 1'
            if await run.transaction.fetch_one(text, record_id) is not None:
                reason = f"{field.shared_by} must stay while a {child.name} with a {name} refers to the record"
                is_seen = _sees_referring(run, child, ref.name, name)
                raise BadInput(f"{command} is refused" + (f": {reason}; empty {name} there first" if is_seen else ""))


def _sees_referring(run: Run, child: Declared, *names: str) -> bool:
    """Return whether the caller can list records of the child model with these fields."""
    view = run.caller.view.models.get(child.name)
    if view is None or not view.reads_any_by("list", "search", "export"):
        return False
    return all(name in view.fields for name in names)


async def _lock(run: Run, model: Declared, ref: str, record_id: str) -> None:
    """Lock the record that the ref refers to. Concurrent calls that write records with this ref then run one after the
    other."""
    target = run.engine.registry.models[cast("Ref", model.fields[ref]).target]
    statement = select.lock_existing(target, None, record_id, run.engine.dialect)
    _ = await run.transaction.fetch_one(statement.text, *statement.values)


async def is_referred_to(run: Run, model: str, ref: str, record_id: str) -> bool:
    """Return whether the ref of any record of the model refers to the record with this id."""
    text = f'SELECT 1 FROM "{model}" WHERE "{ref}" = $1 LIMIT 1'
    return await run.transaction.fetch_one(text, record_id) is not None


async def exists_with_values(
    run: Run, model: Declared, rows: Rows, values: Mapping[str, Stored], own_id: str
) -> bool:
    """Return whether a record other than the record with the id `own_id` has these values and is among the rows."""
    parameters = Parameters(own_id)
    visible_condition = filters.any_of(filters.Scope(run.engine.dialect, parameters, "t"), model, rows)
    terms = (_comparison_terms(model.fields[name], value) for name, value in values.items())
    equal = " AND ".join(f't."{column}" = {parameters.put(term_value)}' for column, term_value in terms)
    text = f'SELECT 1 FROM "{model.name}" AS t WHERE t.id <> $1 AND {equal} AND {visible_condition} LIMIT 1'
    return await run.transaction.fetch_one(text, *parameters.values) is not None


def not_unique(model: Declared, name: str) -> BadInput:
    """Return the error for a value that must be unique but that another record has."""
    ref = model.fields[name].unique_with
    scope_text = f" among the records with the same {ref}" if ref else ""
    return BadInput(f"{model.name}.{name} must be unique{scope_text}: another record has this value")


async def _after_write(
    run: Run,
    model: Declared,
    record_id: str,
    now: Mapping[str, Stored],
    values_before: Mapping[str, Stored],
    deleted_keys: Container[tuple[str, str]] = (),
) -> None:
    """Update the totals that include the record. If the model defines rights, increase the version of the rights, so
    that the service reads cached rights again. End the sessions of a person who is no longer active. Then do what
    `engine.after_writes` names."""
    for total in run.engine.registry.totals[model.name]:
        for parent_id in _changed_parents(total, now, values_before):
            if (total.parent.name, parent_id) not in deleted_keys:
                await _update_total(run, total, parent_id)
    if model.name in RULING:
        await versions.bump(run.transaction, "access")
    if model.name == "user" and values_before.get("is_active") and not now.get("is_active"):
        # End sessions and agent tokens permanently. They are not restored when the person is activated again.
        await sessions.end_all_of_user(run.transaction, record_id)
    after_write = run.engine.after_writes.get(model.name)
    if after_write is not None:
        await after_write(run, record_id, now, values_before)


def _changed_parents(total: Total, now: Mapping[str, Stored], values_before: Mapping[str, Stored]) -> list[str]:
    """Return the ids of the records whose total changes, which are the previous and the new parent."""
    if now.get(total.of) == values_before.get(total.of) and now.get(total.by) == values_before.get(total.by):
        return []
    return sorted({str(parent_id) for parent_id in (now.get(total.by), values_before.get(total.by)) if parent_id})


async def _update_total(run: Run, total: Total, parent_id: str) -> None:
    """Recompute the total of the parent record, and the fields and totals that are derived from it."""
    parent = total.parent
    statement = select.lock_existing(parent, None, parent_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is None:
        return
    record = record_of(parent, row)
    halves = ", ".join(sum_columns(f'"{total.of}"'))
    text = f'SELECT {halves} FROM "{total.child.name}" WHERE "{total.by}" = $1'
    row = await run.transaction.fetch_one(text, parent_id)
    values: dict[str, Stored] = {total.field: 0 if row is None else total_of(*row)}
    recomputed = computed(parent, {**record.values, **values})
    values = {name: value for name, value in (values | recomputed).items() if value != record.values.get(name)}
    if values:
        require_in_range(run, parent, values)
        await run_writes(run.transaction, run.engine.dialect, _writes(run, parent, record, values, {}))
        await _after_write(run, parent, record.id, {**record.values, **values}, record.values)
