"""A directory as one archive that is the same bytes every time: sorted, fixed times, owners and modes."""

import gzip
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Literal, TypeAlias

from countersign.archives.entry import ArchiveEntry, ArchiveMember
from countersign.archives.limits import Limits
from countersign.archives.reader import read_folder
from countersign.archives.refusals import ArchiveRefused
from countersign.cli.output import Exit, Failure

Format: TypeAlias = Literal["tar.gz", "zip"]

EPOCH_S = 315_532_800
"""1980-01-01T00:00:00Z, the earliest moment that a zip file can hold."""
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION = 6
# Modes that a directory has on this machine alone are not packed, so they are no reason to refuse it.
_LIMITS = Limits(profile="compatible")


def pack(directory: Path, output: IO[bytes], form: Format) -> None:
    """Write everything below the directory as an archive, by the names in each folder: executables are 0755, other
    files 0644, symbolic links stay links. It is read by the rules that the store reads archives by.

    Raises:
        Failure: it holds nothing, or breaks one of these rules, as a link that leaves it does.
        OSError: a file cannot be read, or the archive not written.
    """
    try:
        members = read_folder(directory, _LIMITS)
        first = next(members, None)
        if first is None:
            remedy = "Name the directory that holds what you built."
            raise Failure("there is nothing to push", why=f"{directory} is empty", remedy=remedy, exit_code=Exit.USAGE)
        write = _write_zip if form == "zip" else _write_tar
        write(chain((first,), members), output)
    except ArchiveRefused as refused:
        why = f"{refused.detail} (rule {refused.rule})"
        remedy = "Correct or remove it in the directory, or pack the archive yourself and push it with --no-build."
        raise Failure("the directory cannot be packed", why=why, remedy=remedy) from refused


def _write_tar(members: Iterator[ArchiveMember], output: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, output, mtime=EPOCH_S) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry, pieces in members:
            info = tarfile.TarInfo(entry.path)
            info.mtime, info.mode = EPOCH_S, _mode(entry) & 0o777
            if entry.kind == "link":
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
                archive.addfile(info)
            elif entry.kind == "folder":
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = entry.size
                archive.addfile(info, _Stream(pieces))


def _write_zip(members: Iterator[ArchiveMember], output: IO[bytes]) -> None:
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive:
        for entry, pieces in members:
            is_folder = entry.kind == "folder"
            info = zipfile.ZipInfo(entry.path + ("/" if is_folder else ""), _ZIP_EPOCH)
            info.create_system = 3
            info.compress_type = zipfile.ZIP_STORED if is_folder else zipfile.ZIP_DEFLATED
            info.external_attr = _mode(entry) << 16 | (0x10 if is_folder else 0)
            if entry.kind == "file":
                info.file_size = entry.size
                with archive.open(info, "w") as packed:
                    for piece in pieces:
                        packed.write(piece)
            else:
                archive.writestr(info, entry.target)


def _mode(entry: ArchiveEntry) -> int:
    """Kind and rights as Unix writes them."""
    if entry.kind == "link":
        return stat.S_IFLNK | 0o777
    return (stat.S_IFDIR | 0o755) if entry.kind == "folder" else (stat.S_IFREG | entry.mode)


class _Stream:
    """The pieces as a file to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, count: int = -1, /) -> bytes:
        """As many bytes as are asked for; fewer only at the end."""
        while len(self._rest) < count and (piece := next(self._pieces, b"")):
            self._rest += piece
        found, self._rest = self._rest[:count], self._rest[count:]
        return found
