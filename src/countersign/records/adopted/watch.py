"""Moves the changes of other applications, which triggers of the connected database record, into the audit.

The record of a change is deleted in the transaction that appends its audit entry, so each change has exactly one entry,
also after a crash. An entry contains the role of the database, the record and the names of the changed fields. The
values are not known.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from countersign.declare import Declared
from countersign.kernel import clock, telemetry
from countersign.kernel.database import postgres_watch
from countersign.kernel.database.port import ConnectedSession, Database, Transaction
from countersign.kernel.database.postgres_watch import MAX_BACKLOG, WatchedTable
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.records.adopted import columns
from countersign.records.adopted.reader import AdoptedTables
from countersign.records.adopted.store import AdoptedStore
from countersign.records.audit.chain import Chain, ChainEntry
from countersign.records.commands.outside_changes import COMMAND, ROLE
from countersign.records.commands.run import Engine

READ_EVERY_S = 2.0
CHECK_EVERY_S = 15.0
BATCH = 200
MAX_BATCHES = 20
"""The number of batches that one call reads, so that other periodic work is not late."""
WATCHED, UNWATCHED = "outside.watched", "outside.unwatched"
COMMANDS: Final[Mapping[str, str]] = {
    "insert": "outside.create",
    "update": COMMAND,
    "delete": "outside.delete",
    "truncate": "outside.delete",
}
"""Maps the operation of another application to the command of the audit entry."""

_NOT_WATCHED: Final = "changes of other applications are no longer recorded: run the SQL of `countersign connect watch`"
_FULL: Final = "too many recorded changes of other applications waited, so later ones were not recorded"
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_APPLICATION_LENGTH = 32
_SEEN_EVERY_S = 60
_PLAIN = ConnectedSession()
_ROLE = "SELECT session_user::text"
_IS_READABLE = """
SELECT c.oid
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'countersign_watch' AND c.relname = 'outside_change' AND has_schema_privilege(n.oid, 'USAGE')
    AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'DELETE')
    AND EXISTS (
        SELECT
        FROM pg_catalog.pg_class AS l
        WHERE l.relnamespace = n.oid AND l.relname = 'lost_change_seq' AND has_sequence_privilege(l.oid, 'SELECT')
    )
"""
_LOST = "(SELECT CASE WHEN l.is_called THEN l.last_value ELSE 0 END FROM countersign_watch.lost_change_seq AS l)"
# Transactions that were rolled back have also taken numbers, and leave no record. Without moving the position, the
# triggers would take them for records that wait, and record nothing more.
_IS_DUE = f"""
SELECT 1
WHERE EXISTS (SELECT FROM countersign_watch.outside_change) OR (
    SELECT s.last_value FROM countersign_watch.outside_change_id_seq AS s
) > (SELECT p.read_to + {MAX_BACKLOG // 2} FROM countersign_watch.progress AS p) OR {_LOST} > (
    SELECT p.lost_to FROM countersign_watch.progress AS p
)
"""
# Only our role may lock this row. Any role could hold an advisory lock.
_PROGRESS = f"""
SELECT (SELECT s.last_value FROM countersign_watch.outside_change_id_seq AS s), p.read_to, {_LOST}, p.lost_to, (
    SELECT (extract(epoch FROM o.at) * 1000000)::bigint
    FROM countersign_watch.outside_change AS o
    ORDER BY o.id DESC
    LIMIT 1
)
FROM countersign_watch.progress AS p
FOR UPDATE OF p SKIP LOCKED
"""
_SET_LOST = "UPDATE countersign_watch.progress SET lost_to = $1::bigint WHERE lost_to < $1::bigint"
_SET_PROGRESS = "UPDATE countersign_watch.progress SET read_to = $1::bigint WHERE read_to < $1::bigint"
_TAKE = """
WITH taken AS (
    DELETE FROM countersign_watch.outside_change AS c
    WHERE c.id IN (SELECT o.id FROM countersign_watch.outside_change AS o ORDER BY o.id LIMIT $1::bigint)
    RETURNING c.id, c.xid, (extract(epoch FROM c.at) * 1000000)::bigint AS at, c.relation, c.operation, c.key,
        c.columns, c.role, c.application
)
SELECT t.id, t.xid, t.at, t.relation, t.operation, t.key, t.columns, t.role, t.application
FROM taken AS t
ORDER BY t.id
"""
_KNOWN = "SELECT relation, seen_at FROM watched_table"
_NOTE = "INSERT INTO watched_table (relation, seen_at) VALUES ($1, $2) ON CONFLICT (relation) DO NOTHING RETURNING 1"
_SEE = "UPDATE watched_table SET seen_at = $2 WHERE relation = $1"
_FORGET = "DELETE FROM watched_table WHERE relation = $1 RETURNING seen_at"


class _Change(NamedTuple):
    """A recorded change: one row, or a statement with many rows, which has no key. Only an update has columns."""

    id: int
    xid: str
    at: int
    relation: str
    operation: str
    key: Sequence[str] | None
    columns: Sequence[str] | None
    role: str
    application: str


def reader_of(engine: Engine) -> "OutsideChangeReader | None":
    """Return the reader of the recorded changes, or None if our own tables are not in the connected database. A SQLite
    file records none."""
    stores = {each for each in engine.adopted.values() if isinstance(each, AdoptedStore) and each.is_shared}
    stores = {each for each in stores if each.database.dialect == "postgres"}
    return next((OutsideChangeReader(engine.records.database, engine.chain, each) for each in stores), None)


class OutsideChangeReader:
    """Reads the recorded changes of the tables of one connected database. `relations` are the tables whose changes are
    recorded now, and `count` is the number of all tables."""

    def __init__(self, database: Database, chain: Chain, store: AdoptedStore) -> None:
        self._database = database
        self._chain = chain
        self._existing: ExistingDatabase = store.database
        self._tables: AdoptedTables = store.tables
        self._models: dict[str, list[Declared]] = {}
        for model in store.models.values():
            self._models.setdefault(columns.table_name("postgres", model), []).append(model)
        self._watched_tables = postgres_watch.merge_columns(map(_watched_table, store.models.values()))
        self._is_readable = False
        self._checked_at_s: float | None = None
        self.relations: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """The number of tables of the models."""
        return len(self._watched_tables)

    async def read(self) -> None:
        """Move the recorded changes into the audit, up to a limit. Check at intervals which tables are watched.

        Raises:
            Unavailable, StorageFull: the database refuses a statement. The next call tries again.
        """
        if self._checked_at_s is None or clock.monotonic_s() - self._checked_at_s >= CHECK_EVERY_S:
            await self.check()
        if not self._is_readable or not await self._existing.scan(_IS_DUE):
            return
        for _ in range(MAX_BATCHES):
            if await self._read_batch() < BATCH:
                break

    async def check(self) -> None:
        """Compare the triggers with those of `countersign connect watch`, and note in the audit which tables are
        recorded from now on, and which no longer.

        Raises:
            Unavailable, StorageFull: the database refuses a statement. The next call tries again.
        """
        watched = self.relations = await self._watched()
        self._checked_at_s = clock.monotonic_s()
        now = clock.now()
        known = {str(relation): int(seen_at) for relation, seen_at in await self._database.fetch(_KNOWN)}
        old = {each for each in watched & known.keys() if now - known[each] >= _SEEN_EVERY_S * clock.SECOND}
        if watched == known.keys() and not old:
            return
        async with self._database.transaction() as transaction:
            for relation in sorted(old):
                await transaction.run(_SEE, relation, now)
            for relation in sorted(watched ^ known.keys()):
                await self._note(transaction, relation, now, is_watched=relation in watched)

    async def _watched(self) -> frozenset[str]:
        self._is_readable = bool(await self._existing.scan(_IS_READABLE))
        if not self._is_readable:
            return frozenset()
        ((role,),) = await self._existing.scan(_ROLE)
        return await postgres_watch.watched_relations(self._existing.scan, self._watched_tables, role)

    async def _note(self, transaction: Transaction, relation: str, now: int, *, is_watched: bool) -> None:
        """Note a change in the audit. Another process may have done so already."""
        if is_watched:
            if await transaction.fetch_one(_NOTE, relation, now) is not None:
                await self._record(transaction, WATCHED, relation, now)
            return
        row = await transaction.fetch_one(_FORGET, relation)
        if row is not None:
            telemetry.logger("connected-database").warning(_NOT_WATCHED, table=relation)
            await self._record(transaction, UNWATCHED, relation, row[0])

    async def _read_batch(self) -> int:
        async with self._database.transaction() as transaction:
            progress = await transaction.fetch_connected(_PLAIN, _PROGRESS)
            if not progress:
                # Another process reads them.
                return 0
            ((last_id, read_to, lost, lost_to, newest_at),) = progress
            if lost > lost_to:
                await self._record_loss(transaction, newest_at)
                await transaction.fetch_connected(_PLAIN, _SET_LOST, lost)
            changes = [_Change(*row) for row in await transaction.fetch_connected(_PLAIN, _TAKE, BATCH)]
            for change in changes:
                await self._append(transaction, change)
            position = changes[-1].id if len(changes) == BATCH else max([last_id, *(each.id for each in changes)])
            if position > read_to:
                await transaction.fetch_connected(_PLAIN, _SET_PROGRESS, position)
        return len(changes)

    async def _append(self, transaction: Transaction, change: _Change) -> None:
        application = _OTHER_CHARACTERS.sub("-", change.application)[:_MAX_APPLICATION_LENGTH]
        for model in self._models.get(change.relation, ()):
            fields = _changed_fields(model, change)
            if fields is None:
                continue
            entry = _entry(COMMANDS[change.operation], model.name, change.at, self._record_id(model, change))
            await self._chain.append(
                transaction,
                replace(
                    entry,
                    user_id=f"{ROLE}{change.role}",
                    fields=",".join(fields),
                    request_id=f"xid:{change.xid} {application}".rstrip(),
                ),
            )

    def _record_id(self, model: Declared, change: _Change) -> str | None:
        """Return the id of the record, or None if it is not known. The key of the table or its type may be another one
        now, and a key with NULL is not a record."""
        table = self._tables.by_model.get(model.name)
        if table is None or change.key is None or None in change.key or len(change.key) != len(table.key):
            return None
        kinds = [table.types[name].key_kind for name in table.key]
        try:
            key = tuple(
                int(value) if kind in columns.INTEGERS else value for kind, value in zip(kinds, change.key, strict=True)
            )
            return table.ids.encode([key])[0]
        except ValueError:
            return None

    async def _record(self, transaction: Transaction, command: str, relation: str, at: int) -> None:
        for model in self._models.get(relation, ()):
            await self._chain.append(transaction, _entry(command, model.name, at, None))

    async def _record_loss(self, transaction: Transaction, newest_at: int | None) -> None:
        telemetry.logger("connected-database").error(_FULL)
        now = clock.now()
        for relation in sorted(self.relations):
            await self._record(transaction, UNWATCHED, relation, now if newest_at is None else newest_at)
            await self._record(transaction, WATCHED, relation, now)


def _watched_table(model: Declared) -> WatchedTable:
    names = tuple(name for field in model.fields.values() for name in field.table_columns)
    key = () if model.table is None else model.table.key_columns
    return WatchedTable(*columns.table_id("postgres", model), key, names)


def _changed_fields(model: Declared, change: _Change) -> list[str] | None:
    """Return the names of the changed fields, or None if the change is about no field of the model. All fields are
    changed with a new or deleted row, and it is not known which in a large statement."""
    if change.key is None:
        return []
    if change.columns is None:
        return list(model.fields)
    changed = set(change.columns)
    return [name for name, each in model.fields.items() if not changed.isdisjoint(each.table_columns)] or None


def _entry(command: str, model: str, at: int, record_id: str | None) -> ChainEntry:
    return ChainEntry(
        at=at,
        user_id="",
        agent_token=None,
        agent=None,
        command=command,
        model=model,
        record_id=record_id,
        fields="",
        changes="{}",
        plan_id=None,
        request_id="",
    )
