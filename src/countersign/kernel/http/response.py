"""What a handler gives back: status, headers, and a body of bytes or a stream of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

JSON = "application/json"

_encoder = msgspec.json.Encoder()


@dataclass(slots=True)
class Answer:
    """An HTTP answer before the headers that every answer carries are added.

    `etag` is the strong entity tag of catalog data where the handler knows it already (quotes included). One that
    `is_transient` is not stored for its Idempotency-Key: the same request may be answered otherwise in a moment.
    """

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    is_transient: bool = False


def encode(value: object) -> bytes:
    """The value (structs, lists, plain values) as JSON bytes."""
    return _encoder.encode(value)


def json(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """An answer that carries the value as JSON."""
    return Answer(status, _encoder.encode(value), JSON, headers)


def no_content() -> Answer:
    """204, with nothing to say."""
    return Answer(204)
