"""A full disk: recognised in the errors of the system, of SQLite and of PostgreSQL, and reported in the same words."""

import errno
import os
from pathlib import Path

from countersign.kernel.errors import StorageFull

ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No space on the device, no space in the user's quota, and a file at the limit of its size."""
_SQLITE_FULL = 13
_SQLSTATE_DISK_FULL = "53100"
_MIN_FREE_BYTES = 65_536
"""SQLite takes more for the files beside a database, and reports the failure as an input or output error."""


def is_disk_full(error: BaseException | None) -> bool:
    """Whether a full disk is the error, or what caused it."""
    while error is not None:
        if isinstance(error, StorageFull) or getattr(error, "sqlstate", None) == _SQLSTATE_DISK_FULL:
            return True
        if isinstance(error, OSError) and error.errno in ERRNOS:
            return True
        # The primary code is in the low byte (sqlite.org/rescode.html).
        result: object = getattr(error, "result", None)
        if isinstance(result, int) and result & 0xFF == _SQLITE_FULL:
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def is_volume_full(path: Path) -> bool:
    """Whether the volume of the path, or of the nearest folder above it that exists, has no space left."""
    for each in (path, *path.parents):
        try:
            volume = os.statvfs(each)
        except OSError:
            continue
        return volume.f_bavail * volume.f_frsize < _MIN_FREE_BYTES
    return False


def disk_full(place: str, error: BaseException | None = None, *, resolution: str | None = None) -> StorageFull:
    """The refusal of a write to the place, with the system's reason where that is another than a full volume."""
    reason = ""
    if isinstance(error, OSError) and error.errno in ERRNOS and error.errno != errno.ENOSPC:
        reason = f" ({(error.strerror or os.strerror(error.errno)).lower()})"
    return StorageFull(f"The disk is full: no space is left for {place}{reason}.", resolution=resolution)
