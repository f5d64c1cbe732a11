"""A process gives up, for good, what it does not need before it touches a stranger's bytes (Linux)."""

import codecs
import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from countersign.archives import landlock, seccomp
from countersign.kernel.errors import Refused

NOBODY = 65534
"""The user and group that have no rights on any file of others (Debian's nobody and nogroup)."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_OPEN_FILES = 256
_LATE_CODECS = ("unicode_escape", "cp437", "ascii", "latin-1", "idna")
"""Names of archives are decoded and shown with these; a confined process may not be able to load them any more."""
_READ = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null")


class CannotConfine(Refused):
    """The process runs as root and cannot become another user."""

    status = 500
    code = "cannot_confine"
    title = "The process cannot give up its rights"
    resolution = "Run the service as a user of its own, not as root."


class Confinement(NamedTuple):
    """What the kernel granted: no rights of root, no way to new rights, no files but the named ones, no sockets (or at
    least no TCP), bounded
    memory and time, and an end together with the parent."""

    unprivileged: bool
    no_new_rights: bool
    files: bool
    network: bool
    bounded: bool
    ends_with_parent: bool


def enter(*, folder: Path | None, memory_bytes: int, cpu_s: int, readable: Iterable[Path] = ()) -> Confinement:
    """Confine this process and all its threads to come: it can write below `folder` alone, and read the system's
    libraries, the interpreter, its packages and `readable`. Files that are open stay open.

    Called before other threads exist, for the kernel confines the calling one. What an older kernel does not have
    is False in the answer. As root the process becomes `nobody` first: `folder` has to be nobody's by then.

    Raises:
        CannotConfine: it is root, and cannot become nobody.
    """
    for codec in _LATE_CODECS:
        codecs.lookup(codec)
    handle = None if folder is None else os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _drop_root()
    no_new_rights = _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # A changed user forgets this, so it comes after.
    ends_with_parent = _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_DUMPABLE, 0)
    bounded = _bound(memory_bytes, cpu_s)
    level = landlock.restrict(handle, _readable(readable)) if no_new_rights else 0
    if handle is not None:
        os.close(handle)
    no_sockets = no_new_rights and seccomp.deny_sockets()
    return Confinement(
        unprivileged=os.geteuid() != 0,
        no_new_rights=no_new_rights,
        files=level >= landlock.FILES,
        network=no_sockets or level >= landlock.NETWORK,
        bounded=bounded,
        ends_with_parent=ends_with_parent,
    )


def _drop_root() -> None:
    if os.geteuid() != 0 and os.getuid() != 0:
        return
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        raise CannotConfine(f"becoming another user failed: {error.strerror}") from error
    if 0 in (*os.getresuid(), *os.getresgid()) or os.getgroups():
        raise CannotConfine("becoming another user left rights of root")


def _bound(memory_bytes: int, cpu_s: int) -> bool:
    wanted = (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        # At the soft limit the process ends with SIGXCPU, which names the cause. At the hard one it ends with SIGKILL.
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
    )
    for kind, soft, hard in wanted:
        _, present = resource.getrlimit(kind)
        if present != resource.RLIM_INFINITY:
            soft, hard = min(soft, present), min(hard, present)
        resource.setrlimit(kind, (soft, hard))
    return True


def _readable(more: Iterable[Path]) -> list[Path]:
    """Where the interpreter and its packages lie, and what else may be read."""
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable), *filter(None, sys.path))
    found = (Path(name) for name in (*_READ, *own, *map(str, more)))
    return [path for path in dict.fromkeys(found) if path.is_absolute() and path != Path("/")]


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(AttributeError):
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        return int(prctl(ctypes.c_int(option), ctypes.c_ulong(value), *(ctypes.c_ulong(0),) * 3)) == 0
    return False
