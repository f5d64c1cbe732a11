"""Landlock: a Linux process takes away its own access to files and TCP (kernel documentation, "Landlock")."""

import ctypes
import os
import platform
import stat
from collections.abc import Iterable
from pathlib import Path

FILES, NETWORK = 1, 4
"""The version of the interface from which on files, and TCP, can be denied."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_SAME_NUMBERS = ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "armv7l", "i686")
_VERSION_ONLY, _BELOW = 1, 1
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
# Removing and making entries, but for devices, sockets and pipes (6, 9, 10, 11 stay denied below the folder too).
_CHANGE = sum(1 << bit for bit in (4, 5, 7, 8, 12))
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_REFER, _TRUNCATE, _SCOPES = 1 << 13, 1 << 14, 6
_TCP = 3
_NEWEST = 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Below(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("handle", ctypes.c_int32))


def version() -> int:
    """The version of the interface that the kernel has; 0 without one."""
    if platform.system() != "Linux" or platform.machine() not in _SAME_NUMBERS:
        return 0
    return max(0, _call(_CREATE, None, 0, _VERSION_ONLY))


def restrict(folder: int | None, readable: Iterable[Path]) -> int:
    """Take away every access to files from this thread and what it starts, but changing what lies below the open
    `folder` and reading `readable`; and TCP. The version that did it; 0 when nothing could be done.

    The process has given up new privileges before (PR_SET_NO_NEW_PRIVS).

    Raises:
        OSError: the kernel has Landlock and refuses.
    """
    level = min(version(), _NEWEST)
    if not level:
        return 0
    every = (1 << _BITS_BY_VERSION.get(level, 16)) - 1
    wanted = _Ruleset(every, _TCP if level >= NETWORK else 0, 3 if level >= _SCOPES else 0)
    size = 8 if level < NETWORK else 16 if level < _SCOPES else 24
    rules = _checked(_call(_CREATE, ctypes.byref(wanted), size, 0))
    try:
        if folder is not None:
            _allow(rules, folder, (_READ | _LIST | _WRITE | _CHANGE | _REFER | _TRUNCATE) & every)
        for path in readable:
            _allow_reading(rules, path)
        _checked(_call(_RESTRICT, rules, 0))
    finally:
        os.close(rules)
    return level


def _allow_reading(rules: int, path: Path) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # What is not there, or not for this user, needs no permission.
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        _allow(rules, handle, _EXECUTE | _READ | (_LIST if is_folder else 0))
    finally:
        os.close(handle)


def _allow(rules: int, handle: int, access: int) -> None:
    _checked(_call(_ADD, rules, _BELOW, ctypes.byref(_Below(access, handle)), 0))


def _call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    return int(library.syscall(ctypes.c_long(number), *arguments))


def _checked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return answer
