"""Planted leaks in the additions of MCP: the list of tools, and the response for an unknown tool."""

from typing import Any

import msgspec
import pytest

from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList, failure
from countersign.records import mcp_tools
from tests.records.worlds.leaking import LEAKS, PatchedLeak


def lists_name_every_model(patch: pytest.MonkeyPatch) -> None:
    """Every caller gets a tool for every model."""

    async def listed(self: mcp_tools.RecordTools, context: Any) -> ToolList:
        registry = self.dispatch.engine.registry
        return ToolList(Tool(f"{name}__list", name, name, {"type": "object"}, Hints()) for name in registry.models)

    patch.setattr(mcp_tools.RecordTools, "listed", listed)


def hidden_tools_are_forbidden(patch: pytest.MonkeyPatch) -> None:
    """A tool of a hidden model has another error than a tool of an unknown model."""
    real = mcp_tools.RecordTools.call

    async def call(self: mcp_tools.RecordTools, context: Any, tool: str, arguments: bytes, meta: Any) -> Outcome:
        model = tool.partition("__")[0]
        if model in self.dispatch.engine.registry.models and model not in context.caller.view.models:
            return failure("not allowed")
        return await real(self, context, tool, arguments, meta)

    patch.setattr(mcp_tools.RecordTools, "call", call)


def whole_lists_are_counted(patch: pytest.MonkeyPatch) -> None:
    """A complete list contains the number of records in the table."""
    real = mcp_tools.RecordTools.call

    async def call(self: mcp_tools.RecordTools, context: Any, tool: str, arguments: bytes, meta: Any) -> Outcome:
        outcome = await real(self, context, tool, arguments, meta)
        if tool != "lead__list":
            return outcome
        rows = await self.dispatch.engine.records.database.fetch('SELECT count(*) FROM "lead"')
        content = b'%b,{"type":"text","text":"%d"}]' % (outcome.content[:-1], rows[0][0])
        return msgspec.structs.replace(outcome, content=content, structured=None)

    patch.setattr(mcp_tools.RecordTools, "call", call)


_SAME = ("exports hold clear values", "lists hold everything", "plans show hidden values", "guesses are confirmed")

MCP_LEAKS = (
    PatchedLeak("lists name every model", lists_name_every_model, "bob", seed=11),
    PatchedLeak("hidden tools are forbidden", hidden_tools_are_forbidden, "bob", seed=6),
    PatchedLeak("whole lists are counted", whole_lists_are_counted, "dan"),
    *(leak for leak in LEAKS if leak.name in _SAME),
)
