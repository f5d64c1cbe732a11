"""A process that passes connections on: `relay FROM_HOST:PORT=TO_HOST:PORT …`.

`--listen NAMESPACE` and `--connect NAMESPACE` name the network namespaces where it does so, if not where it is started.
"""

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

READY = "passing on"

_CLONE_NEWNET = 0x40000000
_PIECE = 65536


def enter(namespace: int) -> None:
    """Move this process into the namespace that is open as this file; sockets made before stay where they were made."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def listener(place: str) -> socket.socket:
    """A socket that listens at `host:port`."""
    host, _, port = place.rpartition(":")
    return socket.create_server((host, int(port)), backlog=200)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything, until the reader's end; then the writer's."""
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()


async def relay(sockets: dict[str, socket.socket]) -> None:
    """Pass on what comes to each socket, to the place it is named after, for good."""

    async def begin(place: str, made: socket.socket) -> asyncio.Server:
        host, _, port = place.rpartition(":")

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
            except OSError:
                writer.close()
                return
            await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))

        return await asyncio.start_server(meet, sock=made)

    async with asyncio.TaskGroup() as group:
        for place, made in sockets.items():
            server = await begin(place, made)
            group.create_task(server.serve_forever())
        sys.stdout.write(READY + "\n")
        sys.stdout.flush()


def namespace(words: list[str], option: str) -> int:
    """The namespace that the option names, opened; without it that of this process."""
    named = Path("/run/netns", words[words.index(option) + 1]) if option in words else Path("/proc/self/ns/net")
    return os.open(named, os.O_RDONLY)


if __name__ == "__main__":
    words = sys.argv[1:]
    pairs = [word.partition("=") for word in words if "=" in word]
    listening, connecting = namespace(words, "--listen"), namespace(words, "--connect")
    enter(listening)
    made = {to: listener(where) for where, _, to in pairs}
    enter(connecting)
    asyncio.run(relay(made))
