"""Mail transports: the interface, the outbox folder that replaces a mail server, and the choice by the settings.

The outbox holds messages as files for the operator.
"""

import asyncio
import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from email.headerregistry import Address
from pathlib import Path
from typing import Protocol

from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.errors import Unavailable, disk_full, is_disk_full
from countersign.kernel.mail import message
from countersign.kernel.mail.message import compose, sender


class Mail(Protocol):
    """A transport for outgoing messages."""

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Hand over one message. On return, a mail server has accepted it, or it is on the disk.

        Raises:
            BadAddress: `recipient` is not exactly one address.
            Unavailable, StorageFull: the message was not accepted.
        """
        ...

    async def check(self) -> None:
        """Check whether a message would be accepted, without sending one.

        Raises:
            Unavailable, StorageFull: a message would not be accepted.
        """
        ...


OUTBOX_FOLDER = "mail"
SUFFIX = ".eml"
MAX_FILES = 1_000
_UNFINISHED = ".part"


class FileOutbox:
    """A Mail that writes to a folder: one file `<UUIDv7>.eml` per message, readable by its owner only. The names sort
    by time. Only the newest 1,000 files are kept."""

    def __init__(self, folder: Path, address: Address) -> None:
        self._folder = folder
        self._of = address

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """See Mail. On return, the file is complete and durable; after an error or a crash, there is no partial
        file."""
        content = message.compose(self._of, recipient, subject, text).as_bytes()
        with _refusals():
            await asyncio.to_thread(self._write, content)

    async def check(self) -> None:
        """See Mail."""
        with _refusals():
            await asyncio.to_thread(self._require_writable)

    def _require_writable(self) -> None:
        folder = next(parent for parent in (self._folder, *self._folder.absolute().parents) if parent.exists())
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def _write(self, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = ids.new_uuid()
        temporary_path = self._folder / (name + _UNFINISHED)
        try:
            with os.fdopen(os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary_path.rename(self._folder / (name + SUFFIX))
        except BaseException:
            temporary_path.unlink(missing_ok=True)
            raise
        sync_folder(self._folder)
        for old_message in messages(self._folder, suffixes=(SUFFIX, _UNFINISHED))[MAX_FILES:]:
            old_message.unlink(missing_ok=True)


def messages(folder: Path, *, suffixes: tuple[str, ...] = (SUFFIX,)) -> list[Path]:
    """List the folder's messages, newest first. If there is no folder, the list is empty."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.suffix in suffixes), reverse=True)


@contextmanager
def _refusals() -> Generator[None]:
    """Convert disk errors to StorageFull and Unavailable."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise disk_full("the outbox folder", error) from error
        raise Unavailable(f"the outbox folder cannot be used: {error.strerror}") from error


DISCARD = "discard:"


class NullMail:
    """A Mail that accepts every message and sends none."""

    def __init__(self, address: Address) -> None:
        self._of = address

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """See Mail; the message is dropped."""
        compose(self._of, recipient, subject, text)

    async def check(self) -> None:
        """See Mail; never fails."""


def open_mail(smtp_url: str, mail_from: str, data: Path) -> Mail:
    """Open the transport that the settings choose. For the URL of a mail server, this is SMTP; for `discard:`, a
    transport that drops all messages; without a URL, the folder `mail` of the data directory.

    Raises:
        BadSetting: the URL or the sender is malformed.
    """
    make_sender = sender(mail_from)
    if not smtp_url:
        return FileOutbox(data / OUTBOX_FOLDER, make_sender)
    if smtp_url == DISCARD:
        return NullMail(make_sender)
    # Import the client only when it is used, since the import takes a tenth of a second.
    from countersign.kernel.mail.smtp import SmtpMail, SmtpServer

    return SmtpMail(SmtpServer.of(smtp_url), make_sender)
