"""The lock that admits one `serve` to a data directory, and publishes the addresses of that server."""

import fcntl
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from countersign import file_access
from countersign.cli import output
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock
from countersign.kernel.errors import is_disk_full

FILE_NAME = "serve.lock"
SHUTDOWN_S, POLL_S = 10.0, 0.02
"""How long to wait for the worker processes of a killed server to end, and the pause between two attempts."""


class DataLock:
    """The lock. This process and the processes that it forks hold the lock until all of them have ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def announce(self, addresses: Mapping[str, str], key_ids: Sequence[str]) -> None:
        """Write the process id, the public address of each service and the ids of their master keys into the file, for
        a process that finds the lock taken, and for commands that create tokens or encrypt values for this store."""
        content = json.dumps({"process": os.getpid(), "keys": key_ids, **addresses}).encode() + b"\n"
        os.pwrite(self._descriptor, content, 0)
        os.ftruncate(self._descriptor, len(content))


@contextmanager
def acquire(data: Path, failure: str = "") -> Generator[DataLock]:
    """Hold the lock of the data directory while the block lasts. A missing directory is created with mode 0700.

    `failure` is the beginning of a failure's message. By default, the message says that the directory cannot be served.

    Raises:
        Failure: another process holds the lock, or the directory cannot be written.
    """
    failure = failure or f"cannot serve {data}"
    path = data / FILE_NAME
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if is_disk_full(error):
            raise output.disk_full_failure(failure, error) from error
        remedy = "Allow this user to write to that directory, or choose another directory with --data."
        raise Failure(
            failure,
            why=file_access.explain_permission_error(Path(error.filename or path), error, "written"),
            remedy=remedy,
        ) from error
    try:
        _acquire(descriptor, path, failure)
        yield DataLock(descriptor)
    finally:
        os.close(descriptor)


def is_locked(data: Path) -> bool:
    """Return whether some process serves the data directory now."""
    try:
        descriptor = os.open(data / FILE_NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def serving_key_ids(data: Path) -> list[str] | None:
    """Return the ids of the master keys that the server of the data directory uses, or None if no server is running."""
    if not is_locked(data):
        return None
    try:
        return msgspec.json.decode((data / FILE_NAME).read_bytes(), type=_LockKeys).keys
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        # The server has just started, or a process that is not a server holds the lock.
        return None


class _LockKeys(msgspec.Struct):
    keys: list[str]


class _LockProcess(msgspec.Struct):
    process: int


def _acquire(descriptor: int, path: Path, failure: str) -> None:
    try:
        _flock(descriptor)
    except BlockingIOError as error:
        reason = f"another `countersign serve` uses it ({path}: {_holder(descriptor)})"
        remedy = "Stop that server, or choose another directory with --data."
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.CONFLICT) from error


def _flock(descriptor: int) -> None:
    """Take the lock without waiting. If the server in the lock file was killed, wait until its workers have ended.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    until_s = clock.monotonic_s() + SHUTDOWN_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = _server_process(descriptor)
            if process is None or _is_running(process) or clock.monotonic_s() > until_s:
                raise
        clock.sleep(POLL_S)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _server_process(descriptor: int) -> int | None:
    """Return the process id that the server wrote into the lock file, or None if it has not written it yet."""
    try:
        process = msgspec.json.decode(os.pread(descriptor, 4096, 0), type=_LockProcess).process
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return process if process > 0 else None


def _holder(descriptor: int) -> str:
    process = _server_process(descriptor)
    return "starting" if process is None else f"process {process}"
