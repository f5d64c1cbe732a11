"""Processes that work on strangers' bytes: how they are started, and what becomes of one that cannot be."""

import asyncio
import errno
import fcntl
import os

import pytest

from countersign.distribution.processing import apart

HELLO = "__hello__"


async def output(program: str, *, takes_file: bool = False) -> bytes:
    """What a process of the program writes."""
    async with apart.started(program, takes_file=takes_file) as process:
        return await asyncio.to_thread(process._told.readall)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL])
async def test_a_process_is_started_where_the_system_refuses_a_bigger_pipe(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", refuse)

    assert await output(HELLO) == b"Hello world!\n"
