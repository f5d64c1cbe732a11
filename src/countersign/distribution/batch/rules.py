"""From the operations of a batch to the requests they stand for, decided before any of them runs."""

import re
from collections.abc import Sequence
from urllib.parse import quote

from countersign.distribution.batch.schemas import Operation
from countersign.distribution.context import PREFIX
from countersign.kernel import ids
from countersign.kernel.errors import invalid_member
from countersign.kernel.http.request import Subrequest
from countersign.kernel.http.response import encode

HEADERS = frozenset({"idempotency-key", "if-match", "if-none-match", "prefer"})
ANSWERS_BYTES = 32 << 20
"""Of all answers together: each operation may have its share."""

_AS_JSON = ("content-type", "application/json")
_CONTROL = re.compile(r"[\x00-\x20\x7f#\\]")
_VISIBLE = re.compile(r"[\x20-\x7e]*")
_URL = "!$%&'()*+,-./:;=?@_~[]"


def requests_of(operations: Sequence[Operation], base_url: str, key: str | None) -> list[Subrequest]:
    """The requests of the operations, in their order. With the batch's own Idempotency-Key each gets one derived from
    it, unless it has its own: a repeated batch repeats the effect of none.

    Raises:
        InvalidRequest: a path or a header of an operation cannot be sent; the pointer names its index.
    """
    max_bytes = ANSWERS_BYTES // len(operations)
    return [_request(each, index, base_url, key, max_bytes) for index, each in enumerate(operations)]


def _request(operation: Operation, index: int, base_url: str, key: str | None, max_bytes: int) -> Subrequest:
    target = _target(operation.path, f"/operations/{index}/path", base_url)
    headers = _headers(operation.headers or {}, f"/operations/{index}/headers")
    if key is not None and operation.method != "GET":
        headers.setdefault("idempotency-key", ids.derived_uuid(key, str(index)))
    if operation.body is None:
        return Subrequest(operation.method, target, tuple(headers.items()), b"", max_bytes, batched=True)
    sent = (_AS_JSON, *headers.items())
    return Subrequest(operation.method, target, sent, encode(operation.body), max_bytes, batched=True)


def _target(path: str, pointer: str, base_url: str) -> str:
    """The whole path of an operation. Letters outside ASCII are sent as a client would (RFC 3987 §3.1)."""
    relative = path
    for own in (base_url, PREFIX):
        if path.startswith(f"{own}/"):
            relative = path[len(own) :]
            break
    if not relative.startswith("/"):
        raise invalid_member(pointer, f"must begin with / or with {base_url}/")
    if _CONTROL.search(relative):
        raise invalid_member(pointer, "holds a space, a control character, # or a backslash: percent-encode it")
    try:
        return PREFIX + (relative if relative.isascii() else quote(relative, safe=_URL))
    except UnicodeEncodeError as error:
        raise invalid_member(pointer, "holds half of a surrogate pair") from error


def _headers(given: dict[str, str], pointer: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower not in HEADERS:
            raise invalid_member(pointer, "may hold Idempotency-Key, If-Match, If-None-Match and Prefer alone")
        if lower in headers:
            raise invalid_member(pointer, f"names {lower} twice")
        if not _VISIBLE.fullmatch(value):
            raise invalid_member(pointer, f"{lower} holds what no header can carry")
        headers[lower] = value
    return headers
