"""Pure rules of uploads: filenames, which stretch a request carries, what has arrived and what is missing."""

import unicodedata
from collections.abc import Iterable, Sequence

from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import InvalidRequest, Refused, invalid_member, invalid_parameter
from countersign.kernel.http.range_response import ByteRange, content_range

MAX_FILENAME_BYTES = 255
MAX_PARTS = 10_000
MAX_SHOWN = 100
"""Stretches named in Upload-Received, so that the header stays short; GET names all."""


class TooManyParts(Refused):
    """The file comes in more pieces than the service keeps account of."""

    status = 409
    code = "too_many_parts"
    title = "Too many parts"
    resolution = "Announce the file again and send it in fewer, larger parts."


def check_filename(filename: str) -> None:
    """Insist on a name that can stand in a folder of any common system.

    Raises:
        InvalidRequest: empty, over 255 bytes of UTF-8, "." or "..", or with a slash, a backslash or a control
            character (line ends, bidirectional overrides and the like included).
    """
    if not 1 <= len(filename.encode("utf-8", "surrogatepass")) <= MAX_FILENAME_BYTES:
        raise invalid_member("/filename", f"must have 1 to {MAX_FILENAME_BYTES} bytes in UTF-8")
    if filename in (".", ".."):
        raise invalid_member("/filename", "must name a file")
    if any(letter in "/\\" or unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in filename):
        raise invalid_member("/filename", "must hold no slash, backslash or control character")


def span_of_request(range_header: str | None, length_header: str | None, size: int) -> ByteRange:
    """The stretch of the file that a request's body is: by Content-Range, or the whole.

    Raises:
        InvalidRequest: Content-Range is malformed or does not fit the file, or Content-Length is another length.
    """
    span = ByteRange(0, size) if range_header is None else content_range(range_header, size)
    if length_header is not None and length_header != str(span.length):
        name = "Content-Length" if range_header is None else "Content-Range"
        raise invalid_parameter(name, f"the body has {length_header} bytes, and {span.length} were to come")
    return span


def arrived(parts: Iterable[Part]) -> list[ByteRange]:
    """The stretches that the parts cover together: in order, apart from each other."""
    spans: list[ByteRange] = []
    for part in sorted(parts, key=lambda part: part.offset):
        stop = part.offset + part.length
        if spans and part.offset <= spans[-1].stop:
            spans[-1] = ByteRange(spans[-1].start, max(spans[-1].stop, stop))
        else:
            spans.append(ByteRange(part.offset, stop))
    return spans


def is_whole(parts: Iterable[Part], size: int) -> bool:
    """Whether nothing of the file is missing."""
    return arrived(parts) == [ByteRange(0, size)]


def missing(parts: Iterable[Part], span: ByteRange) -> list[ByteRange]:
    """What of the span has not arrived yet, in order."""
    gaps: list[ByteRange] = []
    position = span.start
    for known in arrived(parts):
        if known.start > position:
            gaps.append(ByteRange(position, min(known.start, span.stop)))
        position = max(position, known.stop)
        if position >= span.stop:
            break
    if position < span.stop:
        gaps.append(ByteRange(position, span.stop))
    return [gap for gap in gaps if gap.start < gap.stop]


def pairs(parts: Iterable[Part]) -> list[tuple[int, int]]:
    """What has arrived, each stretch from its first byte to its last (as Content-Range counts)."""
    return [(span.start, span.stop - 1) for span in arrived(parts)]


def received_header(parts: Iterable[Part]) -> str:
    """What has arrived as `FIRST-LAST,FIRST-LAST,…`, the first 100 stretches; empty when nothing has."""
    return ",".join(f"{first}-{last}" for first, last in pairs(parts)[:MAX_SHOWN])


def require_few(parts: Sequence[Part]) -> None:
    """Keep one file from coming in countless crumbs.

    Raises:
        TooManyParts: 10,000 parts have arrived.
    """
    if len(parts) >= MAX_PARTS:
        raise TooManyParts(f"the file has come in {len(parts)} parts, and it may have {MAX_PARTS}")


def wrong_length(is_long: bool, span: ByteRange) -> InvalidRequest:
    """The refusal of a body that ended early or went on after its end, though the connection held."""
    words = "is longer" if is_long else "is shorter"
    return invalid_parameter("Content-Range", f"the body {words} than the {span.length} bytes that were to come")
