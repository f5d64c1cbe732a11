"""Which ranges of which parts form the whole, compared with simply copying bytes over bytes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.blobs.layout import PartRange, part_ranges
from countersign.kernel.blobs.port import Part


def _within(size: int, offset: int, length: int, name: str) -> Part:
    begin = min(offset, size)
    return Part(begin, min(length, size - begin), name)


def _flat(part_ranges: list[PartRange]) -> list[int]:
    return [int(span.part.sha256) for span in part_ranges for _ in range(span.start, span.stop)]


def _plainly(parts: list[Part], size: int) -> list[int | None]:
    laid: list[int | None] = [None] * size
    for number, later_part in enumerate(parts):
        laid[later_part.offset : later_part.offset + later_part.length] = [number] * later_part.length
    return laid


@given(
    size=st.integers(0, 30),
    stretches=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8),
)
def test_where_parts_overlap_the_later_part_counts(size: int, stretches: list[tuple[int, int]]) -> None:
    parts = [_within(size, *stretch, str(number)) for number, stretch in enumerate(stretches)]
    expected = _plainly(parts, size)

    try:
        ranges = part_ranges(parts, size)
    except ValueError:
        assert None in expected
        return

    assert _flat(ranges) == expected
    assert all(earlier.part is not later.part for earlier, later in itertools.pairwise(ranges))
