"""A second opinion on a zip file: the standard library's parser has to find the same entries."""

import struct
import zipfile
from collections.abc import Sequence
from typing import BinaryIO

from countersign.archives.refusals import ArchiveRefused
from countersign.archives.zip_directory import UTF8, Listed

_GIVES_UP = (zipfile.BadZipFile, RuntimeError, ValueError, struct.error, IndexError, OverflowError, OSError)


def agree(source: BinaryIO, entries: Sequence[Listed]) -> None:
    """Compare names, order, kinds, places, sizes, methods and checksums; equal places and sizes are equal bytes.

    Raises:
        ArchiveRefused: `parsers-disagree`.
    """
    try:
        with zipfile.ZipFile(source) as peer:
            found = peer.infolist()
    except _GIVES_UP as error:
        raise ArchiveRefused("parsers-disagree", f"a second parser refuses it: {error!a}") from error
    if len(found) != len(entries):
        raise ArchiveRefused("parsers-disagree", f"a second parser finds {len(found)} entries, not {len(entries)}")
    for ours, theirs in zip(entries, found, strict=True):
        if _view(ours) != _peer_view(theirs):
            raise ArchiveRefused("parsers-disagree", "a second parser reads it otherwise", entry=ours.name)


def _view(ours: Listed) -> tuple[object, ...]:
    is_folder = ours.kind == "folder"
    # Without the flag the peer reads the old code page, in which every byte is another character.
    name = ours.name if ours.flags & UTF8 else ours.raw.decode("cp437")
    return name, is_folder, ours.offset, ours.size, ours.packed, ours.crc, ours.method, ours.flags


def _peer_view(theirs: zipfile.ZipInfo) -> tuple[object, ...]:
    sizes = theirs.file_size, theirs.compress_size
    rest = theirs.CRC, theirs.compress_type, theirs.flag_bits
    return theirs.orig_filename, theirs.is_dir(), theirs.header_offset, *sizes, *rest
