"""A file's bytes as what its archives hold, with a recipe for the way back; and a file of old as a reference.

Unfolded, a file is its skeleton (everything but the streams that can be made again), then what each stream holds, which
may be unfolded in its turn. A reference is never folded again, so nothing has to be reproduced: it is the file as it
is, its skeleton, and what every stream of it holds.
"""

from collections.abc import Iterator
from typing import NamedTuple

from countersign.updates.numbers import Malformed, Reader, packed
from countersign.updates.unfold import deflating
from countersign.updates.unfold.spans import LEVELS, Budget, Span, spans

MAX_LENGTH = 1 << 40


class Unfolded(NamedTuple):
    """The bytes without compression, and the recipe: empty for a file that stays as it is."""

    content: bytes
    recipe: bytes


def unfold(data: bytes, budget: Budget, levels: int = LEVELS) -> Unfolded:
    """The file unfolded; `fold` gives the very bytes again, with the zlib of this Python."""
    found = spans(data, budget) if levels else []
    search = deflating.Search()
    ways = [(span, search.way(data[span.start : span.end], span.content)) for span in found]
    kept = [(span, way) for span, way in ways if way is not None]
    if not kept:
        return Unfolded(data, b"")
    recipe = [packed([len(kept), *_gaps(data, [span for span, _ in kept])])]
    pieces = [_skeleton(data, [span for span, _ in kept])]
    for span, way in kept:
        inner = unfold(span.content, budget, levels - 1)
        recipe.append(packed([len(inner.content) * 2 + bool(inner.recipe)]) + deflating.encode(way) + inner.recipe)
        pieces.append(inner.content)
    return Unfolded(b"".join(pieces), b"".join(recipe))


def fold(content: bytes, recipe: bytes, most: int) -> bytes:
    """The file's bytes, at most `most`.

    Raises:
        Malformed: the recipe is none for this content.
    """
    reader = Reader(recipe)
    data = _fold(memoryview(content), reader, LEVELS, most)
    if not reader.is_at_end:
        raise Malformed("a recipe is longer than its file")
    return data


def reference(data: bytes, budget: Budget, levels: int = LEVELS) -> Iterator[bytes]:
    """The pieces of what new files are compared with: the file, then what its streams hold."""
    yield data
    found = spans(data, budget) if levels else []
    if found:
        yield _skeleton(data, found)
    for span in found:
        yield from reference(span.content, budget, levels - 1)


def _fold(content: memoryview, reader: Reader, levels: int, most: int) -> bytes:
    if levels == 0:
        raise Malformed("a recipe goes deeper than archives are looked into")
    count = reader.number(MAX_LENGTH)
    gaps = reader.numbers(count + 1, MAX_LENGTH)
    at = sum(gaps)
    skeleton = content[:at]
    pieces: list[bytes | memoryview] = []
    read = 0
    size = at
    for gap in gaps[:-1]:
        pieces.append(skeleton[read : read + gap])
        read += gap
        length, is_folded = divmod(reader.number(MAX_LENGTH), 2)
        way = deflating.decode(reader, MAX_LENGTH)
        held = content[at : at + length]
        if len(held) != length:
            raise Malformed("a recipe is for more than there is")
        at += length
        inner = _fold(held, reader, levels - 1, MAX_LENGTH) if is_folded else bytes(held)
        pieces.append(deflating.deflated(inner, way))
        size += len(pieces[-1])
        if size > most:
            raise Malformed("a recipe makes more than was announced")
    if at != len(content):
        raise Malformed("a recipe leaves something over")
    return b"".join((*pieces, skeleton[read:]))


def _gaps(data: bytes, found: list[Span]) -> list[int]:
    ends = [0, *(span.end for span in found)]
    starts = [*(span.start for span in found), len(data)]
    return [start - end for start, end in zip(starts, ends, strict=True)]


def _skeleton(data: bytes, found: list[Span]) -> bytes:
    ends = [0, *(span.end for span in found)]
    starts = [*(span.start for span in found), len(data)]
    return b"".join(data[end:start] for start, end in zip(starts, ends, strict=True))
