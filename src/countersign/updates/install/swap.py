"""One folder in another's place in a single step, where the system can (renameat2, Linux 3.15), else in two."""

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What systems and file systems answer that cannot exchange."""


def exchange(one: Path, other: Path) -> bool:
    """Let both folders change names at once; False where this system or file system cannot.

    Raises:
        OSError: it can, and did not.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    paths = os.fsencode(one), os.fsencode(other)
    if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _MISSING:
        return False
    raise OSError(code, os.strerror(code), str(other))


def sync_folder(path: Path) -> None:
    """Make the folder's entries outlive a power cut.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
