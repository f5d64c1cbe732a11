"""Serving ASGI applications: sockets, worker processes, readiness, and graceful shutdown."""

import asyncio
import contextlib
import errno
import gc
import resource
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, TypeAlias

import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from countersign.kernel import telemetry
from countersign.kernel.concurrency import background
from countersign.kernel.http import workers
from countersign.kernel.http.deadlines import DeadlineProtocol, Deadlines, open_connections, sweep_connections
from countersign.kernel.http.request import STATE_KEY, ASGIApp
from countersign.kernel.http.worker_ipc import SD_STOPPING, Scoreboard, sd_notify

BACKLOG = 2048
GC_THRESHOLDS = (50_000, 20, 50)
LAST_CALL_S, FIRST_CALLS = 0.1, 5


class Listener(NamedTuple):
    """The listening address of one application; port 0 selects a free one."""

    name: str
    host: str
    port: int


class Worker(NamedTuple):
    """One worker process: its index in its program, its number among all workers, and the state that they share."""

    place: int
    number: int
    scoreboard: Scoreboard


Application: TypeAlias = Callable[[Worker, Listener], AbstractAsyncContextManager[ASGIApp]]
"""Opens the application in a worker; the listener contains the actual port."""


class Program(NamedTuple):
    """An application with its listener and its processes. A program that `outlasts` the others is served during a
    shutdown until the last request to the others has ended."""

    application: Application
    listener: Listener
    workers: int = 1
    outlasts: bool = False


class Acceptor(NamedTuple):
    """Accepts the connections of one listener, and makes a protocol for each."""

    server: asyncio.Server
    connection: Callable[[], DeadlineProtocol]


class CannotListen(OSError):
    """A listener's address cannot be bound; the text names the reason."""

    def __init__(self, listener: Listener, error: OSError) -> None:
        super().__init__(f"{listener.host}:{listener.port} cannot be listened on: {error.strerror or error}")
        self.listener = listener
        self.is_taken = error.errno == errno.EADDRINUSE


class Server(NamedTuple):
    """What to serve and how. `on_ready` is called once, when the first worker of each program accepts connections;
    `explain` and `sd_watchdog_s` are passed on to `workers.SupervisorConfig`."""

    programs: Sequence[Program]
    deadlines: Deadlines = Deadlines()
    grace_s: float = 5.0
    watchdog_s: float = 10.0
    on_ready: Callable[[Sequence[Listener]], None] = lambda _: None
    explain: Callable[[Exception], bytes | None] = lambda _: None


def run(server: Server) -> None:
    """Serve until SIGTERM or SIGINT, then wait for running requests within the grace time.

    Raises:
        CannotListen: an address is in use or not available.
        WorkerFailed: a worker could not start, or cannot continue.
    """
    _raise_file_limit()
    sockets = [_bind(program.listener) for program in server.programs]
    real = [
        program.listener._replace(port=bound.getsockname()[1])
        for program, bound in zip(server.programs, sockets, strict=True)
    ]
    # The program of each worker, and the worker's index in that program.
    places = [
        (program, index)
        for program, program_entry in enumerate(server.programs)
        for index in range(program_entry.workers)
    ]
    scoreboard = Scoreboard([real[program].name for program, _ in places])

    def work(number: int, ready: Callable[[], None]) -> None:
        program, index = places[number]
        # Shutting down one program closes its port, so workers of other programs must not hold a copy of its socket.
        _close(other_socket for number, other_socket in enumerate(sockets) if number != program)
        place = _WorkerSetup(
            server.programs[program], real[program], sockets[program], Worker(index, number, scoreboard)
        )
        # A worker that is stopped before it is ready is cancelled.
        with contextlib.suppress(asyncio.CancelledError):
            uvloop.run(_serve(server, place, ready))

    # Freeze all objects: the workers share the memory allocated so far as long as the garbage collector does not write
    # to it.
    gc.collect()
    gc.freeze()
    try:
        workers.supervise(
            workers.SupervisorConfig(
                work,
                [
                    workers.Program(program.listener.name, program.workers, program.outlasts)
                    for program in server.programs
                ],
                scoreboard,
                on_ready=lambda: server.on_ready(real),
                on_stop=lambda: _stopping(server, sockets),
                explain=server.explain,
                grace_s=server.grace_s,
                watchdog_s=server.watchdog_s,
            )
        )
    finally:
        _close(sockets)


class _WorkerSetup(NamedTuple):
    """The worker process's program, listener and socket."""

    program: Program
    listener: Listener
    socket: socket.socket
    worker: Worker


def _raise_file_limit() -> None:
    """Raise the limit of open files: each connection uses a file descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bind(listener: Listener) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        new_socket = socket.socket(family, kind, protocol)
        new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Listening begins when the application is ready, so that clients do not connect to a service that cannot
        # answer.
        new_socket.bind(address)
        new_socket.setblocking(False)
    except OSError as error:
        raise CannotListen(listener, error) from error
    return new_socket


async def _serve(server: Server, place: _WorkerSetup, ready: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    stop_event = asyncio.Event()
    start_task = asyncio.current_task()

    def stop() -> None:
        stop_event.set()
        if start_task is not None:
            start_task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    state = ServerState()
    async with (
        background(_beat(place.worker)),
        place.program.application(place.worker, place.listener) as application,
        background(sweep_connections(state)),
    ):
        _tune_garbage_collection()
        acceptor = await _accept(server, place, application, state, stop_event)
        start_task = None
        ready()
        await stop_event.wait()
        await _stop_listening(acceptor, place.socket)
        if not place.program.outlasts:
            await _drain(state, server.grace_s)
        for connection in open_connections(state):
            connection.transport.close()


async def _beat(worker: Worker) -> None:
    """Send heartbeats to the supervisor."""
    while True:
        worker.scoreboard.beat(worker.number)
        await asyncio.sleep(workers.BEAT_S)


def _tune_garbage_collection() -> None:
    """Exclude the objects allocated so far, which live as long as the process, from garbage collection, and run it less
    often, since requests create few reference cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _accept(
    server: Server, place: _WorkerSetup, application: ASGIApp, state: ServerState, stopping: asyncio.Event
) -> Acceptor:
    """Start accepting connections."""
    loop = asyncio.get_running_loop()
    config = Config(
        application,
        http=DeadlineProtocol,
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

    def connection() -> DeadlineProtocol:
        return DeadlineProtocol(config, state, app_state, loop, server.deadlines)

    try:
        return Acceptor(await loop.create_server(connection, sock=place.socket.dup(), backlog=BACKLOG), connection)
    except OSError as error:
        # Two processes may bind the same address until one of them listens. The other process then fails to listen.
        raise CannotListen(place.listener, error) from error


async def _stop_listening(accepting: Acceptor, bound: socket.socket) -> None:
    """Refuse new connections, and accept those in the backlog.

    The system listens as long as one copy of the socket is open, and clients would wait in vain. Therefore this copy is
    closed as well, after the connections in the backlog were accepted.
    """
    loop = asyncio.get_running_loop()
    accepting.server.close()
    last = _waiting(bound)
    bound.close()
    for connection in last:
        # The client may have disconnected.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(accepting.connection, connection)


def _waiting(bound: socket.socket) -> list[socket.socket]:
    """Accept the connections in the backlog, which the system would reset when the socket is closed."""
    connections: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while len(connections) < BACKLOG:
            connection, _ = bound.accept()
            connection.setblocking(False)
            connections.append(connection)
    return connections


def _stopping(server: Server, sockets: Sequence[socket.socket]) -> None:
    """Close all ports except those of programs that outlast the others."""
    sd_notify(SD_STOPPING)
    _close(listener for program, listener in zip(server.programs, sockets, strict=True) if not program.outlasts)


def _close(sockets: Iterable[socket.socket]) -> None:
    for listener in sockets:
        listener.close()


async def _finish_connections(state: ServerState) -> None:
    """Answer requests in transit with `Connection: close`, and close idle connections."""
    state.default_headers.append((b"connection", b"close"))
    await asyncio.sleep(LAST_CALL_S)
    for connection in open_connections(state):
        if connection.has_spoken:
            connection.shutdown()
    # Wait a moment: a client that has just connected has sent nothing yet, and would get a reset instead of a response.
    for _ in range(FIRST_CALLS):
        if all(connection.has_spoken for connection in open_connections(state)):
            break
        await asyncio.sleep(LAST_CALL_S)
    for connection in open_connections(state):
        connection.shutdown()


async def _drain(state: ServerState, grace_s: float) -> None:
    """Close idle connections, wait for running requests, and cancel those left after the grace time."""
    await _finish_connections(state)
    if state.tasks:
        _, unfinished_tasks = await asyncio.wait(tuple(state.tasks), timeout=grace_s)
        for task in unfinished_tasks:
            task.cancel()
        if unfinished_tasks:
            telemetry.logger("server").warning("requests were cut off at the stop", requests=len(unfinished_tasks))
            await asyncio.wait(unfinished_tasks, timeout=1)
