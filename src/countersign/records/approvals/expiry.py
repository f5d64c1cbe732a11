"""Plans whose time has come: brought to their end in the background; until then nobody can approve them anyway."""

from countersign.kernel import clock
from countersign.records.access import agent_tokens
from countersign.records.approvals import changes, events, steps
from countersign.records.audit.chain import Entry
from countersign.records.commands.run import Engine

_DUE = """
SELECT id, person, agent, agent_token
FROM plan
WHERE state = 'pending' AND expires_at <= $1
ORDER BY expires_at
LIMIT 500
"""
_EXPIRE = """
UPDATE plan SET state = 'expired', decided_at = $2, revision = revision + 1
WHERE id = $1 AND state = 'pending'
"""


async def expire(engine: Engine) -> int:
    """End the plans that are due; how many."""
    database = engine.records.database
    now = clock.now()
    due = await database.fetch(_DUE, now)
    for plan_id, person, agent, agent_token in due:
        async with database.transaction() as transaction:
            if await transaction.run(_EXPIRE, plan_id, now):
                await steps.let_go(engine.vault, transaction, plan_id)
                await events.tell(transaction, plan_id, "expired")
                entry = Entry(
                    at=now,
                    user_id=person or "",
                    agent_token=agent_token,
                    agent=agent,
                    command="plan.expired",
                    model="plan",
                    record_id=plan_id,
                    fields="state",
                    changes='{"state":["pending","expired"]}',
                    plan_id=plan_id,
                    request_id="",
                )
                await engine.chain.append(transaction, entry)
                await agent_tokens.close_unused_domains(transaction, person)
                await changes.note(transaction, plan_id)
    return len(due)
