"""Checks that the standard library's parsers find the same entries in an archive."""

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
    """A file that contains only the headers of one entry. A read at another offset means that the parsers disagree."""

    def __init__(self) -> None:
        self._start = 0
        self._bytes = b""
        self._at = 0

    def load(self, start: int, data: bytes) -> None:
        """Replace the content with `data`, which begins at the offset `start`."""
        self._start, self._bytes, self._at = start, data, start

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes at the current position."""
        begin = self._at - self._start
        if begin < 0 or begin + size > len(self._bytes):
            raise ValueError("it reads a header at another offset")
        self._at += size
        return self._bytes[begin : begin + size]

    def seek(self, position: int, /) -> int:
        """Set the current position."""
        self._at = position
        return position

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def write(self, data: bytes, /) -> int:
        """Refuse to write."""
        raise ValueError("it writes")

    def close(self) -> None:
        """Do nothing: there is no open file."""


class TarCrosscheck:
    """Passes the headers of a tar file to the standard library's parser, one entry after another."""

    def __init__(self) -> None:
        self._tape = _HeaderFile()
        self._archive: tarfile.TarFile | None = None

    def next(self, start: int, headers: bytes) -> tarfile.TarInfo:
        """Return what the parser reads in the headers of the next entry, which begin at `start`.

        Raises:
            ArchiveRefused: `parsers-disagree`: the parser refuses the headers, or expects them at another offset.
        """
        self._tape.load(start, headers)
        try:
            if self._archive is None:
                self._archive = tarfile.TarFile(fileobj=self._tape, encoding="utf-8", errors="surrogateescape")
                first_member = self._archive.next()
                if first_member is None:
                    raise ValueError("it sees no entry")
                return first_member
            if self._archive.offset != start:
                raise ValueError("it expects the entry at another offset")
            return tarfile.TarInfo.fromtarfile(self._archive)
        except _TAR_ERRORS as error:
            raise ArchiveRefused("parsers-disagree", f"a second parser refuses it: {error!a}") from error

    def end(self, start: int) -> None:
        """Check that the parser sees the end of the archive at `start`.

        Raises:
            ArchiveRefused: `parsers-disagree`: the parser sees the end at another offset.
        """
        if self._archive is not None and self._archive.offset != start:
            raise ArchiveRefused("parsers-disagree", "a second parser sees the end at another offset")


def compare(info: tarfile.TarInfo, kind: Kind, name: str, size: int, position: int) -> None:
    """Check that the second parser sees the same name, kind and size, and content that begins at the offset `position`.

    Raises:
        ArchiveRefused: `parsers-disagree`: one of these values differs.
    """
    is_kind = info.isdir() if kind == "folder" else info.issym() if kind == "link" else info.isreg() or info.islnk()
    if not is_kind or info.name.rstrip("/") != name or info.size != size or info.offset_data != position:
        raise ArchiveRefused("parsers-disagree", "a second parser reads it differently", entry=name)


_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, ValueError, struct.error, IndexError, OverflowError, OSError)


def check_zip(source: BinaryIO, entries: Sequence[DirectoryEntry]) -> None:
    """Check that `zipfile` reads the same entries in the same order.

    The check compares names, kinds, offsets, sizes, methods, flags and checksums. It does not compare content, because
    equal offsets and sizes mean equal bytes.

    Raises:
        ArchiveRefused: `parsers-disagree`: `zipfile` refuses the file, or an entry differs.
    """
    try:
        with zipfile.ZipFile(source) as peer:
            peer_entries = peer.infolist()
    except _ZIP_ERRORS as error:
        raise ArchiveRefused("parsers-disagree", f"a second parser refuses it: {error!a}") from error
    if len(peer_entries) != len(entries):
        raise ArchiveRefused(
            "parsers-disagree", f"a second parser finds {len(peer_entries)} entries, not {len(entries)}"
        )
    for own_entry, peer_entry in zip(entries, peer_entries, strict=True):
        if _own_view(own_entry) != _library_view(peer_entry):
            raise ArchiveRefused("parsers-disagree", "a second parser reads it differently", entry=own_entry.name)


def _own_view(entry: DirectoryEntry) -> tuple[object, ...]:
    is_folder = entry.kind == "folder"
    # Without the UTF-8 flag, zipfile decodes names as CP437, which maps every byte to a different character.
    name = entry.name if entry.flags & UTF8 else entry.raw.decode("cp437")
    return name, is_folder, entry.offset, entry.size, entry.packed, entry.crc, entry.method, entry.flags


def _library_view(zip_info: zipfile.ZipInfo) -> tuple[object, ...]:
    sizes = zip_info.file_size, zip_info.compress_size
    format_fields = zip_info.CRC, zip_info.compress_type, zip_info.flag_bits
    return zip_info.orig_filename, zip_info.is_dir(), zip_info.header_offset, *sizes, *format_fields
