"""The foreign keys that refer to the rows of a connected table, and what a deletion does to the rows that have them.

PostgreSQL deletes or changes these rows with the rights of the owner of their table, and SQLite has no rights, so also
rows that Countersign does not see. A deletion is only allowed if no such row can exist.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from countersign.declare import Declared, Ref
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.registry import Referrer, Registry
from countersign.kernel.database.port import Dialect, Row
from countersign.kernel.database.table_fingerprints import TableId
from countersign.records.adopted import columns
from countersign.records.commands.errors import BadInput

# A foreign key to a partition alone also belongs to the partitioned table. SET NULL with a list of columns counts as
# SET DEFAULT, because emptying a ref empties all of its columns.
_FOREIGN_KEYS = """
WITH target AS (
    SELECT c.oid, c.relispartition, c.relkind IN ('r', 'p') AND NOT (
        c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid)
    ) AS is_table
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2
)
SELECT t.is_table, n.nspname, f.relname,
    CASE WHEN to_jsonb(k) ->> 'confdelsetcols' IS NULL THEN k.confdeltype::text ELSE 'd' END,
    row_security_active(f.oid), (
    SELECT jsonb_agg(jsonb_build_array(own.attname, other.attname))
    FROM unnest(k.conkey, k.confkey) AS pair (own, other)
    JOIN pg_catalog.pg_attribute AS own ON own.attrelid = k.conrelid AND own.attnum = pair.own
    JOIN pg_catalog.pg_attribute AS other ON other.attrelid = k.confrelid AND other.attnum = pair.other
)::text
FROM target AS t
LEFT JOIN pg_catalog.pg_constraint AS k ON k.contype = 'f' AND (k.conparentid = 0 OR t.relispartition)
    AND (k.confrelid = t.oid OR k.confrelid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree(t.oid) AS p))
LEFT JOIN pg_catalog.pg_class AS f ON f.oid = k.conrelid
LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = f.relnamespace
"""
# A foreign key without columns of the other table refers to its primary key.
_SQLITE_FOREIGN_KEYS = """
SELECT s.name, f.id, f.on_delete, f."from", coalesce(f."to", p.name)
FROM sqlite_schema AS s
JOIN pragma_foreign_key_list(s.name) AS f
LEFT JOIN pragma_table_xinfo($1) AS p ON f."to" IS NULL AND p.pk = f.seq + 1
WHERE s.type = 'table' AND lower(f."table") = lower($1)
ORDER BY s.name, f.id, f.seq
"""
_SQLITE_ACTIONS: Final[Mapping[str, str]] = {"CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}
_ACTIONS: Final[Mapping[str, OnDelete]] = {"c": "cascade", "n": "clear"}
_CHANGING = frozenset({"c", "n", "d"})
"""The actions of a foreign key that delete or change rows: CASCADE, SET NULL and SET DEFAULT."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of `table` to another table. `pairs` are its columns, each with the column that it refers to. A
    policy may hide rows of the table if `has_policies` is set. SQLite ignores the case of names, which are in lower
    case."""

    dialect: Dialect
    table: TableId
    action: str
    has_policies: bool
    pairs: frozenset[tuple[str, str]]

    @property
    def changes_rows(self) -> bool:
        """Return whether a deletion deletes or changes the rows that have this key."""
        return self.action in _CHANGING

    def is_of(self, referrer: Referrer, target: Declared) -> bool:
        """Return whether the ref has the columns of this key."""
        model, ref = referrer.model, referrer.ref
        key = () if target.table is None else target.table.key_columns
        if model.table is None:
            return False
        table, pairs = columns.table_id(self.dialect, model), zip(ref.table_columns, key, strict=False)
        if self.dialect == "postgres":
            return table == self.table and frozenset(pairs) == self.pairs
        lower_pairs = frozenset((name.lower(), target_name.lower()) for name, target_name in pairs)
        return table[1].lower() == self.table[1].lower() and lower_pairs == self.pairs


async def read(
    dialect: Dialect, fetch: Callable[[str, Sequence[str]], Awaitable[list[Row]]], model: Declared
) -> list[ForeignKey]:
    """Return the foreign keys to the table of a model.

    Raises:
        BadInput: rows of a view, or of a table from which others inherit, cannot be deleted.
    """
    if dialect == "sqlite":
        return _of_sqlite(await fetch(_SQLITE_FOREIGN_KEYS, columns.table_id(dialect, model)[1:]))
    keys: list[ForeignKey] = []
    for is_table, schema, table, action, has_policies, pairs in await fetch(
        _FOREIGN_KEYS, columns.table_id("postgres", model)
    ):
        if not is_table:
            raise BadInput(f"{model.name}.delete is refused: it is a view, or other tables inherit from its table")
        if schema is not None:
            pairs_of_key = frozenset(msgspec.json.decode(pairs, type=list[tuple[str, str]]))
            keys.append(ForeignKey(dialect, (schema, table), action, bool(has_policies), pairs_of_key))
    return keys


def _of_sqlite(rows: Sequence[Row]) -> list[ForeignKey]:
    pairs: dict[tuple[str, int, str], set[tuple[str, str]]] = {}
    for table, number, action, name, target_name in rows:
        pairs.setdefault((table, number, action), set()).add((str(name).lower(), str(target_name).lower()))
    return [
        ForeignKey("sqlite", ("", table), _SQLITE_ACTIONS.get(action, "a"), False, frozenset(each))
        for (table, _, action), each in pairs.items()
    ]


def actions(
    registry: Registry, model: Declared, keys: Sequence[ForeignKey], *, names_tables: bool
) -> dict[tuple[str, str], OnDelete]:
    """Map each ref to the model that has a foreign key to what deleting a referenced record does. The deletion is
    refused if Countersign may not delete or change the record with the ref. `names_tables` allows the error to name a
    table.

    Raises:
        BadInput: the deletion would delete or change rows that Countersign does not see.
    """
    found: dict[tuple[str, str], OnDelete] = {}
    for key in keys:
        referrers = [each for each in registry.referrers[model.name] if key.is_of(each, model)]
        if key.changes_rows and (key.has_policies or not referrers):
            raise BadInput(_unseen(model, key, names_tables=names_tables))
        for each in referrers:
            place, action = (each.model.name, each.ref.name), _action(key, each.model, each.ref)
            found[place] = action if found.get(place, action) == action else "refuse"
    for each in registry.referrers[model.name]:
        # Without a foreign key, only the module text says what a deletion does.
        found.setdefault((each.model.name, each.ref.name), _allowed(each.ref.on_delete, each.model, each.ref))
    return found


def _action(key: ForeignKey, model: Declared, ref: Ref) -> OnDelete:
    return _allowed(_ACTIONS.get(key.action, "refuse"), model, ref)


def _allowed(action: OnDelete, model: Declared, ref: Ref) -> OnDelete:
    table = model.table
    deletes_rows = table is not None and table.deletes and not table.deleted
    is_allowed = table is not None and (deletes_rows if action == "cascade" else table.writable)
    return action if is_allowed and not (action == "clear" and ref.required) else "refuse"


def _unseen(model: Declared, key: ForeignKey, *, names_tables: bool) -> str:
    table = f"the table {'.'.join(filter(None, key.table))}" if names_tables else "another table"
    if key.has_policies:
        reason = f"of {table}, of which row-level security hides some: delete the record with another application"
    else:
        reason = (
            f"of {table}, which is not connected: declare it in the module text with a ref to {model.name}, or delete "
            "the record with another application"
        )
    return f"{model.name}.delete is refused: the database would also delete or change rows {reason}"
