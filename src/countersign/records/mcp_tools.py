"""Commands as MCP tools. This module lists the tools for a caller, and runs tool calls through the same dispatch as
REST."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from countersign.kernel import telemetry
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import decode
from countersign.kernel.http.idempotency import REPLAYED
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Route
from countersign.kernel.mcp import server
from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import INTERNAL_ERROR, JsonRpcError
from countersign.kernel.mcp.server import Implementation, McpServer
from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList, UnknownTool
from countersign.records import json_schemas
from countersign.records.access.view import ModelView, View
from countersign.records.api_meta import Approvals, BuiltinCommands
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands import command, limits
from countersign.records.commands.command import describe
from countersign.records.commands.errors import BadInput
from countersign.records.commands.run import Body, Run, actor_of, replica_read_of
from countersign.records.context import Records
from countersign.records.dispatch import CommandOutcome, Dispatch, require_command
from countersign.records.http import RecordsRequest, complete_list, is_complete_list, route
from countersign.records.idempotency import META, REPLAYED_META

NAME = "countersign-records"
TITLE = "Countersign records"
INSTRUCTIONS = (
    "Business records and the commands on them. Text like EMAIL_<number> is a placeholder for a personal value: send "
    "it back unchanged where it belongs, never invent one. An answer with status approval_required means that nothing "
    "has changed yet: a person decides on the plan named by plan_id. To tell that person why, call plan__propose where "
    "it is listed. Fields shown as placeholders cannot be filtered, ordered or grouped by. To repeat a call of a tool "
    'that writes safely, send a UUID as _meta["idempotency-key"] and the same one again: it has one effect.'
)

READING = Hints(read_only=True, idempotent=True)
HINTS: Mapping[str, Hints] = {
    **dict.fromkeys(command.READ_ONLY, READING),
    "update": Hints(destructive=True, idempotent=True),
    "delete": Hints(destructive=True, idempotent=True),
    "revoke": Hints(destructive=True, idempotent=True),
}
"""Maps command names to their hints. Commands without an entry, such as `create` and workflow actions, are not
destructive."""

AGE_META = "age"
"""The member of `_meta` with the seconds that a response from a replica may be behind, at most."""

MAX_LISTS = 64
MAX_VIEWS = 10_000

_Sight: TypeAlias = tuple[object, ...]


class CommandResult(msgspec.Struct):
    """The result of a tool call whose command was run."""

    status: str
    denied: tuple[str, ...]
    value: object


class ProposalResult(msgspec.Struct):
    """The result of a tool call whose command became a plan (API document, MCP 2)."""

    status: str
    plan_id: str
    expires_at: str


@dataclass(slots=True)
class RecordTools:
    """The tools of the records service.

    Tool lists are cached by the rights of the caller, so that callers with equal rights share the encoded bytes.
    """

    dispatch: Dispatch
    own: BuiltinCommands
    _lists: dict[_Sight, ToolList] = field(default_factory=dict[_Sight, ToolList])
    _sights: dict[int, tuple[View, _Sight]] = field(default_factory=dict[int, tuple[View, _Sight]])

    async def listed(self, context: RecordsRequest) -> ToolList:
        """Return the tools that the caller may use."""
        caller = context.caller
        # Approvals affect only agents.
        approvals = await self.dispatch.approvals() if caller.is_agent else None
        key = (*self._tool_key(caller.view), None if approvals is None else (approvals.ids, approvals.lifted))
        tool_list = self._lists.get(key)
        if tool_list is None:
            if len(self._lists) >= MAX_LISTS:
                self._lists.clear()
            tool_list = self._lists[key] = ToolList(_tools(caller.view, approvals, self.own))
        return tool_list

    def _tool_key(self, view: View) -> _Sight:
        """Return the parts of a view that the tools depend on. The result is cached for each view."""
        known_sight = self._sights.get(id(view))
        if known_sight is not None and known_sight[0] is view:
            return known_sight[1]
        if len(self._sights) >= MAX_VIEWS:
            self._sights.clear()
        tool_entries = tuple(
            (name, model.commands, tuple(model.fields.items()), model.writable) for name, model in view.models.items()
        )
        self._sights[id(view)] = (view, tool_entries)
        return tool_entries

    async def call(
        self, context: RecordsRequest, name: str, arguments: bytes, meta: Mapping[str, object]
    ) -> Outcome:
        """Run the command `model.command` for the tool `model__command`.

        Raises:
            UnknownTool: the command does not exist for this caller.
            JsonRpcError: the service failed or is unavailable.
        """
        try:
            model, _, command_name = name.partition("__")
            view = require_command(context.caller, model, command_name)
            if not command.is_tool(model, command_name):
                raise NotFound("not found")
            body = decode.json_object(arguments)
            if is_complete_list(command_name, body):
                return await self._complete_list(context, model, body)
            # A key that is sent as null counts as a key that is not a UUID.
            request_id, key = context.request_id, (meta[META] or "") if META in meta else None
            outcome = await self.dispatch.run(
                context.caller, view, command_name, body, request_id, key=key, stop_event=context.stopping
            )
            return _outcome(view, outcome)
        except NotFound as refused:
            raise UnknownTool(name) from refused
        except Refused as refused:
            if refused.status >= 500:
                raise JsonRpcError(INTERNAL_ERROR, refused.detail) from refused
            return _with_meta(mcp.failure(refused.detail), is_replayed=REPLAYED[0] in refused.headers)
        except Exception as error:  # the edge of a tool's call: logged once under the request's id
            telemetry.logger("records").error("tool failed", request_id=context.request_id, tool=name, exc_info=error)
            raise JsonRpcError(INTERNAL_ERROR, "the service failed; the fault was logged") from error

    async def _complete_list(self, context: RecordsRequest, model: str, body: Body) -> Outcome:
        """Return every visible record in one message. REST streams this list, but the size of a message is limited.

        Raises:
            BadInput: the list exceeds the maximum size of a message.
        """
        engine = self.dispatch.engine
        replica_read = replica_read_of(context.caller.view.models[model], "list")
        actor = actor_of(context.caller, context.request_id)
        run = Run(engine, context.caller, engine.records.database, actor, replica_read=replica_read)
        envelope = bytearray()
        async with aclosing(complete_list(run, model, body)) as pieces:
            async for piece in pieces:
                envelope += piece
                if len(envelope) > limits.MAX_MCP_LIST_BYTES:
                    mebibytes = limits.MAX_MCP_LIST_BYTES >> 20
                    raise BadInput(f"{model}.list would answer more than {mebibytes} MiB: give a limit")
        age_s = None if replica_read is None else replica_read.age_s
        return _with_meta(mcp.success(b'{"status":"ok",' + envelope[1:]), is_replayed=False, age_s=age_s)


def _outcome(view: ModelView, command_outcome: CommandOutcome) -> Outcome:
    value = command_outcome.value
    if isinstance(value, Proposal):
        encoded_result = encode(ProposalResult("approval_required", value.plan_id, value.expires_at))
    else:
        encoded_result = encode(CommandResult("ok", command_outcome.denied or view.denied, value))
    return _with_meta(
        mcp.success(encoded_result), is_replayed=command_outcome.is_replayed, age_s=command_outcome.age_s
    )


def _with_meta(outcome: Outcome, *, is_replayed: bool, age_s: int | None = None) -> Outcome:
    meta: dict[str, object] = {REPLAYED_META: True} if is_replayed else {}
    if age_s is not None:
        meta[AGE_META] = age_s
    return msgspec.structs.replace(outcome, meta=meta) if meta else outcome


def mcp_route(tools: RecordTools, version: str) -> Route[Records]:
    """Return the route POST /mcp for these tools."""
    settings, root_url = tools.dispatch.engine.records.settings, tools.dispatch.engine.records.root_url
    server = McpServer(Implementation(NAME, TITLE, version, INSTRUCTIONS), tools, with_2026=settings.mcp_2026)

    async def answer(call: RecordsRequest) -> Response:
        """Answer one message of the Model Context Protocol, or a batch of them."""
        reply = await server.answer(call, call.headers, call.body)
        return Response(reply.status, reply.body, reply.media_type)

    return route("POST", "/mcp", answer, guard=guard_of(root_url))


def guard_of(root_url: str) -> Callable[[Headers], None]:
    """Return a guard that refuses requests from pages of other sites with `OriginNotAllowed`."""

    def guard(headers: Headers) -> None:
        server.require_allowed_origin(headers.get("origin"), root_url)

    return guard


def _tools(view: View, approvals: Approvals | None, builtin_commands: BuiltinCommands) -> list[Tool]:
    return [
        _tool(model, name, builtin_commands, approvals)
        for model in view.models.values()
        for name in model.commands
        if command.is_tool(model.model.name, name)
    ]


def _tool(view: ModelView, name: str, builtin_commands: BuiltinCommands, approvals: Approvals | None) -> Tool:
    model = view.model
    needs_approval = approvals is not None and approvals.becomes_plan(f"{model.name}.{name}")
    proposed_fields = () if approvals is None else approvals.fields(view)
    description = describe(
        view, name, builtin_commands.get(model.name, {}), needs_approval=needs_approval, proposed_fields=proposed_fields
    )
    move = None if model.workflow is None else model.workflow.moves.get(name)
    title = f"{model.label}: {name.replace('_', ' ') if move is None else move.label}"
    schema = _compact(json_schemas.input_schema(view, name), may_empty=name != "create")
    return Tool(f"{model.name}__{name}", title, description, schema, HINTS.get(name, Hints()))


def _compact(schema: dict[str, Any], *, may_empty: bool) -> dict[str, Any]:
    """Return the schema in a compact form that all clients support.

    Clients read the schemas of all tools, so titles are omitted if they only repeat names. A list of types becomes an
    anyOf, because some clients do not support lists of types. If a member may be omitted, its schema does not include
    null.
    """
    members: dict[str, dict[str, Any]] = schema["properties"]
    return {**schema, "properties": {name: _member(member, may_empty=may_empty) for name, member in members.items()}}


def _member(schema: dict[str, Any], *, may_empty: bool) -> dict[str, Any]:
    member = {name: value for name, value in schema.items() if name != "title"}
    if not isinstance(member.get("type"), list):
        return member
    descriptions = {name: member.pop(name) for name in ("description",) if name in member}
    member["type"] = member["type"][0]
    if "enum" in member:
        member["enum"] = [option for option in member["enum"] if option is not None]
    return {**descriptions, "anyOf": [member, {"type": "null"}]} if may_empty else {**descriptions, **member}
