"""The process that unpacks one archive: started by `apart`, confined before it reads the first byte."""

import signal
import sys
from pathlib import Path
from typing import Literal

import msgspec

from countersign.archives import confined
from countersign.archives.extracting import extract
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.kernel.errors import StorageFull

_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a fault of the reader raises: the same bytes fail again."""
TREE = "tree"
"""The folder that it unpacks to, in the one that it is started in."""


class Asked(msgspec.Struct):
    """What the process is to do with the archive that is its stdin."""

    limits: Limits
    name: str
    durable: bool
    memory_bytes: int


class Told(msgspec.Struct):
    """How it ended: unpacked with these counts, or why not."""

    how: Literal["done", "refused", "unknown", "full", "failed"]
    files: int = 0
    folders: int = 0
    links: int = 0
    size: int = 0
    rule: str = ""
    entry: str | None = None
    detail: str = ""


def perform(asked: Asked) -> Told:
    """Confine this process for good, and unpack stdin to the folder `tree` in the present one."""
    confined.enter(folder=Path(), memory_bytes=asked.memory_bytes, cpu_s=asked.limits.seconds + 1)
    try:
        with open(0, "rb", closefd=False) as source:
            done = extract(source, Path(TREE), asked.limits, name=asked.name, durable=asked.durable)
    except ArchiveRefused as error:
        return Told("refused", rule=error.rule, entry=error.entry, detail=error.detail)
    except _FAULTS as fault:
        return Told("refused", rule="unreadable", detail=f"the reader failed: {type(fault).__name__}")
    except MemoryError:
        return Told("refused", rule="memory", detail="reading it needs more memory than is allowed")
    except ArchiveUnknown as error:
        return Told("unknown", detail=error.detail)
    except StorageFull as error:
        return Told("full", detail=error.detail)
    except OSError as error:
        return Told("failed", detail=error.strerror or str(error))
    return Told("done", done.files, done.folders, done.links, done.size)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    told = perform(msgspec.json.decode(sys.argv[1], type=Asked))
    sys.stdout.buffer.write(msgspec.json.encode(told))
