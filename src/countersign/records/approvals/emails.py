"""E-mails about plans that wait for approval. One message covers all waiting plans and is sent some minutes after the
first plan.

A plan adds a notice in its own transaction. Each round combines the notices into one message per person. The content is
computed when the message is sent, from the plans that the recipient may approve at that time. It contains a number and
a link, but no record, value, name or reason. If a node dies before it records the delivery of a message, the message is
sent again.
"""

from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.mail.transports import Mail
from countersign.kernel.webhooks import outbox
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions, step_storage
from countersign.records.approvals.decisions import Agents
from countersign.records.approvals.email_queue import EmailLease, EmailQueue, Letter
from countersign.records.approvals.rights import Decidable
from countersign.records.commands.filters import Parameters
from countersign.records.commands.run import Engine, Run, actor_of


class EmailText(NamedTuple):
    """The text in one language. In `several`, `{count}` is replaced with the number of plans."""

    one: str
    several: str
    look: str
    why: str


_ENGLISH = EmailText(
    one="1 proposal waits for your approval",
    several="{count} proposals wait for your approval",
    look="See what will change, then approve or reject it:",
    why=(
        "You get this e-mail because you can decide on proposals. An administrator can turn it off "
        "in the field Letters of your user account."
    ),
)
_GERMAN = EmailText(
    one="1 Vorschlag wartet auf Ihre Genehmigung",
    several="{count} Vorschläge warten auf Ihre Genehmigung",
    look="Sehen Sie, was sich ändert, und genehmigen Sie es oder lehnen Sie es ab:",
    why=(
        "Sie erhalten diese E-Mail, weil Sie über Vorschläge entscheiden dürfen. Ein Administrator kann sie "
        "im Feld Letters Ihres Benutzerkontos abschalten."
    ),
)


def email_text(language: object) -> EmailText:
    """Return the text in this language. The default is English."""
    return _GERMAN if language == "de" else _ENGLISH


MAX_PLANS_CHECKED = 100

_ADD_NOTICE = "INSERT INTO plan_notice (plan_id, at) VALUES ($1, $2)"
_FIRST = "SELECT min(at) FROM plan_notice"
_TAKE_NOTICES = "DELETE FROM plan_notice RETURNING at"
# An e-mail that is being written may lack the newest plans. It therefore loses its lease and is written again.
_QUEUE_EMAILS = """
INSERT INTO plan_letter (user_id, since, due_at, tries, lease, lease_until)
SELECT id, CAST($1 AS BIGINT), CAST($2 AS BIGINT), 0, '', 0
FROM "user"
WHERE is_active = 1 AND email IS NOT NULL AND (letters IS NULL OR letters <> 'none')
ON CONFLICT (user_id) DO UPDATE SET due_at = excluded.due_at, tries = 0, lease = '', lease_until = 0
"""
_RECIPIENT = """
SELECT email, language FROM "user"
WHERE id = $1 AND is_active = 1 AND email IS NOT NULL AND (letters IS NULL OR letters <> 'none')
"""
QUEUE = EmailQueue(
    lease="""
        UPDATE plan_letter
        SET lease = $1, lease_until = $2, tries = tries + 1
        WHERE lease_until <= $3 AND user_id = (
            SELECT user_id FROM plan_letter WHERE due_at <= $3 AND lease_until <= $3 ORDER BY due_at, user_id LIMIT 1
        )
        RETURNING user_id, since, tries
    """,
    delete="DELETE FROM plan_letter WHERE user_id = $1 AND lease = $2",
    postpone="UPDATE plan_letter SET due_at = $3, lease_until = 0 WHERE user_id = $1 AND lease = $2",
)


async def add_notice(transaction: Transaction, plan_id: str, notice_time: int) -> None:
    """Queue a notice for the people who may approve the plan."""
    await transaction.run(_ADD_NOTICE, plan_id, notice_time)


async def send_due(engine: Engine, agents: Agents, mail: Mail) -> None:
    """Send the e-mails that are due. While outgoing mail is paused, send none.

    Raises:
        Unavailable, StorageFull: the database refuses a statement. E-mails that are not sent stay queued.
    """
    database, delay_s = engine.records.database, engine.records.settings.plan_letter_s
    if await outbox.paused_since(database) is not None:
        return
    await _queue_emails(database, delay_s)
    while delay_s:
        email_lease = await QUEUE.take(database)
        if email_lease is None:
            return
        await _send(engine, agents, mail, email_lease)


async def _queue_emails(database: Database, delay_s: int) -> None:
    """Turn the notices into e-mails when the first notice has waited for `delay_s` seconds. If `delay_s` is 0, no
    e-mails are sent."""
    row = await database.fetch_one(_FIRST)
    now = clock.now()
    if row is None or row[0] is None or row[0] > clock.later(now, seconds=-delay_s):
        return
    async with database.transaction() as transaction:
        noted = [notice_time for (notice_time,) in await transaction.fetch(_TAKE_NOTICES)]
        # If two nodes do this at the same time, one of them takes all notices.
        if noted and delay_s:
            await transaction.run(_QUEUE_EMAILS, min(noted), now)


async def _send(engine: Engine, agents: Agents, mail: Mail, email_lease: EmailLease) -> None:
    """Send one e-mail, unless no plan waits for the recipient any more."""
    database = engine.records.database

    async def letter() -> Letter | None:
        async with database.transaction() as transaction:
            caller = await agents.person(transaction, email_lease.user_id)
            recipient = await transaction.fetch_one(_RECIPIENT, email_lease.user_id)
            waiting_count = 0 if caller is None else await _waiting(engine, caller, transaction, email_lease.since)
        if not waiting_count or recipient is None:
            return None
        text = email_text(recipient[1])
        content = _text(text, waiting_count, engine.records.root_url)
        return Letter(str(recipient[0]), _subject(text, waiting_count), content)

    await QUEUE.send(database, mail, email_lease, letter)


async def _waiting(engine: Engine, caller: Caller, transaction: Transaction, since_instant: Instant) -> int:
    """Return how many plans the caller can approve now. Only the newest hundred candidates are checked. Return 0 if
    none of these plans was proposed at or after `since_instant`."""
    run = Run(engine, caller, transaction, actor_of(caller, "letters"), transaction)
    parameters = Parameters(clock.now(), caller.user_id, MAX_PLANS_CHECKED)
    decidable = Decidable(caller.view, engine.dialect).sql("t", parameters.put)
    statement = f"""
        SELECT t.input, t.person, t.proposed_at FROM plan AS t
        WHERE t.state = 'pending' AND t.expires_at > $1 AND {decidable} AND NOT EXISTS (
            SELECT 1 FROM plan_approval AS given WHERE given.plan_id = t.id AND given.user_id = $2
        )
        ORDER BY t.proposed_at DESC, t.id DESC LIMIT $3
    """
    moments: list[Instant] = []
    for stored_needs, proposer, created_at in await transaction.fetch(statement, *parameters.values):
        if await decisions.may_approve(run, step_storage.decode_steps(stored_needs), proposer):
            moments.append(created_at)
    return len(moments) if moments and max(moments) >= since_instant else 0


def _subject(text: EmailText, waiting_count: int) -> str:
    return text.one if waiting_count == 1 else text.several.format(count=waiting_count)


def _text(text: EmailText, waiting_count: int, root_url: str) -> str:
    return f"{_subject(text, waiting_count)}.\n\n{text.look}\n{root_url}/approvals\n\n{text.why}\n"
