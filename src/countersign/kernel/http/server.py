"""Serving ASGI applications: sockets, worker processes, readiness, and a stop that lets running requests end."""

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
    """Where one application listens; port 0 takes a free one."""

    name: str
    host: str
    port: int


class Worker(NamedTuple):
    """One worker process: its place among those of its program, its number among all, and the state they share."""

    place: int
    number: int
    scoreboard: Scoreboard


Application: TypeAlias = Callable[[Worker, Listener], AbstractAsyncContextManager[ASGIApp]]
"""Opens the application in a worker; the listener's port is the real one by then."""


class Program(NamedTuple):
    """An application with its listener and the processes that serve it. One that `outlasts` a stop is heard until the
    last request to the others has ended."""

    application: Application
    listener: Listener
    workers: int = 1
    outlasts: bool = False


class Acceptor(NamedTuple):
    """What takes the connections of one listener, and makes a protocol for each."""

    server: asyncio.Server
    connection: Callable[[], DeadlineProtocol]


class CannotListen(OSError):
    """A listener's address cannot be had; the text says why."""

    def __init__(self, listener: Listener, error: OSError) -> None:
        super().__init__(f"{listener.host}:{listener.port} cannot be listened on: {error.strerror or error}")
        self.listener = listener
        self.is_taken = error.errno == errno.EADDRINUSE


class Server(NamedTuple):
    """What to serve and how. `on_ready` is called once, when the first worker of each program accepts connections;
    `explain` and `sd_watchdog_s` are those of `workers.Supervised`."""

    programs: Sequence[Program]
    deadlines: Deadlines = Deadlines()
    grace_s: float = 5.0
    watchdog_s: float = 10.0
    on_ready: Callable[[Sequence[Listener]], None] = lambda _: None
    explain: Callable[[Exception], bytes | None] = lambda _: None


def run(server: Server) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests end within the grace time.

    Raises:
        CannotListen: an address is taken or not ours.
        WorkerFailed: a worker could not start, or cannot go on.
    """
    _raise_file_limit()
    sockets = [_bind(each.listener) for each in server.programs]
    real = [
        each.listener._replace(port=bound.getsockname()[1])
        for each, bound in zip(server.programs, sockets, strict=True)
    ]
    # Which program each worker serves, and as which of its workers.
    places = [(program, index) for program, each in enumerate(server.programs) for index in range(each.workers)]
    scoreboard = Scoreboard([real[program].name for program, _ in places])

    def work(number: int, ready: Callable[[], None]) -> None:
        program, index = places[number]
        # A stop of one program closes its port: no copy of the socket may be open in the workers of another.
        _close(each for other, each in enumerate(sockets) if other != program)
        place = _WorkerSetup(
            server.programs[program], real[program], sockets[program], Worker(index, number, scoreboard)
        )
        # A worker that is stopped before it is ready is cancelled.
        with contextlib.suppress(asyncio.CancelledError):
            uvloop.run(_serve(server, place, ready))

    # What is loaded by now is shared with the workers, and stays so while no collector writes to it.
    gc.collect()
    gc.freeze()
    try:
        workers.supervise(
            workers.SupervisorConfig(
                work,
                [workers.Program(each.listener.name, each.workers, each.outlasts) for each in server.programs],
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
    """What one worker process serves, and where."""

    program: Program
    listener: Listener
    socket: socket.socket
    worker: Worker


def _raise_file_limit() -> None:
    """Each connection is a file; use as many as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bind(listener: Listener) -> socket.socket:
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


async def _serve(server: Server, place: _WorkerSetup, ready: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    starting = asyncio.current_task()

    def stop() -> None:
        stopping.set()
        if starting is not None:
            starting.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    state = ServerState()
    async with (
        background(_beat(place.worker)),
        place.program.application(place.worker, place.listener) as application,
        background(sweep_connections(state)),
    ):
        _tune_garbage_collection()
        accepting = await _accept(server, place, application, state, stopping)
        starting = None
        ready()
        await stopping.wait()
        await _stop_listening(accepting, place.socket)
        if not place.program.outlasts:
            await _drain(state, server.grace_s)
        for connection in open_connections(state):
            connection.transport.close()


async def _beat(worker: Worker) -> None:
    """Show the supervisor that this event loop turns."""
    while True:
        worker.scoreboard.beat(worker.number)
        await asyncio.sleep(workers.BEAT_S)


def _tune_garbage_collection() -> None:
    """What was loaded by now stays for good, and requests make no circles worth looking for all the time: the cyclic
    garbage collector may pass over the one and come less often for the other."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _accept(
    server: Server, place: _WorkerSetup, application: ASGIApp, state: ServerState, stopping: asyncio.Event
) -> Acceptor:
    """Take connections of the listener from now on."""
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
        # Two may bind the same address as long as neither listens; the second to listen learns it here.
        raise CannotListen(place.listener, error) from error


async def _stop_listening(accepting: Acceptor, bound: socket.socket) -> None:
    """Whoever connects from now on is refused, and whoever has connected by now is still heard. The system keeps
    listening as long as one copy of the socket is open, and would let clients wait for an answer that nobody gives: so
    the copy is closed as well, once those who wait in it were taken."""
    loop = asyncio.get_running_loop()
    accepting.server.close()
    last = _waiting(bound)
    bound.close()
    for connected in last:
        # Whoever has gone meanwhile needs no answer.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(accepting.connection, connected)


def _waiting(bound: socket.socket) -> list[socket.socket]:
    """Connections that nobody has taken yet: the system would reset them at the close."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while len(found) < BACKLOG:
            connected, _ = bound.accept()
            connected.setblocking(False)
            found.append(connected)
    return found


def _stopping(server: Server, sockets: Sequence[socket.socket]) -> None:
    """A port that outlasts the others stays open until its worker ends."""
    sd_notify(SD_STOPPING)
    _close(each for program, each in zip(server.programs, sockets, strict=True) if not program.outlasts)


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


async def _finish_connections(state: ServerState) -> None:
    """Hear the requests that are on their way, each answer to which says it is the last, and close what is idle."""
    state.default_headers.append((b"connection", b"close"))
    await asyncio.sleep(LAST_CALL_S)
    for connection in open_connections(state):
        if connection.has_spoken:
            connection.shutdown()
    # Whoever connected just before has asked for nothing yet, and would get a reset instead of an answer.
    for _ in range(FIRST_CALLS):
        if all(connection.has_spoken for connection in open_connections(state)):
            break
        await asyncio.sleep(LAST_CALL_S)
    for connection in open_connections(state):
        connection.shutdown()


async def _drain(state: ServerState, grace_s: float) -> None:
    """Close idle connections, wait for running requests, end what is left after the grace time."""
    await _finish_connections(state)
    if state.tasks:
        _, late = await asyncio.wait(tuple(state.tasks), timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            telemetry.logger("server").warning("requests were cut off at the stop", requests=len(late))
            await asyncio.wait(late, timeout=1)
