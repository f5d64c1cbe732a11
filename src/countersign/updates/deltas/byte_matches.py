"""Finds matches between old and new bytes with HDiffPatch. Long contents are matched by chunks first, then in parts."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import hdiffpatch

from countersign.updates import chunks
from countersign.updates.recompress.zlib_settings import common_prefix

_MAGIC = b"HDIFF13&\0"
_HEAD = 11
_COUNT = 2


class Cover(NamedTuple):
    """`length` bytes at the offset `new` are nearly equal to the bytes at the offset `old`. Covers do not overlap in
    the new bytes and are in order."""

    old: int
    new: int
    length: int


class UnexpectedDiff(Exception):
    """The hdiffpatch library wrote a diff in an unsupported format."""


def covers(old_content: bytes, new_content: bytes) -> list[Cover]:
    """Return the covers of the new bytes. This takes about nine times as much memory as the old bytes.

    Raises:
        UnexpectedDiff: the library changed its format.
    """
    if not old_content or not new_content:
        return []
    reader = _DiffReader(hdiffpatch.diff(old_content, new_content, None, validate=False))
    head = [reader.number() for _ in range(_HEAD)]
    covers_found: list[Cover] = []
    old_end = new_end = 0
    for _ in range(head[_COUNT]):
        step, gap, length = reader.signed(), reader.number(), reader.number()
        cover = Cover(old_end + step, new_end + gap, length)
        old_end, new_end = cover.old + length, cover.new + length
        covers_found.append(cover)
    if any(not _is_inside(cover, old_content, new_content) for cover in covers_found):
        raise UnexpectedDiff("hdiffpatch matched outside of the files")
    return [cover for cover in covers_found if cover.length]


def _is_inside(cover: Cover, old_content: bytes, new_content: bytes) -> bool:
    return 0 <= cover.old <= len(old_content) - cover.length and 0 <= cover.new <= len(new_content) - cover.length


class _DiffReader:
    """Reads the numbers in a diff of HDiffPatch: seven bits per byte, the highest first."""

    def __init__(self, diff: bytes) -> None:
        if not diff.startswith(_MAGIC):
            raise UnexpectedDiff(f"hdiffpatch wrote {diff[:16]!r}")
        self._diff = diff
        self._at = len(_MAGIC)

    def number(self) -> int:
        return self._rest(0, 0x80)

    def signed(self) -> int:
        is_negative = self._diff[self._at] & 0x80
        magnitude = self._rest(0, 0x40)
        return -magnitude if is_negative else magnitude

    def _rest(self, number: int, mark: int) -> int:
        byte = self._diff[self._at]
        self._at += 1
        number = byte & (mark - 1)
        while byte & mark:
            byte = self._diff[self._at]
            self._at += 1
            mark = 0x80
            number = number << 7 | byte & 0x7F
        return number


_COMPARE_BYTES = 1 << 20
_AROUND = 64 << 10
"""The number of additional old bytes to search beside a neighbouring anchor."""


class Interval(NamedTuple):
    """A range of offsets from `start` to `end`, which is not included."""

    start: int
    end: int


def all_covers(old_content: bytes, new_content: bytes, limit: int) -> list[Cover]:
    """Return the covers of the new bytes. Each search compares at most `limit` old and new bytes together."""
    if len(old_content) + len(new_content) <= limit:
        return covers(old_content, new_content)
    anchors = _grow(old_content, new_content, _anchors(old_content, new_content))
    covers_found = list(anchors)
    gaps = _gaps_between([Interval(anchor.new, anchor.new + anchor.length) for anchor in anchors], len(new_content))
    used_intervals = sorted(Interval(anchor.old, anchor.old + anchor.length) for anchor in anchors)
    spare_intervals = _gaps_between(used_intervals, len(old_content))
    for batch in _batches(anchors, gaps, len(old_content), limit):
        intervals = _union([*batch.old, *_take_bytes(spare_intervals, limit // 2 - _size(batch.old))])
        covers_found += _search(_JoinedIntervals(old_content, intervals), _JoinedIntervals(new_content, batch.new))
    return sorted(covers_found, key=lambda cover: cover.new)


class _Batch(NamedTuple):
    old: list[Interval]
    new: list[Interval]


def _anchors(old_content: bytes, new_content: bytes) -> list[Cover]:
    """Return the chunks that are in both the old and the new bytes. Adjacent chunks are joined."""
    position_by_anchor: dict[str, int] = {}
    position = 0
    for chunk in chunks.cut(_pieces(old_content)):
        position_by_anchor.setdefault(chunks.chunk_id(chunk), position)
        position += len(chunk)
    anchors: list[Cover] = []
    position = 0
    for chunk in chunks.cut(_pieces(new_content)):
        length = len(chunk)
        last_anchor = anchors[-1] if anchors else Cover(0, -1, 0)
        old_position = last_anchor.old + last_anchor.length
        if (
            last_anchor.new + last_anchor.length == position
            and old_content[old_position : old_position + length] == chunk
        ):
            anchors[-1] = Cover(last_anchor.old, last_anchor.new, last_anchor.length + length)
        elif (index := position_by_anchor.get(chunks.chunk_id(chunk))) is not None:
            anchors.append(Cover(index, position, length))
        position += length
    return anchors


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + _COMPARE_BYTES] for start in range(0, len(data), _COMPARE_BYTES))


def _grow(old_content: bytes, new_content: bytes, anchors: Sequence[Cover]) -> list[Cover]:
    """Extend each anchor on both sides while the bytes are equal, up to the next anchor."""
    grown_covers: list[Cover] = []
    for index, anchor in enumerate(anchors):
        floor = grown_covers[-1].new + grown_covers[-1].length if grown_covers else 0
        ceiling = anchors[index + 1].new if index + 1 < len(anchors) else len(new_content)
        bytes_back = min(anchor.new - floor, anchor.old, chunks.MAX_BYTES)
        bytes_before = common_prefix(
            new_content[anchor.new - bytes_back : anchor.new][::-1],
            old_content[anchor.old - bytes_back : anchor.old][::-1],
        )
        new_end, old_end = anchor.new + anchor.length, anchor.old + anchor.length
        bytes_ahead = min(ceiling - new_end, chunks.MAX_BYTES)
        bytes_after = common_prefix(
            new_content[new_end : new_end + bytes_ahead], old_content[old_end : old_end + bytes_ahead]
        )
        grown_covers.append(
            Cover(anchor.old - bytes_before, anchor.new - bytes_before, bytes_before + anchor.length + bytes_after)
        )
    return grown_covers


def _gaps_between(intervals: Sequence[Interval], size: int) -> list[Interval]:
    """Return the ranges of `size` bytes that the intervals, sorted by start, do not cover."""
    gaps: list[Interval] = []
    position = 0
    for interval in intervals:
        if interval.start > position:
            gaps.append(Interval(position, interval.start))
        position = max(position, interval.end)
    return [*gaps, Interval(position, size)] if position < size else gaps


def _batches(anchors: Sequence[Cover], gaps: Sequence[Interval], old_size: int, limit: int) -> Iterator[_Batch]:
    """Group the gaps and the old bytes near their neighbours into batches of at most `limit` bytes."""
    batch = _Batch([], [])
    for gap in _split(gaps, limit // 4):
        nearby_intervals = _neighbourhood(anchors, gap, old_size, limit // 4)
        if batch.new and _size(batch.new) + _size(batch.old) + _size([gap]) + _size(nearby_intervals) > limit:
            yield batch
            batch = _Batch([], [])
        batch.new.append(gap)
        batch.old.extend(nearby_intervals)
    if batch.new:
        yield batch


def _split(gaps: Sequence[Interval], limit: int) -> Iterator[Interval]:
    for gap in gaps:
        for at in range(gap.start, gap.end, limit):
            yield Interval(at, min(gap.end, at + limit))


def _neighbourhood(anchors: Sequence[Cover], gap: Interval, old_size: int, limit: int) -> list[Interval]:
    """Return the old bytes that follow the anchor before the gap and precede the anchor after the gap."""
    index = bisect_left(anchors, gap.end, key=lambda anchor: anchor.new)
    reach = min(limit, gap.end - gap.start + _AROUND)
    intervals: list[Interval] = []
    if index:
        # A gap that was split can be far from its neighbour. Search the old bytes at the same distance from the old
        # bytes of the neighbour.
        previous_anchor = anchors[index - 1]
        start = (
            previous_anchor.old
            + previous_anchor.length
            + max(0, gap.start - previous_anchor.new - previous_anchor.length - _AROUND)
        )
        intervals.append(Interval(start, min(old_size, start + reach + _AROUND)))
    if index < len(anchors):
        end = anchors[index].old - max(0, anchors[index].new - gap.end - _AROUND)
        intervals.append(Interval(max(0, end - reach - _AROUND), end))
    if not anchors:
        intervals.append(Interval(gap.start, min(old_size, gap.start + reach)))
    return [interval for interval in intervals if interval.start < interval.end]


def _take_bytes(intervals: Sequence[Interval], limit: int) -> Iterator[Interval]:
    """Yield the first intervals, up to `limit` bytes."""
    for interval in intervals:
        if limit <= 0:
            return
        yield Interval(interval.start, min(interval.end, interval.start + limit))
        limit -= interval.end - interval.start


def _union(intervals: Sequence[Interval]) -> list[Interval]:
    """Sort the intervals and merge those that touch or overlap."""
    united_intervals: list[Interval] = []
    for interval in sorted(intervals):
        if united_intervals and interval.start <= united_intervals[-1].end:
            united_intervals[-1] = Interval(united_intervals[-1].start, max(united_intervals[-1].end, interval.end))
        else:
            united_intervals.append(interval)
    return united_intervals


def _size(intervals: Sequence[Interval]) -> int:
    return sum(interval.end - interval.start for interval in intervals)


class _JoinedIntervals:
    """The bytes of several intervals, joined."""

    def __init__(self, data: bytes, intervals: Sequence[Interval]) -> None:
        self.data = b"".join(data[interval.start : interval.end] for interval in intervals)
        self._intervals = intervals
        self._starts = list(accumulate((s.end - s.start for s in intervals), initial=0))

    def locate(self, position: int) -> tuple[int, int]:
        """Convert an offset in the joined bytes. Return the original offset, and the number of bytes from it to the
        end of its interval."""
        number = bisect_right(self._starts, position) - 1
        start = self._intervals[number].start + position - self._starts[number]
        return start, self._intervals[number].end - start


def _search(olds: _JoinedIntervals, news: _JoinedIntervals) -> Iterator[Cover]:
    """Find the covers of the joined intervals. Yield them with original offsets, split where an interval ends."""
    for cover in covers(olds.data, news.data):
        searched_bytes = 0
        while searched_bytes < cover.length:
            old_at, old_left = olds.locate(cover.old + searched_bytes)
            new_at, new_left = news.locate(cover.new + searched_bytes)
            length = min(old_left, new_left, cover.length - searched_bytes)
            yield Cover(old_at, new_at, length)
            searched_bytes += length
