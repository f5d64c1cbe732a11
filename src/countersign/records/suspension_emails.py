"""E-mails to administrators about models of a connected database that are hidden because their tables changed.

Each process compares its suspended models with those that the database has noted. The first process that notes a model
queues an e-mail for each administrator. The content is computed when the e-mail is sent. It contains the names of the
models, and no value. If the tables are as reviewed again by then, no e-mail is sent.
"""

from collections.abc import Collection
from typing import NamedTuple

from countersign.declare import ADMINISTRATOR
from countersign.kernel import clock
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.mail.transports import Mail
from countersign.kernel.webhooks import outbox
from countersign.records.adopted.suspension import Suspensions
from countersign.records.approvals.email_queue import EmailLease, EmailQueue, Letter

DELAY_S = 60.0
"""The delay of an e-mail, because a table that is changed in several steps may soon be as reviewed again."""
MAX_NAMES = 20
QUEUE = EmailQueue(
    lease="""
        UPDATE suspension_letter
        SET lease = $1, lease_until = $2, tries = tries + 1
        WHERE lease_until <= $3 AND user_id = (
            SELECT user_id FROM suspension_letter
            WHERE due_at <= $3 AND lease_until <= $3
            ORDER BY due_at, user_id
            LIMIT 1
        )
        RETURNING user_id, since, tries
    """,
    delete="DELETE FROM suspension_letter WHERE user_id = $1 AND lease = $2",
    postpone="UPDATE suspension_letter SET due_at = $3, lease_until = 0 WHERE user_id = $1 AND lease = $2",
)

_NOTE = "INSERT INTO suspended_model (model, noted_at) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING RETURNING model"
_NOTED = "SELECT model FROM suspended_model"
_FORGET = "DELETE FROM suspended_model WHERE model = $1"
_IS_RECIPIENT = """
u.is_active = 1 AND u.email IS NOT NULL AND (u.letters IS NULL OR u.letters <> 'none') AND EXISTS (
    SELECT 1 FROM user_role AS given JOIN role AS r ON r.id = given."role" WHERE given."user" = u.id AND r.title = $1
)
"""
_QUEUE_LETTERS = f"""
INSERT INTO suspension_letter (user_id, since, due_at, tries, lease, lease_until)
SELECT u.id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), 0, '', 0
FROM "user" AS u
WHERE {_IS_RECIPIENT}
ON CONFLICT (user_id) DO UPDATE SET due_at = excluded.due_at, tries = 0, lease = '', lease_until = 0
"""
_RECIPIENT = f'SELECT u.email, u.language FROM "user" AS u WHERE {_IS_RECIPIENT} AND u.id = $2'


class LetterText(NamedTuple):
    """The text in one language. `{count}` is replaced with the number of models, `{names}` with their names, and
    `{url}` with the address of the service."""

    one: str
    several: str
    more: str
    body: str


_ENGLISH = LetterText(
    one="1 model is hidden, because its table changed",
    several="{count} models are hidden, because their tables changed",
    more="{names} and {count} more",
    body=(
        "{names}\n\nThe tables of these models no longer fit their module text, or can no longer be read. No one sees "
        "the models until an administrator has looked at them. The other models are served.\n\nThe log of the service, "
        "and /readyz on the operator's port, name the reason of each. `countersign connect diff` shows what has "
        "changed in the tables, and `countersign connect accept` writes it into the module text. Then start the "
        "service again:\n{url}\n\nYou get this e-mail because you are an administrator. You can turn it off in the "
        "field Letters of your user account.\n"
    ),
)
_GERMAN = LetterText(
    one="1 Modell ist ausgeblendet, weil sich seine Tabelle geändert hat",
    several="{count} Modelle sind ausgeblendet, weil sich ihre Tabellen geändert haben",
    more="{names} und {count} weitere",
    body=(
        "{names}\n\nDie Tabellen dieser Modelle passen nicht mehr zu ihrem Modultext oder lassen sich nicht mehr "
        "lesen. Niemand sieht die Modelle, bis sie jemand von der Administration geprüft hat. Die übrigen Modelle "
        "stehen weiter zur Verfügung.\n\nDas Protokoll des Dienstes und /readyz am Port für den Betrieb nennen jeweils "
        "den Grund. `countersign connect diff` zeigt, was sich an den Tabellen geändert hat, und `countersign connect "
        "accept` trägt es in den Modultext ein. Starten Sie danach den Dienst neu:\n{url}\n\nSie erhalten diese "
        "E-Mail, weil Sie Administrator sind. Sie können sie im Feld Letters Ihres Benutzerkontos abschalten.\n"
    ),
)


class SuspensionEmails:
    """Notes the suspended models of one process, and sends the e-mails that are due."""

    def __init__(self, database: Database, mail: Mail, root_url: str, suspensions: Suspensions) -> None:
        self._database = database
        self._mail = mail
        self._root_url = root_url
        self._suspensions = suspensions
        self._noted: frozenset[str] | None = None

    async def send_due(self) -> None:
        """Note changes since the last call, and send the e-mails that are due. While outgoing mail is paused, send
        none.

        Raises:
            Unavailable, StorageFull: the database refuses a statement. The next call tries again.
        """
        models = self._suspensions.models
        if models != self._noted:
            async with self._database.transaction() as transaction:
                await _note_models(transaction, models)
            self._noted = models
        if await outbox.paused_since(self._database) is not None:
            return
        while (email_lease := await QUEUE.take(self._database)) is not None:
            await self._send(email_lease)

    async def _send(self, email_lease: EmailLease) -> None:
        async def letter() -> Letter | None:
            models = sorted(self._suspensions.models)
            recipient = await self._database.fetch_one(_RECIPIENT, ADMINISTRATOR, email_lease.user_id)
            if not models or recipient is None:
                return None
            text = _GERMAN if recipient[1] == "de" else _ENGLISH
            subject = text.one if len(models) == 1 else text.several.format(count=len(models))
            return Letter(str(recipient[0]), subject, text.body.format(names=_names(text, models), url=self._root_url))

        await QUEUE.send(self._database, self._mail, email_lease, letter)


def _names(text: LetterText, models: list[str]) -> str:
    names = ", ".join(models[:MAX_NAMES])
    unnamed_count = len(models) - MAX_NAMES
    return text.more.format(names=names, count=unnamed_count) if unnamed_count > 0 else names


async def _note_models(transaction: Transaction, models: Collection[str]) -> None:
    """Note the suspended models, and queue e-mails if a model is new."""
    now = clock.now()
    for (model,) in await transaction.fetch(_NOTED):
        if model not in models:
            await transaction.run(_FORGET, model)
    new_models = [model for model in sorted(models) if await transaction.fetch_one(_NOTE, model, now) is not None]
    if new_models:
        await transaction.run(_QUEUE_LETTERS, ADMINISTRATOR, now, clock.later(now, seconds=DELAY_S))
