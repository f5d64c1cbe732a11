"""Aliases of values. An alias is a value id that only one token domain (the scope in which tokens are valid) uses. A
value gets an alias if a caller who sees tokens wrote it in clear, or if it is computed from such a value."""

from collections.abc import Iterable, Mapping, Set

from countersign.declare import Declared, Field
from countersign.declare.fields.field import Stored
from countersign.declare.model import indirect_sources
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord
from countersign.records.masking.vault import NewAlias, ValueKey
from countersign.records.schema.snapshot import ALIASED

Aliases = Mapping[str, Mapping[str, int]]
"""Maps a field to its aliases: the id of a domain to the value id from which the tokens of that domain are computed."""

_DOMAIN = "SELECT domain_id FROM pii_value WHERE id = $1"


async def of_record(run: Run, model: Declared, record_id: str, names: Iterable[str]) -> Aliases:
    """Return the current aliases of all fields of a record. Return no aliases if none of the named fields can have
    one."""
    if not any(model.fields[name].linked for name in names):
        return {}
    return await run.engine.vault.aliases(run.transaction, model.name, record_id)


async def displayed(
    run: Run, model: Declared, record: StoredRecord, value_ids: Mapping[str, int | None]
) -> dict[str, int]:
    """Map each linked field of a record to the value id from which the writer's token is computed. The result is empty
    for writers who see no tokens."""
    if run.domain is None:
        return {}
    aliases = record.aliases if model.table is not None else await of_record(run, model, record.id, value_ids)
    return {
        name: aliases.get(name, {}).get(run.domain.id, value_id)
        for name, value_id in value_ids.items()
        if value_id is not None and model.fields[name].linked
    }


def of_plain_texts(
    run: Run, model: Declared, record_id: str, field_inputs: Mapping[str, FieldInput]
) -> list[NewAlias]:
    """Return the aliases to create for a new record: one for each linked value that the writer wrote in clear. They
    belong to the writer's domain."""
    return [
        NewAlias(model.name, record_id, name, field.personal, run.domain.id)
        for name, field_input in field_inputs.items()
        if run.domain is not None
        and field_input.is_plain_text
        and field_input.stored is not None
        and (field := model.fields[name]).personal
        and field.linked
    ]


async def take(run: Run, model: Declared, field_inputs: Mapping[str, FieldInput]) -> dict[str, ValueKey]:
    """Take an alias for each linked value that the writer wrote in clear or copied from a value with an alias. Return
    the aliases by field. They belong to the writer's domain.

    Call this before the previous values are released, because the writer may have copied one of them.
    """
    value_keys: dict[str, ValueKey] = {}
    if run.domain is None:
        return value_keys
    for name, field_input in field_inputs.items():
        value_key = await _alias_of(run, model.fields[name], field_input, run.domain.id)
        if value_key is not None:
            value_keys[name] = value_key
    return value_keys


async def _alias_of(run: Run, field: Field, field_input: FieldInput, domain_id: str) -> ValueKey | None:
    """Return the alias of a value, or None if the value needs no alias."""
    if field_input.stored is None or not field.personal or not field.linked:
        return None
    if field_input.is_plain_text:
        return await run.engine.vault.create_alias_id(run.transaction, field.personal, domain_id)
    if field_input.value_id is None:
        return None
    row = await run.transaction.fetch_one(_DOMAIN, field_input.value_id)
    is_alias = row is not None and row[0] is not None
    return await run.engine.vault.hold_existing(run.transaction, field_input.value_id) if is_alias else None


async def link(run: Run, model: Declared, record_id: str, value_keys: Mapping[str, ValueKey]) -> None:
    """Store these aliases of fields for the writer's domain."""
    if run.domain is not None:
        for name, value_key in value_keys.items():
            await _add(run, model, record_id, name, run.domain.id, value_key)


async def link_copied(
    run: Run, model: Declared, record_id: str, field_inputs: Mapping[str, FieldInput]
) -> dict[str, ValueKey]:
    """Take and store an alias of a new record for each linked value that the writer copied from a value with an alias.
    Return the aliases by field. The record must be inserted with `ALIASED` if there are any."""
    copied_inputs = {name: each for name, each in field_inputs.items() if not each.is_plain_text}
    value_keys = await take(run, model, copied_inputs)
    if run.domain is not None:
        for name, value_key in value_keys.items():
            await run.engine.vault.add_alias(run.transaction, model.name, record_id, name, run.domain.id, value_key.id)
    return value_keys


def by_field(run: Run, value_keys: Mapping[str, ValueKey]) -> Aliases:
    """Return these aliases of the writer's domain as `of_record` returns them."""
    domain = run.domain
    return {} if domain is None else {name: {domain.id: value_key.id} for name, value_key in value_keys.items()}


def has_computed(model: Declared, values: Mapping[str, Stored]) -> bool:
    """Return whether any of the values is in a computed field that may have aliases."""
    return bool(_computed(model, values))


def _computed(model: Declared, values: Mapping[str, Stored]) -> list[tuple[str, str]]:
    """Return the computed fields with values that may have aliases, with their labels."""
    return [
        (name, field.personal)
        for name, field in model.fields.items()
        if field.computed and field.personal and field.linked and values.get(name) is not None
    ]


async def link_computed(
    run: Run,
    model: Declared,
    record_id: str,
    field_inputs: Mapping[str, FieldInput],
    values: Mapping[str, Stored],
    before_aliases: Aliases,
) -> None:
    """Add aliases for the written computed fields whose sources have aliases. Without these aliases, a caller could
    write a guess into a source, and an unchanged token of the computed field would confirm the guess.

    `before_aliases` are the previous aliases of the record. A domain that had an alias for a computed field gets one
    again: even after a change by another caller, the recomputed value may contain text that a caller of the domain
    wrote.
    """
    computed = _computed(model, values)
    if not computed:
        return
    now = await of_record(run, model, record_id, model.fields)
    for name, label in computed:
        for domain_id in sorted(_domains_with_alias(run, model, name, field_inputs, before_aliases, now)):
            value_key = await run.engine.vault.create_alias_id(run.transaction, label, domain_id)
            await _add(run, model, record_id, name, domain_id, value_key)


def _domains_with_alias(
    run: Run, model: Declared, name: str, field_inputs: Mapping[str, FieldInput], before_aliases: Aliases, now: Aliases
) -> Set[str]:
    """Return the ids of the domains for which the computed field needs an alias."""
    sources = indirect_sources(model, name)
    domain_ids = set(before_aliases.get(name, {}))
    for source in sources:
        domain_ids |= now.get(source, {}).keys()
    is_written = any(
        field_inputs[source].value_id is None and field_inputs[source].stored is not None
        for source in sources & field_inputs.keys()
    )
    return domain_ids | {run.domain.id} if run.domain is not None and is_written else domain_ids


async def _add(run: Run, model: Declared, record_id: str, name: str, domain_id: str, value_key: ValueKey) -> None:
    await run.engine.vault.add_alias(run.transaction, model.name, record_id, name, domain_id, value_key.id)
    await run.transaction.run(f'UPDATE "{model.name}" SET changed = changed | $2 WHERE id = $1', record_id, ALIASED)


async def unlink(run: Run, model: Declared, record_id: str, old_keys: Mapping[str, ValueKey]) -> None:
    """Release the previous values of these fields, and their aliases in all domains."""
    for name in old_keys:
        await run.engine.vault.drop_aliases(run.transaction, model.name, record_id, name)
    await run.engine.vault.release(run.transaction, [old_key.id for old_key in old_keys.values()])
