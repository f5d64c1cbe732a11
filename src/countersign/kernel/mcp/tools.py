"""Tools of a server: their list, encoded once, and the results of calls."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from countersign.kernel.mcp.messages import INVALID_PARAMS, JsonRpcError, Revision

PAGE = 1000
"""The number of tools on a page. Many clients read only the first page, so it should contain all tools."""

ContextT = TypeVar("ContextT", contravariant=True)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Hints:
    """The annotations of a tool. All four are always sent, because clients assume the most dangerous value for a
    missing annotation (schema, ToolAnnotations)."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def encoded(self) -> dict[str, bool]:
        """Return the hints as the member `annotations`."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `input_schema` and `output_schema` are JSON Schema 2020-12 of objects. Without `output_schema`, clients
    do not know the structure of the result's structured content."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    hints: Hints
    output_schema: Mapping[str, Any] | None = None

    def encoded(self, revision: Revision) -> bytes:
        """Return the tool with the members of the revision; in revisions without titles, the annotations contain the
        title."""
        hints: dict[str, object] = {**self.hints.encoded()}
        members: dict[str, object] = {"name": self.name, "description": self.description}
        if revision.has_titles:
            members["title"] = self.title
            if self.output_schema is not None:
                members["outputSchema"] = self.output_schema
        else:
            hints["title"] = self.title
        return _encode({**members, "inputSchema": self.input_schema, "annotations": hints})


class ToolList:
    """The tools that some callers can see, sorted by name. Each page is encoded once for every revision."""

    def __init__(self, tools: Iterable[Tool], page: int = PAGE) -> None:
        self._tools = sorted(tools, key=lambda tool: tool.name)
        self._page = page
        # A cursor is the name of the last tool of the previous page.
        self._starts = {"": 0, **{self._tools[n - 1].name: n for n in range(page, len(self._tools), page)}}
        self._encoded: dict[tuple[str, str], bytes] = {}

    def page(self, revision: Revision, cursor: str) -> bytes:
        """Return the member `tools` and, if more tools follow, `nextCursor`. An empty cursor requests the first page.

        Raises:
            JsonRpcError: -32602, the cursor is not from this list (2025-03-26, Pagination, Error Handling).
        """
        encoded_page = self._encoded.get((revision.name, cursor))
        if encoded_page is None:
            encoded_page = self._encoded[revision.name, cursor] = self._encode_page(revision, cursor)
        return encoded_page

    def _encode_page(self, revision: Revision, cursor: str) -> bytes:
        if cursor not in self._starts:
            raise JsonRpcError(INVALID_PARAMS, "unknown cursor")
        start = self._starts[cursor]
        page_tools = self._tools[start : start + self._page]
        members = b'"tools":[%b]' % b",".join(page_tool.encoded(revision) for page_tool in page_tools)
        if start + self._page < len(self._tools):
            members += b',"nextCursor":%b' % _encode(page_tools[-1].name)
        return members


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The result of a tool call: content blocks as a JSON array, and optionally a JSON object as structured content,
    which is sent only in revisions with titles. `meta` are the members of the result's `_meta`."""

    content: bytes
    structured: bytes | None = None
    is_error: bool = False
    meta: Mapping[str, object] = {}

    def members(self, revision: Revision) -> bytes:
        """Return the result's members."""
        structured_content = b""
        if self.structured is not None and revision.has_titles:
            structured_content = b',"structuredContent":%b' % self.structured
        return b'"content":%b%b,"isError":%b' % (
            self.content,
            structured_content,
            b"true" if self.is_error else b"false",
        )


def success(value: bytes) -> Outcome:
    """Return the outcome of a tool that answers with a JSON object."""
    return Outcome(text(value.decode()), value)


def failure(reason: str) -> Outcome:
    """Return the outcome of a tool that refuses its input (2025-11-25, Tools, Error Handling 2)."""
    return Outcome(text(reason), is_error=True)


def text(content: str) -> bytes:
    """Return content that consists of one text."""
    return b'[{"type":"text","text":%b}]' % _encode(content)


class UnknownTool(JsonRpcError):
    """The tool does not exist, or is hidden from this caller. The message is the same in both cases."""

    def __init__(self, name: str) -> None:
        super().__init__(INVALID_PARAMS, f"Unknown tool: {name}")


class Tools(Protocol[ContextT]):
    """The tools that a server offers to one request's caller."""

    async def listed(self, context: ContextT) -> ToolList:
        """Return the tools that the caller can see."""
        ...

    async def call(self, context: ContextT, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
        """Call a tool; `arguments` is the unvalidated JSON object as sent. `meta` are the members of the
        request's `_meta`.

        Raises:
            UnknownTool: the caller cannot see such a tool.
            JsonRpcError: the tool failed (-32603); the fault was logged.
        """
        ...
