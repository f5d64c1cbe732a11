"""Which way mail takes: to a mail server where one is configured, else into the outbox folder."""

from pathlib import Path

from countersign.kernel.mail.message import sender
from countersign.kernel.mail.outbox import FOLDER, Outbox
from countersign.kernel.mail.port import Mail


def open_mail(smtp_url: str, mail_from: str, data: Path) -> Mail:
    """The way of the settings: SMTP for an address, the folder `mail` of the data directory for none.

    Raises:
        BadSetting: the address or the sender is of no known form.
    """
    of = sender(mail_from)
    if not smtp_url:
        return Outbox(data / FOLDER, of)
    # Its client takes a tenth of a second to import, which only those who configure it should wait for.
    from countersign.kernel.mail.smtp import Server, SmtpMail

    return SmtpMail(Server.of(smtp_url), of)
