"""The strict archive reader: detects the format by content and checks every entry against every rule."""

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from countersign.archives import compression, tar_headers, zip_directory, zip_reader
from countersign.archives.bounded_reader import PIECE_BYTES, FileRange, ForwardReader
from countersign.archives.entry import NO_CONTENT, ArchiveEntry, ArchiveMember, Kind, RawEntry, checked_mode
from countersign.archives.limits import Budget, Limits
from countersign.archives.paths import ArchivePaths, check_links, check_target
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.archives.tar_reader import TarReader

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# If a pipe has replaced the file, opening it must not block.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def folder_entries(path: Path, limits: Limits) -> Iterator[RawEntry]:
    """Yield every entry below the directory.

    Raises:
        ArchiveRefused: an entry is of another kind (`special-file`), is nested too deeply (`too-deep`), has an invalid
            mode, or is a file that changed while it was read (`size`).
        OSError: an entry cannot be read.
    """
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _walk_folder(root, "", limits)
    finally:
        os.close(root)


def _walk_folder(folder: int, prefix: str, limits: Limits) -> Iterator[RawEntry]:
    if prefix.count("/") > limits.depth + 1:
        raise ArchiveRefused("too-deep", f"it is nested in more than {limits.depth} folders", entry=prefix)
    for name in sorted(os.listdir(folder)):
        path = prefix + name
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            yield RawEntry(path, "folder", 0, checked_mode(about.st_mode, path, limits, is_folder=True), "", NO_CONTENT)
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
            try:
                yield from _walk_folder(inner, path + "/", limits)
            finally:
                os.close(inner)
        elif stat.S_ISLNK(about.st_mode):
            yield RawEntry(path, "link", 0, 0o755, os.readlink(name, dir_fd=folder), NO_CONTENT)
        elif stat.S_ISREG(about.st_mode):
            mode = checked_mode(about.st_mode, path, limits, is_folder=False)
            with closing(_file_pieces(folder, name, path, about.st_size)) as pieces:
                yield RawEntry(path, "file", about.st_size, mode, "", pieces)
                deque(pieces, maxlen=0)
        else:
            raise ArchiveRefused("special-file", "it is not a file, a folder or a link", entry=path)


def _file_pieces(folder: int, name: str, path: str, size: int) -> Generator[bytes]:
    with open(os.open(name, _FILE_FLAGS, dir_fd=folder), "rb", buffering=0) as file:
        bytes_left = size
        while bytes_left and (data := file.read(min(bytes_left, PIECE_BYTES))):
            bytes_left -= len(data)
            yield data
        if bytes_left or file.read(1) or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ArchiveRefused("size", "the file changed while it was read", entry=path)


_NAMED_ZIP = (".zip", ".whl", ".jar", ".war", ".apk")
_NAMED_TAR = (".tar", ".tgz", ".tar.gz", ".txz", ".tar.xz", ".tzst", ".tar.zst")
_SLASHES = re.compile("//+")


def read(source: BinaryIO, limits: Limits, *, name: str = "") -> Iterator[ArchiveMember]:
    """Yield every entry of an archive in a seekable file, in the order of their offsets.

    `name` is the name of the file, as a hint to its format. Do not trust any entry before the iteration has ended,
    because an archive can be refused at its last byte. Read the pieces of a member before you request the next member:
    this request skips unread pieces. A piece has at most 256 KiB.

    Raises:
        ArchiveRefused: the archive breaks a rule (docs/reference/archive-rules.md).
        ArchiveUnknown: the file is not a zip or tar file.
    """
    size = source.seek(0, os.SEEK_END)
    budget = Budget(limits, size)
    return _members(_entries(source, size, limits, budget, name.lower()), limits, budget)


def read_folder(path: Path, limits: Limits) -> Iterator[ArchiveMember]:
    """Yield every entry below a directory. The same rules apply as for archives.

    Raises:
        ArchiveRefused: an entry breaks a rule.
        OSError: an entry cannot be read.
    """
    budget = Budget(limits, limits.total_bytes)
    return _members(_count_entries(folder_entries(path, limits), budget), limits, budget)


def _count_entries(entries: Iterator[RawEntry], budget: Budget) -> Iterator[RawEntry]:
    for entry in entries:
        budget.tick()
        budget.count(entry.size, entry.name)
        yield entry


def _members(entries: Iterator[RawEntry], limits: Limits, budget: Budget) -> Iterator[ArchiveMember]:
    """Yield the entries as members, and check their paths and links against the rules and against each other."""
    names = ArchivePaths(limits)
    links: dict[str, str] = {}
    for raw, kind, size, mode, target, pieces in entries:
        path = raw
        if kind == "folder" or "./" in raw or "//" in raw:
            path = _plain_path(raw, kind, limits)
            if path is None:
                continue
        names.take(path, kind)
        if kind == "link":
            check_target(path, target, limits)
            links[path] = target
        yield ArchiveMember(ArchiveEntry(path, kind, size, mode, target), pieces)
    check_links(links, budget)


def _plain_path(raw: str, kind: Kind, limits: Limits) -> str | None:
    """Return the path without a leading `./` and without a folder's trailing slash, or None for the root."""
    path = raw[:-1] if kind == "folder" and raw.endswith("/") and raw != "/" else raw
    while path.startswith("./"):
        path = path[2:]
    if kind == "folder" and raw and path in ("", "."):
        return None
    if limits.profile == "compatible" and not path.startswith("/"):
        return _SLASHES.sub("/", path)
    return path


def _entries(source: BinaryIO, size: int, limits: Limits, budget: Budget, name: str) -> Iterator[RawEntry]:
    """Detect the format by the content of the file, and return its entries."""
    source.seek(0)
    head = source.read(tar_headers.BLOCK)
    if head.startswith((b"PK\x03\x04", zip_directory.END_SIGNATURE)):
        if tar_headers.is_header(head):
            raise ArchiveRefused("two-formats", "it is both a zip file and a tar file")
        return zip_reader.entries(source, size, limits, budget)
    ends_as_zip = zip_directory.has_end(source, size)
    begin = _stream(source, size, limits, head, name)
    if begin is None:
        if name.endswith(_NAMED_ZIP) or (ends_as_zip and not head.startswith(zip_reader.EXECUTABLES)):
            return zip_reader.entries(source, size, limits, budget)
    elif tar_headers.is_header(begin(budget).up_to(tar_headers.BLOCK)) or name.endswith(_NAMED_TAR):
        if ends_as_zip:
            raise ArchiveRefused("two-formats", "it is both a tar file and a zip file")
        return TarReader(begin, limits, budget, Budget(limits, size)).entries()
    raise ArchiveUnknown("the file is not an archive in a supported format")


def _stream(
    source: BinaryIO, size: int, limits: Limits, head: bytes, name: str
) -> Callable[[Budget | None], ForwardReader] | None:
    """Return a function that opens the stream of tar blocks, or None if the file does not begin like one."""
    for magic in compression.BY_MAGIC:
        if head.startswith(magic):
            return lambda budget: ForwardReader(
                compression.DecompressedStream(FileRange(source, 0, size).more, magic, limits, budget).more
            )
    if tar_headers.is_header(head) or (head and not head.strip(b"\0") and name.endswith(_NAMED_TAR)):
        return lambda _: _plain_reader(source, size)
    return None


def _plain_reader(source: BinaryIO, size: int) -> ForwardReader:
    stretch = FileRange(source, 0, size)
    return ForwardReader(stretch.more, jump=stretch.jump)
