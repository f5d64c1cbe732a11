"""Refusals: the one exception family that reaches a caller."""

from collections.abc import Mapping, Sequence
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
