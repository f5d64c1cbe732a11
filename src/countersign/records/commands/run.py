"""Describes a running command: its caller, its transaction, and the engine that all commands share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.registry import Referrer, Registry
from countersign.kernel.database.port import Dialect, Reader, Row, Transaction
from countersign.records.access.view import Caller, Domain, ModelView, Rows
from countersign.records.access.visibility import Commands
from countersign.records.audit.chain import Chain
from countersign.records.commands.call_log import CallLog
from countersign.records.commands.code_report import CodeReport
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from countersign.records.commands.seek_pagination import KnownPositions
from countersign.records.commands.select import Masks, RecordReader, SelectStatement, StoredRecord
from countersign.records.commands.token_guess_limit import TokenGuessLimit
from countersign.records.context import Records
from countersign.records.masking.placeholder_tokens import Grammar, MaskStore
from countersign.records.masking.vault import Vault

FieldInputs = Mapping[str, FieldInput]
"""The inputs of fields by name."""


class Rendering(Protocol):
    """Renders the values of structure fields (JSON in plans and audit entries) for a viewer."""

    async def __call__(self, run: "Run", record_reader: RecordReader, values: list[list[Any]]) -> None:
        """Replace each structure with the parts of it that the viewer may see."""
        ...


class RecordStore(Protocol):
    """Reads and writes the records of models that are not stored in the tables of modules."""

    def reader(self, caller: Caller, view: ModelView) -> RecordReader:
        """Return a reader of the view."""
        ...

    async def scan(
        self, run: "Run", record_reader: RecordReader, select_statement: SelectStatement, start: int
    ) -> list[Row]:
        """Return the rows of a statement. In each row the record's columns begin at `start`, and are those of a stored
        record.

        Raises:
            Unavailable: the database cannot answer now.
        """
        ...

    def stream(
        self, run: "Run", record_reader: RecordReader, select_statement: SelectStatement, start: int
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows of a statement in batches, in constant memory. Use `contextlib.aclosing`. The rows are
        those of `scan`.

        Raises:
            Unavailable: the database cannot answer now.
        """
        ...

    async def groups(
        self, run: "Run", record_reader: RecordReader, select_statement: SelectStatement
    ) -> list[Row]:
        """Return the rows of a statement of `count_by` or `series`.

        Raises:
            Unavailable: the database cannot answer now.
        """
        ...

    async def find(
        self, run: "Run", model: Declared, rows: Rows, record_id: str, *, locks: bool, deletes: bool = False
    ) -> StoredRecord:
        """Return the record in the transaction of the command (see `record_writer.find`)."""
        ...

    async def text_with_hash(
        self, run: "Run", view: ModelView, record_id: str, name: str, value_hash: bytes
    ) -> str | None:
        """Return the text of a personal field in a record, or None if the caller does not see the record or if it now
        has another text than the one whose hash the vault stores."""
        ...

    async def revisions(self, run: "Run", view: ModelView, record_ids: Sequence[str]) -> dict[str, int]:
        """Map the ids of those records that exist for the caller to the revisions of their stored records."""
        ...

    async def insert(self, run: "Run", model: Declared, field_inputs: FieldInputs, command: str) -> str:
        """Insert a record with its audit entry, and return its id (see `record_writer.insert`)."""
        ...

    async def update(
        self, run: "Run", model: Declared, record: StoredRecord, field_inputs: FieldInputs, command: str
    ) -> bool:
        """Set fields of a locked record, with an audit entry (see `record_writer.update`)."""
        ...

    async def delete(self, run: "Run", model: Declared, record: StoredRecord, command: str) -> None:
        """Delete a locked record, with an audit entry (see `record_writer.delete`)."""
        ...

    async def triggers(self, run: "Run", model: Declared, commands: Collection[str]) -> list[str]:
        """Return the names of the triggers that these commands can run on a row of the model."""
        ...

    async def check_deferred(self, run: "Run") -> None:
        """Check the deferred constraints of the written tables, after the last statement of a command or plan.

        Raises:
            BadInput: a constraint is violated.
        """
        ...

    async def deletion_actions(self, run: "Run", model: Declared) -> Mapping[tuple[str, str], OnDelete]:
        """Map refs to the model, by the model and the field of the ref, to what deleting a referenced record does.

        Raises:
            BadInput: records of the model cannot be deleted, because the deletion would have unknown effects.
        """
        ...

    async def referring(
        self,
        run: "Run",
        referrer: Referrer,
        record_ids: Sequence[str],
        rows: Rows,
        limit: int,
        locked_for: OnDelete | None,
    ) -> list[StoredRecord]:
        """Return the first records, within `rows`, whose ref contains one of these ids. With `locked_for`, lock those
        that the deletion deletes or changes."""
        ...


Check = Callable[["Run", Mapping[str, Stored]], Awaitable[None]]
"""A function that checks a record of a built-in model beyond the checks of its fields. It raises `Refused` if the
values are invalid."""

AfterWrite = Callable[["Run", str, Mapping[str, Stored], Mapping[str, Stored]], Awaitable[None]]
"""A function that runs after a record of a built-in model was written, in the same transaction. It takes the id, the
values after the write (none for a deleted record) and the values before it (none for a new record). It may raise
`Refused`."""


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """A write of a record, with its values before and after. A new record has no values before, and a deleted one none
    after. `written` are the fields that count as changed (see `record_writer.is_change`). `is_restored` means that an
    import restores an exported record."""

    model: Declared
    record_id: str
    command: str
    before: Mapping[str, Stored] = field(default_factory=dict[str, Stored])
    after: Mapping[str, Stored] = field(default_factory=dict[str, Stored])
    field_inputs: FieldInputs = field(default_factory=dict[str, FieldInput])
    written: frozenset[str] = frozenset()
    is_restored: bool = False


RunHooks = Callable[["Run", RecordWrite], Awaitable[None]]
"""A function that runs the hooks of packages after a write of a record (see `hooks.run_hooks`)."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The objects that all commands share. Each process creates one engine.

    `render`, `checks`, `after_writes` and `run_hooks` come from higher layers: `render` shows structures to a viewer,
    `checks` maps a model to the additional check of its records, `after_writes` maps a model to what else a write of
    its records does, and `run_hooks` runs the hooks of packages. `commands` maps a model to the names of its commands.
    `calls` is the log of calls.

    The last three members are caches. `readers` holds the readers of views. `frequent_filters` maps a filter that
    matches many records to the number of remaining uses of this result (see `sqlite_index_hints`). `positions` holds
    known positions in long lists (see `seek_pagination`).

    `adopted` maps the models with a table of an existing database to the store of their records.
    """

    records: Records
    vault: Vault
    chain: Chain
    grammar: Grammar
    masks: MaskStore
    token_guesses: TokenGuessLimit
    render: Rendering
    checks: Mapping[str, Check]
    run_hooks: RunHooks
    commands: Commands
    calls: CallLog
    readers: dict[tuple[int, str], tuple[object, RecordReader]] = field(
        default_factory=dict[tuple[int, str], tuple[object, RecordReader]]
    )
    frequent_filters: dict[bytes, int] = field(default_factory=dict[bytes, int])
    positions: dict[bytes, KnownPositions] = field(default_factory=dict[bytes, KnownPositions])
    adopted: Mapping[str, RecordStore] = field(default_factory=dict[str, RecordStore])
    after_writes: Mapping[str, AfterWrite] = field(default_factory=dict[str, AfterWrite])

    @property
    def registry(self) -> Registry:
        """The declared models."""
        return self.records.registry

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self.records.database.dialect

    def reading(self, caller: Caller, view: ModelView) -> RecordReader:
        """Return the reader of the caller's view of a model.

        The cache keeps each reader until the cache is full. It also keeps the view alive, so that no other view gets
        the same id.
        """
        key = (id(view), caller.domain.id if caller.domain is not None else "")
        cached = self.readers.get(key)
        if cached is not None and cached[0] is view:
            return cached[1]
        if len(self.readers) >= MAX_READERS:
            self.readers.clear()
        reader = self.new_reader(caller, view)
        self.readers[key] = (view, reader)
        return reader

    def new_reader(self, caller: Caller, view: ModelView) -> RecordReader:
        """Return a new reader of the view, which is not cached."""
        store = self.adopted.get(view.model.name)
        if store is not None:
            return store.reader(caller, view)
        bits = self.records.bits.get(view.model.name, {})
        return RecordReader(caller.view, view, self.dialect, bits, caller.domain)


MAX_READERS = 10_000


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, as audit entries name it: a person, an agent that acts for a person, or the person who
    approves an agent's plan."""

    user_id: str
    agent_token: str | None = None
    agent: str | None = None
    plan_id: str | None = None
    request_id: str = ""


REPLICA_COMMANDS = frozenset({"list", "search", "export", "count_by"})
"""The commands that may read connected tables from a replica."""


@dataclass(slots=True)
class ReplicaRead:
    """Permits a command to read connected tables from a replica. `age_s` is how many seconds the rows of the response
    may be behind, or None if all are from the primary."""

    age_s: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A command that a caller runs. `reader` reads inside the command's transaction, if there is one.

    `created` maps placeholder ids to models, for the records that earlier steps of the same plan create. A token domain
    is the scope in which placeholder tokens are valid. `writer_domain` is the agent's token domain when a person's
    approval runs the agent's plan, and None for other commands. `earlier` contains the earlier steps of the plan.
    `stopping` is set when the server stops, so that a waiting command ends. `mentioned_models` collects the models
    whose fields occur in structures of the response. `hook_models` are the models whose hooks are running, and
    `code_report` collects what the code of packages reads and changes. Without `replica_read`, all rows are read from
    the primary.
    """

    engine: Engine
    caller: Caller
    reader: Reader
    actor: Actor
    open_transaction: Transaction | None = None
    writer_domain: Domain | None = None
    created: Mapping[str, str] = field(default_factory=dict[str, str])
    stopping: asyncio.Event | None = None
    mentioned_models: set[str] = field(default_factory=set[str])
    earlier: tuple[PreparedCommand, ...] = ()
    replica_read: ReplicaRead | None = None
    hook_models: tuple[str, ...] = ()
    code_report: CodeReport = field(default_factory=CodeReport)

    @property
    def dialect(self) -> Dialect:
        """The dialect of our own database."""
        return self.engine.dialect

    @property
    def domain(self) -> Domain | None:
        """The token domain of the author of the values."""
        return self.writer_domain or self.caller.domain

    @property
    def transaction(self) -> Transaction:
        """The transaction of a command that writes."""
        if self.open_transaction is None:
            raise LookupError("only a command that writes runs in a transaction")
        return self.open_transaction

    @property
    def masks(self) -> Masks | None:
        """The object that converts value ids to the caller's tokens, or None if the caller has no domain."""
        return self.engine.masks.of_caller(self.caller)

    def view_of(self, model: str) -> ModelView:
        """Return the caller's view of a model that the caller may use."""
        return self.caller.view.models[model]

    async def scan(self, record_reader: RecordReader, select_statement: SelectStatement, start: int = 0) -> list[Row]:
        """Return the rows of a statement. In each row the record's columns begin at `start`.

        Raises:
            Unavailable: the database cannot answer now.
        """
        store = self.engine.adopted.get(record_reader.view.model.name)
        if store is not None:
            return await store.scan(self, record_reader, select_statement, start)
        return await self.engine.records.database.scan(select_statement.text, *select_statement.values)

    async def groups(self, record_reader: RecordReader, select_statement: SelectStatement) -> list[Row]:
        """Return the rows of a statement that groups records. They contain no record.

        Raises:
            Unavailable: the database cannot answer now.
        """
        store = self.engine.adopted.get(record_reader.view.model.name)
        if store is not None:
            return await store.groups(self, record_reader, select_statement)
        return await self.engine.records.database.scan(select_statement.text, *select_statement.values)

    async def read_one(self, record_reader: RecordReader, select_statement: SelectStatement) -> Row | None:
        """Return the first row of a statement that an index bounds, or None.

        Raises:
            Unavailable: the database cannot answer now.
        """
        if record_reader.view.model.table is not None:
            return next(iter(await self.scan(record_reader, select_statement)), None)
        return await self.reader.fetch_one(select_statement.text, *select_statement.values)

    async def read_all(self, record_reader: RecordReader, select_statement: SelectStatement) -> list[Row]:
        """Return the rows of a statement that an index bounds.

        Raises:
            Unavailable: the database cannot answer now.
        """
        if record_reader.view.model.table is not None:
            return await self.scan(record_reader, select_statement)
        return await self.reader.fetch(select_statement.text, *select_statement.values)

    def stream(
        self, record_reader: RecordReader, select_statement: SelectStatement, start: int = 0
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows of a statement in batches. In each row the record's columns begin at `start`. Use
        `contextlib.aclosing`.

        Raises:
            Unavailable: the database cannot answer now.
        """
        store = self.engine.adopted.get(record_reader.view.model.name)
        if store is not None:
            return store.stream(self, record_reader, select_statement, start)
        return self.engine.records.database.stream(select_statement.text, *select_statement.values)

    def is_touched(self, record_id: str | None) -> bool:
        """Return whether an earlier step of the same plan changes the record or refers to it. If so, the record's
        values before this step are known only once the earlier steps have run."""
        if record_id is None:
            return False
        return any(
            step.record_id == record_id or any(field_input.stored == record_id for field_input in step.given.values())
            for step in self.earlier
        )

    def about_plan(self, plan_id: str) -> "Run":
        """Return the same command with the plan's id in its audit entries."""
        return replace(self, actor=replace(self.actor, plan_id=plan_id))

    def within(self, transaction: Transaction) -> "Run":
        """Return the same command, which then reads and writes in this transaction."""
        return replace(self, reader=transaction, open_transaction=transaction)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator["Run"]:
        """Run a block atomically: in a new transaction or, inside a transaction, in a savepoint."""
        if self.open_transaction is not None:
            async with self.open_transaction.savepoint():
                yield self
        else:
            async with self.engine.records.database.transaction() as transaction:
                yield self.within(transaction)


def replica_read_of(view: ModelView, command: str) -> ReplicaRead | None:
    """Return the permission to read from a replica, or None if the command reads from the primary."""
    return ReplicaRead() if view.model.table is not None and command in REPLICA_COMMANDS else None


def actor_of(caller: Caller, request_id: str) -> Actor:
    """Return the caller as the author of changes in audit entries."""
    token = caller.credential_id if caller.is_agent else None
    return Actor(caller.user_id, token, caller.agent, None, request_id)


Body = Mapping[str, object]
"""The input of a command, decoded from JSON."""
