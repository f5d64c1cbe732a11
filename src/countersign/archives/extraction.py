"""Extracts an archive below one directory handle, without following links, all or nothing."""

import contextlib
import ctypes
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from countersign.archives.entry import ArchiveMember
from countersign.archives.limits import Limits
from countersign.archives.reader import read
from countersign.archives.refusals import ArchiveRefused
from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.errors import Refused, disk_full, is_disk_full

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_MODE = 0o755
_MAX_OPEN_FOLDERS = 64


class ExtractionCounts(NamedTuple):
    """The numbers of extracted files, folders and links, and the total size of the files in bytes."""

    files: int
    folders: int
    links: int
    size: int


class TargetTaken(Refused):
    """The target folder of an extraction exists and is not empty, or is not a folder."""

    status = 409
    code = "target_taken"
    title = "The target folder is not empty"
    resolution = "Choose a folder that does not exist or is empty."


def extract(
    source: BinaryIO, target: Path, limits: Limits, *, name: str = "", durable: bool = True
) -> ExtractionCounts:
    """Unpack the archive to the folder `target`, which must be empty or not exist. Its parent folder must exist.

    The tree is written to a temporary folder beside `target`. When the tree is complete, this folder is renamed to
    `target`. With `durable`, the result survives a power failure. If extraction fails, the partial tree is removed.

    Raises:
        ArchiveRefused, ArchiveUnknown: see `read`.
        StorageFull: the disk is full.
        TargetTaken: the target exists and is not an empty folder.
        OSError: the tree cannot be written.
    """
    require_empty_target(target)
    partial = target.with_name(f".{target.name}.partial-{ids.new_record_id()[:12]}")
    try:
        partial.mkdir(mode=_FOLDER_MODE)
        with TreeWriter(partial) as tree:
            for member in read(source, limits, name=name):
                tree.put(member)
            report = tree.finish(durable=durable)
        os.rename(partial, target)
        if durable:
            sync_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if is_disk_full(error):
            raise disk_full(f"the content unpacked to {target.name}", error) from error
        raise
    return report


def require_empty_target(target: Path) -> None:
    """Raise TargetTaken unless `target` does not exist or is an empty folder."""
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise TargetTaken(f"{target.name} exists and is not an empty folder")


class TreeWriter:
    """Writes members below a root folder, and opens every path relative to the handle of its folder."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _OPEN_FOLDER)
        self._held: dict[str, int] = {}
        self._made: set[str] = set()
        self._links: list[tuple[str, str]] = []
        self._files = self._size = 0
        # If the umask removes no permission, the mode of a new file needs no second call.
        self._is_exact = os.fstat(self._root).st_mode & 0o777 == _FOLDER_MODE

    def __enter__(self) -> "TreeWriter":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in (*self._held.values(), self._root):
            os.close(handle)

    def put(self, member: ArchiveMember) -> None:
        """Write a file or folder now; `finish` creates the links, so that nothing is written through them.

        Raises:
            ArchiveRefused: `collision`: the name already exists on this file system.
            OSError: the member cannot be written.
        """
        (path, kind, _, mode, target), pieces = member
        parent, _, name = path.rpartition("/")
        if kind == "file":
            self._write(self._folder(parent), path, name, mode, pieces)
        elif kind == "folder":
            self._folder(path)
        else:
            self._links.append((path, target))

    def finish(self, *, durable: bool) -> ExtractionCounts:
        """Create the links and, with `durable`, write the whole tree to disk.

        Raises:
            ArchiveRefused, OSError: see `put`.
        """
        for path, target in self._links:
            parent, _, name = path.rpartition("/")
            folder = self._folder(parent)
            with _refuse_existing(path):
                os.symlink(target, name, dir_fd=folder)
        if durable:
            _sync_file_system(self._root)
        return ExtractionCounts(self._files, len(self._made), len(self._links), self._size)

    def _write(self, folder: int, path: str, name: str, mode: int, pieces: Iterator[bytes]) -> None:
        try:
            handle = os.open(name, _CREATE, mode, dir_fd=folder)
        except FileExistsError as error:
            raise _target_taken(path) from error
        try:
            if not self._is_exact:
                os.fchmod(handle, mode)
            for piece in pieces:
                written_bytes = os.write(handle, piece)
                self._size += len(piece)
                while written_bytes < len(piece):
                    written_bytes += os.write(handle, piece[written_bytes:])
        finally:
            os.close(handle)
        self._files += 1

    def _folder(self, path: str) -> int:
        """Return the handle of a folder of the tree. Create the folder if it does not exist yet."""
        if not path:
            return self._root
        handle = self._held.get(path)
        if handle is not None:
            return handle
        parent, _, name = path.rpartition("/")
        outer = self._folder(parent)
        if path not in self._made:
            with _refuse_existing(path):
                os.mkdir(name, _FOLDER_MODE, dir_fd=outer)
            self._made.add(path)
        handle = os.open(name, _OPEN_FOLDER, dir_fd=outer)
        if not self._is_exact:
            os.fchmod(handle, _FOLDER_MODE)
        if len(self._held) >= _MAX_OPEN_FOLDERS:
            os.close(self._held.pop(next(iter(self._held))))
        self._held[path] = handle
        return handle


@contextlib.contextmanager
def _refuse_existing(path: str) -> Generator[None]:
    try:
        yield
    except FileExistsError as error:
        raise _target_taken(path) from error


def _target_taken(path: str) -> ArchiveRefused:
    return ArchiveRefused("collision", "the name already exists on this file system", entry=path)


def _sync_file_system(handle: int) -> None:
    """Sync the file system with one call, because ten thousand calls for single files take minutes."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):
        os.sync()
    elif library.syncfs(handle):
        raise OSError(ctypes.get_errno(), "cannot make the files durable")
