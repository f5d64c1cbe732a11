"""The folders of the sandbox's data sets, and the template from which each data set is copied.

    sandboxes/lock             locked while a data set is created, so that no other process creates one meanwhile
    sandboxes/template-<hash>  the template that every data set is a copy of; its blobs are not copied
    sandboxes/<name>/lock      every user of the data set has a shared lock, and its removal needs an exclusive lock;
                               the modification time is the time of the last use of the data set
    sandboxes/new-…            a data set that is being created
    sandboxes/gone-…           a data set that is being removed

If a process was killed, the next start removes the folders `new-…` and `gone-…`. After a lock is taken, a function
checks that the path still names the locked file, because the folder may have been removed in between. All functions
block, and must be called in a thread.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from countersign import __version__
from countersign.kernel import clock, ids, telemetry
from countersign.kernel.blobs.disk import Descriptor
from countersign.kernel.database.migrate import migrations
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.security.masterkey import load_master_key

FOLDER = "sandboxes"
LOCK = "lock"
TEMPLATE = "template-"
MIN_IDLE_S = 300
"""A data set that was used within this time is not removed to make room for another data set."""
_TRANSIENT = ("new-", "gone-")


class SandboxesFull(Refused):
    """The node has the maximum number of data sets, and all of them were used recently."""

    status = 503
    code = "sandboxes_full"
    title = "Sandbox full"
    resolution = "Wait for the seconds in Retry-After, then try again."


class DataSetTemplate(NamedTuple):
    """The template of data sets: a name that changes with the contents, and a function that fills the folder."""

    name: str
    fill: Callable[[Path], None]


def check(data: Path, max_data_sets: int) -> None:
    """Check that data sets can be created on this node.

    Raises:
        SandboxesFull: the sandbox is switched off.
        Unavailable: the folder cannot be written to.
    """
    if not max_data_sets:
        raise _no_space_error()
    with _convert_os_errors():
        (data / FOLDER).mkdir(mode=0o700, exist_ok=True)
        _lock(data / FOLDER / LOCK, fcntl.LOCK_SH).close()


def used_within(data: Path, seconds: float) -> int:
    """The number of data sets that were used in the last `seconds`."""
    since_instant = clock.later(clock.now(), seconds=-seconds)
    return sum(used_at >= since_instant for _, used_at in _by_age(data / FOLDER))


def lock_existing(data: Path, name: str, idle_s: float) -> Descriptor | None:
    """Lock an existing data set until the descriptor is closed, so that it is not removed. Return None if the data set
    does not exist. A data set that was idle for too long is removed first.

    Raises:
        Unavailable: the folder cannot be used.
    """
    folder = data / FOLDER / name
    with _convert_os_errors():
        for _ in range(100):
            if _is_idle(folder, idle_s):
                _remove(folder, lambda: _is_idle(folder, idle_s))
            with suppress(FileNotFoundError):
                lock = Descriptor(folder / LOCK, os.O_RDWR)
                fcntl.flock(lock.fd, fcntl.LOCK_SH)
                if _is_current(lock, folder / LOCK):
                    touch(folder)
                    return lock
                continue
            return None
    raise Unavailable("the data set is being removed", headers={"Retry-After": "1"})


def touch(folder: Path) -> None:
    """Record the use of the data set."""
    now = clock.now() * 1000
    with suppress(FileNotFoundError):
        os.utime(folder / LOCK, ns=(now, now))


def template_folder(data: Path, template: DataSetTemplate) -> Path:
    """The path of the template."""
    return data / FOLDER / (TEMPLATE + template.name)


def make_data_set(
    data: Path, name: str, template: DataSetTemplate, *, max_data_sets: int, idle_s: float
) -> Descriptor | None:
    """Create the data set as a copy of the template, and lock the data set like `lock_existing`. If the template is
    missing, create it first. Return None if the data set already exists.

    Raises:
        SandboxesFull: the limit is reached, and no data set can be removed.
        Unavailable: the folder cannot be used.
    """
    parent = data / FOLDER
    with _convert_os_errors(), _exclusive_lock(parent):
        if (parent / name).is_dir():
            return None
        _remove_oldest(parent, max_data_sets, idle_s)
        source = template_folder(data, template)
        if not source.is_dir():
            _fill(parent, source, template)
        new_folder = parent / f"new-{ids.new_uuid()}"
        new_folder.mkdir(mode=0o700)
        # Create the data set's own master key before copying the database, because no key is created if a database
        # exists.
        load_master_key(None, None, new_folder)
        # Copy only files: all data sets read the blobs of the template.
        for path in [path for path in source.iterdir() if path.is_file()]:
            shutil.copyfile(path, new_folder / path.name)
            (new_folder / path.name).chmod(0o600)
        (new_folder / LOCK).touch(mode=0o600)
        touch(new_folder)
        lock = _lock(new_folder / LOCK, fcntl.LOCK_SH)
        new_folder.rename(parent / name)
        return lock


def remove_leftovers(data: Path) -> None:
    """Remove the leftovers of an earlier server: every data set that is not locked, and transient folders.

    Raises:
        Unavailable: the folder cannot be used.
    """
    parent = data / FOLDER
    if not parent.is_dir():
        return
    with _convert_os_errors(), _exclusive_lock(parent):
        for folder, _ in _by_age(parent):
            _remove(folder, lambda: True)
        for path in parent.iterdir():
            if path.name.startswith(_TRANSIENT):
                shutil.rmtree(path)


def sweep(data: Path, idle_s: float) -> int:
    """Remove the data sets that were not used for `idle_s`; return their number.

    Raises:
        Unavailable: the folder cannot be used.
    """
    parent = data / FOLDER
    with _convert_os_errors():
        oldest_kept = clock.later(clock.now(), seconds=-idle_s)
        idle = [folder for folder, used_at in _by_age(parent) if used_at < oldest_kept]
        return sum(_remove(folder, lambda folder=folder: _is_idle(folder, idle_s)) for folder in idle)


def _remove_oldest(parent: Path, max_data_sets: int, idle_s: float) -> None:
    known_folders = _by_age(parent)
    now = clock.now()
    spared_since = clock.later(now, seconds=-min(idle_s, MIN_IDLE_S))
    for folder, used_at in list(known_folders):
        if len(known_folders) < max_data_sets or used_at >= spared_since:
            break
        if _remove(folder, lambda folder=folder, used_at=used_at: _used_at(folder) == used_at):
            known_folders.remove((folder, used_at))
    if len(known_folders) >= max_data_sets:
        raise _no_space_error()


def _no_space_error() -> SandboxesFull:
    return SandboxesFull("the sandbox has no room for another data set", headers={"Retry-After": "60"})


def _fill(parent: Path, source: Path, template: DataSetTemplate) -> None:
    for other_template in parent.glob(f"{TEMPLATE}*"):
        shutil.rmtree(other_template)
    new_folder = parent / f"new-{ids.new_uuid()}"
    new_folder.mkdir(mode=0o700)
    template.fill(new_folder)
    new_folder.rename(source)


def _remove(folder: Path, is_still_removable: Callable[[], bool]) -> bool:
    """Remove the data set, unless it is locked, or `is_still_removable` is false after locking it."""
    with suppress(FileNotFoundError, BlockingIOError):
        lock = _lock(folder / LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_current(lock, folder / LOCK) and is_still_removable():
            removed_folder = folder.with_name(f"gone-{ids.new_uuid()}")
            folder.rename(removed_folder)
            shutil.rmtree(removed_folder)
            return True
    return False


def _by_age(parent: Path) -> list[tuple[Path, int]]:
    """Every data set with the time of its last use, the oldest first."""
    folders_by_use = [
        (folder, used_at) for folder in _data_set_folders(parent) if (used_at := _used_at(folder)) is not None
    ]
    return sorted(folders_by_use, key=lambda folder: folder[1])


def _data_set_folders(parent: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from (path for path in parent.iterdir() if not path.name.startswith((*_TRANSIENT, TEMPLATE, LOCK)))


def _used_at(folder: Path) -> int | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        return (folder / LOCK).stat().st_mtime_ns // 1000
    return None


def _is_idle(folder: Path, idle_s: float) -> bool:
    used_at = _used_at(folder)
    return used_at is not None and used_at < clock.later(clock.now(), seconds=-idle_s)


def _is_current(lock: Descriptor, path: Path) -> bool:
    """Whether the file at the path is still the locked file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock.fd), path.stat())
    return False


def _lock(path: Path, operation: int) -> Descriptor:
    flags = os.O_RDWR | (os.O_CREAT if path.parent.name == FOLDER else 0)
    lock = Descriptor(path, flags)
    fcntl.flock(lock.fd, operation)
    return lock


@contextmanager
def _exclusive_lock(parent: Path) -> Generator[None]:
    parent.mkdir(mode=0o700, exist_ok=True)
    lock = _lock(parent / LOCK, fcntl.LOCK_EX)
    try:
        yield
    finally:
        lock.close()


@contextmanager
def _convert_os_errors() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"The folder of the sandbox cannot be used: {error.strerror}.") from error


BUILD_COMMAND = (sys.executable, "-m", "countersign.store.demo")
MAX_BUILD_S = 120


@cache
def template_of(package: str) -> DataSetTemplate:
    """The template for a store with the migrations of the package. The name of the template changes with the migrations
    and with the version of the program."""
    version_parts = [__version__, *(migration.sha256 for migration in migrations(package))]
    return DataSetTemplate(hashlib.sha256(" ".join(version_parts).encode()).hexdigest()[:16], _build)


def _build(folder: Path) -> None:
    try:
        subprocess.run([*BUILD_COMMAND, str(folder)], check=True, timeout=MAX_BUILD_S)
    except (OSError, subprocess.SubprocessError) as error:
        telemetry.logger("sandbox").error("the sandbox's data could not be created", exc_info=error)
        raise Unavailable("the sandbox's data could not be created; the error was logged") from error
