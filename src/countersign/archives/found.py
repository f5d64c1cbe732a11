"""What a format's reader hands on: an entry whose bytes and place are right, and whose name nobody has judged yet."""

from collections.abc import Iterator
from typing import NamedTuple

from countersign.archives.entry import Kind

NOTHING: Iterator[bytes] = iter(())


class Found(NamedTuple):
    """An entry as it stands in the archive: `name` may end with one slash and begin with `./`."""

    name: str
    kind: Kind
    size: int
    mode: int
    target: str
    pieces: Iterator[bytes]
