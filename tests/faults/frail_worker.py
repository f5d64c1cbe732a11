"""A process on a failing disk: for each order, a line of JSON, it forks a child that opens a service and runs errands.

    LD_PRELOAD=frail.so FRAIL_UNDER=FOLDER python -m tests.faults.frail_worker

The child prints each request and each answer as a line of JSON. This process prints how the child ended.
"""

import asyncio
import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx

from countersign.records import app as records
from countersign.settings import Settings
from countersign.store import app as distribution
from tests.faults import office_errand, store_errand
from tests.faults.errands import ErrandClient, Request, Say, StepLedger, TimedResponse, WriteRefused
from tests.faults.office_errand import RecordsClients
from tests.faults.store_errand import Tokens
from tests.faults.wire import WireResponse
from tests.servers.countersign import MASTER_KEY

ROOT_URL = "http://127.0.0.1:8480"
DONE, WRONG, TURNED = 0, 1, 2
ONE_MORE = 1_000_000
KILLS, KILLS_TORN, SYNC_FAILS, SYNC_LIES = 1, 2, 3, 4
"""As in frail.c."""

Errand = Callable[[ErrandClient, int], Awaitable[None]]


def say(**members: object) -> None:
    """Print one line without buffering, because a killed process would lose its buffer."""
    os.write(1, json.dumps(members).encode() + b"\n")


def settings(data: str, database_url: str = "") -> Settings:
    """Return the settings of the service."""
    no_limit = 1_000_000
    return Settings(
        data=data,
        database_url=database_url,
        database_pool=4,
        master_key=MASTER_KEY,
        reserve_mib=0,
        job_workers=0,
        rate_keys=no_limit,
        rate_anonymous=no_limit,
        rate_community=no_limit,
        rate_person=no_limit,
        rate_token=no_limit,
    )


def in_process_client(client: httpx.AsyncClient) -> Say:
    """Return a function that sends requests to an application in this process."""

    async def send(request: Request) -> WireResponse:
        headers = {"Authorization": f"Bearer {request.token}"} if request.token else {}
        if request.body:
            headers["Content-Type"] = "application/json"
        if request.key:
            headers["Idempotency-Key"] = request.key
        answer = await client.request(request.method, request.path, content=request.body, headers=headers)
        return WireResponse(answer.status_code, dict(answer.headers), answer.content)

    return send


def ledger_of(number: int, steps: dict[str, Any]) -> StepLedger:
    """Return the ledger of an errand, which prints every step from now on."""
    ledger = StepLedger(
        set(steps["begun"]), {step: TimedResponse(*heard_fields) for step, heard_fields in steps["heard"].items()}
    )

    def note(step: str, response: TimedResponse | None) -> None:
        say(errand=number, step=step, heard=response)

    ledger.note = note
    return ledger


async def work(order: dict[str, Any]) -> int:
    """Open the service, make the disk fail, run all errands at once, and return an exit code."""
    worker_settings = settings(order["data"])
    if order["service"] == "distribution":
        tokens = Tokens(*order["tokens"])
        async with distribution.open_store(worker_settings, ROOT_URL, is_loopback=True) as store:
            return await errands(
                distribution.create(store), order, lambda client, n: store_errand.publish_and_sell(client, tokens, n)
            )
    desk = RecordsClients(*order["tokens"])
    async with records.open_records(worker_settings, ROOT_URL, is_loopback=True) as service:
        return await errands(
            records.create(service), order, lambda client, n: office_errand.write_and_decide(client, desk, n)
        )


async def errands(app: Any, order: dict[str, Any], errand: Errand) -> int:
    """Run all errands at once, each until the first refused write."""
    frail = ctypes.CDLL(None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ROOT_URL) as client:
        clients = {
            int(number): ErrandClient(in_process_client(client), ledger_of(int(number), steps))
            for number, steps in order["errands"].items()
        }
        frail.frail_arm(order["mode"], ctypes.c_long(order["at"]))
        results = await asyncio.gather(
            *(errand(client, number) for number, client in clients.items()), return_exceptions=True
        )
        unheard = sum(client.ledger.found_unheard for client in clients.values())
        say(changes=frail.frail_changes(), syncs=frail.frail_syncs(), found_unheard=unheard)
        if refused_steps := [result.step for result in results if isinstance(result, WriteRefused)]:
            say(
                turned=refused_steps,
                still_writes=await still_writes(ErrandClient(in_process_client(client), StepLedger()), errand),
            )
    return outcome(results)


def outcome(results: Sequence[BaseException | None]) -> int:
    """Return the exit code of the errands. Any error except a refused write is raised."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, WriteRefused):
            raise result
    return TURNED if any(results) else DONE


async def still_writes(client: ErrandClient, errand: Errand) -> bool:
    """Return whether another errand can still begin."""
    try:
        await errand(client, ONE_MORE)
    except WriteRefused:
        return bool(client.ledger.heard)
    return True


def child(order: dict[str, Any]) -> int:
    """Run one life in the child, and return its exit code."""
    try:
        return asyncio.run(work(order))
    except Exception:  # the process edge: reported to the parent
        say(wrong=traceback.format_exc()[-4000:])
        return WRONG


def main() -> None:
    """Take orders until the input ends."""
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(child(order))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        say(ended="killed" if code == -signal.SIGKILL else code)


if __name__ == "__main__":
    main()
