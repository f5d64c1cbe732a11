"""The store of models with a table of an existing database."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Container, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from countersign.declare import DeclarationError, Declared, Moment, Table
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH
from countersign.declare.model import TABLE_COMMANDS
from countersign.declare.registry import Referrer, Registry
from countersign.kernel import clock, telemetry
from countersign.kernel.database import port, read_only
from countersign.kernel.database.open import SQLITE, open_existing
from countersign.kernel.database.port import Dialect, Row
from countersign.kernel.database.read_only import ExistingDatabase, TableChanged, TooSlow
from countersign.kernel.database.sqlite_outside_tables import IN_WAL, ConnectedFile, TextFunction
from countersign.kernel.database.sqlite_read_only import COPY_IN_UTF_8, IN_UTF_16
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.security.encryption import MemoryCipher, derive_key
from countersign.records.access.people import folded
from countersign.records.access.view import Caller, ModelView, Rows
from countersign.records.adopted import columns, privileges
from countersign.records.adopted.columns import ColumnType
from countersign.records.adopted.reader import (
    FOLDED,
    AdoptedReader,
    AdoptedTable,
    AdoptedTables,
    WholeTextReader,
)
from countersign.records.adopted.replica import ReadReplica, note_lag
from countersign.records.adopted.sessions import Sessions
from countersign.records.adopted.sqlite_values import HASH, IS_UTF8, hash_of
from countersign.records.adopted.suspension import Suspensions
from countersign.records.adopted.writer import AdoptedWriter
from countersign.records.commands import filters, select
from countersign.records.commands.errors import BadInput, NoSuchRecord
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import RecordReader, SelectStatement, StoredRecord
from countersign.records.masking.connected_aliases import ConnectedAliases
from countersign.records.masking.record_ids import KeyKind, RecordIds
from countersign.records.masking.seen_values import SeenBy, SeenColumn, SeenValue, SeenValues

_READING = frozenset(TABLE_COMMANDS)
_PENDING = "SELECT 1 FROM plan WHERE person = $1 AND agent = $2 AND state = 'pending' LIMIT 1"
BATCHES_TOGETHER = 10
"""The number of batches of a stream whose values are looked up together. They have at most 5,000 rows."""
MAX_STATEMENTS = 4
"""The maximum number of statements that a process runs on an existing database at a time."""


def adopted_models(registry: Registry) -> dict[str, Declared]:
    """Map the names of the models with a table of an existing database to the models."""
    return {name: model for name, model in registry.models.items() if model.table is not None}


def _batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    return (list(rows[start : start + port.MAX_ROWS]) for start in range(0, len(rows), port.MAX_ROWS))


def _texts(reader: AdoptedReader, rows: Sequence[Row]) -> dict[str, str | None]:
    """Map the ids of records to the text of the only field of the reader's view."""
    decoded = reader.decoded(rows, 0)
    return {row[0]: None if row[2] is None else str(row[2]) for row in decoded if row[0] is not None}


def _seen_by(caller: Caller) -> SeenBy | None:
    """Return the agent, which can send tokens of what it sees, or None for people."""
    return None if caller.domain is None or not caller.is_agent else SeenBy(caller.domain.id, caller.user_id)


def _without(column: SeenColumn, aliases: Container[tuple[str, str]]) -> SeenColumn:
    """Return the column without the values of fields with an alias."""
    pairs = zip(column.texts, column.record_ids, strict=True)
    kept = [(text, record_id) for text, record_id in pairs if (record_id, column.field) not in aliases]
    return column._replace(texts=[text for text, _ in kept], record_ids=[record_id for _, record_id in kept])


def _folded(text: str | None) -> str | None:
    return None if text is None else folded(text)


def _is_utf8(text_in_hex: str | None) -> bool:
    try:
        bytes.fromhex(text_in_hex or "").decode()
    except UnicodeDecodeError:
        return False
    return True


FUNCTIONS: Mapping[str, TextFunction] = {FOLDED: _folded, IS_UTF8: _is_utf8, HASH: hash_of}
"""The additional functions of statements on a SQLite file."""


def connected_file(registry: Registry, url: str) -> ConnectedFile | None:
    """Return the SQLite file at the URL if people may write a table of it, or None."""
    if not url.startswith(SQLITE) or not is_writable(registry):
        return None
    return ConnectedFile(Path(url.removeprefix(SQLITE)), FUNCTIONS)


def is_writable(registry: Registry) -> bool:
    """Return whether people may write a table of the existing database."""
    return any(each.table is not None and each.table.writable for each in registry.models.values())


async def open_adopted(
    registry: Registry, url: str, read_deadline_s: float, *, is_shared: bool = False
) -> ExistingDatabase:
    """Open the existing database at the URL for reading. `is_shared` says that transactions of our own database also
    write it.

    Raises:
        Unavailable: the database cannot be opened or reached.
        ValueError: the URL is not a database address.
    """
    return await open_existing(
        url,
        pool=MAX_STATEMENTS,
        read_deadline_s=read_deadline_s,
        search_path=_search_path(registry),
        functions=FUNCTIONS,
        new_cipher=MemoryCipher,
        recovers=is_shared,
    )


def _search_path(registry: Registry) -> tuple[str, ...]:
    return next((each.search_path for each in registry.modules if each.search_path), ())


async def require_narrow_rights(registry: Registry, database: ExistingDatabase, *, accepts_wide: bool) -> None:
    """Check the rights of the role that reads the tables of the models (see `privileges.require_narrow`).

    Raises:
        WideRights: the role reads rows that policies hide from others, and `accepts_wide` is false.
        Unavailable: the database cannot answer now.
    """
    relations = {each.table.relation for each in adopted_models(registry).values() if each.table is not None}
    roles = sorted(set(registry.session_roles.values()))
    await privileges.require_narrow(database, relations, roles, accepts_wide=accepts_wide)


async def stores(
    registry: Registry,
    database: ExistingDatabase,
    secret: bytes,
    *,
    is_shared: bool = False,
    replica: ReadReplica | None = None,
) -> "dict[str, AdoptedStore]":
    """Map each model with a table to its store. `secret` is the secret of our own database. A model whose table or
    column does not exist, or may not be read, is suspended. `is_shared` means that one transaction can write the
    database and our own tables, unless it is a SQLite file in WAL mode. `replica` is a replica of the database, if
    there is one.

    Raises:
        DeclarationError: a model does not fit the engine of the database.
        Unavailable: the database cannot answer now.
    """
    models = adopted_models(registry)
    relations = frozenset(each.table.relation for each in models.values() if each.table is not None)
    if database.dialect == "sqlite":
        _require_utc(models)
        _require_no_session(registry)
        _require_one_writer(models)
        await _require_utf8(database)
        is_shared = is_shared and not await _is_wal(database)

    async def read_tables() -> dict[str, AdoptedTable | str]:
        types = await columns.types_of(database, relations)
        unwritable = await columns.unwritable(database, relations) if is_shared else frozenset[str]()
        dialect = database.dialect
        return {
            name: _unwritable_reason(dialect, each, unwritable) or _table(dialect, each, types, secret)
            for name, each in models.items()
        }

    tables = AdoptedTables(database.dialect, {}, await columns.folds_unicode(database), await columns.is_utf8(database))
    suspensions = Suspensions(database, models, read_tables, tables.by_model)
    await suspensions.check()
    sessions = Sessions(registry.session, registry.session_roles, _search_path(registry))
    store = AdoptedStore(database, tables, secret, suspensions, sessions, models, is_shared=is_shared, replica=replica)
    return dict.fromkeys(models, store)


def _require_one_writer(models: Mapping[str, Declared]) -> None:
    """Refuse two models that write one table. SQLite ignores the case of ASCII letters in its name, unlike the rule for
    declarations."""
    writers: dict[bytes, Declared] = {}
    for model in models.values():
        if model.table is None or not model.table.writable:
            continue
        writer = writers.setdefault(columns.table_id("sqlite", model)[1].encode().lower(), model)
        if writer is not model:
            text = f"{writer.name} and {model.name} write one table, {model.table.relation}: take writable out of one"
            raise DeclarationError(f"{model.source}: {model.name}.table: {text}")


async def _require_utf8(database: ExistingDatabase) -> None:
    """Refuse a file whose texts have other bytes than the statements expect, and which SQLite does not commit together
    with a file in UTF-8."""
    if await database.scan("PRAGMA encoding") != [("UTF-8",)]:
        raise DeclarationError(f"{IN_UTF_16}. {COPY_IN_UTF_8}")


async def _is_wal(database: ExistingDatabase) -> bool:
    """Return whether a SQLite file is in WAL mode, and log that it is therefore only read."""
    is_wal = await database.scan("PRAGMA journal_mode") == [("wal",)]
    if is_wal:
        telemetry.logger("connected-database").warning(IN_WAL)
    return is_wal


def _unwritable_reason(dialect: Dialect, model: Declared, unwritable: frozenset[str]) -> str | None:
    """Return why people cannot write the table of a model that says they can, with the remedy, or None."""
    table = model.table
    if table is None or not table.writable or table.relation not in unwritable:
        return None
    if dialect == "sqlite":
        return (
            f"{model.source}: {model.name}: {table.relation} is a view or a virtual table, or has a constraint with ON "
            "CONFLICT REPLACE, which deletes other rows: take writable out"
        )
    return (
        f"{model.source}: {model.name}: {table.relation} is a view or a foreign table, or has a foreign partition, and "
        "does not change in one transaction with the audit entry: take writable out"
    )


def _table(
    dialect: Dialect, model: Declared, types: Mapping[str, Mapping[str, ColumnType]], secret: bytes
) -> AdoptedTable | str:
    """Return the table of a model, or the reason why it cannot be read as declared."""
    table = model.table
    if table is None:
        raise LookupError(f"{model.name} has no table of an existing database")
    known = types[table.relation]
    if not known:
        return (
            f"{model.source}: {model.name}: the connected database has no table {table.relation} that may be read: "
            "correct the name, or grant SELECT"
        )
    places = dict.fromkeys(table.columns_without_field, f"{model.name}.table")
    places |= {name: f"{model.name}.{each.name}" for each in model.fields.values() for name in each.table_columns}
    for name, place in places.items():
        if name not in known:
            return (
                f"{model.source}: {place}: the table {table.relation} has no column {name} that may be read: correct "
                "the name, or grant SELECT"
            )
    misfit = _misfit(dialect, model, known)
    if misfit is not None:
        return misfit
    # Other columns are left out: they may be dropped at any time.
    declared = {name: known[name] for name in places}
    kinds: list[KeyKind] = [known[each].key_kind for each in table.key_columns]
    name = columns.table_name(dialect, model)
    return AdoptedTable(model, name, table.key_columns, declared, RecordIds(secret, table.relation, kinds))


def _misfit(dialect: Dialect, model: Declared, types: Mapping[str, ColumnType]) -> str | None:
    """Return why a field cannot hold the values of its column, the version column cannot count, or the column of
    deleted rows cannot mark them, or None."""
    misfit = None if model.table is None else _misfit_of_marks(dialect, model.table, types)
    if misfit is not None:
        return f"{model.source}: {model.name}.table: {misfit}"
    reasons = {
        field.name: columns.misfit(dialect, types[name], field)
        for field in model.fields.values()
        for name in field.table_columns
    }
    return next((f"{model.source}: {model.name}.{name}: {reason}" for name, reason in reasons.items() if reason), None)


def _misfit_of_marks(dialect: Dialect, table: Table, types: Mapping[str, ColumnType]) -> str | None:
    version, deleted = table.version, table.deleted
    if version and not columns.is_counter(dialect, types[version]):
        return f"the column {version} is no whole number: take version out"
    if deleted and not columns.marks_deletions(dialect, types[deleted]):
        return f"the column {deleted} is no time, day or boolean: take deleted out"
    if deleted and columns.is_always_deleted(dialect, types[deleted]):
        return f"the column {deleted} is never empty, so it would mark all rows as deleted: take deleted out"
    return None


def _require_utc(models: Mapping[str, Declared]) -> None:
    for model in models.values():
        for field in model.fields.values():
            if isinstance(field, Moment) and field.zone != "UTC":
                raise DeclarationError(
                    f"{model.source}: {model.name}.{field.name}: times in a SQLite file must be in UTC: take zone out"
                )


def _require_no_session(registry: Registry) -> None:
    for module in registry.modules:
        if module.session or module.session_roles:
            name = "session" if module.session else "session_roles"
            raise DeclarationError(f"{module.source}: a SQLite file has no policies for rows: take {name} out")


class AdoptedStore:
    """Reads and writes the records of all models with a table of one existing database."""

    def __init__(
        self,
        database: ExistingDatabase,
        tables: AdoptedTables,
        secret: bytes,
        suspensions: Suspensions,
        sessions: Sessions,
        models: Mapping[str, Declared],
        *,
        is_shared: bool,
        replica: ReadReplica | None,
    ) -> None:
        """`models` are the models with a table of the database. `is_shared` says that one transaction can write the
        database and our own tables. Other databases are only read. Lists are read from `replica` while it is up to
        date."""
        self.suspensions = suspensions
        self.models = models
        self.database = database
        self.tables = tables
        self.is_shared = is_shared
        self._replica = replica
        self._written_at_s = -math.inf
        self._sessions = sessions
        self._seen = SeenValues(secret)
        self._aliases = ConnectedAliases(self._seen)
        self._revision_key = derive_key(secret, b"", "adopted/revision")
        self._writer = (
            None
            if not is_shared
            else AdoptedWriter(
                database,
                tables,
                self._seen,
                self._aliases,
                sessions,
                revision_key=self._revision_key,
                check_again=self._check_again,
            )
        )

    def reader(self, caller: Caller, view: ModelView) -> RecordReader:
        """Return a reader of the view."""
        return AdoptedReader(self.tables, caller.view, view, caller.domain, self._revision_key)

    async def scan(
        self, run: Run, record_reader: RecordReader, select_statement: SelectStatement, start: int
    ) -> list[Row]:
        """Return the rows of a statement, with the columns of stored records from `start` on."""
        rows = await self._scan(run, record_reader, select_statement)
        adopted, decoded = cast("AdoptedReader", record_reader), list[list[Any]]()
        for batch in port.batches(rows):
            if decoded:
                # Let other requests run.
                await asyncio.sleep(0)
            decoded += adopted.decoded(batch, start)
        return await self._completed(run, adopted, decoded, start)

    async def stream(
        self, run: Run, record_reader: RecordReader, select_statement: SelectStatement, start: int
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows of `scan` in batches."""
        self._require_reviewed(record_reader.view.model.name)
        try:
            async with aclosing(self._batches(run, select_statement)) as row_batches:
                async for completed_rows in self._completed_stream(run, record_reader, row_batches, start):
                    yield completed_rows
        except TableChanged:
            await self._check_again()
            raise
        except TooSlow:
            raise await self._too_slow(record_reader.view) from None

    async def groups(self, run: Run, record_reader: RecordReader, select_statement: SelectStatement) -> list[Row]:
        """Return the rows of a statement of `count_by` or `series`."""
        return await self._scan(run, record_reader, select_statement)

    async def find(
        self, run: Run, model: Declared, rows: Rows, record_id: str, *, locks: bool, deletes: bool = False
    ) -> StoredRecord:
        """Return the record in the transaction of the command."""
        return await self._writer_of(model).find(run, model, rows, record_id, locks=locks, deletes=deletes)

    async def text_with_hash(
        self, run: Run, view: ModelView, record_id: str, name: str, value_hash: bytes
    ) -> str | None:
        """Return the text of a personal field in a record, or None if the caller does not see the record or if it now
        has another text than the one whose hash the vault stores."""
        field = view.model.fields[name]
        view = replace(view, fields={name: "clear"})
        reader = WholeTextReader(self.tables, run.caller.view, view, None, self._revision_key)
        rows = await self._scan(run, reader, select.one(reader, view.visible, record_id))
        text = _texts(reader, rows).get(record_id)
        if text is None or len(text) > MAX_LONGTEXT_LENGTH:
            # A longer text could not be written as it is.
            return None
        shown_text = text[: columns.text_length(field)]
        value = SeenValue(field.personal or "", shown_text, view.model.name, record_id, name, field.linked)
        return text if self.has_hash(value, value_hash) else None

    def is_suspended(self, model: str) -> bool:
        """Return whether the model cannot be read, because its table has changed."""
        return model in self.suspensions.models

    def has_hash(self, value: SeenValue, value_hash: bytes) -> bool:
        """Return whether this is the value whose hash the vault stores."""
        return self._seen.has_hash(value, value_hash)

    def is_session_complete(self, person: Caller) -> bool:
        """Return whether the person has all values that the policies of the database need."""
        return self._sessions.has_values(person)

    async def texts(
        self, person: Caller, model: Declared, name: str, record_ids: Sequence[str]
    ) -> dict[str, str | None]:
        """Map those of the records that exist to the text of a field as readers see it. No grants apply, and policies
        of the database apply as for the person.

        Raises:
            Unavailable: the database cannot answer now.
            Busy: too many statements are running.
        """
        view = ModelView(model, frozenset(), {name: "clear"}, frozenset(), (), {"get": None})
        reader = AdoptedReader(self.tables, person.view, view, None, self._revision_key)
        query = filters.Query(filter=(filters.Condition("id", "in", list(record_ids)),))
        statement = select.page(reader, None, query)
        settings = self._sessions.of(person).settings
        return _texts(reader, await self.database.scan(statement.text, *statement.values, settings=settings))

    async def revisions(self, run: Run, view: ModelView, record_ids: Sequence[str]) -> dict[str, int]:
        """Map the ids of those records that exist for the caller to the revisions of their stored records."""
        revisions: dict[str, int] = {}
        for record_id in record_ids:
            with suppress(NoSuchRecord):
                record = await self._writer_of(view.model).find(run, view.model, view.visible, record_id, locks=False)
                revisions[record_id] = record.revision
        return revisions

    async def insert(self, run: Run, model: Declared, field_inputs: Mapping[str, FieldInput], command: str) -> str:
        """Insert a row with its audit entry, and return the id of the record."""
        self._written(run)
        return await self._writer_of(model).insert(run, model, field_inputs, command)

    async def update(
        self, run: Run, model: Declared, record: StoredRecord, field_inputs: Mapping[str, FieldInput], command: str
    ) -> bool:
        """Set fields of a locked row, with an audit entry. Return whether a value changed."""
        self._written(run)
        return await self._writer_of(model).update(run, model, record, field_inputs, command)

    async def delete(self, run: Run, model: Declared, record: StoredRecord, command: str) -> None:
        """Delete a locked row, with an audit entry."""
        self._written(run)
        await self._writer_of(model).delete(run, model, record, command)

    async def triggers(self, run: Run, model: Declared, commands: Collection[str]) -> list[str]:
        """Return the names of the triggers that these commands can run on a row of the model."""
        return await self._writer_of(model).triggers(run, model, commands)

    async def check_deferred(self, run: Run) -> None:
        """Check the deferred constraints of the written tables."""
        if self._writer is not None:
            await self._writer.check_deferred(run)

    async def deletion_actions(self, run: Run, model: Declared) -> Mapping[tuple[str, str], OnDelete]:
        """Map refs to the model to what deleting a referenced record does."""
        return await self._writer_of(model).deletion_actions(run, model)

    async def referring(
        self,
        run: Run,
        referrer: Referrer,
        record_ids: Sequence[str],
        rows: Rows,
        limit: int,
        locked_for: OnDelete | None,
    ) -> list[StoredRecord]:
        """Return the first records whose ref contains one of these ids."""
        return await self._writer_of(referrer.model).referring(run, referrer, record_ids, rows, limit, locked_for)

    def _writer_of(self, model: Declared) -> AdoptedWriter:
        self._require_reviewed(model.name)
        if self._writer is None:
            raise LookupError("a database without our own tables is only read, so no caller has a writing command")
        return self._writer

    def narrowed(self, caller: Caller) -> Caller:
        """Return the caller without the models whose policies need a value that it does not have, and without the
        commands that it cannot run. No caller writes a database without our own tables. People who see tokens only
        read, because the rules of the database could tell them about a value that they do not see."""
        caller = self._sessions.narrowed(caller)
        if self._writer is not None and (caller.domain is None or caller.is_agent):
            return caller
        models = {
            name: each if each.model.table is None else replace(each, commands=each.commands & _READING)
            for name, each in caller.view.models.items()
        }
        return replace(caller, view=replace(caller.view, models=models))

    async def _scan(self, run: Run, record_reader: RecordReader, select_statement: SelectStatement) -> list[Row]:
        self._require_reviewed(record_reader.view.model.name)
        try:
            if self._writer is not None and run.open_transaction is not None:
                return await self._writer.fetch(run, select_statement.text, select_statement.values)
            return await self._rows(run, select_statement)
        except TableChanged:
            await self._check_again()
            raise
        except TooSlow:
            raise await self._too_slow(record_reader.view) from None

    async def _too_slow(self, view: ModelView) -> Refused:
        """Return the refusal of a read that took too long. It names the fields that the caller reads in clear and that
        an index answers."""
        names: list[str] = []
        # The busy database may not answer this either.
        with suppress(Refused):
            indexed = await columns.indexed(self.database, view.model)
            names = [
                name
                for name in view.fields
                if view.sees_in_clear(name) and indexed.intersection(view.model.fields[name].table_columns[:1])
            ]
        if not names:
            return TooSlow()
        return BadInput(f"this filter takes too long on {view.model.name}: filter on {', '.join(names)} as well")

    async def _rows(self, run: Run, select_statement: SelectStatement) -> list[Row]:
        settings, lag_s = self._sessions.of(run.caller).settings, self._lag_s(run)
        text, values = select_statement.text, select_statement.values
        if self._replica is not None and lag_s is not None:
            try:
                rows = await self._replica.database.scan(text, *values, settings=settings)
            except TooSlow:
                raise
            except Refused:
                # The reason may be the lag, so the primary decides.
                rows = None
            if rows is not None:
                note_lag(run, lag_s)
                return rows
        return await self.database.scan(text, *values, settings=settings)

    async def _batches(self, run: Run, select_statement: SelectStatement) -> AsyncGenerator[list[Row]]:
        settings, lag_s = self._sessions.of(run.caller).settings, self._lag_s(run)
        text, values = select_statement.text, select_statement.values
        if self._replica is not None and lag_s is not None:
            async with aclosing(self._replica.database.stream(text, *values, settings=settings)) as row_batches:
                # All rows are read before the first batch, so a refusal comes before it.
                first_rows: list[Row] | None = None
                with suppress(Refused):
                    first_rows = await anext(row_batches, list[Row]())
                if first_rows is not None:
                    note_lag(run, lag_s)
                    yield first_rows
                    async for rows in row_batches:
                        yield rows
                    return
        async with aclosing(self.database.stream(text, *values, settings=settings)) as row_batches:
            async for rows in row_batches:
                yield rows

    def _lag_s(self, run: Run) -> float | None:
        """Return how many seconds the replica is behind at most, or None if this command reads the primary."""
        if self._replica is None or run.replica_read is None or run.open_transaction is not None:
            return None
        return self._replica.lag_s(self._written_at_s)

    def _written(self, run: Run) -> None:
        """Note the moment of a write, so that this process does not read older rows from the replica."""

        def note() -> None:
            self._written_at_s = clock.monotonic_s()

        run.transaction.after_commit(note)

    def _require_reviewed(self, model: str) -> None:
        """Refuse a call whose caller was authenticated before the model was suspended.

        Raises:
            Unavailable: the model is suspended.
        """
        if self.is_suspended(model):
            raise Unavailable(read_only.SUSPENDED)

    async def _check_again(self) -> None:
        # If this check fails, the periodic one follows soon.
        with suppress(Unavailable):
            await self.suspensions.check()

    async def _completed_stream(
        self, run: Run, record_reader: RecordReader, row_batches: AsyncIterator[list[Row]], start: int
    ) -> AsyncGenerator[list[Row]]:
        """Yield the completed rows of the batches. The values of several batches are looked up together."""
        adopted, decoded, count = cast("AdoptedReader", record_reader), list[list[Any]](), 0
        async for rows in row_batches:
            decoded += adopted.decoded(rows, start)
            count += 1
            if count == BATCHES_TOGETHER:
                for batch in _batches(await self._completed(run, adopted, decoded, start)):
                    yield batch
                decoded, count = [], 0
        for batch in _batches(await self._completed(run, adopted, decoded, start)):
            yield batch

    async def _completed(self, run: Run, reader: AdoptedReader, rows: list[list[Any]], start: int) -> list[Row]:
        values = reader.seen_values(rows, start)
        value_ids = await self._value_ids(run, reader.view.model, values) if values else []
        completed = reader.completed(rows, start, value_ids)
        # A row without an id is not a record. A statement with a total has a row without a record if nothing matches.
        return completed if start else [row for row in completed if row[start] is not None]

    async def _value_ids(self, run: Run, model: Declared, columns: Sequence[SeenColumn]) -> list[int]:
        """Return the value ids from which the tokens of the caller are computed, column by column. A field of which an
        agent sees an alias is no place in which it sees the value: a token of the value must not resolve there."""
        seen_by = _seen_by(run.caller)
        if seen_by is None:
            return await self._seen.ids(run, columns)
        aliases = await self._aliases_of(run, model, seen_by.domain_id, columns)
        if not aliases:
            return await self._seen.ids(run, columns, seen_by)
        value_ids = iter(await self._seen.ids(run, [_without(each, aliases) for each in columns], seen_by))
        known_ids = (aliases.get((record_id, each.field)) for each in columns for record_id in each.record_ids)
        return [next(value_ids) if known_id is None else known_id for known_id in known_ids]

    async def _aliases_of(
        self, run: Run, model: Declared, domain_id: str, columns: Sequence[SeenColumn]
    ) -> dict[tuple[str, str], int]:
        """Return the aliases of values that were read. A SQLite file of others is committed shortly before our own. If
        a plan of the agent may be committing, wait until its aliases are there as well."""
        may_wait = self._writer is not None and run.dialect == "sqlite" and run.open_transaction is None
        if not may_wait or await run.reader.fetch_one(_PENDING, run.caller.user_id, run.caller.agent) is None:
            return await self._aliases.of_columns(run, model, domain_id, columns)
        async with run.writing() as write_run:
            return await self._aliases.of_columns(write_run, model, domain_id, columns)
