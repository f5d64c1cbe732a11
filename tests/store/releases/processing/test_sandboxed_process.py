"""Tests how sandboxed processes for untrusted input start, and what happens if a start fails."""

import asyncio
import errno
import fcntl
import os

import pytest

from countersign.store.releases.processing import sandboxed_process

HELLO = "__hello__"


def fail_starts(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the next starts of a process fail as if the system had no process left."""
    start, remaining_errors = (
        sandboxed_process.start,
        [BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) for _ in range(count)],
    )

    async def start_or_fail(program: str, *, takes_file: bool) -> sandboxed_process.SandboxedProcess:
        if remaining_errors:
            raise remaining_errors.pop()
        return await start(program, takes_file=takes_file)

    monkeypatch.setattr(sandboxed_process, "start", start_or_fail)


async def output(program: str, *, takes_file: bool = False) -> bytes:
    """Return the output of a process that runs the program."""
    async with sandboxed_process.run_process(program, takes_file=takes_file) as process:
        return await asyncio.to_thread(process._output.readall)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL])
async def test_a_process_is_started_where_the_system_refuses_a_bigger_pipe(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", refuse)

    assert await output(HELLO) == b"Hello world!\n"


async def test_a_start_ahead_that_failed_fails_no_later_job(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_starts(monkeypatch, 1)

    async with sandboxed_process.spare_process(HELLO):
        assert await output(HELLO, takes_file=True) == b"Hello world!\n"


async def test_a_start_ahead_that_failed_fails_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_starts(monkeypatch, 1)

    async with sandboxed_process.spare_process(HELLO):
        pass


async def test_a_job_whose_own_start_fails_is_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_starts(monkeypatch, 2)

    async with sandboxed_process.spare_process(HELLO):
        with pytest.raises(BlockingIOError):
            await output(HELLO, takes_file=True)


async def test_a_process_that_takes_no_file_is_not_the_spare_process() -> None:
    async with sandboxed_process.spare_process(HELLO), sandboxed_process.run_process(HELLO) as process:
        with pytest.raises(LookupError):
            process.send_file(0)
