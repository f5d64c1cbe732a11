"""The engine's own commands on its own models: ending sessions and tokens, inviting people, plans, the audit."""

from collections.abc import Mapping

from countersign.records.access import invitations, sessions
from countersign.records.approvals import plan_commands
from countersign.records.approvals import plan_commands as plans
from countersign.records.checking import AuditCheck
from countersign.records.commands import crud, no_escalation, record_writer
from countersign.records.commands.command import Answering
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.run import Body, Run

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "plan": plans.OWN,
    "session": {
        "revoke": "Ends a session and answers it as it is afterwards. Without an id it ends the caller's own session."
    },
    "agent_token": {"revoke": "Ends an agent's token on every worker and answers it as it is afterwards. Requires id."},
    "user": {
        "invite": "Creates a one-time link, valid for a day, with which a person sets a password. Requires id."
    },
    "audit_entry": {"verify": "Reads the whole audit and reports every entry that was changed or is missing."},
}


def commands() -> Mapping[str, Mapping[str, Answering]]:
    """The commands by model and name."""
    return {
        "plan": {
            "reject": plans.reject,
            "withdraw": plans.withdraw,
            "propose": plans.propose_steps,
            "watch": plan_commands.watch,
        },
        "session": {"revoke": _revoke_session},
        "agent_token": {"revoke": _revoke_agent_token},
        "user": {"invite": _invite},
        "audit_entry": {"verify": AuditCheck().verify},
    }


def _only_id(body: Body, command: str) -> str | None:
    refuse_unknown_keys(body, ("id",), command)
    record_id = body.get("id")
    if not isinstance(record_id, str | None):
        raise BadInput("id must be a string")
    return record_id


async def _revoke_session(run: Run, model: str, body: Body) -> object:
    """End a session; without id the caller's own."""
    wanted = _only_id(body, "session.revoke")
    return await _end(run, "session", wanted or run.caller.credential_id)


async def _revoke_agent_token(run: Run, model: str, body: Body) -> object:
    """End an agent's token."""
    wanted = _only_id(body, "agent_token.revoke")
    if wanted is None:
        raise BadInput("id must be a string")
    if run.caller.is_agent and wanted != run.caller.credential_id:
        # Ending others is for people; an agent may put itself out.
        raise no_such_record()
    return await _end(run, "agent_token", wanted)


async def _end(run: Run, model: str, record_id: str) -> object:
    """The record as it is once it has ended; one that ended before stays as it is."""
    view = run.view_of(model)
    async with run.writing() as inside:
        record = await record_writer.find(inside, view.model, view.reach("revoke"), record_id)
        ended_at = await sessions.end_credential(inside.transaction, model, record.id)
        if ended_at is not None:
            await record_writer.record_audit(
                inside, f"{model}.revoke", view.model, record.id, {"ended_at": [None, ended_at]}
            )
        return await crud.read_record(inside, model, record_id)


async def _invite(run: Run, model: str, body: Body) -> object:
    """A link by which the person sets a password, valid for a day."""
    wanted = _only_id(body, "user.invite")
    view = run.view_of("user")
    async with run.writing() as inside:
        transaction = inside.transaction
        record = await record_writer.find(inside, view.model, view.reach("invite"), wanted)
        engine = run.engine
        if not await no_escalation.has_all_of(transaction, engine.registry, engine.commands, run.caller, record.id):
            raise BadInput("user.invite is refused: this person has more rights than you; ask an administrator")
        lesser_id = "" if run.caller.is_administrator else run.caller.user_id
        secret = await invitations.invite(transaction, record.id, lesser_id)
        await record_writer.record_audit(inside, "user.invite", view.model, record.id, {})
    return {"link": invitations.address(run.engine.records, secret)}
