"""Token domains: within which a placeholder token means something; opened with a token, closed with the last one."""

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.security.encryption import derive_key
from countersign.records.access.view import Domain

SALT_BYTES = 32
PURPOSE = "domain"

_REOPEN = """
UPDATE token_domain
SET salt = $3, opened_at = $4, closed_at = NULL
WHERE user_id = $1 AND label = $2 AND closed_at IS NOT NULL
AND closed_at = (SELECT max(last.closed_at) FROM token_domain AS last WHERE last.user_id = $1 AND last.label = $2)
AND NOT EXISTS (
    SELECT 1 FROM token_domain AS one WHERE one.user_id = $1 AND one.label = $2 AND one.closed_at IS NULL
)
"""
_OPEN = """
INSERT INTO token_domain (id, user_id, label, salt, opened_at, closed_at)
VALUES ($1, $2, $3, $4, $5, NULL)
ON CONFLICT DO NOTHING
"""
_OPENED = "SELECT id, salt FROM token_domain WHERE user_id = $1 AND label = $2 AND closed_at IS NULL"
_UNUSED = """
SELECT id
FROM token_domain AS domain
WHERE domain.closed_at IS NULL AND domain.label <> '' {of_person}
AND NOT EXISTS (
    SELECT 1 FROM agent_token AS token
    WHERE token."user" = domain.user_id AND token.label = domain.label
    AND token.ended_at IS NULL AND token.expires_at > $1
)
AND NOT EXISTS (
    SELECT 1 FROM plan
    WHERE plan.person = domain.user_id AND plan.agent = domain.label AND plan.state = 'pending'
)
"""
_UNUSED_OF_ALL = _UNUSED.format(of_person="")
_UNUSED_OF_PERSON = _UNUSED.format(of_person="AND domain.user_id = $2")
# The salt goes too, so that nobody can compute the domain's tokens ever again.
_CLOSE = "UPDATE token_domain SET closed_at = $2, salt = $3 WHERE id = $1 AND closed_at IS NULL"


async def open_domain(transaction: Transaction, user_id: str, label: str) -> None:
    """Have a domain for the person's agents of this label, or with an empty label for the person; a later call
    finds it open and changes nothing.

    One that was closed is opened again, with another salt: its old tokens go on meaning nothing, and what its agents
    wrote in clear goes on having value ids of its own, so that no later token tells whether they guessed right.
    """
    salt, now = ids.random_bytes(SALT_BYTES), clock.now()
    if not await transaction.run(_REOPEN, user_id, label, salt, now):
        await transaction.run(_OPEN, ids.new_record_id(), user_id, label, salt, now)


async def find_domain(reader: Reader, secret: bytes, user_id: str, label: str) -> Domain | None:
    """The open domain, its key derived from the database's secret; None when there is none."""
    row = await reader.fetch_one(_OPENED, user_id, label)
    return None if row is None else Domain(row[0], derive_key(secret, bytes(row[1]), PURPOSE))


async def close_unused_domains(transaction: Transaction, user_id: str | None) -> tuple[str, ...]:
    """Close the domains of the person's agents (None: of everybody's) whose tokens have all ended and which no
    pending plan needs; their ids. From then on their tokens mean nothing.

    Call it when a token or a plan has ended. A person's own domain stays open.
    """
    now = clock.now()
    if user_id is None:
        rows = await transaction.fetch(_UNUSED_OF_ALL, now)
    else:
        rows = await transaction.fetch(_UNUSED_OF_PERSON, now, user_id)
    for row in rows:
        await transaction.run(_CLOSE, row[0], now, b"")
    return tuple(row[0] for row in rows)
