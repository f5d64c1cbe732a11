"""E-mails to people who are mentioned in comments. One message covers all mentions, and is sent some minutes after the
first of them.

The content is computed when the message is sent, from the mentions that the recipient has not looked at. It contains a
number and a link, but no text and no name.
"""

from typing import NamedTuple

from countersign.kernel.mail.transports import Mail
from countersign.kernel.webhooks import outbox
from countersign.records.approvals.email_queue import EmailLease, EmailQueue, Letter
from countersign.records.commands import mentions
from countersign.records.commands.mentions import Notice, People
from countersign.records.commands.run import Engine, Run, actor_of

QUEUE = EmailQueue(mentions.LEASE_LETTER, mentions.DELETE_LETTER, mentions.POSTPONE_LETTER)
_RECIPIENT = """
SELECT email, language FROM "user"
WHERE id = $1 AND is_active = 1 AND email IS NOT NULL AND (letters IS NULL OR letters <> 'none')
"""


class EmailText(NamedTuple):
    """The text in one language. In `several`, `{count}` is replaced with the number of comments."""

    one: str
    several: str
    look: str
    why: str


_ENGLISH = EmailText(
    one="A comment mentions you",
    several="{count} comments mention you",
    look="Read it and reply:",
    why=(
        "You get this e-mail because a comment contains your user name. An administrator can turn it off "
        "in the field Letters of your user account."
    ),
)
_GERMAN = EmailText(
    one="Ein Kommentar erwähnt Sie",
    several="{count} Kommentare erwähnen Sie",
    look="Lesen und antworten:",
    why=(
        "Sie erhalten diese E-Mail, weil ein Kommentar Ihren Benutzernamen enthält. Ein Administrator kann sie "
        "im Feld Letters Ihres Benutzerkontos abschalten."
    ),
)


async def send_due(engine: Engine, people: People, mail: Mail) -> None:
    """Send the e-mails that are due. While outgoing mail is paused, and if e-mails are turned off, send none.

    Raises:
        Unavailable, StorageFull: the database refuses a statement. E-mails that are not sent stay queued.
    """
    database = engine.records.database
    if not engine.records.settings.plan_letter_s or await outbox.paused_since(database) is not None:
        return
    while (email_lease := await QUEUE.take(database)) is not None:
        await _send(engine, people, mail, email_lease)


async def _send(engine: Engine, people: People, mail: Mail, email_lease: EmailLease) -> None:
    database = engine.records.database

    async def letter() -> Letter | None:
        async with database.transaction() as transaction:
            caller = await people.person(transaction, email_lease.user_id)
            recipient = await transaction.fetch_one(_RECIPIENT, email_lease.user_id)
            if caller is None or recipient is None:
                return None
            run = Run(engine, caller, transaction, actor_of(caller, "letters"), transaction)
            notices = [notice for notice in await mentions.unseen(run) if notice.at >= email_lease.since]
        if not notices:
            return None
        text = _GERMAN if recipient[1] == "de" else _ENGLISH
        subject = text.one if len(notices) == 1 else text.several.format(count=len(notices))
        link = _link(engine.records.root_url, notices)
        return Letter(str(recipient[0]), subject, f"{subject}.\n\n{text.look}\n{link}\n\n{text.why}\n")

    await QUEUE.send(database, mail, email_lease, letter)


def _link(root_url: str, notices: list[Notice]) -> str:
    """Return the address of the record or, for several records, of the first page, which lists the mentions."""
    records = {(notice.model, notice.record_id) for notice in notices}
    if len(records) > 1:
        return f"{root_url}/"
    ((model, record_id),) = records
    return f"{root_url}/models/{model}/records/{record_id}"
