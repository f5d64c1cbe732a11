"""Conditional requests (RFC 9110 §13): ETag, If-None-Match, If-Match."""

import hashlib
from typing import Literal, TypeAlias

from countersign.kernel.errors import Refused

Coding: TypeAlias = Literal["zstd", "gzip"]

CODINGS: tuple[Coding, ...] = ("zstd", "gzip")
"""The content codings of public answers, from the best to the one that every client has."""


class PreconditionFailed(Refused):
    """The resource is no longer what If-Match names; somebody else changed it meanwhile."""

    status = 412
    code = "precondition_failed"
    title = "Precondition failed"
    resolution = "Read the resource again and repeat the change on its present ETag."


def etag_of(body: bytes) -> str:
    """A strong entity tag of exactly these bytes, quotes included."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def coded_tag(etag: str, coding: Coding) -> str:
    """The entity tag of the body in a content coding, which is another representation (RFC 9110 §8.8.3)."""
    return f'{etag[:-1]}-{coding}"'


def none_match(header: str | None, etag: str) -> bool:
    """Whether If-None-Match names the tag (weak comparison, RFC 9110 §13.1.2): the answer is 304."""
    if header is None:
        return False
    if header == etag or header.strip() == "*":
        return True
    return any(tag.strip().removeprefix("W/") == etag for tag in header.split(","))


def require_match(header: str | None, etag: str) -> None:
    """Insist that If-Match, when sent, names the tag (strong comparison, RFC 9110 §13.1.1).

    Raises:
        PreconditionFailed: it names other tags only.
    """
    if header is None or header.strip() == "*":
        return
    if not any(_bare(tag.strip()) == etag for tag in header.split(",")):
        raise PreconditionFailed("the resource was changed since it was read")


def _bare(tag: str) -> str:
    """The tag of the body that was sent in a content coding."""
    for coding in CODINGS:
        if tag.endswith(f'-{coding}"'):
            return tag[: -len(coding) - 2] + '"'
    return tag
