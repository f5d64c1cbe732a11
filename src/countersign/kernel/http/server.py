"""Serving ASGI applications: sockets, workers, readiness, and a stop that lets running requests end."""

import asyncio
import contextlib
import errno
import gc
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, TypeAlias

import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from countersign.kernel import telemetry
from countersign.kernel.beside import beside
from countersign.kernel.http import workers
from countersign.kernel.http.call import STATE_KEY, ASGIApp
from countersign.kernel.http.deadlines import Deadlines, GuardedProtocol, guarded, watch
from countersign.kernel.http.notify import STOPPING, notify

BACKLOG = 2048
COLLECTED_AFTER = (50_000, 20, 50)
LAST_CALL_S, FIRST_CALLS = 0.1, 5


class Listener(NamedTuple):
    """Where one application listens; port 0 takes a free one. One that `outlasts` a stop is heard until the last
    request to the others has ended, and is waited for by nobody."""

    name: str
    host: str
    port: int
    outlasts: bool = False


Application: TypeAlias = Callable[[int, Sequence[Listener]], AbstractAsyncContextManager[Sequence[ASGIApp]]]
"""Opens, in the worker of this number, the application of each listener (whose ports are the real ones by then)."""


class Accepting(NamedTuple):
    """What takes the connections of one listener, and makes a protocol for each."""

    server: asyncio.Server
    connection: Callable[[], GuardedProtocol]


class CannotListen(OSError):
    """A listener's address cannot be had; the text says why."""

    def __init__(self, listener: Listener, error: OSError) -> None:
        super().__init__(f"{listener.host}:{listener.port} cannot be listened on: {error.strerror or error}")
        self.listener = listener
        self.is_taken = error.errno == errno.EADDRINUSE


class Server(NamedTuple):
    """What to serve and how. `on_ready` is called once, when the first worker accepts on every listener."""

    application: Application
    listeners: Sequence[Listener]
    workers: int = 1
    deadlines: Deadlines = Deadlines()
    grace_s: float = 5.0
    on_ready: Callable[[Sequence[Listener]], None] | None = None


def run(server: Server) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests end within the grace time.

    Raises:
        CannotListen: an address is taken or not ours.
        WorkerFailed: a worker could not start (with several workers; with one, its own exception passes through).
    """
    _raise_file_limit()
    sockets = [_bound(listener) for listener in server.listeners]
    real = [
        each._replace(port=bound.getsockname()[1])
        for each, bound in zip(server.listeners, sockets, strict=True)
    ]

    def work(index: int, ready: Callable[[], None]) -> None:
        # Cancelled is who is told to stop before being ready.
        with contextlib.suppress(asyncio.CancelledError):
            uvloop.run(_serve(server, index, real, sockets, ready))

    def first_ready() -> None:
        if server.on_ready is not None:
            server.on_ready(real)

    try:
        if server.workers == 1:
            work(0, first_ready)
        else:
            workers.supervise(work, server.workers, first_ready, lambda: _stopping(sockets), server.grace_s)
    finally:
        _close(sockets)


def _raise_file_limit() -> None:
    """Each connection is a file; use as many as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bound(listener: Listener) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Listening begins when the application is ready, so that nobody connects to a service that does not answer.
        made.bind(address)
        made.setblocking(False)
    except OSError as error:
        raise CannotListen(listener, error) from error
    return made


async def _serve(
    server: Server, index: int, real: Sequence[Listener], sockets: Sequence[socket.socket], ready: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    starting = asyncio.current_task()

    def stop(number: signal.Signals) -> None:
        if server.workers == 1 and not stopping.is_set():
            workers.log_stop(number)
        stopping.set()
        if starting is not None:
            starting.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    state, lasting = ServerState(), ServerState()
    async with server.application(index, real) as applications, beside(watch(state)), beside(watch(lasting)):
        _spare_the_collector()
        accepting = [
            await _accepting(server, listener, application, bound, lasting if listener.outlasts else state, stopping)
            for listener, application, bound in zip(real, applications, sockets, strict=True)
        ]
        starting = None
        ready()
        await stopping.wait()
        if server.workers == 1:
            notify(STOPPING)
        await _stop_listening(accepting, sockets, real, outlasts=False)
        await _drain(state, server.grace_s)
        await _stop_listening(accepting, sockets, real, outlasts=True)
        for connection in guarded(lasting):
            connection.transport.close()


def _spare_the_collector() -> None:
    """What was loaded by now stays for good, and requests make no circles worth looking for all the time: the cyclic
    garbage collector may pass over the one and come less often for the other."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


async def _accepting(
    server: Server,
    listener: Listener,
    application: ASGIApp,
    bound: socket.socket,
    state: ServerState,
    stopping: asyncio.Event,
) -> Accepting:
    """Take connections of one listener from now on."""
    loop = asyncio.get_running_loop()
    config = Config(
        application,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )
    config.load()
    app_state = {STATE_KEY: stopping}

    def connection() -> GuardedProtocol:
        return GuardedProtocol(config, state, app_state, loop, server.deadlines)

    try:
        return Accepting(await loop.create_server(connection, sock=bound.dup(), backlog=BACKLOG), connection)
    except OSError as error:
        # Two may bind the same address as long as neither listens; the second to listen learns it here.
        raise CannotListen(listener, error) from error


async def _stop_listening(
    accepting: Sequence[Accepting], sockets: Sequence[socket.socket], real: Sequence[Listener], *, outlasts: bool
) -> None:
    """Whoever connects from now on is refused, and whoever has connected by now is still heard. The system keeps
    listening as long as one copy of a socket is open, and would let clients wait for an answer that nobody gives: so
    the copies are closed as well, once those who wait in them were taken."""
    loop = asyncio.get_running_loop()
    last: list[tuple[Accepting, socket.socket]] = []
    for each, bound, listener in zip(accepting, sockets, real, strict=True):
        if listener.outlasts is not outlasts:
            continue
        each.server.close()
        last += [(each, connected) for connected in _waiting(bound)]
        bound.close()
    for each, connected in last:
        # Whoever has gone meanwhile needs no answer.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(each.connection, connected)


def _waiting(bound: socket.socket) -> list[socket.socket]:
    """Connections that nobody has taken yet: the system would reset them at the close."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while len(found) < BACKLOG:
            connected, _ = bound.accept()
            connected.setblocking(False)
            found.append(connected)
    return found


def _stopping(sockets: Sequence[socket.socket]) -> None:
    notify(STOPPING)
    _close(sockets)


def _close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


async def _hear_the_last(state: ServerState) -> None:
    """Hear the requests that are on their way, each answer to which says it is the last, and close what is idle."""
    state.default_headers.append((b"connection", b"close"))
    await asyncio.sleep(LAST_CALL_S)
    for connection in guarded(state):
        if connection.has_spoken:
            connection.shutdown()
    # Whoever connected just before has asked for nothing yet, and would get a reset instead of an answer.
    for _ in range(FIRST_CALLS):
        if all(connection.has_spoken for connection in guarded(state)):
            break
        await asyncio.sleep(LAST_CALL_S)
    for connection in guarded(state):
        connection.shutdown()


async def _drain(state: ServerState, grace_s: float) -> None:
    """Close idle connections, wait for running requests, end what is left after the grace time."""
    await _hear_the_last(state)
    if state.tasks:
        _, late = await asyncio.wait(tuple(state.tasks), timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            telemetry.logger("server").warning("requests were cut off at the stop", requests=len(late))
            await asyncio.wait(late, timeout=1)
    for connection in guarded(state):
        connection.transport.close()
