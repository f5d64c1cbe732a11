"""The file of a module text: it is read with a bound, and replaced as a whole."""

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import IO, Self

from countersign.declare import text
from countersign.declare.text import TextError
from countersign.file_sync import sync_folder


class NotReplaced(Exception):
    """Another process writes the file, or has written it. The same change may be possible later."""


class FileChanged(NotReplaced):
    """The file is no longer the one that was read."""


class FileLocked(NotReplaced):
    """Another process is replacing the file."""


def read(path: Path) -> str:
    """Return the content of the file, without the byte order mark of some editors.

    Raises:
        OSError: the file cannot be read.
        TextError: it is not a file, is too long, or is not UTF-8.
    """
    # A pipe must not be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise TextError("it is not a file: correct the path")
        content = file.read(text.MAX_BYTES + 1)
    if len(content) > text.MAX_BYTES:
        raise TextError(f"it has more than {text.MAX_BYTES} bytes: divide it into several modules")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError("it is not UTF-8 text: convert it") from error


class Replacement:
    """Replaces the file by one with the same owner, mode and attributes. Readers see the old file or the new one, never
    a part. Until the replacement is closed, the file is locked for other replacements. `finish` puts the new file in
    its place; a replacement that is closed before changes nothing.

    Raises:
        FileChanged: the content is no longer the one that was read.
        FileLocked: another process is replacing the file, and `waits` is false.
        OSError: the file cannot be read, or its folder cannot be written.
    """

    def __init__(self, path: Path, read_content: str, new_content: str, *, waits: bool) -> None:
        # The file may be a symbolic link, which stays.
        self._path = path.resolve()
        self._unfinished = self._path.with_name(f".{self._path.name}.unfinished")
        self._is_finished = False
        self._locked = self._lock(waits=waits)
        try:
            # A replacement that has waited sees here that the file has changed.
            if read(path) != read_content:
                raise FileChanged(f"{path} has changed since it was read")
            # Others open files of Windows with the ends of lines that they have.
            content = new_content.replace("\n", "\r\n") if "\r\n" in read_content else new_content
            self._write(content.encode())
        except BaseException:
            self._locked.close()
            raise

    def _lock(self, *, waits: bool) -> IO[bytes]:
        file = self._path.open("rb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError as error:
            file.close()
            raise FileLocked(f"another process is writing {self._path}") from error
        return file

    def _write(self, content: bytes) -> None:
        # A process that was killed may have left one.
        self._unfinished.unlink(missing_ok=True)
        old_status = self._path.stat()
        descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as new_file:
                with contextlib.suppress(PermissionError):
                    os.fchown(new_file.fileno(), old_status.st_uid, old_status.st_gid)
                os.fchmod(new_file.fileno(), stat.S_IMODE(old_status.st_mode))
                self._copy_attributes()
                new_file.write(content)
                new_file.flush()
                os.fsync(new_file.fileno())
        except BaseException:
            self._unfinished.unlink(missing_ok=True)
            raise

    def _copy_attributes(self) -> None:
        """Copy the extended attributes, such as the list of those who may read the file, as far as the system has
        them."""
        with contextlib.suppress(OSError, AttributeError):
            for name in os.listxattr(self._path):
                with contextlib.suppress(OSError):
                    os.setxattr(self._unfinished, name, os.getxattr(self._path, name))

    def finish(self) -> None:
        """Put the new file in its place.

        Raises:
            OSError: the system refuses it. The old file stays.
        """
        os.replace(self._unfinished, self._path)
        self._is_finished = True
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Remove the new file if it is not in its place, and let other replacements begin."""
        with self._locked:
            # After `finish`, the name may be that of the new file of another process.
            if not self._is_finished:
                self._unfinished.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
