"""The list of tools: its pages, and that each is encoded once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.mcp.messages import JUNE_2025, MARCH_2025, NOVEMBER_2025, JsonRpcError
from countersign.kernel.mcp.tools import Hints, Tool, ToolList

NOTHING = {"type": "object", "additionalProperties": False}


def tools_named(*names: str) -> list[Tool]:
    """Return tools without arguments."""
    return [Tool(name, name.title(), f"Do {name}.", NOTHING, Hints()) for name in names]


def decode_object(members: bytes) -> dict[str, Any]:
    """Return the members as an object."""
    return json.loads(b"{%b}" % members)


def names_of(tool_list: ToolList) -> list[str]:
    """Return the names on all pages, beginning with the first."""
    names: list[str] = []
    cursor = ""
    while True:
        page = decode_object(tool_list.page(NOVEMBER_2025, cursor))
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            return names
        cursor = page["nextCursor"]


@given(st.sets(st.text("abc_", min_size=1, max_size=4), max_size=20), st.integers(1, 21))
def test_the_pages_hold_every_tool_once_in_order(names: set[str], size: int) -> None:
    assert names_of(ToolList(tools_named(*names), size)) == sorted(names)


def test_the_last_page_names_no_other() -> None:
    assert "nextCursor" not in decode_object(ToolList(tools_named("a", "b"), 2).page(NOVEMBER_2025, ""))
    assert decode_object(ToolList([], 2).page(NOVEMBER_2025, "")) == {"tools": []}


@pytest.mark.parametrize("cursor", ["a", "c", "z", "0", "b "])
def test_only_the_end_of_a_page_is_a_cursor(cursor: str) -> None:
    with pytest.raises(JsonRpcError) as error:
        ToolList(tools_named("a", "b", "c"), 2).page(NOVEMBER_2025, cursor)
    assert error.value.code == -32602


def test_a_page_is_encoded_once_for_each_revision() -> None:
    tools = ToolList(tools_named("a", "b"))

    assert tools.page(JUNE_2025, "") is tools.page(JUNE_2025, "")
    assert decode_object(tools.page(MARCH_2025, "")) != decode_object(tools.page(JUNE_2025, ""))


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    (tool,) = decode_object(ToolList(tools_named("a")).page(NOVEMBER_2025, ""))["tools"]

    assert tool["inputSchema"] == {"type": "object", "additionalProperties": False}
