"""The commands of the built-in models that are not generated, such as `session.revoke` and `user.invite`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.records import data_map, home
from countersign.records.access import invitations, sessions
from countersign.records.approvals import plan_commands as plans
from countersign.records.audit import verify
from countersign.records.audit.verify import ChainReport, DefectKind
from countersign.records.commands import call_log, command, crud, find, no_escalation, record_writer
from countersign.records.commands.command import CommandFunction
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.mentions import Mentions
from countersign.records.commands.run import Body, Run


class AuditFault(msgspec.Struct):
    """The first defect of a lane, in the format of `countersign audit verify --json`."""

    lane: int | None
    number: int | None
    id: str | None
    what: DefectKind


class AuditReport(msgspec.Struct):
    """The result of verifying the whole audit. The verification started at `checked_at`.

    Only administrators see the number of entries and the defects. Other callers could find out from them how many
    entries are hidden.
    """

    is_intact: bool
    checked_at: str
    entries: int | None
    faults: list[AuditFault] | None


@dataclass(frozen=True, slots=True)
class _RunningCheck:
    begun: Instant
    report: asyncio.Task[ChainReport]


class AuditCheck:
    """Verifies the audit. In this process, only one verification runs at a time, and concurrent calls share its
    result."""

    def __init__(self) -> None:
        self._running: _RunningCheck | None = None

    async def verify(self, run: Run, model: str, body: Body) -> object:
        """Verify the audit from its first entry to its last entry.

        Raises:
            BadInput: the input is not empty.
            Unavailable: the database cannot be reached.
        """
        refuse_unknown_keys(body, (), "audit_entry.verify")
        running = self._running
        if running is None or running.report.done():
            records = run.engine.records
            report = asyncio.create_task(verify.verify(records.database, records.secret))
            self._running = running = _RunningCheck(clock.now(), report)
        # The first caller may disconnect before the end, but the other callers still wait for the result.
        report = await asyncio.shield(running.report)
        sees_details = run.caller.is_administrator
        return AuditReport(
            report.is_intact,
            clock.rfc3339(running.begun),
            report.entries if sees_details else None,
            [AuditFault(defect.lane, defect.number, defect.id, defect.what) for defect in report.faults]
            if sees_details
            else None,
        )


SENTENCES: Mapping[str, Mapping[str, str]] = {
    "plan": plans.OWN,
    "session": {
        "revoke": "Ends a session and returns its record. Without an id, it ends the caller's own session."
    },
    "agent_token": {
        "revoke": "Ends an agent's token on every worker and returns its record. Requires id.",
        "calls": "Lists the calls of an agent's token of the last seven days, newest first. Requires id; `after` is "
        "the cursor of the previous response.",
    },
    "user": {
        "invite": "Creates a one-time link, valid for a day, with which a person sets a password. Requires id.",
        "deactivate": "Deactivates a person; the sessions and agents of the person end at once. Requires id.",
        "home": "Returns the caller's first page: waiting plans, due records, tickets, recent records, activity, "
        "mentions.",
        "recent": "Lists the records that the caller opened last.",
        "find": "Finds records of all models by their name. Requires q.",
    },
    "setting": {
        "data_map": "Lists the fields of connected tables: what agents see of each field, why, and who decided it.",
        "decide": "Decides whether a field of a connected table is personal, clear or hidden, and writes the module "
        "text, which the server reads when it starts. Requires field, decision, reason and revision. To let agents "
        "read values that they do not see yet, also send confirmed: true.",
    },
    "audit_entry": {"verify": "Reads the whole audit and reports every entry that was changed or is missing."},
    "comment": {
        "people": "Lists people to mention in a comment. Requires model and record; `q` is a part of the name."
    },
}


def commands(mentions: Mentions) -> Mapping[str, Mapping[str, CommandFunction]]:
    """Return the built-in commands, keyed by model and name."""
    return {
        "plan": {
            "reject": plans.reject,
            "withdraw": plans.withdraw,
            "propose": plans.propose_steps,
            "watch": plans.watch,
        },
        "session": {"revoke": _revoke_session},
        "agent_token": {"revoke": _revoke_agent_token, "calls": _list_calls},
        "user": {
            "invite": _invite,
            "deactivate": _deactivate,
            "home": home.home,
            "recent": home.recent,
            "find": find.find,
        },
        "setting": {"data_map": data_map.data_map, "decide": data_map.decide},
        "audit_entry": {"verify": AuditCheck().verify},
        "comment": {"people": mentions.people},
    }


def _required_id(body: Body, command: str) -> str | None:
    refuse_unknown_keys(body, ("id",), command)
    record_id = body.get("id")
    if not isinstance(record_id, str | None):
        raise BadInput("id must be a string")
    return record_id


async def _revoke_session(run: Run, model: str, body: Body) -> object:
    """End a session. Without an id, end the caller's own session."""
    target_id = _required_id(body, "session.revoke")
    return await _end_credential(run, "session", target_id or run.caller.credential_id)


async def _revoke_agent_token(run: Run, model: str, body: Body) -> object:
    """End an agent's token."""
    target_id = _required_id(body, "agent_token.revoke")
    if target_id is None:
        raise BadInput("id must be a string")
    if run.caller.is_agent and target_id != run.caller.credential_id:
        # Only people may end other tokens. An agent may end only its own token.
        raise no_such_record()
    return await _end_credential(run, "agent_token", target_id)


async def _end_credential(run: Run, model: str, record_id: str) -> object:
    """End the session or token, and return its record. If it has already ended, the record does not change."""
    view = run.view_of(model)
    async with run.writing() as write_run:
        record = await record_writer.find(write_run, view.model, view.reach("revoke"), record_id)
        ended_at = await sessions.end_credential(write_run.transaction, model, record.id)
        if ended_at is not None:
            await record_writer.record_audit(
                write_run, f"{model}.revoke", view.model, record.id, {"ended_at": [None, ended_at]}
            )
        return await crud.read_record(write_run, model, record_id)


async def _invite(run: Run, model: str, body: Body) -> object:
    """Create a link, valid for a day, with which the person sets a password."""
    target_id = _required_id(body, "user.invite")
    view = run.view_of("user")
    async with run.writing() as write_run:
        transaction = write_run.transaction
        record = await record_writer.find(write_run, view.model, view.reach("invite"), target_id)
        engine = run.engine
        if not await no_escalation.has_all_of(transaction, engine.registry, engine.commands, run.caller, record.id):
            raise BadInput("user.invite is refused: this person has more rights than you; ask an administrator")
        creator_id = "" if run.caller.is_administrator else run.caller.user_id
        secret = await invitations.invite(transaction, record.id, creator_id)
        await record_writer.record_audit(write_run, "user.invite", view.model, record.id, {})
    return {"link": invitations.address(run.engine.records, secret)}


MAX_CALLS = 200


class CallEntry(msgspec.Struct):
    """A call of an agent: the tool, the record, the result and the duration, without input and output."""

    number: int
    at: str
    tool: str
    record_id: str | None
    result: str
    ms: float


class CallPage(msgspec.Struct):
    """The newest calls of a token, and the cursor of the next call."""

    calls: list[CallEntry]
    cursor: int


async def _list_calls(run: Run, model: str, body: Body) -> object:
    """Return the calls of an agent's token that the caller sees, the newest first."""
    refuse_unknown_keys(body, ("id", "after", "limit"), "agent_token.calls")
    after_id, limit = body.get("after", 0), body.get("limit", 50)
    if type(after_id) is not int or after_id < 0 or after_id > 2**53 - 1:
        raise BadInput("after must be the cursor of an earlier response")
    if type(limit) is not int or not 1 <= limit <= MAX_CALLS:
        raise BadInput(f"limit must be an integer from 1 to {MAX_CALLS}")
    await crud.read_record(run, model, body.get("id"))
    await run.engine.calls.write()
    logged_calls = await call_log.calls_after(run.reader, str(body["id"]), after_id, limit)
    entries = [
        CallEntry(call.number, clock.rfc3339(call.at), call.tool, call.record_id, call.result, call.elapsed_us / 1_000)
        for call in logged_calls
    ]
    return CallPage(entries, max((logged_call.number for logged_call in logged_calls), default=after_id))


async def _deactivate(run: Run, model: str, body: Body) -> object:
    """Deactivate a person: run `user.update` with `is_active` set to false, with all its checks."""
    target_id = _required_id(body, "user.deactivate")
    async with run.writing() as write_run:
        view = write_run.view_of("user")
        prepared_command = await command.check(write_run, view, "update", {"id": target_id, "is_active": False})
        record_id = await command.apply(write_run, prepared_command)
        return await command.result(write_run, prepared_command, record_id)
