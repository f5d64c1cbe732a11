"""A second opinion on a zip file: the standard library's parser has to find the same entries."""

import struct
import zipfile
from collections.abc import Sequence
from typing import BinaryIO

from countersign.archives.refusals import ArchiveRefused
from countersign.archives.zip_directory import Listed

_GIVES_UP = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, IndexError, OverflowError, OSError)


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
        same = (
            ours.name == theirs.orig_filename
            and ours.offset == theirs.header_offset
            and ours.size == theirs.file_size
            and ours.packed == theirs.compress_size
            and ours.crc == theirs.CRC
            and ours.method == theirs.compress_type
            and ours.flags == theirs.flag_bits
            and (ours.kind == "folder") == theirs.is_dir()
        )
        if not same:
            raise ArchiveRefused("parsers-disagree", "a second parser reads it otherwise", entry=ours.name)
