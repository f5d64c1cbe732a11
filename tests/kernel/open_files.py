"""What this process has open below a folder; what else it has open is no matter of whoever asks."""

import os
from contextlib import suppress
from pathlib import Path


def below(folder: Path) -> list[str]:
    """The folder's files that are open or mapped."""
    found = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(f"{os.readlink(f'/proc/self/fd/{descriptor}')} ({descriptor})")
    return [path for path in found if path.startswith(str(folder))]
