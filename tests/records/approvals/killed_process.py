"""A program that opens an office and dies by SIGKILL before the K-th statement of one request: `python
killed_process.py JSON`.

If K is 0, it dies after the commit of a request with an idempotency key and before the response.

It prints `done` if the request is answered first.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import httpx

from countersign.records import app
from countersign.records.idempotency import KeyedCalls
from tests.records.office import ROOT_URL, settings

STATEMENTS = ("fetch", "fetch_one", "run", "run_many")


def _count(kind: type, last_statement: int) -> None:
    countdown = [last_statement]

    def counting(original: Any) -> Any:
        async def run_counted(*arguments: Any) -> Any:
            countdown[0] -= 1
            if countdown[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return await original(*arguments)

        return run_counted

    for name in STATEMENTS:
        if hasattr(kind, name):
            setattr(kind, name, counting(getattr(kind, name)))


def _end_when_committed() -> None:
    answer = KeyedCalls.answer

    async def answer_and_end(*arguments: Any) -> Any:
        await answer(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    KeyedCalls.answer = answer_and_end


async def _run(killed_request: dict[str, Any]) -> None:
    async with app.open_records(
        settings(killed_request["data"], killed_request["url"]), ROOT_URL, is_loopback=True
    ) as service:
        transport = httpx.ASGITransport(app.create(service))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            headers = {"Authorization": f"Bearer {killed_request['token']}", **killed_request["headers"]}
            await http.get("/api/commands", headers=headers)
            async with service.records.database.transaction() as transaction:
                kind = type(transaction)
            if killed_request["last"]:
                _count(kind, killed_request["last"])
            else:
                _end_when_committed()
            answer = await http.post(killed_request["path"], json=killed_request["body"], headers=headers)
    sys.stdout.write("done" if answer.status_code == 200 else answer.text)


if __name__ == "__main__":
    asyncio.run(_run(json.loads(sys.argv[1])))
