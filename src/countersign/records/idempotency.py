"""Stores the outcome of a command that was sent with an Idempotency-Key. The outcome is stored in the same transaction
as the effect of the command, and a repeated call receives it.

The bytes of the response are not stored. A repeated call renders the outcome with the caller's current rights, so it
never reveals more than reading the same record at that time would.

The stored outcome is encrypted with the Idempotency-Key, and only a hash of the Idempotency-Key is stored. A personal
value in the outcome is encrypted with the value's own key in the vault, as in the audit. Erasing the value deletes its
key, so the copy becomes unreadable.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import msgspec

from countersign.declare import Where
from countersign.kernel.errors import Refused
from countersign.kernel.http import idempotency
from countersign.kernel.http.idempotency import InProgress, Key, KeyReused
from countersign.kernel.http.response import Response, encode
from countersign.records import redaction
from countersign.records.access.view import Caller, Condition, ModelView
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands import crud, record_writer, select, unmask_input
from countersign.records.commands.csv_import import ImportResult
from countersign.records.commands.errors import BadInput, TryAgain, no_such_record
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import record_of
from countersign.records.masking.vault import Vault

META = "idempotency-key"
"""The name of the key in the `_meta` of an MCP request."""

REPLAYED_META = "idempotency-replayed"
"""The member of the `_meta` of an MCP result that marks the result of an earlier call."""

Command: TypeAlias = Callable[[Run], Awaitable[object]]
"""A function that runs a command with its input and returns the value of the response."""


class RecordOutcome(msgspec.Struct, tag="record"):
    """The command returned this record. `fields` are copies of the fields that the caller saw, or None if a repeated
    call reads the record again. `sight` is a digest of the caller's view of the model."""

    id: str
    revision: int
    sight: str
    fields: dict[str, Any] | None


class ValueOutcome(msgspec.Struct, tag="value"):
    """The command returned this value. A repeated call returns the value if the digest of the caller's view is still
    `sight`, or in any case if `sight` is empty."""

    value: msgspec.Raw
    sight: str


class ProposalOutcome(msgspec.Struct, tag="proposal"):
    """The command became a plan."""

    plan_id: str
    expires_at: str


class RefusalOutcome(msgspec.Struct, tag="refusal"):
    """The command was refused. A repeated call shows the reason if the digest of the caller's view is still `sight`. If
    `record_id` is set, the caller saw this record and must still see it."""

    reason: str
    members: dict[str, Any]
    sight: str
    record_id: str | None


Outcome: TypeAlias = RecordOutcome | ValueOutcome | ProposalOutcome | RefusalOutcome

_decode = msgspec.json.Decoder(Outcome).decode


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call with its key as sent. `command` is `model.command`. For a call that does not concern a model, `command` is
    another name, and there is no `view`."""

    sent: object
    command: str
    body: Body
    view: ModelView | None = None

    def key(self, caller: Caller, vault: Vault) -> Key:
        """Return the key with its scope: the person, the label of an agent, and the command.

        Raises:
            InvalidRequest: the key is not a UUID.
        """
        scope = ("agent" if caller.is_agent else "person", caller.user_id, caller.agent or "", self.command)
        # Use a keyed hash of the input, because a plain hash would confirm guesses of erased values.
        return idempotency.scoped_key(self.sent, scope, vault.keyed(msgspec.json.encode(self.body, order="sorted")))


class KeyedCalls:
    """Runs keyed calls. Each call runs only once, even if it is repeated in another process."""

    def __init__(self) -> None:
        self._running = idempotency.RunningKeys()

    async def answer(self, run: Run, call: KeyedCall, command: Command) -> tuple[object, bool]:
        """Return the response of the command, and whether an earlier call with this key ran the command.

        Raises:
            BadInput: the key is malformed, was used for another input, or its first call is still running. A command
                that is refused, now or in the earlier call, also raises this error.
        """
        key = call.key(run.caller, run.engine.vault)
        try:
            with self._running.acquire(key):
                return await self._answer(run, call, key, command)
        except InProgress as error:
            reason = "the first call with this Idempotency-Key is still running; repeat the call in a second"
            raise BadInput(reason, headers=error.headers) from error
        except KeyReused as error:
            raise BadInput("this Idempotency-Key was used for another input; use a new key") from error

    async def _answer(self, run: Run, call: KeyedCall, key: Key, command: Command) -> tuple[object, bool]:
        database = run.engine.records.database
        stored_answer = await idempotency.find(database, key)
        if stored_answer is not None:
            return await _replay(run, call, stored_answer.answer), True
        async with database.transaction() as transaction:
            write_run = run.within(transaction)
            await idempotency.lock(database, transaction, key)
            stored_answer = await idempotency.find(transaction, key)
            if stored_answer is not None:
                return await _replay(write_run, call, stored_answer.answer), True
            try:
                async with transaction.savepoint():
                    value = await command(write_run)
            except Refused as error:
                if error.status != 400 or isinstance(error, TryAgain):
                    raise
                value, refusal = None, error
                outcome = await _refusal(write_run, call, error)
            else:
                # This is outside the `try`. Otherwise, an error raised here would be stored as a refusal although the
                # effect is committed.
                refusal = None
                outcome = await _outcome(write_run, call, value)
            answer = Response(200, _encoded(outcome))
            await idempotency.store(transaction, key, answer, secret=True, is_derivable=False)
        if refusal is not None:
            raise refusal
        return value, False


def _encoded(outcome: Outcome) -> bytes:
    """Return the stored form of the outcome. If a record is larger than 1 MiB, only its id is stored, and the record is
    read again. If a refusal is larger than 1 MiB, its reason is not stored. A value, such as the errors of an import,
    cannot be recomputed and is stored whatever its size."""
    encoded_outcome = encode(outcome)
    if len(encoded_outcome) <= idempotency.MAX_STORED_BYTES:
        return encoded_outcome
    if isinstance(outcome, RecordOutcome):
        outcome.fields = None
    elif isinstance(outcome, RefusalOutcome):
        outcome.sight = ""
        outcome.reason, outcome.members = "", {}
    return encode(outcome)


async def _outcome(run: Run, call: KeyedCall, value: object) -> Outcome:
    """Return the outcome to store for the result of the command."""
    if isinstance(value, Proposal):
        return ProposalOutcome(value.plan_id, value.expires_at)
    if call.view is not None:
        record_reader = run.engine.reading(run.caller, call.view)
        if isinstance(value, record_reader.shape):
            record_id, revision, *_ = msgspec.structs.astuple(cast("msgspec.Struct", value))
            # Records with structures, such as plans, are rendered again from the stored record. Those of a connected
            # table are read again, because their personal values have no ids in their rows.
            is_read_again = record_reader.structures or call.view.model.table is not None
            fields = None if is_read_again else await _copies(run, call.view, record_id)
            return RecordOutcome(record_id, revision, _view_digest(run, call.view), fields)
    return ValueOutcome(msgspec.Raw(encode(value)), "" if _contains_only_ids(value) else _rights_digest(run))


def _contains_only_ids(value: object) -> bool:
    """Return whether the value contains only ids."""
    if isinstance(value, ImportResult):
        return not value.errors and not value.columns
    return isinstance(value, dict) and cast("dict[str, object]", value).keys() == {"id"}


async def _copies(run: Run, view: ModelView, record_id: str) -> dict[str, Any] | None:
    statement = select.lock_existing(view.model, None, record_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    return (
        None
        if row is None
        else await record_writer.audit_copies(run, view.model.name, record_of(view.model, row), view.fields)
    )


async def _refusal(run: Run, call: KeyedCall, refusal: Refused) -> RefusalOutcome:
    record_id = call.body.get("id")
    is_seen = isinstance(record_id, str) and await _exists(run, call, record_id)
    members = dict(refusal.members)
    return RefusalOutcome(refusal.detail, members, _rights_digest(run), str(record_id) if is_seen else None)


async def _exists(run: Run, call: KeyedCall, record_id: str) -> bool:
    return call.view is not None and await unmask_input.exists(run, call.view.model.name, record_id)


def _view_digest(run: Run, view: ModelView) -> str:
    """Return a digest that changes when the visibility of the model's fields changes for the caller."""
    return _digest(run, list(view.fields.items()))


def _rights_digest(run: Run) -> str:
    """Return a digest that changes when any right of the caller changes."""
    models = run.caller.view.models
    return _digest(
        run,
        [
            (name, sorted(model.commands), list(model.fields.items()), sorted(model.writable), _row_conditions(model))
            for name, model in sorted(models.items())
        ],
    )


def _row_conditions(view: ModelView) -> list[tuple[str, list[list[str]] | None]]:
    """Return each command with its row conditions, sorted by command. None means every record. A condition that is not
    a `Where` depends only on the rest of the caller's view, so its type is enough."""
    return [
        (
            command,
            None
            if rows is None
            else sorted([_condition_document(condition) for condition in alternative] for alternative in rows),
        )
        for command, rows in sorted(view.rows.items())
    ]


def _condition_document(condition: Where | Condition) -> str:
    return repr(condition) if isinstance(condition, Where) else type(condition).__name__


def _digest(run: Run, content: object) -> str:
    return run.engine.vault.keyed(encode(content)).hex()


async def _replay(run: Run, call: KeyedCall, answer: Response) -> object:
    """Return the stored outcome, rendered with the caller's current rights.

    Raises:
        BadInput: the call was refused, or the outcome cannot be shown because the caller's view has changed.
    """
    outcome = _decode(cast("bytes", answer.body))
    if isinstance(outcome, ProposalOutcome):
        return Proposal(True, outcome.plan_id, outcome.expires_at)
    if isinstance(outcome, RefusalOutcome):
        raise await _replay_refusal(run, call, outcome)
    if isinstance(outcome, ValueOutcome):
        if outcome.sight not in ("", _rights_digest(run)):
            raise _stored_refusal(
                "the first call with this Idempotency-Key was carried out; its answer is not shown again, because your "
                "rights have changed since"
            )
        return outcome.value
    return await _replay_record(run, call, outcome)


async def _replay_refusal(run: Run, call: KeyedCall, outcome: RefusalOutcome) -> BadInput:
    if outcome.sight != _rights_digest(run):
        return _stored_refusal("the first call with this Idempotency-Key was refused; use a new key to try again")
    if outcome.record_id is not None and not await _exists(run, call, outcome.record_id):
        return _stored_refusal(no_such_record().detail)
    return _stored_refusal(outcome.reason, outcome.members)


def _stored_refusal(reason: str, members: Mapping[str, object] | None = None) -> BadInput:
    return BadInput(reason, headers=dict((idempotency.REPLAYED,)), members=members)


async def _replay_record(run: Run, call: KeyedCall, outcome: RecordOutcome) -> object:
    """Return the record as the command left it. If the visible fields have changed, return the record with its current
    values. If the caller does not see the record, return only its id."""
    view = call.view
    if view is None or not await _exists(run, call, outcome.id):
        return {"id": outcome.id}
    if outcome.fields is None or outcome.sight != _view_digest(run, view):
        return await crud.read_record(run, view.model.name, outcome.id)
    visible_fields = await redaction.past_record(run, view, outcome.fields)
    record_reader = run.engine.reading(run.caller, view)
    return record_reader.shape(outcome.id, outcome.revision, *(visible_fields[name] for name in view.fields))
