"""Writes rows of tables of others, in the transaction that also contains the audit entry."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, cast

import msgspec

from countersign.declare import Declared, Field, Ref
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.registry import Referrer
from countersign.declare.table import quoted
from countersign.kernel.database import read_only
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.read_only import (
    DELETE_LOCK,
    LOCK,
    ConnectedRefusal,
    ExistingDatabase,
    TableChanged,
)
from countersign.kernel.errors import InvalidRequest
from countersign.records.access.view import ModelView, Rows, View
from countersign.records.adopted import columns, foreign_keys, refusals, sqlite_values, triggers
from countersign.records.adopted.foreign_keys import ForeignKey
from countersign.records.adopted.reader import AdoptedReader, AdoptedScope, AdoptedTable, AdoptedTables
from countersign.records.adopted.row_audit import RowAudit, RowChange
from countersign.records.adopted.sessions import Sessions
from countersign.records.commands import filters, record_writer
from countersign.records.commands.errors import BadInput, NoSuchRecord, no_such_record
from countersign.records.commands.filters import Parameters, Scope, all_of
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord, personal_fields
from countersign.records.masking.connected_aliases import Aliases, ConnectedAliases
from countersign.records.masking.seen_values import SeenValues

_LOCKS: Final[Mapping[OnDelete, str]] = {"cascade": f" {DELETE_LOCK}", "clear": f" {LOCK}", "refuse": ""}
_KEPT = (
    "the connected database kept the row: a policy, a trigger or rows that refer to it and are not records prevent the "
    "deletion"
)


class AdoptedWriter:
    """Reads, locks and writes single rows of all models with a table of the database that also has our own tables."""

    def __init__(
        self,
        database: ExistingDatabase,
        tables: AdoptedTables,
        seen_values: SeenValues,
        aliases: ConnectedAliases,
        sessions: Sessions,
        *,
        revision_key: bytes,
        check_again: Callable[[], Awaitable[None]],
    ) -> None:
        """`check_again` compares the tables with their declarations, after one has changed."""
        self._database = database
        self._tables = tables
        self._aliases = aliases
        self._audit = RowAudit(seen_values, aliases, self._may_derive)
        self._revision_key = revision_key
        self._sessions = sessions
        self._check_again = check_again

    async def find(
        self, run: Run, model: Declared, rows: Rows, record_id: str, *, locks: bool, deletes: bool = False
    ) -> StoredRecord:
        """Return the record with all its fields. With `locks`, also lock its row until the transaction ends. With
        `deletes`, no row with a foreign key to it can be inserted meanwhile: a transaction that took this lock after
        the weaker one could be in a deadlock with another application.

        Raises:
            BadInput: the record does not exist, or `rows` do not include it.
        """
        reader, parameters = self._reader(model), Parameters()
        scope = reader.scope(parameters)
        conditions = [_has_id(scope, record_id)]
        if rows is not None:
            conditions.append(filters.any_of(scope, model, rows))
        lock = f" {DELETE_LOCK if deletes and not _deleted_column(model) else LOCK}" if locks else ""
        text = f"SELECT {_listed(reader, scope)} FROM {reader.relation} AS t WHERE {all_of(conditions)}{lock}"
        records = await self._records(run, reader, text, parameters)
        if not records:
            raise no_such_record()
        _require_one(model, records)
        (record,) = await self._with_aliases(run, model, records)
        return replace(record, value_ids=await self._audit.value_ids(run, model, record.id, record.values))

    async def insert(self, run: Run, model: Declared, field_inputs: Mapping[str, FieldInput], command: str) -> str:
        """Insert a row with these values, and return the id of the record. The database sets all other columns.

        Raises:
            BadInput: the database refuses the values.
        """
        values = {name: each.stored for name, each in field_inputs.items() if each.stored is not None}
        record_writer.require_in_range(run, model, values)
        reader, parameters = self._reader(model), Parameters()
        settings = self._settings(model, values, parameters, None) | dict.fromkeys(_version_columns(model), "1")
        settings |= self._live_marks(model)
        names = ", ".join(quoted(name) for name in settings)
        inserted = f"({names}) VALUES ({', '.join(settings.values())})" if settings else "DEFAULT VALUES"
        text = f"INSERT INTO {self._tables.table(model.name).name} AS t {inserted}"
        after = await self._written(run, reader, text, parameters)
        await self._require_exact(run, model, values, after)
        await self._audit.append(run, command, model, RowChange(None, after, field_inputs))
        return after.id

    async def update(
        self, run: Run, model: Declared, record: StoredRecord, field_inputs: Mapping[str, FieldInput], command: str
    ) -> bool:
        """Set these fields of a locked row. Return whether a value changed (see `record_writer.is_change`). The audit
        entry contains all fields that have changed, also those that a trigger has set.

        Raises:
            BadInput: a field is part of the key, or the database refuses the values.
        """
        changed_inputs = {
            name: each
            for name, each in field_inputs.items()
            if await record_writer.is_change(run, model, record, name, each)
        }
        values = {name: each.stored for name, each in changed_inputs.items()}
        if not values:
            return False
        self._require_no_key(model, values)
        record_writer.require_in_range(run, model, values)
        await self._require_known_values(run, model, record, values)
        reader, parameters = self._reader(model), Parameters()
        scope = reader.scope(parameters)
        settings = self._settings(model, values, parameters, record)
        settings |= _counted_up(self._tables.dialect, model)
        assignments = ", ".join(f"{quoted(name)} = {expression}" for name, expression in settings.items())
        text = f"UPDATE {self._tables.table(model.name).name} AS t SET {assignments} WHERE {_has_id(scope, record.id)}"
        after = await self._written(run, reader, text, parameters)
        await self._require_exact(run, model, values, after)
        await self._audit.append(run, command, model, RowChange(record, after, changed_inputs))
        return True

    async def delete(self, run: Run, model: Declared, record: StoredRecord, command: str) -> None:
        """Delete a locked row. The audit entry contains the values of the row. The keys of its personal values are
        deleted with it, except those of linked values, which other rows may contain.

        If other applications keep deleted rows, mark the row instead. Its values are still in the table, and so the
        keys of their copies stay as well.

        Raises:
            BadInput: the database refuses to delete the row, or would delete other rows with it.
        """
        if _deleted_column(model):
            await self._mark_deleted(run, model, record)
            await self._audit.append(run, command, model, RowChange(record, None))
            return
        reader, parameters = self._reader(model), Parameters()
        scope = reader.scope(parameters)
        keys = await foreign_keys.read(self._tables.dialect, partial(self.fetch, run), model)
        conditions = [_has_id(scope, record.id), *self._is_unreferenced(run, scope, keys)]
        text = f"DELETE FROM {self._tables.table(model.name).name} AS t WHERE {all_of(conditions)}"
        deleted = await self._written(run, reader, text, parameters, record)
        await self._audit.append(run, command, model, RowChange(replace(record, values=deleted.values), None))
        await self._audit.erase(run, model, record.id)

    def _live_marks(self, model: Declared) -> dict[str, str]:
        """Map the column that marks deleted rows to the value of a new row, if the database has none for it."""
        column = _deleted_column(model)
        mark = columns.live_mark(self._tables.dialect, self._tables.table(model.name).types[column]) if column else None
        return {} if mark is None else {column: mark}

    async def _mark_deleted(self, run: Run, model: Declared, record: StoredRecord) -> None:
        reader, parameters = self._reader(model), Parameters()
        scope, table, column = reader.scope(parameters), self._tables.table(model.name), _deleted_column(model)
        dialect, type_ = self._tables.dialect, table.types[column]
        mark = columns.deletion_mark(dialect, type_, _other_value(table, column))
        settings = {column: mark, **_counted_up(dialect, model)}
        assignments = ", ".join(f"{quoted(name)} = {expression}" for name, expression in settings.items())
        text = f"UPDATE {table.name} AS t SET {assignments} WHERE {_has_id(scope, record.id)}"
        await self._written(run, reader, text, parameters, record)
        try:
            await self.find(run, model, None, record.id, locks=False)
        except NoSuchRecord:
            return
        raise BadInput(_KEPT)

    async def triggers(self, run: Run, model: Declared, commands: Collection[str]) -> list[str]:
        """Return the names of the triggers that these commands can run on a row of the model."""
        return await triggers.names(self._tables.dialect, partial(self.fetch, run), model, commands)

    async def check_deferred(self, run: Run) -> None:
        """Check the deferred constraints of the tables that the transaction has written.

        Raises:
            BadInput: a constraint is violated.
        """
        try:
            await run.transaction.check_connected()
        except ConnectedRefusal as refusal:
            dialect = self._tables.dialect
            tables = {columns.table_id(dialect, each.model): name for name, each in self._tables.by_model.items()}
            model = tables.get(refusal.table)
            if model is None and refusal.state == refusals.FOREIGN_KEY:
                raise BadInput(refusals.still_referenced(refusal, names_table=run.caller.is_administrator)) from None
            column_names = await refusals.columns_of(self._database, refusal.table, refusal)
            raise refusals.bad_input(run.caller.view.models.get(model or ""), refusal, column_names) from None

    async def deletion_actions(self, run: Run, model: Declared) -> Mapping[tuple[str, str], OnDelete]:
        """Map refs to the model to what deleting a referenced record does (see `foreign_keys.actions`)."""
        keys = await foreign_keys.read(self._tables.dialect, partial(self.fetch, run), model)
        return foreign_keys.actions(run.engine.registry, model, keys, names_tables=run.caller.is_administrator)

    async def referring(
        self,
        run: Run,
        referrer: Referrer,
        record_ids: Sequence[str],
        rows: Rows,
        limit: int,
        locked_for: OnDelete | None,
    ) -> list[StoredRecord]:
        """Return records whose ref contains one of these ids, in the order of their keys. A record that refers to
        itself is left out."""
        model, ref = referrer.model, referrer.ref
        reader, parameters = self._reader(model), Parameters()
        scope = reader.scope(parameters)
        conditions = [str(scope.comparison(ref.name, ref, "in", list(record_ids)))]
        if ref.target == model.name:
            conditions.append(f"NOT ({scope.refers_to(scope, ref)})")
        if rows is not None:
            conditions.append(filters.any_of(scope, model, rows))
        lock = "" if locked_for is None else _LOCKS[locked_for]
        text = (
            f"SELECT {_listed(reader, scope)} FROM {reader.relation} AS t WHERE {all_of(conditions)} "
            f"ORDER BY {', '.join(scope.id_columns())} LIMIT {parameters.put(limit)}{lock}"
        )
        return await self._with_aliases(run, model, await self._records(run, reader, text, parameters))

    async def fetch(self, run: Run, text: str, values: Sequence[Value]) -> list[Row]:
        """Return the rows of a statement in the transaction of the command.

        Raises:
            InvalidRequest: the database refuses the statement with these values.
        """
        try:
            return await self._fetch(run, text, values)
        except ConnectedRefusal:
            raise InvalidRequest(read_only.REFUSED) from None

    async def _fetch(self, run: Run, text: str, values: Sequence[Value]) -> list[Row]:
        try:
            return await run.transaction.fetch_connected(self._sessions.of(run.caller), text, *values)
        except TableChanged:
            await self._check_again()
            raise

    def _reader(self, model: Declared) -> "_StoredReader":
        return _StoredReader(self._tables, _ALL, _all_fields(model), None, self._revision_key)

    async def _records(
        self, run: Run, reader: AdoptedReader, text: str, parameters: Parameters
    ) -> list[StoredRecord]:
        """Run a statement that locks or writes a row, and return the record after it and after the triggers.

        Raises:
            BadInput: the database refuses the statement with these values.
        """
        rows = await self._fetch_or_explain(run, reader, text, parameters)
        completed = reader.completed(reader.decoded(rows, 0), 0, ())
        names = reader.names[2:]
        return [
            StoredRecord(row[0], row[1] ^ (row[-1] & _REVISIONS), 0, dict(zip(names, row[2:-1], strict=True)), {})
            for row in completed
            if row[0] is not None
        ]

    async def _fetch_or_explain(
        self, run: Run, reader: AdoptedReader, text: str, parameters: Parameters
    ) -> list[Row]:
        model = reader.view.model
        try:
            return await self._fetch(run, text, parameters.values)
        except ConnectedRefusal as refusal:
            if text.startswith("DELETE") and refusal.state == refusals.FOREIGN_KEY:
                raise BadInput(refusals.still_referenced(refusal, names_table=run.caller.is_administrator)) from None
            relation = columns.table_id(self._tables.dialect, model)
            column_names = await refusals.columns_of(self._database, relation, refusal)
            raise refusals.bad_input(run.caller.view.models.get(model.name), refusal, column_names) from None

    async def _written(
        self,
        run: Run,
        reader: AdoptedReader,
        statement: str,
        parameters: Parameters,
        deleted: StoredRecord | None = None,
    ) -> StoredRecord:
        """Run a statement that writes one row, and return its record after the triggers, or as it was `deleted`.

        Raises:
            BadInput: the database refuses the statement with these values, or has not written the row.
        """
        if self._tables.dialect == "sqlite":
            text, records = statement, await self._written_to_sqlite(run, reader, statement, parameters, deleted)
        else:
            text = f"{statement} RETURNING {_listed(reader, reader.scope(parameters))}"
            records = await self._records(run, reader, text, parameters)
        _require_one(reader.view.model, records)
        if not records and text.startswith("DELETE"):
            raise BadInput(_KEPT)
        if not records:
            # A policy hides the row, or a trigger or rule has not written it.
            raise BadInput(read_only.REFUSED)
        return records[0]

    async def _written_to_sqlite(
        self,
        run: Run,
        reader: AdoptedReader,
        statement: str,
        parameters: Parameters,
        deleted: StoredRecord | None,
    ) -> list[StoredRecord]:
        """Return the records that the statement has written. RETURNING of SQLite has the rows before their triggers, so
        only the keys are taken from it."""
        table = self._tables.table(reader.view.model.name)
        text = f"{statement} RETURNING {', '.join(map(quoted, table.key))}"
        keys = await self._fetch_or_explain(run, reader, text, parameters)
        if deleted is not None:
            return [deleted] * len(keys)
        records: list[StoredRecord] = []
        for key in keys:
            by_key = Parameters()
            scope = reader.scope(by_key)
            text = f"SELECT {_listed(reader, scope)} FROM {reader.relation} AS t WHERE {_has_key(scope, key)}"
            records += await self._records(run, reader, text, by_key)
        return records

    async def _require_known_values(
        self, run: Run, model: Declared, record: StoredRecord, values: Mapping[str, Stored]
    ) -> None:
        """Require that the fields show the values that an update overwrites. A column of SQLite may have values of any
        type, and the audit entry would not contain them.

        Raises:
            BadInput: a column has a value that its field does not show, or of a type that the field does not write.
        """
        reader, parameters = self._reader(model), Parameters()
        scope = reader.scope(parameters)
        obstacles = _obstacles(scope, [model.fields[name] for name in values])
        if self._tables.dialect == "postgres" or not obstacles:
            return
        listed = ", ".join(f"({condition})" for condition, _ in obstacles)
        text = f"SELECT {listed} FROM {reader.relation} AS t WHERE {_has_id(scope, record.id)}"
        for row in await self.fetch(run, text, parameters.values):
            reasons = [reason for (_, reason), is_so in zip(obstacles, row, strict=True) if is_so]
            if reasons:
                raise BadInput(reasons[0])

    def _is_unreferenced(self, run: Run, scope: AdoptedScope, keys: Sequence[ForeignKey]) -> Iterator[str]:
        """Yield the conditions that the database would neither delete nor change other rows. The records that refer to
        the row are deleted or changed before, so these are rows that are not records, or that a trigger has added."""
        model = scope.table.model
        for number, key in enumerate(each for each in keys if each.changes_rows):
            for each in run.engine.registry.referrers[model.name]:
                if key.is_of(each, model):
                    inner = AdoptedScope(self._tables, each.model.name, scope.parameters, f"referring_{number}")
                    refers = inner.refers_to(scope, each.ref)
                    is_other = f"NOT ({inner.is_same_row(scope)})" if each.model.name == model.name else "true"
                    other = f"SELECT 1 FROM {inner.table.name} AS {inner.alias} WHERE {refers} AND {is_other}"
                    yield f"NOT EXISTS ({other})"
                    break

    def _require_no_key(self, model: Declared, names: Mapping[str, Stored]) -> None:
        key = self._tables.table(model.name).key
        for name in names:
            if not set(key).isdisjoint(model.fields[name].table_columns):
                raise BadInput(f"{model.name}.{name} is part of the key of its table and cannot be changed")

    async def _require_exact(
        self, run: Run, model: Declared, values: Mapping[str, Stored], after: StoredRecord
    ) -> None:
        """Require that the table stores these values as they were given, if no trigger may have changed them.

        Raises:
            BadInput: the type of a column does not fit a value, for example because it has fewer decimals.
        """
        fields = model.fields
        name = next((name for name, value in values.items() if not _is_as_given(fields[name], after, value)), None)
        if name is None or await triggers.exist(self._tables.dialect, partial(self.fetch, run), model):
            return
        raise BadInput(f"{model.name}.{name} cannot have exactly this value: the column of its table would round it")

    def _settings(
        self, model: Declared, values: Mapping[str, Stored], parameters: Parameters, record: StoredRecord | None
    ) -> dict[str, str]:
        """Map the columns to set to the expressions of their values. `record` is the record to update.

        Raises:
            BadInput: a column cannot have the value, or another field that has the same column would change.
        """
        settings: dict[str, str] = {}
        table = self._tables.table(model.name)
        held = self._held_values(table, values, record)
        for name, value in values.items():
            field = model.fields[name]
            parts = self._column_values(table, field, value)
            if value is None:
                # A ref is empty when one of its columns is.
                parts = {column: part for column, part in parts.items() if column not in held}
            if not parts or any(held.get(column, part) != part for column, part in parts.items()):
                raise BadInput(f"{model.name}.{name} shares a column with another field, which would change as well")
            held |= parts
            settings |= {
                column: self._expression(table, field, column, part, parameters, is_new=record is None)
                for column, part in parts.items()
                if column not in settings
            }
        return settings

    def _held_values(
        self, table: AdoptedTable, values: Mapping[str, Stored], record: StoredRecord | None
    ) -> dict[str, Stored]:
        """Return the values of the columns of the record that must not change: those of the key, and of all fields
        without a new value."""
        if record is None:
            return {}
        key = cast("Sequence[Stored]", table.ids.decode(record.id) or ())
        held: dict[str, Stored] = {}
        for name, field in table.model.fields.items():
            if name not in values:
                held |= self._column_values(table, field, record.values[name])
        return held | dict(zip(table.key, key, strict=False))

    def _column_values(self, table: AdoptedTable, field: Field, value: Stored) -> dict[str, Stored]:
        """Return the value of each column of the field. Those of a ref are the key of the record in it."""
        if not isinstance(field, Ref) or value is None:
            return dict.fromkeys(field.table_columns, value)
        key = self._tables.table(field.target).ids.decode(str(value))
        if key is None:
            raise BadInput(f"{table.model.name}.{field.name} must be the id of a {field.target} record")
        return dict(zip(field.table_columns, cast("Sequence[Stored]", key), strict=True))

    def _expression(
        self,
        table: AdoptedTable,
        field: Field,
        column: str,
        value: Stored,
        parameters: Parameters,
        *,
        is_new: bool,
    ) -> str:
        if value is None:
            return "NULL"
        type_, dialect = table.types[column], self._tables.dialect
        if isinstance(field, Ref):
            return columns.written_key(dialect, type_, parameters.put(value))
        reason = columns.write_obstacle(dialect, type_, field, value)
        if reason is not None:
            raise BadInput(f"{table.model.name}.{field.name} {reason}")
        name, other = quoted(column), _other_value(table, column)
        placeholder = parameters.put(columns.written_operand(dialect, field, value))
        return columns.written_value(
            dialect, type_, field, placeholder, other if is_new else f"coalesce(t.{name}, {other})"
        )

    async def _may_derive(self, run: Run, model: Declared) -> bool:
        return await triggers.may_derive(self._tables.dialect, partial(self.fetch, run), model)

    async def _with_aliases(
        self, run: Run, model: Declared, records: Sequence[StoredRecord]
    ) -> list[StoredRecord]:
        """Return the records with their aliases, which count as part of the revision: text that an agent wrote in clear
        is a change, also if it is equal to the value before."""
        values = {each.id: each.values for each in records}
        aliases = await self._aliases.of_records(run, model, values) if values and personal_fields(model) else {}
        return [
            replace(each, aliases=found, revision=each.revision ^ self._mark(found))
            if (found := aliases.get(each.id))
            else each
            for each in records
        ]

    def _mark(self, aliases: Aliases) -> int:
        data = msgspec.json.encode(aliases, order="deterministic")
        return int.from_bytes(hashlib.blake2b(data, key=self._revision_key, digest_size=6).digest())


class _StoredReader(AdoptedReader):
    """Reads the records with all their fields, with refs to records that the caller may not see, and with the hash of
    the row."""

    def scope(self, parameters: Parameters) -> AdoptedScope:
        """Return the table as part of a statement."""
        return super().scope(parameters).without_view()

    def columns(self, scope: Scope) -> list[str]:
        """Return the expressions to select."""
        return [*super().columns(scope), columns.row_hash(scope.dialect, self._table.types, scope.alias)]


_ALL = View({})
_REVISIONS = (1 << 48) - 1


def _is_equal(stored: Stored, given: Stored) -> bool:
    """Return whether the values are equal. Decimal numbers may differ in zeros at their end."""
    if isinstance(stored, str) and isinstance(given, str) and stored != given:
        return stored.rstrip() == given.rstrip() or _number(stored) == _number(given)
    return stored == given


def _is_as_given(field: Field, after: StoredRecord, given: Stored) -> bool:
    """Return whether the record has the given value. Long texts, which tokens stand for, are read cut."""
    if isinstance(given, str) and field.column == "TEXT":
        given = given[: columns.text_length(field)]
    return _is_equal(after.values[field.name], given)


def _number(text: str) -> object:
    try:
        number = Decimal(text)
        return number if number.is_finite() else text
    except InvalidOperation:
        return text


def _version_columns(model: Declared) -> tuple[str, ...]:
    return () if model.table is None else model.table.version_columns


def _other_value(table: AdoptedTable, column: str) -> str:
    """Return the expression for a value that a row has in the column, whose format a new value has too on SQLite."""
    name = quoted(column)
    return f"(SELECT other.{name} FROM {table.name} AS other WHERE other.{name} IS NOT NULL LIMIT 1)"


def _counted_up(dialect: Dialect, model: Declared) -> dict[str, str]:
    """Map the columns that count the changes of a row to the expressions of their next values."""
    plus = "+" if dialect == "sqlite" else "OPERATOR(pg_catalog.+)"
    return {name: f"t.{quoted(name)} {plus} 1" for name in _version_columns(model)}


def _deleted_column(model: Declared) -> str:
    """Return the column that marks deleted rows, or an empty text."""
    return "" if model.table is None else model.table.deleted


def _require_one(model: Declared, records: Sequence[StoredRecord]) -> None:
    if len(records) > 1:
        raise BadInput(f"{model.name}: several rows of its table have this key: correct the key")


def _all_fields(model: Declared) -> ModelView:
    return ModelView(model, frozenset(), dict.fromkeys(model.fields, "clear"), frozenset(), (), {"get": None})


def _listed(reader: AdoptedReader, scope: Scope) -> str:
    return ", ".join(reader.columns(scope))


def _obstacles(scope: AdoptedScope, fields: Sequence[Field]) -> list[tuple[str, str]]:
    """Return the conditions that a row of SQLite has a value which must not be overwritten, each with the reason."""
    return [
        (condition, f"{scope.table.model.name}.{field.name} {reason}")
        for field in fields
        if not isinstance(field, Ref)
        for condition, reason in sqlite_values.obstacles(
            field, scope.column(*field.table_columns), scope.value_of(field)
        )
    ]


def _has_key(scope: AdoptedScope, key: Row) -> str:
    """Return the condition that the row has the key, compared by type and by byte."""
    columns_of_key = zip(scope.id_columns(), key, strict=True)
    return all_of([f"{name} IS {scope.parameters.put(value)} COLLATE BINARY" for name, value in columns_of_key])


def _has_id(scope: AdoptedScope, record_id: str) -> str:
    return str(scope.comparison("id", filters.ID, "eq", record_id))
