"""Chunk boundaries depend on the contents, and damaged chunks are refused."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.updates import chunks
from countersign.updates.chunks import ChunkDamaged

CONTENTS = random.Random(7).randbytes(3 << 20)


def cut_in(pieces: list[bytes]) -> list[bytes]:
    return list(chunks.cut(iter(pieces)))


def test_chunks_put_together_are_the_contents() -> None:
    cut_chunks = cut_in([CONTENTS])

    assert b"".join(cut_chunks) == CONTENTS
    assert all(chunks.MIN_BYTES <= len(chunk) <= chunks.MAX_BYTES for chunk in cut_chunks[:-1])


@given(st.lists(st.integers(0, len(CONTENTS)), max_size=6))
def test_cuts_do_not_depend_on_how_the_bytes_arrive(edges: list[int]) -> None:
    cut_points = [0, *sorted(edges), len(CONTENTS)]
    pieces = [CONTENTS[start:stop] for start, stop in itertools.pairwise(cut_points)]

    assert cut_in(pieces) == cut_in([CONTENTS])


def test_cuts_of_long_contents_do_not_depend_on_how_the_bytes_arrive() -> None:
    contents = random.Random(8).randbytes(11 << 20)

    whole_cuts = cut_in([contents])

    assert cut_in([contents[at : at + 70_000] for at in range(0, len(contents), 70_000)]) == whole_cuts


def test_inserted_bytes_change_only_the_chunks_around_them() -> None:
    changed_contents = CONTENTS[:1_000_000] + b"something new" + CONTENTS[1_000_000:]

    chunks_before, chunks_after = set(cut_in([CONTENTS])), set(cut_in([changed_contents]))

    assert len(chunks_after - chunks_before) <= 3


def test_an_empty_file_has_no_chunk() -> None:
    assert cut_in([]) == [] == cut_in([b""])


@given(st.binary(max_size=100_000))
def test_a_chunk_is_restored_from_its_frame(contents: bytes) -> None:
    frame = chunks.compress(contents)

    assert chunks.decompress(frame, len(contents), chunks.chunk_id(contents)) == contents


@pytest.mark.parametrize(
    ("frame", "size"),
    [
        (chunks.compress(b"a" * 1000), 999),
        (chunks.compress(b"a" * 1000), 1001),
        (chunks.compress(b"b" * 1000), 1000),
        (chunks.compress(b"a" * 1000)[:-1], 1000),
        (b"no frame", 1000),
        (chunks.compress(b"a" * 100_000_000), 1000),
    ],
    ids=["longer", "shorter", "other", "cut", "nonsense", "bomb"],
)
def test_a_damaged_chunk_is_refused(frame: bytes, size: int) -> None:
    with pytest.raises(ChunkDamaged):
        chunks.decompress(frame, size, chunks.chunk_id(b"a" * 1000))
