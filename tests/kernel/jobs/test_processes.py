"""Supervised processes: they get their orders, are replaced, are asked to stop, and are killed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from structlog.testing import capture_logs

from countersign.kernel.jobs import processes

TELLING = """
import os, sys, pathlib
orders = sys.stdin.readline().strip()
folder = pathlib.Path(orders)
(folder / str(os.getpid())).touch()
"""
WAITING = TELLING + "sys.stdin.read()\n"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITING


async def wait_for_pids(folder: Path, count: int) -> list[int]:
    """Return the processes started so far, as soon as there are this many."""
    async with asyncio.timeout(120):
        while len(pids := sorted(int(entry.name) for entry in folder.iterdir())) < count:
            await asyncio.sleep(0.01)
    return pids


async def test_each_process_gets_its_orders_and_ends_with_the_block(tmp_path: Path) -> None:
    async with processes.supervise((sys.executable, "-c", WAITING), str(tmp_path).encode(), 3, grace_s=5):
        pids_started = await wait_for_pids(tmp_path, 3)
        assert all(Path(f"/proc/{pid}").exists() for pid in pids_started)

    assert not [pid for pid in pids_started if Path(f"/proc/{pid}").exists()]


async def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    async with processes.supervise((sys.executable, "-c", WAITING), str(tmp_path).encode(), 1, grace_s=5):
        (first_pid,) = await wait_for_pids(tmp_path, 1)
        os.kill(first_pid, signal.SIGKILL)
        both_pids = await wait_for_pids(tmp_path, 2)

    assert first_pid in both_pids


async def test_a_process_that_requests_a_restart_is_restarted_at_once(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    code = TELLING + f"sys.exit({processes.RESTART_CODE})"
    async with processes.supervise((sys.executable, "-c", code), str(tmp_path).encode(), 1, grace_s=5):
        began_s = loop.time()
        await wait_for_pids(tmp_path, 6)

    assert loop.time() - began_s < 0.5 + 1 + 2 + 4, "the pauses after deaths"


async def test_a_process_that_ignores_the_stop_signal_is_killed(tmp_path: Path) -> None:
    async with processes.supervise((sys.executable, "-c", DEAF), str(tmp_path).encode(), 1, grace_s=-2.5):
        (started_pid,) = await wait_for_pids(tmp_path, 1)

    assert not Path(f"/proc/{started_pid}").exists()


async def test_a_missing_command_does_not_end_the_server_and_is_tried_again(tmp_path: Path) -> None:
    command = tmp_path / "command"
    with capture_logs() as logged:
        async with processes.supervise((str(command),), str(tmp_path / "lives").encode(), 1, grace_s=5):
            async with asyncio.timeout(120):
                while not any(line["event"] == "a worker could not be started" for line in logged):
                    await asyncio.sleep(0.01)
            (tmp_path / "lives").mkdir()
            late_command = tmp_path / "made"
            late_command.write_text(f"#!{sys.executable}\n{WAITING}")
            late_command.chmod(0o755)
            late_command.rename(command)
            assert len(await wait_for_pids(tmp_path / "lives", 1)) == 1
