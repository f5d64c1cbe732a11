"""Covers of contents that are too long to be searched whole: what is the same by chunks first, then the rest in parts.

Chunks are cut where contents say so themselves, so whatever was only moved is found at once and anywhere. Each stretch
that is left is compared with what stands between the same neighbours in the old bytes, and with whatever of the old
bytes is not found in the new ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from countersign.updates import chunks
from countersign.updates.deltas.covers import Cover, covers
from countersign.updates.unfold.deflating import common

_PIECE = 1 << 20
_AROUND = 64 << 10
"""Bytes of the old contents beside a neighbour that are looked at."""


class Stretch(NamedTuple):
    """From `start` up to `end`."""

    start: int
    end: int


def all_covers(old: bytes, new: bytes, most: int) -> list[Cover]:
    """The covers of the new bytes; no search is over more than `most` old and new bytes together."""
    if len(old) + len(new) <= most:
        return covers(old, new)
    anchors = _grown(old, new, _anchors(old, new))
    found = list(anchors)
    gaps = _between([Stretch(anchor.new, anchor.new + anchor.length) for anchor in anchors], len(new))
    used = sorted(Stretch(anchor.old, anchor.old + anchor.length) for anchor in anchors)
    spare = _between(used, len(old))
    for batch in _batches(anchors, gaps, len(old), most):
        parts = _united([*batch.old, *_within(spare, most // 2 - _size(batch.old))])
        found += _searched(_Joined(old, parts), _Joined(new, batch.new))
    return sorted(found, key=lambda cover: cover.new)


class _Batch(NamedTuple):
    old: list[Stretch]
    new: list[Stretch]


def _anchors(old: bytes, new: bytes) -> list[Cover]:
    """Chunks of the new bytes that are chunks of the old ones, joined where both go on."""
    places: dict[str, int] = {}
    at = 0
    for chunk in chunks.cut(_pieces(old)):
        places.setdefault(chunks.chunk_id(chunk), at)
        at += len(chunk)
    found: list[Cover] = []
    at = 0
    for chunk in chunks.cut(_pieces(new)):
        length = len(chunk)
        last = found[-1] if found else Cover(0, -1, 0)
        here = last.old + last.length
        if last.new + last.length == at and old[here : here + length] == chunk:
            found[-1] = Cover(last.old, last.new, last.length + length)
        elif (place := places.get(chunks.chunk_id(chunk))) is not None:
            found.append(Cover(place, at, length))
        at += length
    return found


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def _grown(old: bytes, new: bytes, anchors: Sequence[Cover]) -> list[Cover]:
    """Each anchor as far to both sides as the bytes are the same and no other anchor stands."""
    grown: list[Cover] = []
    for place, anchor in enumerate(anchors):
        floor = grown[-1].new + grown[-1].length if grown else 0
        ceiling = anchors[place + 1].new if place + 1 < len(anchors) else len(new)
        back = min(anchor.new - floor, anchor.old, chunks.LARGEST)
        before = common(new[anchor.new - back : anchor.new][::-1], old[anchor.old - back : anchor.old][::-1])
        new_end, old_end = anchor.new + anchor.length, anchor.old + anchor.length
        ahead = min(ceiling - new_end, chunks.LARGEST)
        after = common(new[new_end : new_end + ahead], old[old_end : old_end + ahead])
        grown.append(Cover(anchor.old - before, anchor.new - before, before + anchor.length + after))
    return grown


def _between(taken: Sequence[Stretch], size: int) -> list[Stretch]:
    """What the stretches, sorted by their start, leave free of `size` bytes."""
    free: list[Stretch] = []
    at = 0
    for stretch in taken:
        if stretch.start > at:
            free.append(Stretch(at, stretch.start))
        at = max(at, stretch.end)
    return [*free, Stretch(at, size)] if at < size else free


def _batches(anchors: Sequence[Cover], gaps: Sequence[Stretch], old_size: int, most: int) -> Iterator[_Batch]:
    """The gaps with the old bytes beside their neighbours, as many at a time as may be searched together."""
    batch = _Batch([], [])
    for gap in _cut(gaps, most // 4):
        near = _near(anchors, gap, old_size, most // 4)
        if batch.new and _size(batch.new) + _size(batch.old) + _size([gap]) + _size(near) > most:
            yield batch
            batch = _Batch([], [])
        batch.new.append(gap)
        batch.old.extend(near)
    if batch.new:
        yield batch


def _cut(gaps: Sequence[Stretch], most: int) -> Iterator[Stretch]:
    for gap in gaps:
        for at in range(gap.start, gap.end, most):
            yield Stretch(at, min(gap.end, at + most))


def _near(anchors: Sequence[Cover], gap: Stretch, old_size: int, most: int) -> list[Stretch]:
    """The old bytes after the anchor before the gap, and before the anchor after it."""
    place = bisect_left(anchors, gap.end, key=lambda anchor: anchor.new)
    reach = min(most, gap.end - gap.start + _AROUND)
    found: list[Stretch] = []
    if place:
        # A gap that was cut lies further from its neighbour than its own start tells.
        before = anchors[place - 1]
        start = before.old + before.length + max(0, gap.start - before.new - before.length - _AROUND)
        found.append(Stretch(start, min(old_size, start + reach + _AROUND)))
    if place < len(anchors):
        end = anchors[place].old - max(0, anchors[place].new - gap.end - _AROUND)
        found.append(Stretch(max(0, end - reach - _AROUND), end))
    if not anchors:
        found.append(Stretch(gap.start, min(old_size, gap.start + reach)))
    return [stretch for stretch in found if stretch.start < stretch.end]


def _within(stretches: Sequence[Stretch], most: int) -> Iterator[Stretch]:
    """The first of the stretches, up to so many bytes."""
    for stretch in stretches:
        if most <= 0:
            return
        yield Stretch(stretch.start, min(stretch.end, stretch.start + most))
        most -= stretch.end - stretch.start


def _united(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches sorted, with those that touch made one."""
    united: list[Stretch] = []
    for stretch in sorted(stretches):
        if united and stretch.start <= united[-1].end:
            united[-1] = Stretch(united[-1].start, max(united[-1].end, stretch.end))
        else:
            united.append(stretch)
    return united


def _size(stretches: Sequence[Stretch]) -> int:
    return sum(stretch.end - stretch.start for stretch in stretches)


class _Joined:
    """Stretches one after another."""

    def __init__(self, data: bytes, stretches: Sequence[Stretch]) -> None:
        self.data = b"".join(data[stretch.start : stretch.end] for stretch in stretches)
        self._stretches = stretches
        self._starts = list(accumulate((s.end - s.start for s in stretches), initial=0))

    def place(self, at: int) -> tuple[int, int]:
        """Where a place of the joined stretches lies in the whole, and how much follows in its stretch."""
        number = bisect_right(self._starts, at) - 1
        start = self._stretches[number].start + at - self._starts[number]
        return start, self._stretches[number].end - start


def _searched(olds: _Joined, news: _Joined) -> Iterator[Cover]:
    """The covers of the new stretches in the old ones, in places of the whole: cut wherever a stretch ends."""
    for cover in covers(olds.data, news.data):
        done = 0
        while done < cover.length:
            old_at, old_left = olds.place(cover.old + done)
            new_at, new_left = news.place(cover.new + done)
            length = min(old_left, new_left, cover.length - done)
            yield Cover(old_at, new_at, length)
            done += length
