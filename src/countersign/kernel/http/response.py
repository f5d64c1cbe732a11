"""HTTP responses of handlers, entity tags for conditional requests (RFC 9110 §13), and media types."""

import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec

from countersign.kernel.errors import Refused

JSON = "application/json"
EVENTS = "text/event-stream"
"""The media type of a stream of server-sent events (WHATWG HTML §9.2)."""

EncodedHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Headers with names in lower case, as they are sent."""

_encoder = msgspec.json.Encoder()


@dataclass(slots=True)
class Response:
    """An HTTP response, without the headers that every response gets.

    `etag` is the strong entity tag with its quotes, if the handler knows the tag already. A response that
    `is_transient` is not stored for its Idempotency-Key, so a retry may get a different response.
    """

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    is_transient: bool = False


def encode(value: object) -> bytes:
    """Return the value (structs, lists, plain values) as JSON bytes."""
    return _encoder.encode(value)


def json(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Return a response with the value as JSON."""
    return Response(status, _encoder.encode(value), JSON, headers)


def encode_headers(headers: Iterable[tuple[str, str]]) -> EncodedHeaders:
    """Return the headers as they are sent. Characters outside Latin-1 become question marks."""
    return tuple([(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers])


def event(name: str, data: object) -> bytes:
    """Return a server-sent event with the data as JSON; an empty name is not sent."""
    head = b"event: %b\n" % name.encode() if name else b""
    return b"%bdata: %b\n\n" % (head, _encoder.encode(data))


def event_stream(events: AsyncIterator[bytes]) -> Response:
    """Return a response that sends the events as they happen."""
    return Response(200, events, EVENTS, (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")))


def no_content() -> Response:
    """Return the response 204 without a body."""
    return Response(204)


Coding: TypeAlias = Literal["zstd", "gzip"]

CODINGS: tuple[Coding, ...] = ("zstd", "gzip")
"""The content codings of public responses, best first."""


class PreconditionFailed(Refused):
    """The resource has changed since the entity tag in If-Match."""

    status = 412
    code = "precondition_failed"
    title = "Precondition failed"
    resolution = "Read the resource again and repeat the change with its current ETag."


def etag_of(body: bytes) -> str:
    """Return a strong entity tag of these bytes, with its quotes."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def etag_for_coding(etag: str, coding: Coding) -> str:
    """Return the entity tag of the body in a content coding. Each coding needs its own tag, because it is another
    representation (RFC 9110 §8.8.3)."""
    return f'{etag[:-1]}-{coding}"'


def if_none_match_matches(header: str | None, etag: str) -> bool:
    """Return whether If-None-Match names the tag (weak comparison, RFC 9110 §13.1.2). If so, the response is 304."""
    if header is None:
        return False
    if header == etag or header.strip() == "*":
        return True
    return any(tag.strip().removeprefix("W/") == etag for tag in header.split(","))


def require_match(header: str | None, etag: str) -> None:
    """Check that If-Match, if it was sent, names the tag (strong comparison, RFC 9110 §13.1.1).

    Raises:
        PreconditionFailed: If-Match names other tags only.
    """
    if header is None or header.strip() == "*":
        return
    if not any(_uncoded_tag(tag.strip()) == etag for tag in header.split(",")):
        raise PreconditionFailed("the resource was changed since it was read")


def _uncoded_tag(tag: str) -> str:
    """Return the tag of the uncoded body, given the tag of the body in any content coding."""
    for coding in CODINGS:
        if tag.endswith(f'-{coding}"'):
            return tag[: -len(coding) - 2] + '"'
    return tag


Uuid: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
Uri: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]
UriReference: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri-reference"})]
Moment: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
CursorText: TypeAlias = Annotated[
    str,
    msgspec.Meta(description="`next_cursor` of the previous page, or the cursor of its Link header."),
]
Sha256: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
