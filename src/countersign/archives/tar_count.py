"""How many entries a tar file has, counted by its headers alone before its files are worked on."""

from countersign.archives import tar_header
from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import Reader
from countersign.archives.tar_header import BLOCK

_EXTENSIONS = (b"x", b"g", b"L", b"K")


def check_count(reader: Reader, limits: Limits, gauge: Gauge) -> None:
    """Refuse a tar file of more entries than are allowed. Anything else that is wrong with it is left to the walk.

    Raises:
        ArchiveRefused: `too-many-entries`, or as the gauge does.
    """
    count = 0
    while len(block := reader.up_to(BLOCK)) == BLOCK and block.strip(b"\0"):
        try:
            header = tar_header.parse(block, limits)
        except ArchiveRefused:
            return
        if header.type not in _EXTENSIONS:
            count += 1
            gauge.entry()
            if count > limits.entries:
                raise ArchiveRefused("too-many-entries", f"there are more than {limits.entries}")
        if header.size:
            reader.skip(header.size + -header.size % BLOCK)
