"""Processes that read untrusted bytes. They have no settings or secrets, have resource limits, and end when their
parent ends."""

import asyncio
import fcntl
import os
import select
import signal
import socket
import sys
from asyncio import StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from io import FileIO
from pathlib import Path

import msgspec

from countersign.archives.limits import limits_of
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.kernel.errors import Unavailable
from countersign.settings import Settings
from countersign.updates import worker_protocol
from countersign.updates.worker_protocol import IngestFailed, IngestOrder, IngestRecord

F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")


class WorkerDied(Unavailable):
    """A process that read an artifact ended unexpectedly, for example because it exceeded its memory limit."""


class CpuTimeExceeded(WorkerDied):
    """A process that read an artifact exceeded its CPU time limit."""


class SandboxedProcess:
    """A running process, and the pipes for messages to the process and from the process."""

    def __init__(
        self, process: Process, output: FileIO, input_stream: StreamWriter, file_socket: socket.socket | None
    ) -> None:
        self._process = process
        self._output = output
        self._input = input_stream
        self._file_socket = file_socket

    @property
    def is_running(self) -> bool:
        """Whether the process still runs: its end of the pipe is open."""
        poller = select.poll()
        poller.register(self._output, 0)
        return not poller.poll(0)

    def send_file(self, fd: int) -> None:
        """Send an open file to the process. At most one file can be sent; see `worker_protocol.receive_file`."""
        if self._file_socket is None:
            raise LookupError("the process was started without takes_file")
        with suppress(OSError), self._file_socket:
            socket.send_fds(self._file_socket, [b"f"], [fd])

    async def receive(self) -> bytes | bytearray:
        """The next message's payload.

        Raises:
            CpuTimeExceeded: the process exceeded its CPU time limit.
            WorkerDied: the process ended too early.
        """
        try:
            return await asyncio.to_thread(worker_protocol.read_frame_unbuffered, self._output)
        except EOFError as error:
            code = await self._process.wait()
            if code == -signal.SIGXCPU:
                raise CpuTimeExceeded("a process that worked on the artifact reached its limit of CPU time") from error
            raise WorkerDied(f"a process that worked on the artifact ended with {code} and no result") from error

    async def send(self, payload: bytes) -> None:
        """Send a message. If the process has ended, this method raises no error, but the next `receive` does."""
        with suppress(ConnectionError):
            self._input.write(worker_protocol.encode_frame(payload))
            await self._input.drain()

    async def end(self) -> None:
        """End the process, if it still runs."""
        if self._file_socket is not None:
            self._file_socket.close()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._output.close()


async def start(program: str, *, takes_file: bool) -> SandboxedProcess:
    """Start a process that runs the module and inherits no open files. If `takes_file` is true, it inherits a socket
    on which it receives the file, and its argument is the descriptor of this socket."""
    # A thread reads from this pipe: an event-loop stream would copy the data several times.
    read_end, write_end = os.pipe()
    output = os.fdopen(read_end, "rb", buffering=0)
    with ExitStack() as unless_begun, ExitStack() as handed_on:
        unless_begun.callback(output.close)
        handed_on.callback(os.close, write_end)
        file_socket, fds = None, ()
        if takes_file:
            file_socket, child_socket = socket.socketpair()
            unless_begun.callback(file_socket.close)
            handed_on.callback(child_socket.close)
            fds = (child_socket.fileno(),)
        # A larger pipe only makes reading faster. Ignore errors: Linux limits the memory of pipes per user, and other
        # systems do not have this call.
        with suppress(OSError):
            fcntl.fcntl(write_end, F_SETPIPE_SZ, PIPE_BYTES)
        command = (sys.executable, "-m", program, *map(str, fds))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=write_end, pass_fds=fds, env=_environment(), cwd="/"
        )
        if process.stdin is None:
            raise LookupError("a process was started without its pipe")
        unless_begun.pop_all()
        return SandboxedProcess(process, output, process.stdin, file_socket)


@asynccontextmanager
async def run_process(program: str, *, takes_file: bool = False) -> AsyncGenerator[SandboxedProcess]:
    """Run the module in a process during the block. The process is ended when the block ends."""
    spare = _spare.get()
    if spare is not None and not (takes_file and spare.program == program):
        spare = None
    process = await (start(program, takes_file=takes_file) if spare is None else spare.take())
    try:
        yield process
    finally:
        await process.end()
        if spare is not None:
            spare.prepare()


class SpareProcess:
    """A process that is started before it is needed, because starting a process takes longer than a small job."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._starting: asyncio.Task[SandboxedProcess] | None = None

    def prepare(self) -> None:
        """Start the process, unless it was already started."""
        if self._starting is None:
            self._starting = asyncio.create_task(start(self.program, takes_file=True))

    async def take(self) -> SandboxedProcess:
        """Return the process, or a new process if the spare process died or could not be started. The caller must end
        the process."""
        process = await self._take_process()
        if process is not None:
            if process.is_running:
                return process
            await process.end()
        return await start(self.program, takes_file=True)

    async def close(self) -> None:
        """End the process."""
        process = await self._take_process()
        if process is not None:
            await process.end()

    async def _take_process(self) -> SandboxedProcess | None:
        """Remove and return the process, or return None if no process runs. An error that occurred when the process was
        started is ignored, because the cause may no longer exist."""
        starting, self._starting = self._starting, None
        if starting is not None:
            with suppress(OSError):
                return await starting
        return None


_spare: ContextVar[SpareProcess | None] = ContextVar("spare", default=None)


@asynccontextmanager
async def spare_process(program: str) -> AsyncGenerator[None]:
    """Provide a spare process of the program during the block, for the next `run_process`."""
    process = SpareProcess(program)
    process.prepare()
    token = _spare.set(process)
    try:
        yield
    finally:
        _spare.reset(token)
        await process.close()


def _environment() -> dict[str, str]:
    """The environment of the process: no settings, only the location of its code."""
    inherited_values = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return {
        **inherited_values,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


PROGRAM = "countersign.updates.ingest_worker"
MEBIBYTE = 1 << 20


class ArtifactReader:
    """Reads an artifact by means of a sandboxed process. The process sends records, and asks which chunks of the
    artifact the store does not have yet."""

    def __init__(self, process: SandboxedProcess, cpu_s: int) -> None:
        self._process = process
        self._cpu_s = cpu_s

    async def next(self) -> IngestRecord:
        """The next record.

        Raises:
            ArchiveRefused, ArchiveUnknown: the artifact was rejected.
            WorkerDied: the process ended too early.
        """
        try:
            record = worker_protocol.decode_ingest_record(await self._process.receive())
        except CpuTimeExceeded as error:
            # Reject the artifact instead of raising an error that causes a retry: a retry would take the same time.
            raise ArchiveRefused("too-slow", f"reading takes more than {self._cpu_s} seconds of CPU time") from error
        if isinstance(record, IngestFailed):
            if record.kind == "unknown":
                raise ArchiveUnknown(record.detail)
            raise ArchiveRefused(record.rule, record.detail, entry=record.entry, is_printable=True)
        return record

    async def answer(self, flags: bytes) -> None:
        """Answer a query of the process. `flags` has one byte for each chunk of the query: 1 if the store needs the
        chunk."""
        await self._process.send(flags)


@asynccontextmanager
async def read_artifact(
    settings: Settings, path: Path, name: str, *, chunks: bool, accepts_plain_files: bool
) -> AsyncGenerator[ArtifactReader]:
    """Read the file during the block. The process is ended when the block ends.

    `name` is the artifact's file name, which is a hint at the format. If `accepts_plain_files` is true, files that are
    not archives are accepted.
    """
    with _open_file(path) as fd:
        async with run_process(PROGRAM, takes_file=True) as process:
            process.send_file(fd)
            order = IngestOrder(
                name=name,
                limits=asdict(limits_of(settings)),
                chunks=chunks,
                plain=accepts_plain_files,
                memory_bytes=settings.archive_memory_mib * MEBIBYTE,
                cpu_s=settings.archive_seconds,
            )
            await process.send(msgspec.msgpack.encode(order))
            yield ArtifactReader(process, order.cpu_s)


@contextmanager
def _open_file(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
