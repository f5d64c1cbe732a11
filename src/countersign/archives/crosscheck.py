"""Cross-checks with the standard library's parsers, which have to find the same entries."""

import struct
import tarfile
import zipfile
from collections.abc import Sequence
from typing import BinaryIO

from countersign.archives.entry import Kind
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.zip_directory import UTF8, DirectoryEntry

_TAR_ERRORS = (tarfile.TarError, ValueError, IndexError, KeyError, OverflowError, RecursionError)


class _HeaderFile:
    """The headers of one entry at their place in the file; reading anywhere else is a disagreement."""

    def __init__(self) -> None:
        self._start = 0
        self._bytes = b""
        self._at = 0

    def load(self, start: int, data: bytes) -> None:
        """Hold these bytes, which stand at `start`, in place of the ones before."""
        self._start, self._bytes, self._at = start, data, start

    def read(self, size: int, /) -> bytes:
        """The bytes from the position on."""
        begin = self._at - self._start
        if begin < 0 or begin + size > len(self._bytes):
            raise ValueError("it reads a header in another place")
        self._at += size
        return self._bytes[begin : begin + size]

    def seek(self, position: int, /) -> int:
        """Go to a place in the file."""
        self._at = position
        return position

    def tell(self) -> int:
        """The position in the file."""
        return self._at

    def write(self, data: bytes, /) -> int:
        """Nothing is written."""
        raise ValueError("it writes")

    def close(self) -> None:
        """Nothing is held open."""


class TarCrosscheck:
    """The standard library's view of a tar file whose headers are shown to it one after another."""

    def __init__(self) -> None:
        self._tape = _HeaderFile()
        self._archive: tarfile.TarFile | None = None

    def next(self, start: int, headers: bytes) -> tarfile.TarInfo:
        """What it sees in the headers of the next entry, which begin at `start`.

        Raises:
            ArchiveRefused: `parsers-disagree`.
        """
        self._tape.load(start, headers)
        try:
            if self._archive is None:
                self._archive = tarfile.TarFile(fileobj=self._tape, encoding="utf-8", errors="surrogateescape")
                first = self._archive.next()
                if first is None:
                    raise ValueError("it sees no entry")
                return first
            if self._archive.offset != start:
                raise ValueError("it expects the entry in another place")
            return tarfile.TarInfo.fromtarfile(self._archive)
        except _TAR_ERRORS as error:
            raise ArchiveRefused("parsers-disagree", f"a second parser refuses it: {error!a}") from error

    def end(self, start: int) -> None:
        """Make sure that it sees the end at `start`.

        Raises:
            ArchiveRefused: `parsers-disagree`.
        """
        if self._archive is not None and self._archive.offset != start:
            raise ArchiveRefused("parsers-disagree", "a second parser sees the end in another place")


def compare(info: tarfile.TarInfo, kind: Kind, name: str, size: int, at: int) -> None:
    """Refuse when the second parser sees another name, kind or size, or bytes in another place than `at`.

    Raises:
        ArchiveRefused: `parsers-disagree`.
    """
    is_kind = info.isdir() if kind == "folder" else info.issym() if kind == "link" else info.isreg() or info.islnk()
    if not is_kind or info.name.rstrip("/") != name or info.size != size or info.offset_data != at:
        raise ArchiveRefused("parsers-disagree", "a second parser reads it otherwise", entry=name)


_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, ValueError, struct.error, IndexError, OverflowError, OSError)


def check_zip(source: BinaryIO, entries: Sequence[DirectoryEntry]) -> None:
    """Compare names, order, kinds, places, sizes, methods and checksums; equal places and sizes are equal bytes.

    Raises:
        ArchiveRefused: `parsers-disagree`.
    """
    try:
        with zipfile.ZipFile(source) as peer:
            found = peer.infolist()
    except _ZIP_ERRORS as error:
        raise ArchiveRefused("parsers-disagree", f"a second parser refuses it: {error!a}") from error
    if len(found) != len(entries):
        raise ArchiveRefused("parsers-disagree", f"a second parser finds {len(found)} entries, not {len(entries)}")
    for ours, theirs in zip(entries, found, strict=True):
        if _own_view(ours) != _library_view(theirs):
            raise ArchiveRefused("parsers-disagree", "a second parser reads it otherwise", entry=ours.name)


def _own_view(ours: DirectoryEntry) -> tuple[object, ...]:
    is_folder = ours.kind == "folder"
    # Without the flag the peer reads the old code page, in which every byte is another character.
    name = ours.name if ours.flags & UTF8 else ours.raw.decode("cp437")
    return name, is_folder, ours.offset, ours.size, ours.packed, ours.crc, ours.method, ours.flags


def _library_view(theirs: zipfile.ZipInfo) -> tuple[object, ...]:
    sizes = theirs.file_size, theirs.compress_size
    rest = theirs.CRC, theirs.compress_type, theirs.flag_bits
    return theirs.orig_filename, theirs.is_dir(), theirs.header_offset, *sizes, *rest
