"""A running command: its caller, its transaction, and the engine that commands share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.kernel.database.port import Dialect, Reader, Transaction
from countersign.records.access.view import Caller, Domain, ModelView
from countersign.records.access.visibility import Commands
from countersign.records.audit.chain import Chain
from countersign.records.commands.call_log import CallLog
from countersign.records.commands.prepared_command import PreparedCommand
from countersign.records.commands.seek_pagination import KnownPositions
from countersign.records.commands.select import Masks, RecordReader
from countersign.records.commands.token_guess_limit import TokenGuessLimit
from countersign.records.context import Records
from countersign.records.masking.placeholder_tokens import Grammar, MaskStore
from countersign.records.masking.vault import Vault


class Rendering(Protocol):
    """Renders the values of kind `structure` (plans, audit) for a viewer."""

    async def __call__(self, run: "Run", reading: RecordReader, values: list[list[Any]]) -> None:
        """Replace each structure by what the viewer may see."""
        ...


Check = Callable[["Run", Mapping[str, Stored]], Awaitable[None]]
"""Checks of a built-in model on a record's values beyond its fields; raises `Refused`."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What commands use besides the database, made once per process.

    `render` and `checks` are code of layers above: how structures are shown, and by model what else must hold for its
    values. `commands` are the names of all commands by model, and `calls` notes what was called. The rest are caches:
    the `readers` of views, the filters that match many records, with the number of uses left (see
    `sqlite_index_hints`), and the known `positions` in long lists (see `seek_pagination`).
    """

    records: Records
    vault: Vault
    chain: Chain
    grammar: Grammar
    masks: MaskStore
    token_guesses: TokenGuessLimit
    render: Rendering
    checks: Mapping[str, Check]
    commands: Commands
    calls: CallLog
    readers: dict[tuple[int, str], tuple[object, RecordReader]] = field(
        default_factory=dict[tuple[int, str], tuple[object, RecordReader]]
    )
    frequent_filters: dict[bytes, int] = field(default_factory=dict[bytes, int])
    positions: dict[bytes, KnownPositions] = field(default_factory=dict[bytes, KnownPositions])

    @property
    def registry(self) -> Registry:
        """The declared models."""
        return self.records.registry

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self.records.database.dialect

    def reading(self, caller: Caller, view: ModelView) -> RecordReader:
        """The reader of the caller's view of a model, cached as long as the view."""
        key = (id(view), caller.domain.id if caller.domain is not None else "")
        found = self.readers.get(key)
        if found is not None and found[0] is view:
            return found[1]
        if len(self.readers) >= MAX_READERS:
            self.readers.clear()
        bits = self.records.bits.get(view.model.name, {})
        made = RecordReader(caller.view, view, self.dialect, bits, caller.domain)
        self.readers[key] = (view, made)
        return made


MAX_READERS = 10_000


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change in the audit: a person, an agent for a person, or an approver for an agent."""

    user_id: str
    agent_token: str | None = None
    agent: str | None = None
    plan_id: str | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A command being run by a caller. `reader` reads inside the command's transaction, if it has one.

    `made` is the model of each record that an earlier step of the same plan creates, by its placeholder id.
    `writer_domain` is the token domain of the author of the values, if that is not the caller: the values of an
    approved plan are the agent's. `earlier` are the previous steps of the same plan. `stopping` is set when the server
    stops, which ends a waiting command. `spoken_of` collects the models whose fields occur in structures of the
    response.
    """

    engine: Engine
    caller: Caller
    reader: Reader
    actor: Actor
    open_transaction: Transaction | None = None
    writer_domain: Domain | None = None
    made: Mapping[str, str] = field(default_factory=dict[str, str])
    stopping: asyncio.Event | None = None
    spoken_of: set[str] = field(default_factory=set[str])
    earlier: tuple[PreparedCommand, ...] = ()

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
        """The caller's masks."""
        return self.engine.masks.of_caller(self.caller)

    def view_of(self, model: str) -> ModelView:
        """The caller's view of a model it may use."""
        return self.caller.view.models[model]

    def is_touched(self, record_id: str | None) -> bool:
        """Whether an earlier step of the same plan changes the record or refers to it, so that its values before this
        step are not known yet."""
        if record_id is None:
            return False
        return any(
            step.record_id == record_id or any(each.stored == record_id for each in step.given.values())
            for step in self.earlier
        )

    def about_plan(self, plan_id: str) -> "Run":
        """The same command, with the plan in its audit entries."""
        return replace(self, actor=replace(self.actor, plan_id=plan_id))

    def within(self, transaction: Transaction) -> "Run":
        """The same command, working in a transaction."""
        return replace(self, reader=transaction, open_transaction=transaction)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator["Run"]:
        """An atomic block: a transaction or, inside a transaction, a savepoint."""
        if self.open_transaction is not None:
            async with self.open_transaction.savepoint():
                yield self
        else:
            async with self.engine.records.database.transaction() as transaction:
                yield self.within(transaction)


def actor_of(caller: Caller, request_id: str) -> Actor:
    """The caller as an actor in the audit."""
    token = caller.credential_id if caller.is_agent else None
    return Actor(caller.user_id, token, caller.agent, None, request_id)


Body = Mapping[str, object]
"""The decoded input of a command: plain JSON values."""
