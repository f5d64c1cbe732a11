"""Refusals, the one exception family that reaches a caller, and the detection of a full disk."""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple


class Fault(NamedTuple):
    """One thing wrong with the input: where (a parameter's name, or a JSON pointer into the body) and what."""

    place: str
    detail: str
    is_parameter: bool = False


class Refused(Exception):
    """A request that is answered with a problem (RFC 9457) instead of an effect.

    Subclasses stand beside the code that raises them and set `status`, `code`, `title` and, where the caller
    can act, `resolution`. `detail` is for the person who reads the answer and never holds a secret. `members` are
    further ones of the answer's body (RFC 9457 §3.2), `headers` further ones of the answer.
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
        faults: Sequence[Fault] = (),
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
    """The refusal of one query, path or header parameter."""
    return InvalidRequest(f"{name}: {detail}", faults=[Fault(name, detail, is_parameter=True)])


def invalid_member(pointer: str, detail: str) -> InvalidRequest:
    """The refusal of one member of the body, named by its JSON pointer (RFC 6901)."""
    return InvalidRequest(f"{pointer}: {detail}", faults=[Fault(pointer, detail)])


class NotFound(Refused):
    """The thing does not exist, or the caller may not know that it does: the same bytes for both."""

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
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail, resolution=resolution, faults=faults, headers={"Retry-After": "5", **(headers or {})})


class StorageFull(Refused):
    """No room is left for what was to be written; nothing of it was kept."""

    status = 507
    code = "insufficient_storage"
    title = "Insufficient storage"
    resolution = "Free space on the volume of the data directory (or the store), then try again."


class NotEmpty(Refused):
    """What is to be filled holds something already, which might be somebody's."""

    status = 409
    code = "not_empty"
    title = "Not empty"
    resolution = "Name a place that is empty; nothing is ever written over."


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
