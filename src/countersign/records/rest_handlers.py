"""The handlers of the REST endpoints: a handler converts a request to a command, and the result to a response. The
status is 202 if the command was stored as a plan that a person must approve."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from countersign.declare import BadValue
from countersign.declare.fields.text import plain
from countersign.kernel.errors import NotFound
from countersign.kernel.http import decode, idempotency, response
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.mcp import messages
from countersign.kernel.security import passwords
from countersign.records import api_meta, openapi_document
from countersign.records.access import agent_tokens, sessions
from countersign.records.api_meta import Approvals, BuiltinCommands
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from countersign.records.audit import chain
from countersign.records.commands import export, record_writer, unmask_input
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.run import Body, ReplicaRead, Run, actor_of, replica_read_of
from countersign.records.dispatch import Dispatch, require_command
from countersign.records.http import Envelope, RecordsRequest, complete_list, is_complete_list, started_pieces
from countersign.records.idempotency import KeyedCall

LINK = ("Link", '</mcp>; rel="mcp"')


class Token(msgspec.Struct):
    """A bearer token. Only this response contains it."""

    token: str


class Commands(msgspec.Struct):
    """The commands that the caller may use."""

    commands: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers, which share one dispatch."""

    dispatch: Dispatch
    agents: decisions.Agents
    own: BuiltinCommands

    async def liveness(self, _: RecordsRequest) -> Response:
        """Return 200. The response proves only that the service answers requests."""
        return Response(200, b'{"status":"ok"}', JSON)

    async def login(self, call: RecordsRequest) -> Response:
        """Sign in with a user name and a password, and return a session token."""
        body = _body(call, "username", "password")
        username, password = body.get("username"), body.get("password")
        if not isinstance(username, str) or not isinstance(password, str):
            raise BadInput("username and password are required, both strings")
        engine = self.dispatch.engine
        note = chain.audit_recorder(engine.chain, call.request_id)
        try:
            return Response(200, encode(Token(await sessions.sign_in(engine.records, username, password, note))))
        except (sessions.WrongSignIn, sessions.LockedOut):
            passwords.SIGN_INS_FAILED.labels("records").value += 1
            raise

    async def agent_token(self, call: RecordsRequest) -> Response:
        """Issue a token with which an agent acts for the calling person."""
        if call.caller.is_agent:
            raise NotFound("not found")
        body, key = decode.json_object(call.body), call.headers.get(idempotency.HEADER)
        token_request = agent_tokens.read_request(body)

        async def issue(run: Run) -> Token:
            return await _token_response(run, token_request)

        if key is None:
            return Response(200, encode(await issue(self._run(call))))
        keyed_call = KeyedCall(key, "auth.agent-token", body)
        token, is_replayed = await self.dispatch.keyed.answer(self._run(call), keyed_call, issue)
        return Response(200, encode(token), headers=(idempotency.REPLAYED,) if is_replayed else ())

    async def commands(self, call: RecordsRequest) -> Response:
        """Return the commands that the caller may use."""
        approvals = await self._approvals()
        return _response_with_etag(call, Commands(api_meta.command_list(call.caller, approvals, self.own)))

    async def meta(self, call: RecordsRequest) -> Response:
        """Return the modules, models, readable fields and actions that are visible to the caller."""
        document = api_meta.meta_document(call.caller, self.dispatch.engine.registry, await self._approvals())
        api_meta.add_currency(document, await self.dispatch.currency())
        answer = _response_with_etag(call, document)
        answer.headers = (*answer.headers, LINK)
        return answer

    async def openapi(self, call: RecordsRequest) -> Response:
        """Return the OpenAPI document of the commands that the caller may use."""
        records, approvals = self.dispatch.engine.records, await self._approvals()
        revisions = messages.revision_names(with_2026=records.settings.mcp_2026)
        return _response_with_etag(
            call, openapi_document.openapi_document(call.caller, records.root_url, approvals, self.own, revisions)
        )

    async def run(self, call: RecordsRequest) -> Response:
        """Run a command."""
        model, name = call.path["model"], call.path["command"]
        view = require_command(call.caller, model, name)
        body = decode.json_object(call.body)
        if is_complete_list(name, body):
            run = replace(self._run(call), replica_read=replica_read_of(view, name))
            pieces = await started_pieces(complete_list(run, model, body))
            return Response(200, pieces, headers=_age_header(run.replica_read))
        if name == "export" and (wanted_format := _export_format(call.headers.get("accept"))):
            return await self._exported(call, model, {**body, "content_type": wanted_format})
        key = call.headers.get(idempotency.HEADER)
        outcome = await self.dispatch.run(
            call.caller, view, name, body, call.request_id, key=key, stop_event=call.stopping
        )
        marks = (idempotency.REPLAYED,) if outcome.is_replayed else ()
        marks += _age_header(ReplicaRead(outcome.age_s))
        if isinstance(outcome.value, Proposal):
            return Response(202, encode(outcome.value), headers=marks)
        return Response(200, encode(Envelope(outcome.denied or view.denied, outcome.value)), headers=marks)

    async def approve(self, call: RecordsRequest) -> Response:
        """Approve a plan, and run it."""
        if call.caller.is_agent:
            raise NotFound("not found")
        run = self._run(call)
        read_input = partial(_approval, run, call)
        decision = await decisions.approve(run, self.agents, call.path["plan_id"], read_input)
        return Response(200, encode(Envelope((), decision)))

    def _run(self, call: RecordsRequest) -> Run:
        engine = self.dispatch.engine
        return Run(engine, call.caller, engine.records.database, actor_of(call.caller, call.request_id))

    async def _approvals(self) -> Approvals:
        return await self.dispatch.approvals()

    async def _exported(self, call: RecordsRequest, model: str, body: Body) -> Response:
        run = replace(self._run(call), replica_read=replica_read_of(call.caller.view.models[model], "export"))
        export_request = export.read(run, model, body)
        export.check(run, model, export_request)

        async def pieces() -> AsyncGenerator[bytes]:
            async with aclosing(export.pieces_of(run, model, export_request)) as texts:
                async for text, _ in texts:
                    yield text.encode()

        begun_pieces = await started_pieces(pieces())
        return Response(200, begun_pieces, export_request.content_type, _age_header(run.replica_read))


def _age_header(replica_read: ReplicaRead | None) -> tuple[tuple[str, str], ...]:
    """Return the header with the seconds that a response from a replica may be behind, at most."""
    return () if replica_read is None or replica_read.age_s is None else (("Age", str(replica_read.age_s)),)


def _approval(run: Run, call: RecordsRequest) -> decisions.Approval:
    body = _body(call, "digest", "note")
    digest, note = body.get("digest"), body.get("note")
    if not isinstance(digest, str | None) or not isinstance(note, str | None):
        raise BadInput("digest and note are strings")
    if note is not None:
        note = _checked_note(note)
        unmask_input.refuse_tokens(run, note, "note")
    return decisions.Approval(digest, note)


async def _token_response(run: Run, token_request: agent_tokens.TokenRequest) -> Token:
    model = run.engine.registry.models["agent_token"]
    async with run.writing() as write_run:
        issued_token = await agent_tokens.issue_token(
            write_run.transaction, run.engine.records, run.caller, token_request
        )
        values = {name: [None, value] for name, value in issued_token.values.items() if value is not None}
        await record_writer.record_audit(write_run, "agent_token.create", model, issued_token.record_id, values)
    return Token(issued_token.token)


def _export_format(accept: str | None) -> str | None:
    names = [media_type.split(";")[0].strip() for media_type in (accept or "").split(",")]
    return next((format_ for format_ in export.FORMATS if format_ in names), None)


def _checked_note(note: str) -> str:
    try:
        return plain(note)
    except BadValue as error:
        raise BadInput(f"note {error}") from error


def _body(call: RecordsRequest, *known_names: str) -> Mapping[str, object]:
    body = decode.json_object(call.body)
    refuse_unknown_keys(body, known_names, "the body")
    return body


def _response_with_etag(call: RecordsRequest, value: object) -> Response:
    """Return a response with an entity tag. A caller can use the tag to check cheaply whether the content has
    changed."""
    body = encode(value)
    etag = response.etag_of(body)
    headers = (("Cache-Control", "private, no-cache"), ("Vary", "Authorization"))
    if response.if_none_match_matches(call.headers.get("if-none-match"), etag):
        return Response(304, b"", JSON, headers, etag)
    return Response(200, body, JSON, headers, etag)
