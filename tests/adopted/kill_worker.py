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

import apsw
import asyncpg

from countersign.records.approvals import decisions
from tests.adopted.shop import Shop, open_shop
from tests.adopted.writable import shop_registry


class _CountedFile(apsw.VFSFile):
    """A file whose changes are counted."""

    def __init__(self, name: Any, flags: list[int], add: Callable[[], None]) -> None:
        super().__init__("unix", name, flags)
        self._add = add

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write, and count it."""
        super().xWrite(data, offset)
        self._add()

    def xSync(self, flags: int) -> None:
        """Sync, and count it."""
        super().xSync(flags)
        self._add()


class CountedFiles(apsw.VFS):
    """The files of SQLite, with a call of `add` after each change of one."""

    def __init__(self, add: Callable[[], None]) -> None:
        super().__init__("counted", "unix", makedefault=True)
        self._add = add

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        """Open a file."""
        return _CountedFile(name, flags, self._add)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete a file, and count it."""
        super().xDelete(filename, syncdir)
        self._add()


class StatementCounter:
    """Counts the statements that the drivers have run since `kill_at` was set, and kills the process after one of them.
    On SQLite it counts the changes of files, such as those of each part of a COMMIT."""

    def __init__(self) -> None:
        self.count = 0
        self.kill_at: int | None = None
        for name in ("execute", "executemany", "fetch", "fetchrow"):
            setattr(asyncpg.Connection, name, self._counted(getattr(asyncpg.Connection, name)))
        self._files = CountedFiles(self.add)

    def add(self) -> None:
        """Count one, and kill the process if it is the last one."""
        if self.kill_at is None:
            return
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _counted(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def run(*arguments: Any, **options: Any) -> Any:
            result = await method(*arguments, **options)
            self.add()
            return result

        return run


async def _work(order: dict[str, Any]) -> None:
    counter = StatementCounter()
    async with open_shop(order["url"], Path(order["folder"]), shop_registry(), is_shared=True) as shop:
        counter.kill_at = order["kill_at"]
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
