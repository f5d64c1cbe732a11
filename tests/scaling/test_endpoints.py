"""Every endpoint takes time in proportion to its text, on the worst text of up to its limit."""

import gc
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

import pytest

from countersign.store.apidocs.examples import Examples
from tests.contract.described import DESCRIPTION
from tests.records.office import Office
from tests.scaling import endpoints, limits
from tests.scaling.endpoints import AcceptedText
from tests.scaling.measuring import TIMES, CostGrowth
from tests.scaling.texts import TEXTS
from tests.store.world import World

SAMPLE = 20_000
FULL = pytest.param(1_000_000, list(TEXTS), marks=pytest.mark.full)
A_FEW = ["combining marks", "near tokens", "places"]
FLOOR_S = 0.06
"""The minimum that a request of the longest text may take: most of it is the cost of the request itself."""
_VALUES = {"{id}": "game", "{version}": "1.0.0", "{channel}": "stable"}
_numbers = count(1)

Call = Callable[[str], Awaitable[object]]


async def measure_growth(call: Call, make: Callable[[int], str], longest: int) -> CostGrowth:
    """Return the CPU time of this process for a request with a quarter, half and all of the longest text."""
    largest_cost = await _cost(call, make(longest), 1)
    if largest_cost < FLOOR_S:
        return CostGrowth((0.0, 0.0, 0.0))
    quarter_cost, half_cost = [await _cost(call, make(longest // divisor), TIMES) for divisor in (4, 2)]
    return CostGrowth((quarter_cost, half_cost, min(largest_cost, await _cost(call, make(longest), TIMES - 1))))


async def _cost(call: Call, text: str, times: int) -> float:
    least = float("inf")
    gc.disable()
    try:
        for _ in range(times):
            began_s = time.process_time()
            await call(text)
            least = min(least, time.process_time() - began_s)
    finally:
        gc.enable()
    return least


async def superlinear(
    texts: list[AcceptedText], of: Callable[[AcceptedText], Call], longest: int, kinds: list[str]
) -> list[str]:
    """Return the endpoints that take more than linear time, each with its text."""
    complaints: list[str] = []
    for text in texts:
        for kind in kinds:
            # The test's client sends addresses of 64 KiB at most, in which a character takes up to nine bytes.
            max_length = min(text.limit, longest, 6_000 if text.is_parameter else longest)
            grown = await measure_growth(of(text), TEXTS[kind], max_length)
            if not grown.is_linear:
                complaints.append(f"{text.method} {text.path} {text.place}, {kind}: {grown}")
    return complaints


@pytest.mark.parametrize(("longest", "kinds"), [(SAMPLE, A_FEW), FULL])
async def test_endpoints_of_the_store_take_linear_time(world: World, longest: int, kinds: list[str]) -> None:
    await world.product("north", "game")
    token = await world.person("olga@north.example", north="owner")
    examples = Examples(DESCRIPTION["components"]["schemas"])

    def of(text: AcceptedText) -> Call:
        path = "/".join(
            _VALUES.get(segment, segment.replace("{", "").replace("}", "")) for segment in text.path.split("/")
        )
        base = _example(examples, text)

        async def call(sent_text: str) -> object:
            headers = {"Authorization": f"Bearer {token}"}
            url = world.store.root_url + path
            if text.is_parameter:
                return await world.http.request(text.method, url, params={text.place: sent_text}, headers=headers)
            if text.place == "(the body)":
                return await world.http.request(text.method, url, content=sent_text.encode(), headers=headers)
            body = endpoints.put(
                base | ({"slug": f"s{next(_numbers)}"} if "slug" in base else {}), text.place, sent_text
            )
            return await world.http.request(text.method, url, json=body, headers=headers)

        return call

    texts = endpoints.texts()
    assert len(texts) > 150
    assert await superlinear(texts, of, longest, kinds) == []


def _example(examples: Examples, text: AcceptedText) -> dict[str, Any]:
    operation = DESCRIPTION["paths"].get(text.path, {}).get(text.method.lower(), {})
    for content in operation.get("requestBody", {}).get("content", {}).values():
        example = examples.example_of(content["schema"])
        return dict(example) if isinstance(example, Mapping) else {}
    return {}


@pytest.mark.parametrize(("longest", "kinds"), [(SAMPLE, A_FEW), FULL])
async def test_commands_of_records_take_linear_time(office: Office, longest: int, kinds: list[str]) -> None:
    document = (await office.http.get("/api/openapi.json", headers=office.headers("root"))).json()
    texts = endpoints.commands(document)
    lead = (await office.first_record("lead"))["id"]

    def of(text: AcceptedText) -> Call:
        async def call(sent_text: str) -> object:
            base: dict[str, Any] = {"title": "x"} if text.path.endswith("/create") else {}
            if text.path.endswith("/update"):
                base = {"id": lead}
            return await office.post("root", text.path, endpoints.put(base, text.place, sent_text))

        return call

    assert len(texts) > 200
    assert await superlinear(texts, of, longest, kinds) == []


async def test_an_agents_long_text_of_tokens_takes_linear_time(office: Office) -> None:
    agent = await office.agent("alice", "*")
    note = next(text for text in await office.all("lead", "alice") if text["owner"])

    async def call(sent_text: str) -> object:
        return await office.call(agent, "lead.update", {"id": note["id"], "notes": sent_text})

    for kind in ("tokens", "near tokens", "combining marks"):
        grown = await measure_growth(call, TEXTS[kind], 100_000)
        assert grown.is_linear, f"{kind}: {grown}"


async def test_the_page_of_limits_lists_every_parser_endpoint_and_command(office: Office) -> None:
    """A new parser, endpoint or command without a line fails this test: `python -m tests.scaling.limits` writes the
    page."""
    document = (await office.http.get("/api/openapi.json", headers=office.headers("root"))).json()

    assert limits.PAGE.read_text() == limits.page(endpoints.commands(document))
