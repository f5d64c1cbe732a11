"""Pulls one build into a folder, in a process of its own that may be killed.

Usage: victim.py FOLDER VERSION [two-steps]
"""

import sys
from pathlib import Path

from countersign.updates.install import installer, swap
from countersign.updates.install.installer import PullOptions
from tests.updates.builds import BuildServer, SampleBuild, build

CORE = bytes(range(256)) * 1200
OLD = build(
    "1.0",
    {"bin/tool": CORE, "lib/a.txt": b"a" * 3000, "lib/b.txt": b"bee", "gone.txt": b"gone"},
    executables=("bin/tool",),
    links={"tool": "bin/tool"},
)
NEW = build(
    "2.0",
    {
        "bin/tool": CORE[:70_000] + b"new" + CORE[70_000:],
        "lib/moved.txt": b"a" * 3000,
        "lib/b.txt": b"bee",
        "n": b"new",
    },
    executables=("bin/tool",),
    links={"again": "n"},
)
BUILDS: dict[str, SampleBuild] = {"1.0": OLD, "2.0": NEW}


def pull(folder: Path, version: str) -> None:
    """Pull the version by chunks, because making a delta takes longer than everything else."""
    shelf = BuildServer(BUILDS[version])
    installer.pull(folder, shelf.wanted.release(), shelf, PullOptions())


if __name__ == "__main__":
    if "two-steps" in sys.argv:
        swap.exchange = lambda left, right: False  # as on a file system without that call
    pull(Path(sys.argv[1]), sys.argv[2])
