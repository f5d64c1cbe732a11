"""Refusals, the one exception family that reaches a caller, and the detection of a full disk."""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple


class InvalidField(NamedTuple):
    """An invalid part of the input: its place (a parameter's name, or a JSON pointer into the body) and the reason."""

    place: str
    detail: str
    is_parameter: bool = False


class Refused(Exception):
    """A request that is answered with a problem (RFC 9457) instead of an effect.

    Subclasses are defined next to the code that raises them and set `status`, `code`, `title` and, where the caller
    can act, `resolution`. `detail` is for people and never contains a secret. `members` are additional members of the
    response's body (RFC 9457 §3.2). `headers` are additional headers.
    """

    status: ClassVar[int] = 400
    code: ClassVar[str] = "invalid_request"
    title: ClassVar[str] = "Invalid request"
    resolution: ClassVar[str] = ""

    def __init__(
        self,
        detail: str,
        *,
        resolution: str | None = None,
        faults: Sequence[InvalidField] = (),
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = self.resolution if resolution is None else resolution
        self.faults = tuple(faults)
        self.headers: Mapping[str, str] = headers or {}
        self.members: Mapping[str, object] = members or {}


class InvalidRequest(Refused):
    """A parameter or a body member is missing, unknown, of a wrong type or out of range."""

    resolution = "Correct what `errors` names and send the request again."


def invalid_parameter(name: str, detail: str) -> InvalidRequest:
    """Return the refusal of a query, path or header parameter."""
    return InvalidRequest(f"{name}: {detail}", faults=[InvalidField(name, detail, is_parameter=True)])


def invalid_member(pointer: str, detail: str) -> InvalidRequest:
    """Return the refusal of a member of the body, which `pointer` names (RFC 6901)."""
    return InvalidRequest(f"{pointer}: {detail}", faults=[InvalidField(pointer, detail)])


class NotFound(Refused):
    """The resource does not exist, or the caller may not know that it exists: both get the same response."""

    status = 404
    code = "resource_not_found"
    title = "Not found"
    resolution = "Check the address."


class Unavailable(Refused):
    """The service cannot do the work now, and the caller may try again."""

    status = 503
    code = "unavailable"
    title = "Temporarily unavailable"
    resolution = "Try again after the time in Retry-After."

    def __init__(
        self,
        detail: str,
        *,
        resolution: str | None = None,
        faults: Sequence[InvalidField] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail, resolution=resolution, faults=faults, headers={"Retry-After": "5", **(headers or {})})


class StorageFull(Refused):
    """No space is left for a write; nothing of it was stored."""

    status = 507
    code = "insufficient_storage"
    title = "Insufficient storage"
    resolution = "Make space on the volume of the data directory (or of the blob store), then try again."


class NotEmpty(Refused):
    """The target of a restore or copy is not empty."""

    status = 409
    code = "not_empty"
    title = "Not empty"
    resolution = "Name an empty target; nothing is ever overwritten."


ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The error numbers for a full device, an exceeded quota of the user, and a file of the maximum size."""
_SQLITE_FULL = 13
_SQLSTATE_DISK_FULL = "53100"
_MIN_FREE_BYTES = 65_536
"""A volume with less free space counts as full. SQLite needs more for the files next to a database, and reports a lack
of space for them as an I/O error."""


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether the error, or one of its causes, reports a full disk."""
    while error is not None:
        if isinstance(error, StorageFull) or getattr(error, "sqlstate", None) == _SQLSTATE_DISK_FULL:
            return True
        if isinstance(error, OSError) and error.errno in ERRNOS:
            return True
        # The low byte is the primary result code (sqlite.org/rescode.html).
        result: object = getattr(error, "result", None)
        if isinstance(result, int) and result & 0xFF == _SQLITE_FULL:
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def is_volume_full(path: Path) -> bool:
    """Return whether the volume of the path, or of its nearest existing parent, has no space left."""
    for folder in (path, *path.parents):
        try:
            volume = os.statvfs(folder)
        except OSError:
            continue
        return volume.f_bavail * volume.f_frsize < _MIN_FREE_BYTES
    return False


def disk_full(path_text: str, error: BaseException | None = None, *, resolution: str | None = None) -> StorageFull:
    """Return the refusal of a write to `path_text`, with the system's reason unless the reason is a full volume."""
    reason = ""
    if isinstance(error, OSError) and error.errno in ERRNOS and error.errno != errno.ENOSPC:
        reason = f" ({(error.strerror or os.strerror(error.errno)).lower()})"
    return StorageFull(f"The disk is full: no space is left for {path_text}{reason}.", resolution=resolution)
