"""Ending sessions and agent tokens: at once, on every worker."""

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.records.access.domains import close_unused_domains

_END_CREDENTIALS = "UPDATE credential SET ended_at = $2 WHERE record_id = $1 AND ended_at IS NULL AND kind <> 'setup'"
_END_RECORD = {
    "session": 'UPDATE "session" SET ended_at = $2, revision = revision + 1 WHERE id = $1 AND ended_at IS NULL',
    "agent_token": 'UPDATE "agent_token" SET ended_at = $2, revision = revision + 1 WHERE id = $1 AND ended_at IS NULL',
}
_LIVE = {
    "session": 'SELECT id FROM "session" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
    "agent_token": 'SELECT id FROM "agent_token" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
}
_PERSON = 'SELECT "user" FROM "agent_token" WHERE id = $1'
_END_EVERY = (
    "UPDATE credential SET ended_at = $1 WHERE ended_at IS NULL",
    'UPDATE "session" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
    'UPDATE "agent_token" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
)
_END_LINKS = "UPDATE credential SET ended_at = $2 WHERE user_id = $1 AND kind = 'setup' AND ended_at IS NULL"


async def end(transaction: Transaction, model: str, record_id: str) -> Instant | None:
    """End the session or agent token of this record (model `session` or `agent_token`): once the transaction is
    durable, its token is refused everywhere. The moment it ended; None when it had ended before. The caller writes
    the audit entry.

    With the last token of its label, an agent's token domain is closed, unless a pending plan needs it.
    """
    now = clock.now()
    await transaction.run(_END_CREDENTIALS, record_id, now)
    if not await transaction.run(_END_RECORD[model], record_id, now):
        return None
    if model == "agent_token":
        person = await transaction.fetch_one(_PERSON, record_id)
        if person is not None:
            await close_unused_domains(transaction, person[0])
    await versions.bump(transaction, "access")
    return now


async def end_all_of(
    transaction: Transaction, user_id: str, models: tuple[str, ...] = ("session", "agent_token")
) -> tuple[tuple[str, str], ...]:
    """End every session, agent token and set-up link of a person, as when it is switched off or removed; what was
    ended as (model, record id), for the audit."""
    now = clock.now()
    ended: list[tuple[str, str]] = []
    for model in models:
        for row in await transaction.fetch(_LIVE[model], user_id):
            await end(transaction, model, row[0])
            ended.append((model, row[0]))
    await transaction.run(_END_LINKS, user_id, now)
    return tuple(ended)


async def end_every(transaction: Transaction) -> None:
    """End every session, agent token and set-up link of everybody, for a database that was put back to an earlier
    moment: what was ended since would be alive again. Not in the audit, which goes on from that moment."""
    now = clock.now()
    for statement in _END_EVERY:
        await transaction.run(statement, now)
    await close_unused_domains(transaction, None)
    await versions.bump(transaction, "access")
