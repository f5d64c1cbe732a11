"""The program that reads the duration of a video from its container: MP4 (ISO/IEC 14496-12 §8.2.2, mvhd, and §8.8.2,
mehd) or WebM (RFC 9559 §5.1.2, Info). It is confined before it reads, and asks its parent for the bytes that it needs.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, BinaryIO, Literal, NamedTuple

import msgspec

from countersign.archives import confinement
from countersign.updates.worker_protocol import read_frame, write_frame

PROGRAM = "countersign.store.releases.processing.video_duration"
VideoType = Literal["video/mp4", "video/webm"]

MAX_READS = 64
"""The maximum number of ranges that are read. In most files the duration is in the first one or in the last one."""
MAX_READ_BYTES = 4096
MAX_DURATION_MS = 24 * 3600 * 1000
MEMORY_BYTES = 512 << 20
CPU_S = 5

_EBML, _SEGMENT, _INFO, _TIMESTAMP_SCALE, _DURATION = 0x1A45DFA3, 0x18538067, 0x1549A966, 0x2AD7B1, 0x4489
_DEFAULT_TIMESTAMP_SCALE_NS = 1_000_000


class DurationOrder(msgspec.Struct, frozen=True):
    """The video: its format, and its size in bytes."""

    media_type: VideoType
    size: int


class RangeRequest(msgspec.Struct, frozen=True, tag="range"):
    """A request for bytes of the video. The answer is these bytes."""

    start: Annotated[int, msgspec.Meta(ge=0)]
    length: Annotated[int, msgspec.Meta(ge=1, le=MAX_READ_BYTES)]


class VideoDuration(msgspec.Struct, frozen=True, tag="duration"):
    """The duration in milliseconds; null if the file does not contain it."""

    ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_DURATION_MS)] | None


_record_decoder: msgspec.msgpack.Decoder[RangeRequest | VideoDuration] = msgspec.msgpack.Decoder(
    RangeRequest | VideoDuration
)


def decode_record(payload: bytes | bytearray) -> RangeRequest | VideoDuration:
    """Decode a message of the process.

    Raises:
        msgspec.DecodeError: the payload is not a valid message.
    """
    return _record_decoder.decode(payload)


class UnreadableVideo(ValueError):
    """The file is damaged, or the duration is not within the ranges that may be read."""


class VideoFile:
    """The bytes of a video, of which at most MAX_READS ranges are read."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self.size = size
        self._fetch = fetch
        self._reads_left = MAX_READS
        self._start, self._window = 0, b""

    def read(self, start: int, length: int) -> bytes:
        """The bytes of the range, which must be in the file.

        Raises:
            Unreadable: the range is not in the file, is longer than MAX_READ_BYTES, or too many ranges were read.
        """
        stop = start + length
        if stop > self.size or length > MAX_READ_BYTES:
            raise UnreadableVideo("the range is not in the file")
        if not self._start <= start <= stop <= self._start + len(self._window):
            if not self._reads_left:
                raise UnreadableVideo("the duration is too far inside the file")
            self._reads_left -= 1
            self._start, self._window = start, self._fetch(start, min(MAX_READ_BYTES, self.size - start))
        content = self._window[start - self._start : stop - self._start]
        if len(content) != length:
            raise UnreadableVideo("the file is shorter than its size")
        return content


class _Part(NamedTuple):
    """A box of an MP4 file or an element of a WebM file: its name, and where its content starts and stops."""

    name: bytes | int
    start: int
    stop: int


def duration_ms(video: VideoFile, media_type: VideoType) -> int | None:
    """The duration in milliseconds, or None if the file has no readable duration between one millisecond and a day."""
    try:
        seconds = _mp4_seconds(video) if media_type == "video/mp4" else _webm_seconds(video)
    except (UnreadableVideo, struct.error):
        return None
    # This comparison is false if the value is not a number.
    if seconds is None or not 0.001 <= seconds <= MAX_DURATION_MS / 1000:
        return None
    return round(seconds * 1000)


def _mp4_seconds(video: VideoFile) -> float | None:
    movie = _first(_boxes(video, 0, video.size), b"moov")
    if movie is None:
        return None
    header = _first(_boxes(video, movie.start, movie.stop), b"mvhd")
    if header is None:
        return None
    fields = _content(video, header, 32)
    form, offset = (">IQ", 20) if fields[:1] == b"\1" else (">II", 12)
    timescale, duration = struct.unpack_from(form, fields, offset)
    if not duration:
        duration = _fragments_duration(video, movie)
    is_unknown = duration in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
    return None if is_unknown or not timescale else duration / timescale


def _fragments_duration(video: VideoFile, movie: _Part) -> int:
    """The duration that a fragmented file declares for all fragments; 0 if it declares none."""
    extends = _first(_boxes(video, movie.start, movie.stop), b"mvex")
    header = None if extends is None else _first(_boxes(video, extends.start, extends.stop), b"mehd")
    if header is None:
        return 0
    fields = _content(video, header, 12)
    return struct.unpack_from(">Q" if fields[:1] == b"\1" else ">I", fields, 4)[0]


def _boxes(video: VideoFile, start: int, stop: int) -> Iterator[_Part]:
    """The boxes of the range (ISO/IEC 14496-12 §4.2)."""
    while start + 8 <= stop:
        head = video.read(start, min(16, stop - start))
        size, name = struct.unpack_from(">I4s", head)
        head_size = 8
        if size == 1:
            size, head_size = struct.unpack_from(">Q", head, 8)[0], 16
        elif size == 0:
            size = stop - start
        if size < head_size or start + size > stop:
            raise UnreadableVideo("a box is not inside its parent")
        yield _Part(name, start + head_size, start + size)
        start += size


def _webm_seconds(video: VideoFile) -> float | None:
    segment = _first(_elements(video, 0, video.size), _SEGMENT)
    info = None if segment is None else _first(_elements(video, segment.start, segment.stop), _INFO)
    if info is None:
        return None
    scale, duration = _DEFAULT_TIMESTAMP_SCALE_NS, None
    for part in _elements(video, info.start, info.stop):
        if part.name == _TIMESTAMP_SCALE:
            scale = int.from_bytes(_content(video, part, 8), "big")
        elif part.name == _DURATION:
            content = _content(video, part, 8)
            duration = struct.unpack(">f" if len(content) == 4 else ">d", content)[0]
    return None if duration is None else duration * scale / 1e9


def _elements(video: VideoFile, start: int, stop: int) -> Iterator[_Part]:
    """The elements of the range (RFC 8794 §4 to §7). An element of unknown size is the last one."""
    while start < stop:
        head = video.read(start, min(12, stop - start))
        name_length = _vint_length(head, 4)
        size_length = _vint_length(head[name_length:], 8)
        content = start + name_length + size_length
        raw = int.from_bytes(head[name_length : name_length + size_length], "big")
        bits = 7 * size_length
        size = raw & ((1 << bits) - 1)
        end = stop if size == (1 << bits) - 1 else content + size
        if end > stop or content > stop:
            raise UnreadableVideo("an element is not inside its parent")
        yield _Part(int.from_bytes(head[:name_length], "big"), content, end)
        start = end


def _vint_length(data: bytes, max_length: int) -> int:
    """The number of bytes of the variable-size integer at the start of the data."""
    length = 9 - data[0].bit_length() if data else max_length + 1
    if length > min(max_length, len(data)):
        raise UnreadableVideo("an integer is too long")
    return length


def _first(parts: Iterator[_Part], name: bytes | int) -> _Part | None:
    return next((part for part in parts if part.name == name), None)


def _content(video: VideoFile, part: _Part, max_bytes: int) -> bytes:
    """The first bytes of the part's content, at most `max_bytes`."""
    return video.read(part.start, min(max_bytes, part.stop - part.start))


def main() -> int:
    """Read the duration of the video of the order."""
    requests, records = sys.stdin.buffer, sys.stdout.buffer
    order = msgspec.msgpack.decode(read_frame(requests), type=DurationOrder)
    confinement.confine(folder=None, memory_bytes=MEMORY_BYTES, cpu_s=CPU_S)
    video = VideoFile(order.size, _fetch_through(requests, records))
    write_frame(records, msgspec.msgpack.encode(VideoDuration(duration_ms(video, order.media_type))))
    return 0


def _fetch_through(requests: BinaryIO, records: BinaryIO) -> Callable[[int, int], bytes]:
    def fetch(start: int, length: int) -> bytes:
        write_frame(records, msgspec.msgpack.encode(RangeRequest(start, length)))
        return read_frame(requests)

    return fetch


if __name__ == "__main__":
    sys.exit(main())
