"""Compares a call of an MCP tool with the same command over REST and with a FastMCP server that runs the same query,
and measures a long list of tools."""

import asyncio
import json
import os
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack

import harness
import records_seed
from harness import Bench, Contender, Requests
from processes import Worker, worker
from records_seed import Seeded

LEADS = int(os.environ.get("BENCH_LEADS", "100000"))
TOOLS = 500
LISTS = 300
REVISION = "2025-11-25"


def measure(bench: Bench, database: str) -> None:
    """Measure calls on one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}

        def serve(name: str) -> Worker:
            return stack.enter_context(worker({"contender": name, **worker_config}, bench.folder, bench.cores))

        own_server, peer = serve("records"), serve("fastmcp")
        for user in ("manager", "agent of manager"):
            table = bench.compare(
                database,
                f"one lead, as {user}",
                [
                    Contender("REST", own_server, over_rest(seed_data, user)),
                    Contender("ours", own_server, over_mcp(seed_data, user)),
                    Contender("FastMCP", peer, over_mcp(seed_data, user)),
                ],
            )
            bench.aim(f"{database}, lead__get to lead.get, as {user}", table.ratios["ours/REST"], 0.9)
        bench.aim(f"{database}, lead__get to FastMCP, masked", table.ratios["ours/FastMCP"], 5)


def over_rest(seed_data: Seeded, user: str) -> Requests:
    """Return a REST request to get each of 5,000 leads."""
    headers = {"Authorization": f"Bearer {seed_data.tokens[user]}"}
    bodies = [json.dumps({"id": lead}).encode() for lead in seed_data.leads[:5000]]
    return Requests([harness.post("/api/lead/get", body, **headers) for body in bodies])


def over_mcp(seed_data: Seeded, user: str) -> Requests:
    """Return an MCP call of the tool that gets each of the same leads."""
    headers = {
        "Authorization": f"Bearer {seed_data.tokens[user]}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
    }
    calls = [{"name": "lead__get", "arguments": {"id": lead}} for lead in seed_data.leads[:5000]]
    bodies = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).encode()
        for number, call in enumerate(calls)
    ]
    return Requests([harness.post("/mcp", body, **headers) for body in bodies])


def measure_list(bench: Bench) -> None:
    """Measure the time of a list of 500 tools in the server, before and after it is encoded."""
    first_ms, cached_ms, size = asyncio.run(_listed())
    bench.other["list of 500 tools"] = {"first_ms": first_ms, "cached_ms": cached_ms, "bytes": size}
    print(f"\n{TOOLS} tools, {size:,} bytes: {first_ms:.2f} ms the first time, {cached_ms:.4f} ms from then on")
    bench.aim(f"1 ms over a list of {TOOLS} tools, encoded before", 1 / cached_ms, 1)


async def _listed() -> tuple[float, float, int]:
    from countersign.kernel.mcp.server import Implementation, McpServer
    from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList

    values = {f"field_{n}": {"type": "string", "maxLength": 1000, "description": "what it is for"} for n in range(8)}
    schema = {"type": "object", "properties": values, "additionalProperties": False, "required": ["field_0"]}
    tools = ToolList(Tool(f"model_{n}__create", f"Model {n}", f"Make a {n}.", schema, Hints()) for n in range(TOOLS))

    class Fixed:
        async def listed(self, context: None) -> ToolList:
            return tools

        async def call(self, context: None, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
            raise LookupError(name)

    server = McpServer(Implementation("bench", "Bench", "1", ""), Fixed(), with_2026=False)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    taken_ms: list[float] = []
    size = 0
    for _ in range(LISTS):
        started_s = time.perf_counter()
        reply = await server.answer(None, {"mcp-protocol-version": REVISION}, body)
        taken_ms.append((time.perf_counter() - started_s) * 1000)
        size = len(reply.body)
    return round(taken_ms[0], 3), round(statistics.median(taken_ms[1:]), 5), size


if __name__ == "__main__":
    with harness.bench("tools_mcp", "MCP: a tool called, to REST and to FastMCP; a long list of tools") as running:
        measure_list(running)
        for database in running.options.databases:
            measure(running, database)
