"""The one strict reader of archives: the format by its bytes, every entry by every rule."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from countersign.archives import compression, folder, tar_header, zip_end, zip_reading
from countersign.archives.entry import Entry, Kind, Member
from countersign.archives.found import Found
from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.links import check_links, check_target
from countersign.archives.names import Names
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.archives.stretch import Reader, Stretch
from countersign.archives.tar_reading import Walk

_NAMED_ZIP = (".zip", ".whl", ".jar", ".war", ".apk")
_NAMED_TAR = (".tar", ".tgz", ".tar.gz", ".txz", ".tar.xz", ".tzst", ".tar.zst")
_SLASHES = re.compile("//+")


def read(source: BinaryIO, limits: Limits, *, name: str = "") -> Iterator[Member]:
    """Every entry of an archive in a seekable file, in the order of their bytes; `name` is the file's, as a hint.

    Nothing may be believed before the iteration has ended: an archive can be refused at its last byte. The pieces of
    a member are read before the next one is asked for, or passed over then; a piece has at most 256 KiB.

    Raises:
        ArchiveRefused: a rule is broken (docs/reference/archive-rules.md).
        ArchiveUnknown: it is no zip or tar file.
    """
    size = source.seek(0, os.SEEK_END)
    gauge = Gauge(limits, size)
    return _members(_entries(source, size, limits, gauge, name.lower()), limits, gauge)


def read_folder(path: Path, limits: Limits) -> Iterator[Member]:
    """Everything below a directory, by the same rules.

    Raises:
        ArchiveRefused: a rule is broken.
        OSError: something cannot be read.
    """
    gauge = Gauge(limits, limits.total_bytes)
    return _members(_counted(folder.entries(path, limits), gauge), limits, gauge)


def _counted(entries: Iterator[Found], gauge: Gauge) -> Iterator[Found]:
    for found in entries:
        gauge.tick()
        gauge.count(found.size, found.name)
        yield found


def _members(entries: Iterator[Found], limits: Limits, gauge: Gauge) -> Iterator[Member]:
    """The entries whose names and links are right among each other."""
    names = Names(limits)
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
        yield Member(Entry(path, kind, size, mode, target), pieces)
    check_links(links, gauge)


def _plain_path(raw: str, kind: Kind, limits: Limits) -> str | None:
    """The path without what only says that it is relative, or a folder's; None for the root itself."""
    path = raw[:-1] if kind == "folder" and raw.endswith("/") and raw != "/" else raw
    while path.startswith("./"):
        path = path[2:]
    if kind == "folder" and raw and path in ("", "."):
        return None
    if limits.profile == "compatible" and not path.startswith("/"):
        return _SLASHES.sub("/", path)
    return path


def _entries(source: BinaryIO, size: int, limits: Limits, gauge: Gauge, name: str) -> Iterator[Found]:
    """The format's own reader, by how the file begins."""
    source.seek(0)
    head = source.read(tar_header.BLOCK)
    if head.startswith((b"PK\x03\x04", zip_end.SIGNATURE)):
        if tar_header.is_header(head):
            raise ArchiveRefused("two-formats", "it is a zip file and a tar file")
        return zip_reading.entries(source, size, limits, gauge)
    ends_as_zip = zip_end.has_end(source, size)
    begin = _stream(source, size, limits, head, name)
    if begin is None:
        if name.endswith(_NAMED_ZIP) or (ends_as_zip and not head.startswith(zip_reading.EXECUTABLES)):
            return zip_reading.entries(source, size, limits, gauge)
    elif tar_header.is_header(begin(gauge).up_to(tar_header.BLOCK)) or name.endswith(_NAMED_TAR):
        if ends_as_zip:
            raise ArchiveRefused("two-formats", "it is a tar file and a zip file")
        return Walk(begin, limits, gauge, Gauge(limits, size)).entries()
    raise ArchiveUnknown("the file is no archive of a kind that is read here")


def _stream(
    source: BinaryIO, size: int, limits: Limits, head: bytes, name: str
) -> Callable[[Gauge | None], Reader] | None:
    """How to begin the stream that holds the blocks of a tar file; None when the file begins like neither."""
    for magic in compression.BY_MAGIC:
        if head.startswith(magic):
            return lambda gauge: Reader(compression.Unpacked(Stretch(source, 0, size).more, magic, limits, gauge).more)
    if tar_header.is_header(head) or (head and not head.strip(b"\0") and name.endswith(_NAMED_TAR)):
        return lambda _: _plain_reader(source, size)
    return None


def _plain_reader(source: BinaryIO, size: int) -> Reader:
    stretch = Stretch(source, 0, size)
    return Reader(stretch.more, jump=stretch.jump)
