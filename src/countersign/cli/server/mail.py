"""`countersign mail`: the e-mails in the outbox folder of a service without a mail server."""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import click

from countersign.cli import configuration, output
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock
from countersign.kernel.mail import transports

FAILURE = "cannot show the outbox"
_REMEDY = "Run the command as the user of the server."
_LINK = re.compile(r"https?://[^\s<>\"]+")


class OutboxMessage(NamedTuple):
    """An e-mail in the form that the command prints."""

    date: str
    to: str
    subject: str
    links: list[str]
    text: str


@click.command()
@click.option("--last", is_flag=True, help="Only the newest e-mail, with its text.")
@click.option("--to", "address", metavar="ADDRESS", help="Only e-mails to this address.")
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@output.json_option
def mail(last: bool, address: str | None, data: str | None) -> None:
    """Show the e-mails in the outbox folder, newest first, with the links in them.

    E-mails are put into this folder while COUNTERSIGN_SMTP_URL is not set.
    """
    settings = configuration.load(data=data)
    folder = Path(settings.data) / transports.OUTBOX_FOLDER
    wanted_address = (address or "").strip().lower()
    letters = list(islice(_messages(folder, wanted_address), 1 if last else None))
    empty_message = f"{folder} has no e-mail" + (f" to {wanted_address}" if wanted_address else "")
    if last and not letters:
        remedy = "Request an e-mail on the page, then run the command again."
        raise Failure(FAILURE, why=empty_message, remedy=remedy, exit_code=Exit.NOT_FOUND)
    output.print_result(
        {"letters": [letter._asdict() for letter in letters]}, "\n\n".join(_message_text(e, last) for e in letters)
    )
    if not letters:
        output.note(f"{empty_message}.")
    if settings.smtp_url:
        output.note("COUNTERSIGN_SMTP_URL is set: new e-mails go to the mail server, not to this folder.")


def _messages(folder: Path, wanted_address: str) -> Iterator[OutboxMessage]:
    """Yield the e-mails in the folder to the wanted address, newest first. An empty address means all e-mails."""
    for path in _files(folder):
        letter = _read_message(path)
        if letter is not None and wanted_address in ("", letter.to.lower()):
            yield letter


def _files(folder: Path) -> list[Path]:
    try:
        return transports.messages(folder)
    except OSError as error:
        raise Failure(FAILURE, why=f"{folder}: {error.strerror}", remedy=_REMEDY) from error


def _read_message(path: Path) -> OutboxMessage | None:
    """Return the e-mail in the file, or None if the file has been removed in the meantime."""
    try:
        message = message_from_bytes(path.read_bytes(), _class=EmailMessage, policy=SMTP)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(FAILURE, why=f"{path}: {error.strerror}", remedy=_REMEDY) from error
    try:
        text = str(message.get_content()).replace("\r\n", "\n")
        sent_at = clock.from_datetime(parsedate_to_datetime(str(message["Date"]).replace("-0000", "+0000")))
    except (ValueError, TypeError, LookupError) as error:
        raise Failure(FAILURE, why=f"{path} is not an e-mail: {error}", remedy="Remove the file.") from error
    return OutboxMessage(clock.rfc3339(sent_at), str(message["To"]), str(message["Subject"]), _LINK.findall(text), text)


def _message_text(letter: OutboxMessage, is_whole: bool) -> str:
    head = f"{letter.date}  to {letter.to}\n{letter.subject}"
    if is_whole:
        return f"{head}\n\n{letter.text.strip()}"
    return "\n".join((head, *letter.links))
