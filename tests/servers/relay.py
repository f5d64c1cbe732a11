"""A program that forwards TCP connections: `relay FROM_HOST:PORT=TO_HOST:PORT …`.

`--listen NAMESPACE` and `--connect NAMESPACE` name the network namespaces in which it listens and connects. The default
is the namespace in which it is started.
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
    """Move this process into the network namespace of this file descriptor. Sockets stay in the namespace in which they
    were created."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def listener(address: str) -> socket.socket:
    """Return a socket that listens at the address `host:port`."""
    host, _, port = address.rpartition(":")
    return socket.create_server((host, int(port)), backlog=200)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy all bytes until the reader ends, then close the writer."""
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()


async def relay(sockets: dict[str, socket.socket]) -> None:
    """Forward the connections of each socket until the process ends. `sockets` maps a target address to the socket that
    listens for it."""

    async def start(target: str, listening: socket.socket) -> asyncio.Server:
        host, _, port = target.rpartition(":")

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
            except OSError:
                writer.close()
                return
            await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))

        return await asyncio.start_server(forward, sock=listening)

    async with asyncio.TaskGroup() as group:
        for target, listening in sockets.items():
            server = await start(target, listening)
            group.create_task(server.serve_forever())
        sys.stdout.write(READY + "\n")
        sys.stdout.flush()


def namespace(arguments: list[str], option: str) -> int:
    """Open the network namespace that the option names, or the namespace of this process if the option is missing."""
    path = Path("/proc/self/ns/net")
    if option in arguments:
        path = Path("/run/netns", arguments[arguments.index(option) + 1])
    return os.open(path, os.O_RDONLY)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    pairs = [argument.partition("=") for argument in arguments if "=" in argument]
    listening, connecting = namespace(arguments, "--listen"), namespace(arguments, "--connect")
    enter(listening)
    sockets = {target: listener(address) for address, _, target in pairs}
    enter(connecting)
    asyncio.run(relay(sockets))
