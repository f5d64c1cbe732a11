"""Packs a directory into an archive with the same bytes every time, and defines `countersign unpack`."""

import gzip
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Literal, TypeAlias

import click

from countersign.archives.entry import ArchiveEntry, ArchiveMember
from countersign.archives.limits import Limits
from countersign.archives.reader import read_folder
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.sandboxed_extraction import extract_in_sandbox
from countersign.cli import output, progress
from countersign.cli.output import Exit, Failure
from countersign.kernel.errors import Refused

Format: TypeAlias = Literal["tar.gz", "zip"]

EPOCH_S = 315_532_800
"""1980-01-01T00:00:00Z, the earliest moment that a zip file can hold."""
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION = 6
# With this profile, mode bits that apply only to this machine are accepted. They are not packed, so they do no harm.
_LIMITS = Limits(profile="compatible")

CANNOT_UNPACK = "cannot unpack the archive"
_CONFLICT, _FULL = 409, 507


def pack(directory: Path, output: IO[bytes], form: Format) -> None:
    """Write everything below the directory as an archive, sorted by name within each folder.

    Executable files get mode 0755 and other files 0644. Symbolic links are kept. The directory must follow the rules
    that the store has for archives.

    Raises:
        Failure: the directory is empty, or breaks one of the rules, for example by a link that leads out of it.
        OSError: a file cannot be read, or the archive cannot be written.
    """
    try:
        members = read_folder(directory, _LIMITS)
        first_member = next(members, None)
        if first_member is None:
            remedy = "Name the directory with your build."
            raise Failure("there is nothing to push", why=f"{directory} is empty", remedy=remedy, exit_code=Exit.USAGE)
        write = _write_zip if form == "zip" else _write_tar
        write(chain((first_member,), members), output)
    except ArchiveRefused as refused:
        reason = f"{refused.detail} (rule {refused.rule})"
        remedy = "Correct or remove this entry, or pack the archive yourself and push it with --no-build."
        raise Failure("the directory cannot be packed", why=reason, remedy=remedy) from refused


def _write_tar(members: Iterator[ArchiveMember], output: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, output, mtime=EPOCH_S) as gzip_file,
        tarfile.open(fileobj=gzip_file, mode="w", format=tarfile.PAX_FORMAT) as archive,
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
                with archive.open(info, "w") as packed_file:
                    for piece in pieces:
                        packed_file.write(piece)
            else:
                archive.writestr(info, entry.target)


def _mode(entry: ArchiveEntry) -> int:
    """Return the file type and permissions as a Unix mode."""
    if entry.kind == "link":
        return stat.S_IFLNK | 0o777
    return (stat.S_IFDIR | 0o755) if entry.kind == "folder" else (stat.S_IFREG | entry.mode)


class _Stream:
    """Makes the pieces readable as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, count: int = -1, /) -> bytes:
        """Return `count` bytes, or fewer at the end."""
        while len(self._rest) < count and (piece := next(self._pieces, b"")):
            self._rest += piece
        data, self._rest = self._rest[:count], self._rest[count:]
        return data


@click.command()
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--compatible", is_flag=True, help="Also accept unusual but harmless archives.")
@output.json_option
def unpack(*, archive: Path, folder: Path, compatible: bool) -> None:
    """Unpack ARCHIVE (zip, or tar: plain, gzip, xz, zstd) into the folder DIR, which must be new or empty.

    If the archive breaks a rule of docs/reference/archive-rules.md, nothing is written, and the error names the entry
    and the rule.
    """
    limits = replace(Limits(), profile="compatible") if compatible else Limits()
    try:
        with archive.open("rb") as source:
            report = extract_in_sandbox(source, folder, limits, name=archive.name)
    except Refused as refused:
        raise _unpack_failure(refused) from refused
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror or error}"
        raise Failure(CANNOT_UNPACK, why=reason, remedy="Choose a folder that you may write to.") from error
    output.print_result(
        {
            "path": str(folder),
            "files": report.files,
            "folders": report.folders,
            "links": report.links,
            "size": report.size,
        },
        f"{folder} has {report.files} files ({progress.size(report.size)}), {report.folders} folders, "
        f"{report.links} links.",
    )


def _unpack_failure(refusal: Refused) -> Failure:
    exits = {_CONFLICT: Exit.CONFLICT, _FULL: Exit.STORAGE_FULL}
    exit_code = exits.get(refusal.status, Exit.FAILED)
    reason, remedy = refusal.detail, refusal.remedy
    if isinstance(refusal, ArchiveRefused):
        reason = f"{refusal.detail} (rule {refusal.rule})"
        remedy = "Do not trust the archive, or ask its author to correct it; nothing was written."
    return Failure(CANNOT_UNPACK, why=reason, remedy=remedy, exit_code=exit_code, problem=refusal.code)
