"""Aliases of values in connected tables. An alias is a value id that only one token domain uses.

If an agent writes text in clear into a masked field, it then sees the token of an alias there, never the token of an
equal value. Otherwise the token would confirm a guess. The table `pii_alias` has the id of the record, and a keyed hash
of the value. An alias no longer counts if another application has changed the value.
"""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import msgspec

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel.database.port import Dialect, Row, Transaction
from countersign.records.masking.seen_values import OwnTables, SeenColumn, SeenValue, SeenValues
from countersign.records.masking.vault import ValueKey, Vault

Aliases = Mapping[str, Mapping[str, int]]
"""Maps a field of a record to its aliases: the id of a token domain to the value id from which its tokens are
computed."""

MAX_TOGETHER = 100
"""The number of aliases of one domain that a read looks up together. If the domain has more, they are looked up by the
ids of the records."""
RECORDS_TOGETHER = 1_000

_COLUMNS = "SELECT record_id, field, domain_id, value_id, hash FROM pii_alias"
_OF_DOMAIN = f"{_COLUMNS} WHERE domain_id = $1 AND model = $2 AND hash IS NOT NULL LIMIT {MAX_TOGETHER + 1}"
_OF_LISTED = f"{_COLUMNS} WHERE model = $1 AND hash IS NOT NULL AND record_id IN"
_OF_RECORDS: Mapping[Dialect, str] = {
    "postgres": f"{_OF_LISTED} (SELECT jsonb_array_elements_text($2::text::jsonb))",
    "sqlite": f"{_OF_LISTED} (SELECT value FROM json_each($2))",
}
_ADD = """
INSERT INTO pii_alias (model, record_id, field, domain_id, value_id, hash) VALUES ($1, $2, $3, $4, $5, $6)
"""
_DROP = """
DELETE FROM pii_alias WHERE model = $1 AND record_id = $2 AND field = $3 AND domain_id = $4 AND value_id = $5
"""


class NewAlias(NamedTuple):
    """An alias to store for a field of a record. `copied_id` is the alias whose token the writer sent. There is none
    for text that the writer wrote in clear, or that the database may have computed from such text. `domain_id` is the
    token domain, or an empty text for that of the writer."""

    value: SeenValue
    copied_id: int | None = None
    domain_id: str = ""


class Alias(NamedTuple):
    """A row of `pii_alias`."""

    record_id: str
    field: str
    domain_id: str
    value_id: int
    hash: bytes


class AliasedRecord(NamedTuple):
    """A record whose aliases are replaced, and the token domain of the writer, or an empty text."""

    model: Declared
    id: str
    domain_id: str


class ConnectedAliases:
    """Finds, stores and drops the aliases of values in connected tables."""

    def __init__(self, seen_values: SeenValues) -> None:
        """`seen_values` computes the hashes of values."""
        self._seen_values = seen_values

    async def of_columns(
        self, tables: OwnTables, model: Declared, domain_id: str, columns: Sequence[SeenColumn]
    ) -> dict[tuple[str, str], int]:
        """Map the id and the field of those records whose value has an alias in the domain to the alias. Call this
        after the values are read: an alias is committed together with its value."""
        aliases = await _of_domain(tables, model, domain_id, columns)
        named = {(each.record_id, model.present_name(each.field)): each for each in aliases}
        return {
            (record_id, column.field): alias.value_id
            for column in (columns if named else ())
            for index, record_id in enumerate(column.record_ids)
            if (alias := named.get((record_id, column.field))) is not None
            and self._seen_values.has_hash(column.value(index), alias.hash)
        }

    async def of_records(
        self, tables: OwnTables, model: Declared, records: Mapping[str, Mapping[str, Stored]]
    ) -> dict[str, dict[str, dict[str, int]]]:
        """Map the ids of those records that have aliases to their aliases. `records` maps ids to the values of the
        records."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for alias in await _of_records(tables, model, list(records)):
            name = model.present_name(alias.field)
            value = personal_values(model, alias.record_id, records[alias.record_id]).get(name)
            if value is not None and self._seen_values.has_hash(value, alias.hash):
                found.setdefault(alias.record_id, {}).setdefault(name, {})[alias.domain_id] = alias.value_id
        return found

    async def replace(
        self,
        tables: OwnTables,
        vault: Vault,
        record: AliasedRecord,
        names: Container[str],
        new_aliases: Sequence[NewAlias],
    ) -> dict[str, dict[str, int]]:
        """Drop the aliases of these fields in all domains, and store the new aliases. Return the new aliases by field.

        The new aliases are taken first, because the writer may have copied one of the previous ones.
        """
        model, record_id, _ = record
        added = [each._replace(domain_id=each.domain_id or record.domain_id) for each in new_aliases]
        value_keys = [await _take(tables.transaction, vault, each) for each in added]
        stored = await _of_records(tables, model, [record_id])
        old_aliases = [each for each in stored if model.present_name(each.field) in names]
        await drop(tables.transaction, vault, model.name, old_aliases)
        by_field: dict[str, dict[str, int]] = {}
        for (value, _, domain_id), key in zip(added, value_keys, strict=True):
            value_hash = self._seen_values.hash_of(value)
            await tables.transaction.run(_ADD, model.name, record_id, value.field, domain_id, key.id, value_hash)
            by_field.setdefault(value.field, {})[domain_id] = key.id
        return by_field


async def drop(transaction: Transaction, vault: Vault, model: str, aliases: Sequence[Alias]) -> None:
    """Drop those of these aliases of records of one model that are still stored, with their references to the
    vault."""
    dropped_ids = [
        each.value_id
        for each in aliases
        if await transaction.run(_DROP, model, each.record_id, each.field, each.domain_id, each.value_id)
    ]
    await vault.release(transaction, dropped_ids)


def personal_values(model: Declared, record_id: str, values: Mapping[str, Stored]) -> dict[str, SeenValue]:
    """Map the personal fields that have a value to the value."""
    return {
        name: SeenValue(field.personal, str(value), model.name, record_id, name, field.linked)
        for name, value in values.items()
        if value is not None and (field := model.fields[name]).personal
    }


async def _take(transaction: Transaction, vault: Vault, new_alias: NewAlias) -> ValueKey:
    copied_key = None if new_alias.copied_id is None else await vault.hold_existing(transaction, new_alias.copied_id)
    return copied_key or await vault.create_alias_id(transaction, new_alias.value.label, new_alias.domain_id)


async def _of_domain(
    tables: OwnTables, model: Declared, domain_id: str, columns: Sequence[SeenColumn]
) -> list[Alias]:
    rows = await tables.reader.fetch(_OF_DOMAIN, domain_id, model.name)
    if len(rows) <= MAX_TOGETHER:
        return list(map(_alias, rows))
    record_ids = list(dict.fromkeys(record_id for column in columns for record_id in column.record_ids))
    return [each for each in await _of_records(tables, model, record_ids) if each.domain_id == domain_id]


async def _of_records(tables: OwnTables, model: Declared, record_ids: Sequence[str]) -> list[Alias]:
    statement, aliases = _OF_RECORDS[tables.dialect], list[Alias]()
    for start in range(0, len(record_ids), RECORDS_TOGETHER):
        listed = msgspec.json.encode(record_ids[start : start + RECORDS_TOGETHER]).decode()
        aliases += map(_alias, await tables.reader.fetch(statement, model.name, listed))
    return aliases


def _alias(row: Row) -> Alias:
    record_id, field, domain_id, value_id, value_hash = row
    return Alias(str(record_id), str(field), str(domain_id), int(value_id), bytes(value_hash))
