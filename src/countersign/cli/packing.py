"""A directory as one archive that is the same bytes every time: sorted, fixed times, owners and modes."""

import gzip
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, TypeAlias

from countersign.cli.output import Exit, Failure

Format: TypeAlias = Literal["tar.gz", "zip"]

EPOCH_S = 315_532_800
"""1980-01-01T00:00:00Z, the earliest moment that a zip file can hold."""
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION = 6
_COPY_BYTES = 1 << 20


def pack(directory: Path, output: IO[bytes], form: Format) -> None:
    """Write everything below the directory as an archive: executables are 0755, other files 0644, symbolic links
    stay links.

    Raises:
        Failure: it holds nothing, a link that leaves it, or what is neither file, directory nor link.
        OSError: a file cannot be read, or the archive not written.
    """
    entries = list(_entries(directory))
    if not entries:
        remedy = "Name the directory that holds what you built."
        raise Failure("there is nothing to push", why=f"{directory} is empty", remedy=remedy, exit_code=Exit.USAGE)
    if form == "zip":
        _write_zip(directory, entries, output)
    else:
        _write_tar(directory, entries, output)


def _entries(directory: Path) -> Iterator[Path]:
    """Everything below the directory, relative to it, in the order of the encoded paths."""
    found: list[Path] = []
    for folder, folders, files in os.walk(directory, onerror=_raise):
        found += [(Path(folder) / name).relative_to(directory) for name in (*folders, *files)]
    for entry in sorted(found, key=lambda path: os.fsencode(path.as_posix())):
        _require_portable(directory, entry)
        yield entry


def _raise(error: OSError) -> None:
    raise error


def _require_portable(directory: Path, entry: Path) -> None:
    path = directory / entry
    mode = path.lstat().st_mode
    remedy = "Remove it from the directory, or pack the archive yourself."
    if stat.S_ISLNK(mode):
        text = os.readlink(path)
        reached = os.path.normpath(entry.parent / text)
        if os.path.isabs(text) or reached.split(os.sep)[0] == os.pardir:
            raise Failure("the directory cannot be packed", why=f"the link {entry} leaves it", remedy=remedy)
    elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        why = f"{entry} is neither a file, a directory nor a link"
        raise Failure("the directory cannot be packed", why=why, remedy=remedy)


def _mode(path: Path) -> int:
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o111 else 0o644


def _write_tar(directory: Path, entries: list[Path], output: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, output, mtime=EPOCH_S) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in entries:
            path = directory / entry
            info = tarfile.TarInfo(entry.as_posix())
            info.mtime = EPOCH_S
            if path.is_symlink():
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
                archive.addfile(info)
            elif path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            else:
                info.size, info.mode = path.stat().st_size, _mode(path)
                with path.open("rb") as content:
                    archive.addfile(info, content)


def _write_zip(directory: Path, entries: list[Path], output: IO[bytes]) -> None:
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive:
        for entry in entries:
            path = directory / entry
            is_folder = path.is_dir() and not path.is_symlink()
            info = zipfile.ZipInfo(entry.as_posix() + ("/" if is_folder else ""), _ZIP_EPOCH)
            info.create_system = 3
            info.compress_type = zipfile.ZIP_STORED if is_folder else zipfile.ZIP_DEFLATED
            if path.is_symlink():
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(info, os.readlink(path))
            elif is_folder:
                info.external_attr = (stat.S_IFDIR | 0o755) << 16 | 0x10
                archive.writestr(info, b"")
            else:
                info.external_attr = (stat.S_IFREG | _mode(path)) << 16
                info.file_size = path.stat().st_size
                with path.open("rb") as content, archive.open(info, "w") as packed:
                    while piece := content.read(_COPY_BYTES):
                        packed.write(piece)
