"""Makes folders and files durable."""

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """Make additions and removals of the folder's entries durable."""
    _sync(path, os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Make the content of the file durable."""
    _sync(path, 0)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
