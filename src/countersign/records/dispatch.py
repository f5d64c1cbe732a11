"""Runs a command for a caller, or stores the command as a plan. REST and MCP share this module."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from countersign.kernel import clock, telemetry
from countersign.kernel.database.port import ConstraintViolation
from countersign.kernel.errors import NotFound, Refused
from countersign.records.access.view import Caller, ModelView
from countersign.records.api_meta import Approvals
from countersign.records.approvals import policy, previews, proposals
from countersign.records.base_models import CURRENCY
from countersign.records.commands import command, csv_import, record_writer
from countersign.records.commands.command import CommandFunction
from countersign.records.commands.errors import BadInput, TooManyUnknownTokens, TryAgain
from countersign.records.commands.prepared_command import PreparedCommand
from countersign.records.commands.run import Body, Engine, Run, actor_of, replica_read_of
from countersign.records.idempotency import KeyedCall, KeyedCalls

_SETTING = "SELECT value FROM setting WHERE title = $1"
_SETTINGS = "SELECT title, value FROM setting WHERE title >= 'approval:' AND title < 'approval;'"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The value that a command returned, and the fields that are hidden from the caller (`denied`). If the command
    became a plan, the value is a `Proposal`.

    `is_replayed` is true if an earlier call with the same Idempotency-Key ran the command. `age_s` is how many seconds
    the rows may be behind if they were read from a replica.
    """

    denied: tuple[str, ...]
    value: object
    is_replayed: bool = False
    age_s: int | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Runs commands.

    `reading` contains the generated commands that do not write a single record. `own` maps models to their built-in
    commands, such as plan.reject and session.revoke.
    """

    engine: Engine
    reading: Mapping[str, CommandFunction]
    own: Mapping[str, Mapping[str, CommandFunction]]
    keyed: KeyedCalls = field(default_factory=KeyedCalls)

    async def run(
        self,
        caller: Caller,
        view: ModelView,
        name: str,
        body: Body,
        request_id: str,
        *,
        key: object = None,
        stop_event: asyncio.Event | None = None,
    ) -> CommandOutcome:
        """Run a command of the view (see `require_command`). If the command needs approval, store it as a plan.

        `key` is the Idempotency-Key as sent. With a key, a writing command runs once, and a repeated call receives the
        response of the first call. Read commands ignore the key. A waiting command ends when `stop_event` is set.

        Raises:
            BadInput: the input is refused, and nothing was written.
        """
        actor = actor_of(caller, request_id)
        replica_read = replica_read_of(view, name)
        database = self.engine.records.database
        run = Run(self.engine, caller, database, actor, stopping=stop_event, replica_read=replica_read)
        started_s, result = clock.monotonic_s(), "refused"
        try:
            if key is None or not command.writes(view.model, name):
                value, is_replayed = await self._value(run, view, name, body), False
            else:
                call = KeyedCall(key, f"{view.model.name}.{name}", body, view)
                value, is_replayed = await self.keyed.answer(run, call, lambda it: self._value(it, view, name, body))
            result = "proposed" if isinstance(value, proposals.Proposal) else "ok"
            age_s = None if replica_read is None else replica_read.age_s
            return CommandOutcome(_denied(run, view), value, is_replayed, age_s)
        except TooManyUnknownTokens as refused:
            if refused.is_first:
                await self._note_guessing(run, view)
            raise
        finally:
            self.engine.calls.note(caller, f"{view.model.name}.{name}", body.get("id"), result, started_s)

    async def _note_guessing(self, run: Run, view: ModelView) -> None:
        """Record the guessing attempt in the audit and the log. A separate transaction is needed, because the
        transaction of the command is rolled back."""
        telemetry.logger("masking").warning("too many unknown tokens", user_id=run.caller.user_id)
        async with self.engine.records.database.transaction() as transaction:
            await record_writer.record_audit(run.within(transaction), "base.unknown_tokens", view.model, None, {})

    async def _value(self, run: Run, view: ModelView, name: str, body: Body) -> object:
        caller, model = run.caller, view.model.name
        if command.is_writing(view.model, name):
            return await self._write(run, view, name, body)
        if name == "import" and caller.is_agent:
            return await self._import(run, view, body)
        answer = self.own.get(model, {}).get(name) or self.reading[name]
        return await answer(run, model, body)

    async def _write(self, run: Run, view: ModelView, name: str, body: Body) -> object:
        _refuse_reason(run.caller, view, name, body)
        try:
            async with run.writing() as write_run:
                prepared_command = await command.check(write_run, view, name, body)
                if await self._is_proposed(write_run, prepared_command):
                    return await proposals.propose(write_run, [prepared_command], reason=None)
                record_id = await _apply(write_run, prepared_command)
                await command.finish(write_run)
                return await command.result(write_run, prepared_command, record_id)
        except ConstraintViolation as error:
            # The checks succeeded, so a concurrent call must have written in the meantime.
            raise TryAgain(f"{view.model.name}.{name} conflicts with a concurrent change; try again") from error

    async def _is_proposed(self, run: Run, prepared_command: PreparedCommand) -> bool:
        """Return whether the command becomes a plan. An agent that would learn a hidden value from the code of a
        package only proposes the command."""
        if await policy.needs_approval(run, prepared_command):
            return True
        report = await previews.preview(run, [prepared_command]) if run.caller.is_agent else None
        return report is not None and not report.is_known

    async def _import(self, run: Run, view: ModelView, body: Body) -> object:
        """Propose an import for an agent. The rows are checked as far as the agent may know the result. Nothing is
        written."""
        table = await csv_import.read_table(run, view, body)
        async with run.writing() as write_run:
            checked_rows, prepared_commands = await csv_import.check_rows(write_run, view, table)
            if checked_rows.dry_run or checked_rows.errors:
                return checked_rows
            return await proposals.propose(write_run, prepared_commands, reason=None)

    async def approvals(self) -> Approvals:
        """Return the commands that agents can only propose, either by declaration or because of a setting."""
        rows = await self.engine.records.database.fetch(_SETTINGS)
        lifted_approvals = frozenset(
            str(row[0]).removeprefix(policy.PREFIX) for row in rows if policy.lifts(str(row[1]))
        )
        approval_ids = frozenset(str(row[0]).removeprefix(policy.PREFIX) for row in rows) - lifted_approvals
        declared_names = {
            f"{name}.{item}"
            for name, model in self.engine.registry.models.items()
            for item in (*model.commands, *command.moves(model))
            if item == "import"
            or policy.is_declared(self.engine.registry, name, item)
            or (policy.is_default(model, item) and f"{name}.{item}" not in lifted_approvals)
        }
        return Approvals(frozenset(declared_names), approval_ids, lifted_approvals)

    async def currency(self) -> str | None:
        """Return the currency that the setting names, or None."""
        row = await self.engine.records.database.fetch_one(_SETTING, CURRENCY.name)
        currency_text = None if row is None else str(row[0]).strip().strip('"')
        return currency_text if currency_text in CURRENCY.options[1:] else None


def _denied(run: Run, view: ModelView) -> tuple[str, ...]:
    """Return the hidden fields of the model and of the other models whose fields occur in this response."""
    if not run.mentioned_models:
        return view.denied
    other_denials = [
        other_view.denied for name, other_view in run.caller.view.models.items() if name in run.mentioned_models
    ]
    return tuple(sorted({command for denied_commands in (view.denied, *other_denials) for command in denied_commands}))


async def _apply(run: Run, prepared_command: PreparedCommand) -> str:
    """Run the command and return the id of its record.

    Raises:
        TryAgain: the code of a package has read a value that the agent does not know, which it did not on trial, such
            as after a concurrent change. The agent must not learn the outcome.
    """
    try:
        record_id = await command.apply(run, prepared_command)
    except Refused:
        _require_known_code(run, prepared_command)
        raise
    _require_known_code(run, prepared_command)
    return record_id


def _require_known_code(run: Run, prepared_command: PreparedCommand) -> None:
    if run.caller.is_agent and not run.code_report.is_known:
        raise TryAgain(f"{prepared_command.id} conflicts with a concurrent change; try again")


def _refuse_reason(caller: Caller, view: ModelView, name: str, body: Body) -> None:
    """Refuse a reason (`why`) that an agent sends with a command.

    Raises:
        BadInput: an agent sends `why`, and the model has no field with this name that the agent sees.
    """
    if caller.is_agent and "why" in body and "why" not in view.fields:
        raise BadInput(
            f"unknown key why in {view.model.name}.{name}: a reason for people to read goes with plan.propose, which "
            "needs a scope of its own"
        )


def require_command(caller: Caller, model: str, name: str) -> ModelView:
    """Return the caller's view of a model that has the command.

    Raises:
        NotFound: the command is unknown, hidden or forbidden. The error is the same in all three cases.
        BadInput: the caller may use the model, but lacks something for it.
    """
    if model in caller.withheld:
        raise BadInput(caller.withheld[model])
    view = caller.view.models.get(model)
    if view is None or name not in view.commands:
        raise NotFound("not found")
    return view
