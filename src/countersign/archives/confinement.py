"""Confines a process before it reads untrusted bytes (Linux): Landlock, seccomp, resource limits, no root."""

import codecs
import contextlib
import ctypes
import os
import platform
import resource
import signal
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from countersign.kernel.errors import Refused

LANDLOCK_FILES, LANDLOCK_NETWORK, _LANDLOCK_SCOPES = 1, 4, 6
"""The first Landlock versions that can deny access to files, access to TCP, and signals and sockets of other
processes."""

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_MACHINES = ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "armv7l", "i686")
_VERSION_ONLY, _PATH_BENEATH = 1, 1
_ACCESS_EXECUTE, _ACCESS_WRITE, _ACCESS_READ, _ACCESS_LIST = 1, 2, 4, 8
# The rights to remove and create entries. Below the folder, creating devices, sockets and pipes (bits 6, 9, 10 and
# 11) stays denied.
_ACCESS_CHANGE = sum(1 << bit for bit in (4, 5, 7, 8, 12))
_BIT_COUNT_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_ACCESS_REFER, _ACCESS_TRUNCATE = 1 << 13, 1 << 14
_TCP = 3
_MAX_VERSION = 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("handle", ctypes.c_int32))


def landlock_version() -> int:
    """Return the Landlock version that the kernel supports, or 0 if it has no Landlock."""
    if platform.system() != "Linux" or platform.machine() not in _LANDLOCK_MACHINES:
        return 0
    return max(0, _landlock_call(_LANDLOCK_CREATE, None, 0, _VERSION_ONLY))


def restrict_files(folder: int | None, readable: Iterable[Path]) -> int:
    """Forbid TCP and all access to files, except files below `folder` and in `readable`.

    The rules apply to this thread, and to the threads and processes that it starts. They may change what is in the open
    `folder`, and may only read and execute what is in `readable`. The process must have set PR_SET_NO_NEW_PRIVS. Return
    the Landlock version in use, or 0 if the kernel has no Landlock.

    Raises:
        OSError: the kernel has Landlock, but refuses the rules.
    """
    version = min(landlock_version(), _MAX_VERSION)
    if not version:
        return 0
    all_rights = (1 << _BIT_COUNT_BY_VERSION.get(version, 16)) - 1
    ruleset = _Ruleset(all_rights, _TCP if version >= LANDLOCK_NETWORK else 0, 3 if version >= _LANDLOCK_SCOPES else 0)
    size = 8 if version < LANDLOCK_NETWORK else 16 if version < _LANDLOCK_SCOPES else 24
    rules = _checked_call(_landlock_call(_LANDLOCK_CREATE, ctypes.byref(ruleset), size, 0))
    try:
        if folder is not None:
            _allow(
                rules,
                folder,
                (_ACCESS_READ | _ACCESS_LIST | _ACCESS_WRITE | _ACCESS_CHANGE | _ACCESS_REFER | _ACCESS_TRUNCATE)
                & all_rights,
            )
        for path in readable:
            _allow_reading_and_execution(rules, path)
        _checked_call(_landlock_call(_LANDLOCK_RESTRICT, rules, 0))
    finally:
        os.close(rules)
    return version


def _allow_reading_and_execution(rules: int, path: Path) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # A path that is missing or that this user cannot open needs no permission.
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        _allow(rules, handle, _ACCESS_EXECUTE | _ACCESS_READ | (_ACCESS_LIST if is_folder else 0))
    finally:
        os.close(handle)


def _allow(rules: int, handle: int, access: int) -> None:
    _checked_call(_landlock_call(_LANDLOCK_ADD, rules, _PATH_BENEATH, ctypes.byref(_PathBeneath(access, handle)), 0))


def _landlock_call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    return int(library.syscall(ctypes.c_long(number), *arguments))


def _checked_call(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return answer


_PR_SET_SECCOMP, _FILTER = 22, 2
_BPF_LOAD, _BPF_EQUAL, _BPF_AT_LEAST, _BPF_RETURN = 0x20, 0x15, 0x35, 0x06
_SYSCALL_OFFSET, _MACHINE_OFFSET = 0, 4
"""The offsets of the system call number and of the architecture in struct seccomp_data."""
_ALLOW, _PERMISSION_DENIED = 0x7FFF0000, 0x0005000D
_X32_NUMBERS = 0x40000000
"""The first system call number of the x32 ABI, which has a second number for each call. Other architectures do not
use these numbers."""
_IO_URING = 425
_SECCOMP_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198), "riscv64": (0xC00000F3, 198)}
"""Maps the name of a machine to the kernel's constant for its architecture (AUDIT_ARCH) and the system call number of
`socket`."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Instruction)))


def deny_sockets() -> bool:
    """Forbid this thread, and the threads and processes that it starts, to create sockets.

    Return False if the kernel does not support this.
    Landlock controls only TCP: it does not control UDP, Unix sockets, or TCP Fast Open.
    The process must have set PR_SET_NO_NEW_PRIVS.
    """
    machine_numbers = _SECCOMP_MACHINES.get(platform.machine())
    if machine_numbers is None or not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
        return False
    machine, socket = machine_numbers
    steps = (
        _Instruction(_BPF_LOAD, 0, 0, _MACHINE_OFFSET),
        _Instruction(_BPF_EQUAL, 0, 5, machine),
        _Instruction(_BPF_LOAD, 0, 0, _SYSCALL_OFFSET),
        _Instruction(_BPF_AT_LEAST, 3, 0, _X32_NUMBERS),
        _Instruction(_BPF_EQUAL, 2, 0, socket),
        _Instruction(_BPF_EQUAL, 1, 0, _IO_URING),
        _Instruction(_BPF_RETURN, 0, 0, _ALLOW),
        _Instruction(_BPF_RETURN, 0, 0, _PERMISSION_DENIED),
    )
    program = _Program(len(steps), (_Instruction * len(steps))(*steps))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    arguments = (ctypes.c_int(_PR_SET_SECCOMP), ctypes.c_ulong(_FILTER), ctypes.byref(program))
    return int(prctl(*arguments, ctypes.c_ulong(0), ctypes.c_ulong(0))) == 0


UNPRIVILEGED_ID = 65534
"""The user and group without rights on the files of others (the overflow UID and GID of Linux)."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_OPEN_FILES = 256
_PRELOADED_CODECS = ("unicode_escape", "cp437", "ascii", "latin-1", "idna")
"""The codecs that decode and show names in archives. A confined process may be unable to load them later."""
_READABLE_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null")


class CannotConfine(Refused):
    """The process runs as root and cannot become another user."""

    status = 500
    code = "cannot_confine"
    title = "The process cannot give up its rights"
    resolution = "Run the service as a user of its own, not as root."


class Confinement(NamedTuple):
    """The restrictions that the kernel applied.

    They are: no root, no new privileges, access to the named files only, no sockets (or at least no TCP), limited
    memory and CPU time, and that the process ends when its parent ends.
    """

    unprivileged: bool
    no_new_rights: bool
    files: bool
    network: bool
    bounded: bool
    ends_with_parent: bool


def confine(*, folder: Path | None, memory_bytes: int, cpu_s: int, readable: Iterable[Path] = ()) -> Confinement:
    """Confine this process and the threads that it starts later.

    The process can then write only below `folder`, and read only that folder, the system's libraries, the interpreter,
    its packages and `readable`. Open files stay open.

    Call it before other threads exist: the kernel confines only the calling thread. If an older kernel does not support
    a restriction, its field in the result is False. A process that runs as root first changes to UNPRIVILEGED_ID,
    which must already own `folder`.

    Raises:
        CannotConfine: the process is root and cannot change to UNPRIVILEGED_ID.
    """
    for codec in _PRELOADED_CODECS:
        codecs.lookup(codec)
    handle = None if folder is None else os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _drop_root()
    no_new_rights = _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # A change of user resets PR_SET_PDEATHSIG, so set it afterwards.
    ends_with_parent = _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_DUMPABLE, 0)
    is_bounded = _limit_resources(memory_bytes, cpu_s)
    version = restrict_files(handle, _readable_paths(readable)) if no_new_rights else 0
    if handle is not None:
        os.close(handle)
    no_sockets = no_new_rights and deny_sockets()
    return Confinement(
        unprivileged=os.geteuid() != 0,
        no_new_rights=no_new_rights,
        files=version >= LANDLOCK_FILES,
        network=no_sockets or version >= LANDLOCK_NETWORK,
        bounded=is_bounded,
        ends_with_parent=ends_with_parent,
    )


def _drop_root() -> None:
    if os.geteuid() != 0 and os.getuid() != 0:
        return
    try:
        os.setgroups([])
        os.setresgid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        os.setresuid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    except OSError as error:
        raise CannotConfine(f"cannot change the user: {error.strerror}") from error
    if 0 in (*os.getresuid(), *os.getresgid()) or os.getgroups():
        raise CannotConfine("the process still has root rights after changing the user")


def _limit_resources(memory_bytes: int, cpu_s: int) -> bool:
    limits = (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        # At the soft limit the process ends with SIGXCPU, which names the cause. At the hard limit it ends with
        # SIGKILL.
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
    )
    for kind, soft, hard in limits:
        _, current_hard = resource.getrlimit(kind)
        if current_hard != resource.RLIM_INFINITY:
            soft, hard = min(soft, current_hard), min(hard, current_hard)
        resource.setrlimit(kind, (soft, hard))
    return True


def _readable_paths(extra_paths: Iterable[Path]) -> list[Path]:
    """Return the paths of the system, the interpreter and its packages, and the paths in `extra_paths`."""
    python_paths = (
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        os.path.dirname(sys.executable),
        *filter(None, sys.path),
    )
    paths = (Path(name) for name in (*_READABLE_PATHS, *python_paths, *map(str, extra_paths)))
    return [path for path in dict.fromkeys(paths) if path.is_absolute() and path != Path("/")]


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(AttributeError):
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        return int(prctl(ctypes.c_int(option), ctypes.c_ulong(value), *(ctypes.c_ulong(0),) * 3)) == 0
    return False
