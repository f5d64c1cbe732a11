"""A plain directory, read as if it were an archive: without following a link, sorted by name."""

import os
import stat
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

from countersign.archives.found import NOTHING, Found
from countersign.archives.limits import Limits
from countersign.archives.modes import checked_mode
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import PIECE_BYTES

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that took a file's place must not make the open wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def entries(path: Path, limits: Limits) -> Iterator[Found]:
    """Everything below the directory.

    Raises:
        ArchiveRefused: `special-file`, `too-deep`, `size` (a file changed meanwhile), or as modes are.
        OSError: something cannot be read.
    """
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _below(root, "", limits)
    finally:
        os.close(root)


def _below(folder: int, prefix: str, limits: Limits) -> Iterator[Found]:
    if prefix.count("/") > limits.depth + 1:
        raise ArchiveRefused("too-deep", f"it lies in more than {limits.depth} folders", entry=prefix)
    for name in sorted(os.listdir(folder)):
        path = prefix + name
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            yield Found(path, "folder", 0, checked_mode(about.st_mode, path, limits, is_folder=True), "", NOTHING)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from _below(inner, path + "/", limits)
            finally:
                os.close(inner)
        elif stat.S_ISLNK(about.st_mode):
            yield Found(path, "link", 0, 0o755, os.readlink(name, dir_fd=folder), NOTHING)
        elif stat.S_ISREG(about.st_mode):
            mode = checked_mode(about.st_mode, path, limits, is_folder=False)
            with closing(_pieces(folder, name, path, about.st_size)) as pieces:
                yield Found(path, "file", about.st_size, mode, "", pieces)
                deque(pieces, maxlen=0)
        else:
            raise ArchiveRefused("special-file", "it is neither file, folder nor link", entry=path)


def _pieces(folder: int, name: str, path: str, size: int) -> Generator[bytes]:
    with open(os.open(name, _FILE, dir_fd=folder), "rb", buffering=0) as file:
        left = size
        while left and (data := file.read(min(left, PIECE_BYTES))):
            left -= len(data)
            yield data
        if left or file.read(1) or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ArchiveRefused("size", "the file changed while it was read", entry=path)
