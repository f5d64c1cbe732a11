"""A body with a duplicate key is refused in every route that reads JSON."""

import json
from typing import Any

import pytest

from countersign.store.app import ROUTES
from tests.contract.scenes import BODIES, BY_KEY, Scene, key

BODY_ROUTES = [key(route) for route in ROUTES if route.body is not None]


def with_doubled_key(body: dict[str, Any]) -> str:
    """Return the body as JSON, with its last key repeated with the same value. A body without keys gets two keys."""
    last_key = list(body)[-1] if body else "a"
    return f"{json.dumps(body or {'a': 1})[:-1]}, {json.dumps(last_key)}: {json.dumps((body or {'a': 1})[last_key])}}}"


@pytest.mark.parametrize("name", BODY_ROUTES, ids=" ".join)
async def test_every_body_with_a_duplicate_key_is_refused(scene: Scene, name: tuple[str, str]) -> None:
    request_options = {
        "json": None,
        "content": with_doubled_key(BODIES.get(name, {})),
        "headers": {"Content-Type": "application/json"},
    }

    answer = await scene.send(BY_KEY[name], "owner of north", **request_options)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text
    assert "duplicate key" in answer.json()["message"]


@pytest.mark.parametrize("at", ["", "/sandbox"])
async def test_duplicate_keys_deep_in_a_batch_are_refused_and_nothing_is_run(scene: Scene, at: str) -> None:
    inner = '{"method":"POST","path":"/products","body":{"slug":"a-a","slug":"b-b","title":"A","kind":"tool"}}'
    valid_operation = '{"method":"GET","path":"/info"}'
    headers = {"Content-Type": "application/json"}
    content = f'{{"operations":[{valid_operation},{inner}]}}'

    answer = await scene.world.http.post(f"{at}/api/v1/batch", content=content, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_info","name":"get_health"}}',
        '[{"jsonrpc":"2.0","id":1,"method":"ping","id":2}]',
    ],
)
async def test_duplicate_keys_in_a_message_of_mcp_are_refused(scene: Scene, body: str) -> None:
    answer = await scene.world.http.post("/mcp", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert "duplicate key" in answer.json()["error"]["message"]


async def test_duplicate_keys_in_the_arguments_of_a_tool_are_a_refused_input(scene: Scene) -> None:
    params = '{"name":"get_product","arguments":{"id":"a","id":"b"}}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    answer = await scene.world.http.post("/mcp", content=body, headers={"Content-Type": "application/json"})

    result = answer.json()["result"]
    assert result["isError"] is True
    assert "duplicate key" in result["content"][0]["text"]
