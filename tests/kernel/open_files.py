"""The files below a folder that this process has open. Other open files are ignored."""

import os
from contextlib import suppress
from pathlib import Path


def open_files_below(folder: Path) -> list[str]:
    """Return the files of the folder that are open or mapped."""
    paths = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            paths.add(f"{os.readlink(f'/proc/self/fd/{descriptor}')} ({descriptor})")
    return [path for path in paths if path.startswith(str(folder))]
