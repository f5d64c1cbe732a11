"""A process that writes a connected record and dies after a given number of statements.

    python -m tests.adopted.kill_worker

For each order, a line of JSON, it forks a child that opens the service, sends the command or reads the recorded changes
of other applications, and kills itself with SIGKILL after statement `kill_at`, or not at all if that is 0. The answer
is a line of JSON: whether the child was killed, and the number of statements of a child that was not.
"""

import asyncio
import functools
import gc
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

from countersign.records.approvals import decisions
from tests.adopted.shop import Shop, open_shop
from tests.adopted.writable import writable_registry


class StatementCounter:
    """Counts the statements that the driver has run, and kills the process after one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self._kill_at = kill_at
        for name in ("execute", "executemany", "fetch", "fetchrow"):
            setattr(asyncpg.Connection, name, self._counted(getattr(asyncpg.Connection, name)))

    def _counted(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def run(*arguments: Any, **options: Any) -> Any:
            result = await method(*arguments, **options)
            self.count += 1
            if self.count == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run


async def _work(order: dict[str, Any]) -> None:
    async with open_shop(order["url"], Path(order["folder"]), writable_registry(), is_shared=True) as shop:
        counter = StatementCounter(order["kill_at"])
        await _send(shop, order)
        print(json.dumps({"is_killed": False, "count": counter.count}), flush=True)


async def _send(shop: Shop, order: dict[str, Any]) -> None:
    person = shop.inside.administrator(order["person"])
    if order.get("reads"):
        assert shop.inside.service.outside_changes is not None
        await shop.inside.service.outside_changes.read()
    elif order["plan"]:
        await decisions.approve(shop.inside.run(person), shop.inside.service.callers, order["plan"])
    else:
        view = shop.narrowed(person).view.models["customer"]
        body = {"id": order["id"], "visits": order["visits"]}
        await shop.inside.service.dispatch.run(person, view, "update", body, "request", key=order["key"])


def main() -> None:
    """Take orders until the input ends."""
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            asyncio.run(_work(json.loads(line)))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            print(json.dumps({"is_killed": True, "count": 0}), flush=True)
        elif code:
            raise SystemExit(code)


if __name__ == "__main__":
    main()
