"""The file of a module text: reads it up to a maximum size, and replaces it atomically."""

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
    """The file was not replaced, because another process writes it or has written it. Read it again and repeat the
    change."""


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
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
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
    """Replaces the file with a new one that has the same owner, mode and extended attributes. Readers see either the
    old or the new file. The old file is locked against other replacements until `close`. `commit` renames the new file;
    a replacement that is closed without `commit` changes nothing.

    Raises: FileChanged: the content differs from the content that was read.
        FileLocked: another process is replacing the file, and `waits` is false.
        OSError: the file cannot be read, or its folder cannot be written.
    """

    def __init__(self, path: Path, read_content: str, new_content: str, *, waits: bool) -> None:
        # If the path is a symbolic link, replace its target and keep the link.
        self._path = path.resolve()
        self._temporary = self._path.with_name(f".{self._path.name}.unfinished")
        self._is_committed = False
        self._locked_file = self._lock(waits=waits)
        try:
            # Another process may have replaced the file while this one waited for the lock.
            if read(path) != read_content:
                raise FileChanged(f"{path} has changed since it was read")
            # Keep the line ends of Windows.
            content = new_content.replace("\n", "\r\n") if "\r\n" in read_content else new_content
            self._write(content.encode())
        except BaseException:
            self._locked_file.close()
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
        # A process that was killed may have left its temporary file.
        self._temporary.unlink(missing_ok=True)
        old_status = self._path.stat()
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
            self._temporary.unlink(missing_ok=True)
            raise

    def _copy_attributes(self) -> None:
        """Copy the extended attributes, for example the access control list. Attributes that the system refuses are
        left out."""
        with contextlib.suppress(OSError, AttributeError):
            for name in os.listxattr(self._path):
                with contextlib.suppress(OSError):
                    os.setxattr(self._temporary, name, os.getxattr(self._path, name))

    def commit(self) -> None:
        """Rename the new file to the name of the old file.

        Raises:
            OSError: the system refuses it. The old file is unchanged.
        """
        os.replace(self._temporary, self._path)
        self._is_committed = True
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Release the lock. Without a `commit`, also remove the new file."""
        with self._locked_file:
            # After `commit`, another process may use the same temporary name.
            if not self._is_committed:
                self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
