"""Seccomp: a Linux process takes away its own way to make sockets (kernel documentation, "Seccomp BPF")."""

import ctypes
import platform
import sys

_PR_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE = 0, 4
"""Where a system call's number and the kind of machine it is made for lie (struct seccomp_data)."""
_ALLOW, _PERMISSION_DENIED = 0x7FFF0000, 0x0005000D
_OTHER_NUMBERS = 0x40000000
"""From here on the numbers are those of x32, the same calls once more; no other kind of machine has any."""
_IO_URING = 425
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198), "riscv64": (0xC00000F3, 198)}
"""What the kernel calls the machine, and the number of `socket` there."""


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def deny_sockets() -> bool:
    """Let this thread and what it starts make no socket of any kind any more; False where the kernel cannot.

    Landlock knows TCP alone: not UDP, not the sockets of this machine's services, and not a connection that is made
    with its first bytes. The process has given up new privileges before (PR_SET_NO_NEW_PRIVS).
    """
    known = _MACHINES.get(platform.machine())
    if known is None or not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
        return False
    machine, socket = known
    steps = (
        _Step(_LOAD, 0, 0, _MACHINE),
        _Step(_EQUAL, 0, 5, machine),
        _Step(_LOAD, 0, 0, _NUMBER),
        _Step(_AT_LEAST, 3, 0, _OTHER_NUMBERS),
        _Step(_EQUAL, 2, 0, socket),
        _Step(_EQUAL, 1, 0, _IO_URING),
        _Step(_RETURN, 0, 0, _ALLOW),
        _Step(_RETURN, 0, 0, _PERMISSION_DENIED),
    )
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    asked = (ctypes.c_int(_PR_SET_SECCOMP), ctypes.c_ulong(_FILTER), ctypes.byref(program))
    return int(prctl(*asked, ctypes.c_ulong(0), ctypes.c_ulong(0))) == 0
