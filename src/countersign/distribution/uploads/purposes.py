"""What an upload is for: the features above say what becomes of the bytes once they are whole."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from countersign.distribution.context import Store
from countersign.distribution.uploads.queries import PurposeName, Upload
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.http.response import Response


@dataclass(frozen=True, slots=True)
class Content:
    """A sealed blob that an upload became; width and height in pixels where it is an image."""

    sha256: str
    size: int
    media_type: str | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a feature does with its uploads.

    content  from the digest of the whole bytes to the blob that is kept, outside of any transaction; a refusal
             with 422 voids the upload
    keep     refers to that blob, in the transaction that finishes the upload
    abandon  removes what the announcement made, in the transaction that voids the upload
    answer   tells what the finished upload became (201)
    """

    name: PurposeName
    content: Callable[[Store, Upload, str], Awaitable[Content]]
    keep: Callable[[Transaction, Upload, Content], Awaitable[None]]
    abandon: Callable[[Transaction, Upload], Awaitable[None]]
    answer: Callable[[Reader, Upload], Awaitable[Response]]
