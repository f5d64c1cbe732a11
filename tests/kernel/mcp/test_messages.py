"""Parsing of messages: any bytes give a message or an error, and an id is returned unchanged."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from countersign.kernel.mcp.messages import JsonRpcError, Message, OneWayMessage, RpcRequest, ToolCall, read, read_one

texts = st.text(st.characters(codec="utf-8"), max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers() | texts | values,
        "method": texts | values,
        "params": st.dictionaries(texts, values, max_size=2) | values,
        "result": values,
        "error": values,
    },
)


def outcome(body: bytes) -> Message | list[bytes] | JsonRpcError:
    """Parse the body and return the result."""
    try:
        return read(body)
    except JsonRpcError as fault:
        return fault


def tool_call(params: str, members: str = "") -> bytes:
    """Return a tool call with further params, and with further members before its own."""
    return f'{{{members}"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a__get",{params}}}}}'.encode()


@given(st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_message_or_a_fault(body: bytes) -> None:
    parsed = outcome(body)

    if isinstance(parsed, JsonRpcError):
        assert json.loads(parsed.encoded())["error"]["code"] in (-32700, -32600, -32602)


@given(members, st.sampled_from([None, 2]))
def test_a_parsed_message_equals_the_sent_message(message: dict[str, Any], indent: int | None) -> None:
    parsed = outcome(json.dumps(message, indent=indent).encode())

    if isinstance(parsed, RpcRequest):
        assert message["jsonrpc"] == "2.0"
        assert json.loads(parsed.id) == message["id"]
        assert type(json.loads(parsed.id)) is type(message["id"])
        assert parsed.method == message["method"]
        assert (None if parsed.params is None else json.loads(parsed.params)) == message.get("params")
    elif isinstance(parsed, OneWayMessage):
        assert message["jsonrpc"] == "2.0"
        assert parsed.is_response == ("id" in message)


@given(texts | st.integers(min_value=-(10**50), max_value=10**50))
def test_a_fault_and_an_answer_carry_the_id(identity: object) -> None:
    request = read(json.dumps({"jsonrpc": "2.0", "id": identity, "method": "m"}).encode())

    assert isinstance(request, RpcRequest)
    assert json.loads(request.answered(b'"a":1')) == {"jsonrpc": "2.0", "id": identity, "result": {"a": 1}}
    assert json.loads(JsonRpcError(-32601, "no").encoded(request.id))["id"] == identity


@given(
    texts,
    st.dictionaries(texts, values, max_size=3),
    st.none() | st.dictionaries(texts, values, max_size=3),
    st.sampled_from([None, 2]),
)
def test_a_parsed_tool_call_equals_the_sent_call(
    name: str, arguments: dict[str, Any], meta: dict[str, Any] | None, indent: int | None
) -> None:
    params = {"name": name, "arguments": arguments} | ({} if meta is None else {"_meta": meta})
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, indent=indent)
    assume("Infinity" not in body)

    parsed = read(body.encode())

    assert isinstance(parsed, RpcRequest)
    assert (parsed.id, parsed.method) == (b"7", "tools/call")
    if parsed.tool_call is None:
        assert json.loads(parsed.params or b"") == params
    else:
        assert parsed.tool_call.name == name
        assert json.loads(parsed.tool_call.arguments) == arguments
        assert parsed.tool_call.meta == (meta or {})


def test_a_plain_tool_call_is_parsed_together_with_its_message() -> None:
    parsed = read(tool_call('"arguments":{"a":{"b":":"}},"_meta":{"c":{"d":1}}'))

    assert isinstance(parsed, RpcRequest)
    assert parsed.tool_call == ToolCall("a__get", b'{"a":{"b":":"}}', {"c": {"d": 1}})


@pytest.mark.parametrize(
    "body",
    [
        tool_call('"arguments":{}', '"jsonrpc":"2.0",'),
        tool_call('"arguments":{}', '"id":1,'),
        tool_call('"arguments":{}', '"method":"ping",'),
        tool_call('"arguments":{}', '"params":{"name":"b__get","arguments":{}},'),
        tool_call('"name":"b__get"'),
        tool_call('"arguments":{},"name":"b__get"'),
        tool_call('"arguments":{},"\\u006eame":"b__get"'),
        tool_call('"arguments":{},"arguments":{}'),
        tool_call('"arguments":{"a":1},"arguments":{"a":1,"b":2}'),
        tool_call('"arguments":[{"a":1,"a":2}]'),
        tool_call('"arguments":{},"_meta":{},"_meta":{}'),
        tool_call('"arguments":{},"_meta":{"a":1,"a":2}'),
        tool_call('"arguments":{},"_meta":{"a":{"b":1,"b":2}}'),
    ],
)
def test_a_tool_call_with_a_duplicate_key_is_refused(body: bytes) -> None:
    with pytest.raises(JsonRpcError, match="duplicate key"):
        read(body)


def test_an_error_without_an_id_has_no_member_id() -> None:
    assert json.loads(JsonRpcError(-32700, "no", data={"a": 1}).encoded()) == {
        "jsonrpc": "2.0",
        "error": {"code": -32700, "message": "no", "data": {"a": 1}},
    }


def test_the_elements_of_a_batch_are_parsed_separately() -> None:
    elements = read(b' [ {"jsonrpc":"2.0","id":1,"method":"a"} , 7, [] ]')

    assert isinstance(elements, list)
    assert isinstance(read_one(elements[0]), RpcRequest)
    for element in elements[1:]:
        with pytest.raises(JsonRpcError) as error:
            read_one(element)
        assert error.value.code == -32600


@pytest.mark.parametrize("body", [b"[" * 500_000, b'{"a":' * 500_000, b'{"jsonrpc":"2.0","params":' + b"[" * 500_000])
def test_deeply_nested_json_does_not_break_the_reader(body: bytes) -> None:
    assert isinstance(outcome(body), JsonRpcError)
