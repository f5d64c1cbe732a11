"""Which way mail takes: to a mail server where one is configured, else into the outbox folder."""

from email.headerregistry import Address
from pathlib import Path

from countersign.kernel.mail.message import compose, sender
from countersign.kernel.mail.port import Mail
from countersign.kernel.mail.transports import FOLDER, Outbox

DISCARD = "discard:"


class Discarded:
    """A Mail that takes every message and sends none."""

    def __init__(self, of: Address) -> None:
        self._of = of

    async def send(self, to: str, subject: str, text: str) -> None:
        """See Mail; the message is let go."""
        compose(self._of, to, subject, text)

    async def check(self) -> None:
        """See Mail; there is nothing that could fail."""


def open_mail(smtp_url: str, mail_from: str, data: Path) -> Mail:
    """The way of the settings: SMTP for an address, the folder `mail` of the data directory for none, nowhere for
    `discard:`.

    Raises:
        BadSetting: the address or the sender is of no known form.
    """
    of = sender(mail_from)
    if not smtp_url:
        return Outbox(data / FOLDER, of)
    if smtp_url == DISCARD:
        return Discarded(of)
    # Its client takes a tenth of a second to import, which only those who configure it should wait for.
    from countersign.kernel.mail.smtp import Server, SmtpMail

    return SmtpMail(Server.of(smtp_url), of)
