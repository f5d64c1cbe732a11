"""Runs a server from start to stop: its programs and workers, the operator's port, and the start message."""

import os
import shutil
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
import msgspec

from countersign.cli import output
from countersign.cli.admin.lock import DataLock
from countersign.cli.output import Exit, Failure
from countersign.cli.server import lifecycle
from countersign.cli.server.listen_address import ListenAddress, is_loopback, listen_address, local_url
from countersign.declare import DeclarationError
from countersign.kernel import metrics, telemetry
from countersign.kernel.concurrency import background
from countersign.kernel.database import migration_marker
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused, StorageFull
from countersign.kernel.http import instrumentation, management, server
from countersign.kernel.http import instrumentation as traces
from countersign.kernel.http.deadlines import Deadlines
from countersign.kernel.http.management import Check, ManagementApp, ServiceChecks
from countersign.kernel.http.server import ASGIApp, CannotListen, Listener, Program, Server, Worker
from countersign.kernel.http.worker_ipc import SD_READY, WorkerMailboxes, sd_notify
from countersign.kernel.http.workers import Unrecoverable, WorkerFailed
from countersign.kernel.metrics import Sample
from countersign.kernel.security.masterkey import master_key
from countersign.settings import BadSetting, Settings

ContextT = TypeVar("ContextT")

OPERATOR = "operator"

FREE = metrics.gauge("countersign_disk_free_bytes", "Free bytes on the volume of the data directory.")
RESERVE = metrics.gauge("countersign_disk_reserve_bytes", "Free bytes below which every write is refused with 507.")

SERVING = "cannot serve"
DISK_FAILED = "the disk failed while a change was made durable"
MAX_MESSAGE_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Service(Generic[ContextT]):
    """One of the platform's services.

    name         the name of the service on the command line and in the lock file
    title        the name that people read: "store"
    setting      the name of the setting for the public address
    url          returns the configured public address, or an empty string
    open         opens the service at an address, upgrades its database, and closes it when the block ends
    database     returns the database of an opened service
    prepare      runs once, in the first worker: fills an empty database with the demonstration if that was requested,
                 and returns the text about signing in
    application  yields the ASGI application; if the second argument is true, also removes what has expired
    checks       returns the health checks and metrics for the operator
    """

    name: str
    title: str
    setting: str
    url: Callable[[Settings], str]
    open: Callable[[Settings, ListenAddress], AbstractAsyncContextManager[ContextT]]
    database: Callable[[ContextT], Database]
    prepare: Callable[[ContextT, bool], Awaitable[str]]
    application: Callable[[ContextT, bool], AbstractAsyncContextManager[ASGIApp]]
    checks: Callable[[ContextT], ServiceChecks]


def announce_operator(listeners: Sequence[Listener]) -> None:
    """Print the URL of the operator's port, if one of the listeners is the operator's."""
    for listener in listeners:
        if listener.name == OPERATOR:
            click.echo(f"Operator: {local_url(listener.host, listener.port)}/readyz, /livez, /metrics")


@asynccontextmanager
async def answer_operator(
    settings: Settings, siblings: WorkerMailboxes, number: int, checks: ServiceChecks
) -> AsyncGenerator[None]:
    """Answer the requests of the operator's process while the block runs, if the operator's port is configured."""
    if not settings.operator_port:
        yield
        return
    async with siblings.answering(number, management.worker_answers(number, checks)), instrumentation.track_loop_lag():
        yield


def operator_program(settings: Settings, siblings: WorkerMailboxes) -> Program:
    """Return the program that serves the operator's port, in a process of its own."""

    @asynccontextmanager
    async def application(worker: Worker, _: Listener) -> AsyncGenerator[ASGIApp]:
        is_ours = is_loopback if is_loopback(settings.operator_host) else None
        yield ManagementApp(siblings, worker.scoreboard, _machine_checks(settings), is_ours)

    return Program(application, Listener(OPERATOR, settings.operator_host, settings.operator_port), outlasts=True)


def _machine_checks(settings: Settings) -> ServiceChecks:
    """Return the checks of the volume that both services share."""
    data, reserve = Path(settings.data), settings.reserve_mib << 20

    async def check_space() -> str:
        free_bytes = shutil.disk_usage(data).free
        disk_text = f"{free_bytes >> 20} MiB free, {settings.reserve_mib} MiB are kept in reserve"
        if free_bytes < reserve:
            raise StorageFull(disk_text)
        return disk_text

    async def sample_volume() -> Iterable[Sample]:
        return Sample(FREE, shutil.disk_usage(data).free), Sample(RESERVE, reserve)

    return ServiceChecks("machine", (Check("disk", check_space),), sample_volume)


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A service to start, and its port. Port 0 selects a free port."""

    service: Service[Any]
    port: int


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The settings and options that the services are started with."""

    settings: Settings
    host: str
    service_requests: tuple[ServiceRequest, ...]
    workers: int
    is_demo: bool = field(kw_only=True)

    def places(self, listeners: Sequence[Listener]) -> list[ListenAddress]:
        """Return the address of each service, with the port that its listener got."""
        return [
            listen_address(service_request.service.url(self.settings), self.host, listener.port)
            for service_request, listener in zip(
                self.service_requests, listeners[: len(self.service_requests)], strict=True
            )
        ]


class StartMessage:
    """Sends the text about signing in from the first worker of a service to the process that prints it.

    Workers are forked processes, so the text goes through a pipe. The text always fits into the buffer of the pipe.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self.is_sent = False

    def send(self, text: str) -> None:
        """Send the text. This method must be called only once."""
        os.write(self._writing, text.encode()[:MAX_MESSAGE_BYTES])

    def receive(self) -> str:
        """Receive the text, and set `is_sent`: workers that are forked later send nothing."""
        self.is_sent = True
        return os.read(self._reading, MAX_MESSAGE_BYTES).decode()


class DiskFailed(Failure, Unrecoverable):
    """The disk failed during a commit: the server exits, so that a restart reads what is on the disk."""


class _FailureMessage(msgspec.Struct):
    """A failure that a worker sends to the process that prints it."""

    what: str
    why: str
    remedy: str
    exit_code: int
    problem: str


def run(start: StartOptions, lock: DataLock) -> None:
    """Serve until SIGTERM or ctrl-C.

    Raises:
        Failure: a service cannot listen on its address, a service cannot be opened, a module is declared wrongly, or
            the disk failed during a commit.
    """
    settings = start.settings
    start_messages = [StartMessage() for _ in start.service_requests]

    def ready(listeners: Sequence[Listener]) -> None:
        places = start.places(listeners)
        addresses = {
            service_request.service.name: address.root_url
            for service_request, address in zip(start.service_requests, places, strict=True)
        }
        lock.announce(addresses, [key.id for key in master_key(settings).keys])
        messages = [start_message.receive() for start_message in start_messages]
        lifecycle.log_ready("serve", addresses=addresses, operator=_operator(listeners))
        for text in messages:
            click.echo(text)
        for hint in _hints(start, places):
            output.note(f"  {hint}")
        announce_operator(listeners)
        click.echo("Stop with ctrl-C.")
        sd_notify(SD_READY)

    with closing(WorkerMailboxes(len(start.service_requests) * start.workers)) as siblings:
        programs = [
            _program(start, service_request, message, siblings)
            for service_request, message in zip(start.service_requests, start_messages, strict=True)
        ]
        if settings.operator_port:
            programs.append(operator_program(settings, siblings))
        _serve(
            Server(
                programs,
                deadlines=_deadlines(settings),
                grace_s=settings.grace_s,
                watchdog_s=settings.watchdog_s,
                on_ready=ready,
                explain=partial(_encode_failure, start),
            ),
            start,
        )


def _operator(listeners: Sequence[Listener]) -> list[str]:
    return [local_url(listener.host, listener.port) for listener in listeners if listener.name == OPERATOR]


def _program(start: StartOptions, request: ServiceRequest, message: StartMessage, siblings: WorkerMailboxes) -> Program:
    """Return one service and the workers that serve it."""
    settings, service = start.settings, request.service

    @asynccontextmanager
    async def application(worker: Worker, listener: Listener) -> AsyncGenerator[ASGIApp]:
        is_first = worker.place == 0
        address = listen_address(service.url(settings), start.host, listener.port)
        async with AsyncExitStack() as stack:
            stack.enter_context(traces.export_spans(settings.otlp_url))
            context = await stack.enter_async_context(service.open(settings, address))
            disk_failures = await stack.enter_async_context(
                _stop_on_disk_failure(service.database(context), service.title)
            )
            sends_message = is_first and not message.is_sent
            start_message = await service.prepare(context, start.is_demo) if sends_message else ""
            app = await stack.enter_async_context(service.application(context, is_first))
            service_checks = service.checks(context)
            await stack.enter_async_context(answer_operator(settings, siblings, worker.number, service_checks))
            if sends_message:
                message.send(
                    f"Countersign {service.title} on {address.root_url} (data in {settings.data})\n{start_message}"
                )
            yield app
        if disk_failures and start.workers == 1:
            remedy = "Check the disk of the data directory, then start again: every acknowledged write is on the disk."
            raise DiskFailed("cannot continue", why=f"{DISK_FAILED} ({service.title})", remedy=remedy)

    return Program(application, Listener(service.name, start.host, request.port), start.workers)


def _hints(start: StartOptions, places: Sequence[ListenAddress]) -> Iterator[str]:
    for request, address in zip(start.service_requests, places, strict=True):
        if not request.service.url(start.settings) and not address.is_loopback:
            yield f"Set {request.service.setting} to the https address that others use: links contain it."
    data = start.settings.data
    if start.settings.database_url and migration_marker.is_ambiguous(Path(data)):
        yield f"{data} also contains SQLite databases, which are not served. Move them to another directory:"
        yield "a command without COUNTERSIGN_DATABASE_URL would use them."


@asynccontextmanager
async def _stop_on_disk_failure(database: Database, title: str) -> AsyncGenerator[list[str]]:
    """Send SIGTERM to this process if the database can no longer write while the block runs.

    In that case the title of the service is added to the yielded list. If the service has several workers, the server
    replaces this worker."""
    disk_failures: list[str] = []

    async def watch() -> None:
        await database.broken.wait()
        disk_failures.append(title)
        telemetry.logger("serve").error(
            f"{DISK_FAILED}; the process ends, so that the next start reads what is on the disk", service=title
        )
        os.kill(os.getpid(), signal.SIGTERM)

    async with background(watch()):
        yield disk_failures


def _deadlines(settings: Settings) -> Deadlines:
    return Deadlines(
        header_s=settings.header_deadline_s,
        idle_s=settings.idle_deadline_s,
        body_grace_s=settings.body_grace_s,
        body_bytes_s=settings.body_rate_kib_s * 1024,
    )


def _listen_failure(error: CannotListen, start: StartOptions) -> Failure:
    """Return the failure for a service or an operator's port that cannot listen. The remedy names the option to
    change."""
    name = error.listener.name
    if name == OPERATOR:
        port_owner, port, host = "the operator's port", "COUNTERSIGN_OPERATOR_PORT", "COUNTERSIGN_OPERATOR_HOST"
    else:
        port_owner, host = f"the service {name}", "--host"
        port = "--port" if len(start.service_requests) == 1 else f"--{name}-port"
    if error.is_taken:
        remedy = f"Stop the program that listens on this port, or choose another port with {port}."
    else:
        remedy = f"Choose an address of this machine with {host}, or a port that this user may use with {port}."
    exit_code = Exit.CONFLICT if error.is_taken else Exit.USAGE
    return Failure(SERVING, why=f"{port_owner}: {error}", remedy=remedy, exit_code=exit_code)


def _serve(uvicorn_server: Server, start: StartOptions) -> None:
    try:
        if start.settings.otlp_url:
            traces.require_exporter(start.settings.otlp_url)
        server.run(uvicorn_server)
    except WorkerFailed as failed:
        if not failed.explanation:
            raise output.refusal_failure(SERVING, failed) from failed
        raise _decode_failure(failed.explanation) from failed
    except Exception as error:
        failure = _failure(start, error)
        if failure is None:
            raise
        raise failure from error


def _encode_failure(start: StartOptions, error: Exception) -> bytes | None:
    """Encode an error in a worker as a message for the operator. Return None if the error is a bug."""
    failure = _failure(start, error)
    if failure is None:
        return None
    message = _FailureMessage(failure.what, failure.why, failure.remedy, int(failure.exit_code), failure.problem)
    return msgspec.json.encode(message)


def _decode_failure(explanation: bytes) -> Failure:
    message = msgspec.json.decode(explanation, type=_FailureMessage)
    code = Exit(message.exit_code)
    return Failure(message.what, why=message.why, remedy=message.remedy, exit_code=code, problem=message.problem)


def _failure(start: StartOptions, error: Exception) -> Failure | None:
    """Convert the error into the failure of the command. Return None if an operator cannot correct the error."""
    match error:
        case Failure():
            return error
        case CannotListen():
            return _listen_failure(error, start)
        case Refused():
            return output.refusal_failure(SERVING, error)
        case SchemaMismatch():
            return Failure(SERVING, why=str(error), exit_code=Exit.CONFLICT)
        case DeclarationError():
            remedy = "Correct the module, or leave it out of COUNTERSIGN_MODULES."
            return Failure(SERVING, why=str(error), remedy=remedy, exit_code=Exit.USAGE)
        case BadSetting() | ValueError():
            remedy = "Correct the setting; `countersign config` explains every setting."
            return Failure(SERVING, why=str(error) or type(error).__name__, remedy=remedy, exit_code=Exit.USAGE)
        case _:
            return None
