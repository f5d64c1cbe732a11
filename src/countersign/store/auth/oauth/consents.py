"""What people allowed OAuth clients: kept for each person and client, widened, and taken back."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.store import scopes
from countersign.store.auth import queries

CONSENT = "SELECT id, scopes, sites FROM consent WHERE person_id = $1 AND client_id = $2"
# Changes nothing but holds the row, so that a revocation comes wholly before or wholly after.
HOLD = "UPDATE consent SET used_at = used_at WHERE person_id = $1 AND client_id = $2"
MAKE = """
    INSERT INTO consent (id, person_id, client_id, scopes, generation, created_at)
    VALUES ($1, $2, $3, '', 1, $4)
    ON CONFLICT DO NOTHING
"""
WIDEN = """
    UPDATE consent
    SET scopes = $2, sites = $3, created_at = CASE WHEN scopes = '' THEN $4 ELSE created_at END
    WHERE id = $1
"""
REVOKE = """
    UPDATE consent SET scopes = '', sites = '[]', generation = generation + 1
    WHERE id = $1 AND person_id = $2 AND scopes <> ''
"""
REVOKE_EVERY = "UPDATE consent SET scopes = '', sites = '[]', generation = generation + 1 WHERE scopes <> ''"
END_EVERY_CODE = "DELETE FROM authorization_code"
END_CODES = "DELETE FROM authorization_code WHERE consent_id = $1"
USED = "UPDATE consent SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)"
OF_PERSON = """
    SELECT c.id, coalesce(o.name, d.name), coalesce(n.name, ''), coalesce(d.redirect_uris, '[]'), c.sites, c.scopes,
        c.created_at, c.used_at
    FROM consent c
    LEFT JOIN oauth_client o ON o.id = c.client_id
    LEFT JOIN organisation n ON n.id = o.org_id
    LEFT JOIN dynamic_client d ON d.id = c.client_id
    WHERE c.person_id = $1 AND c.scopes <> '' AND coalesce(o.id, d.id) IS NOT NULL
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT 200
"""


class Consent(NamedTuple):
    """What a person allows a client, and the sites they were sent on to with it; without scopes it was taken back."""

    id: str
    scopes: frozenset[str]
    sites: tuple[str, ...]


class Connected(NamedTuple):
    """A client that may act for a person, for the page that lists them; one that registered itself has no organisation.
    `sites` are those that the person was sent on to, empty for a consent from before they were kept: it was for one
    of `redirect_uris`."""

    id: str
    client: str
    organisation: str
    redirect_uris: tuple[str, ...]
    sites: tuple[str, ...]
    scopes: frozenset[str]
    created_at: Instant
    used_at: Instant | None


async def allowed(transaction: Transaction, person_id: str, client_id: str) -> Consent | None:
    """What the person has allowed the client so far, held until the transaction ends."""
    await transaction.run(HOLD, person_id, client_id)
    row = await transaction.fetch_one(CONSENT, person_id, client_id)
    return None if row is None else Consent(row[0], frozenset(row[1].split()), _sites(row[2]))


async def allow(
    transaction: Transaction, person_id: str, client_id: str, granted: frozenset[str], *, site: str
) -> Consent:
    """Let a client do this for a person, who is sent on to `site`, beside what was allowed before."""
    now = clock.now()
    fresh_id = queries.CONSENT_PREFIX + ids.new_uuid().replace("-", "")
    await transaction.run(MAKE, fresh_id, person_id, client_id, now)
    known = await allowed(transaction, person_id, client_id)
    if known is None:
        raise LookupError("the consent was not kept")
    held = known.scopes | granted
    # A consent from before sites were kept stays without them: it was for one of the client's addresses, unknown which.
    is_unknown = bool(known.scopes) and not known.sites
    sites = () if is_unknown else tuple(sorted({*known.sites, site}))
    await transaction.run(WIDEN, known.id, scopes.words(held), msgspec.json.encode(sites).decode(), now)
    return Consent(known.id, held, sites)


async def revoke(transaction: Transaction, consent_id: str, person_id: str) -> bool:
    """Take back what a person allowed: codes and tokens that came of it end at once on every worker. False when it is
    not theirs, or was taken back before."""
    if not await transaction.run(REVOKE, consent_id, person_id):
        return False
    await transaction.run(END_CODES, consent_id)
    await versions.bump(transaction, "identity")
    return True


async def revoke_every(transaction: Transaction) -> None:
    """Take back what anybody allowed any client: each person is asked again."""
    await transaction.run(REVOKE_EVERY)
    await transaction.run(END_EVERY_CODE)
    await versions.bump(transaction, "identity")


async def of_person(reader: Reader, person_id: str) -> list[Connected]:
    """The clients that may act for a person now, newest first; 200 at most."""
    rows = await reader.fetch(OF_PERSON, person_id)
    return [
        Connected(
            found,
            client,
            organisation,
            _sites(uris),
            _sites(sites),
            frozenset(words.split()),
            created_at,
            used_at,
        )
        for found, client, organisation, uris, sites, words, created_at, used_at in rows
    ]


def _sites(stored: str) -> tuple[str, ...]:
    return msgspec.json.decode(stored, type=tuple[str, ...])


async def record_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Write down when clients last acted for people; other ids than of consents are left alone."""
    for consent_id, at in uses.items():
        if consent_id.startswith(queries.CONSENT_PREFIX):
            await transaction.run(USED, consent_id, at)
