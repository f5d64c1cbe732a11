"""Queries of organisations, people, memberships, clients and sessions."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction


class Organisation(NamedTuple):
    """A tenant."""

    id: str
    slug: str
    name: str
    created_at: Instant


class Person(NamedTuple):
    """A person who can sign in. A person without a password hash can only authenticate with tokens."""

    id: str
    email: str
    password_hash: str | None


class Client(NamedTuple):
    """An OAuth client. It acts for its organisation, or for a person who allows it, and never has more than its own
    scopes. A dynamic client has no organisation.

    People are redirected only to one of `redirect_uris`. If `is_implicit` is true, the redirect may carry a token
    instead of a code.
    """

    id: str
    org_id: str | None
    name: str
    secret_hash: bytes
    scopes: frozenset[str]
    created_at: Instant
    redirect_uris: tuple[str, ...] = ()
    is_implicit: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether the client registered itself (RFC 7591), so that none of its metadata is verified."""
        return self.org_id is None


class Session(NamedTuple):
    """The session of a person, with its start and its expiry."""

    person_id: str
    expires_at: Instant
    created_at: Instant


class Grant(NamedTuple):
    """A registration or a consent, by which an agent or client acts for a person. A token is invalid if its generation
    differs from the generation of the grant. An unclaimed registration has no person."""

    id: str
    generation: int
    is_live: bool
    person_id: str | None
    scopes: frozenset[str]


# The scopes of an agent before it is claimed (agent-auth 7.4).
PRE_CLAIM = frozenset({"read:products", "read:releases"})
CONSENT_PREFIX = "con_"
DYNAMIC_PREFIX = "cdc_"
SESSION_PREFIX = "ses_"
"""The prefix of the id under which the last use of a session is recorded. The hash of its token follows."""
SEEN_EVERY_S = 3_600
"""The last use of a session is written at most once within this time."""
UNUSED_CLIENT_S = 30 * 86_400
"""A dynamic client is removed if no person allows it within this time."""

ORGANISATION_BY_ID = "SELECT id, slug, name, created_at FROM organisation WHERE id = $1"
ORGANISATION_BY_SLUG = "SELECT id, slug, name, created_at FROM organisation WHERE slug = $1"
INSERT_ORGANISATION = """
    INSERT INTO organisation (id, slug, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
LOCK_ORGANISATION = "UPDATE organisation SET name = name WHERE id = $1"
PROFILE = "SELECT text, website FROM organisation WHERE id = $1"
SET_PROFILE = "UPDATE organisation SET text = $2, website = $3 WHERE id = $1"
RENAME_ORGANISATION = "UPDATE organisation SET name = $2 WHERE id = $1"
PERSON_BY_EMAIL = "SELECT id, email, password_hash FROM person WHERE email = $1"
PERSON_BY_ID = "SELECT id, email, password_hash FROM person WHERE id = $1"
IS_PROVEN = "SELECT 1 FROM person WHERE id = $1 AND proven_at IS NOT NULL"
INSERT_PERSON = """
    INSERT INTO person (id, email, password_hash, proven_at, created_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING
"""
LOCK_PERSON = "UPDATE person SET email = email WHERE email = $1"
PROVEN_AT = "SELECT id, proven_at FROM person WHERE email = $1"
LOCK_PASSWORD = "UPDATE person SET password_hash = $2 WHERE id = $1 AND password_hash = $2"
CHANGE_PASSWORD = "UPDATE person SET password_hash = $2, proven_at = $3 WHERE id = $1"
ROLES = "SELECT org_id, role FROM membership WHERE person_id = $1 ORDER BY org_id"
MEMBERS = """
    SELECT p.email, m.role, m.created_at
    FROM membership m
    JOIN person p ON p.id = m.person_id
    WHERE m.org_id = $1
    ORDER BY p.email
    LIMIT 1000
"""
SET_ROLE = """
    INSERT INTO membership (person_id, org_id, role, created_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (person_id, org_id) DO UPDATE SET role = excluded.role
"""
REMOVE_MEMBER = "DELETE FROM membership WHERE person_id = $1 AND org_id = $2"
OTHER_OWNERS = "SELECT count(*) FROM membership WHERE org_id = $1 AND role = 'owner' AND person_id <> $2"
_CLIENT = "id, org_id, name, secret_hash, scopes, created_at, redirect_uris, implicit"
CLIENT = f"SELECT {_CLIENT} FROM oauth_client WHERE id = $1"
DYNAMIC_CLIENT = """
    SELECT id, NULL, name, secret_hash, scopes, created_at, redirect_uris, 0
    FROM dynamic_client
    WHERE id = $1 AND (used_at IS NOT NULL OR created_at > $2)
"""
CLIENTS = f"""
    SELECT {_CLIENT}
    FROM oauth_client
    WHERE org_id = $1
    ORDER BY created_at, id
    LIMIT 1000
"""
INSERT_CLIENT = """
    INSERT INTO oauth_client (id, org_id, name, secret_hash, scopes, created_at, redirect_uris, implicit)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT DO NOTHING
"""
DELETE_CLIENT = "DELETE FROM oauth_client WHERE id = $1 AND org_id = $2"
INSERT_SESSION = """
    INSERT INTO session (token_hash, person_id, created_at, expires_at, browser, system, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6, $3)
"""
SESSION = "SELECT person_id, expires_at, created_at FROM session WHERE token_hash = $1 AND expires_at > $2"
DELETE_SESSION = "DELETE FROM session WHERE token_hash = $1"
DELETE_OLD_SESSIONS = "DELETE FROM session WHERE expires_at <= $1"
DELETE_SESSIONS_OF = "DELETE FROM session WHERE person_id = $1"
SET_SEEN_AT = "UPDATE session SET seen_at = $2 WHERE token_hash = $1 AND (seen_at IS NULL OR seen_at <= $3)"
# The id of a session is the first half of the hash of its token.
DELETE_OWN_SESSION = """
    DELETE FROM session WHERE person_id = $1 AND substr(token_hash, 1, 16) = $2 AND expires_at > $3
"""
DELETE_OTHER_SESSIONS = "DELETE FROM session WHERE person_id = $1 AND token_hash <> $2"
DELETE_EVERY_SESSION = "DELETE FROM session"
NEWEST_PUBLIC_PRODUCTS = "SELECT slug FROM product WHERE status = 'public' ORDER BY id DESC LIMIT $1"
IS_REVOKED = "SELECT 1 FROM revoked_token WHERE jti = $1"
REVOKE_TOKEN = "INSERT INTO revoked_token (jti, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
DELETE_OLD_REVOCATIONS = "DELETE FROM revoked_token WHERE expires_at <= $1"
TIER_OF_KEY = "SELECT tier FROM api_key WHERE key_hash = $1 AND used_at > $2"
REGISTRATION_GRANT = "SELECT id, generation, status, person_id, scopes FROM registration WHERE id = $1"
CONSENT_GRANT = """
    SELECT c.id, c.generation, 'claimed', c.person_id, c.scopes
    FROM consent c
    WHERE c.id = $1 AND (
        EXISTS (SELECT 1 FROM oauth_client o WHERE o.id = c.client_id)
        OR EXISTS (SELECT 1 FROM dynamic_client d WHERE d.id = c.client_id)
    )
"""


async def organisation(reader: Reader, org_id: str) -> Organisation | None:
    """The organisation with this id."""
    row = await reader.fetch_one(ORGANISATION_BY_ID, org_id)
    return None if row is None else Organisation(*row)


async def organisation_with_slug(reader: Reader, slug: str) -> Organisation | None:
    """The organisation with this slug."""
    row = await reader.fetch_one(ORGANISATION_BY_SLUG, slug)
    return None if row is None else Organisation(*row)


async def person_with_email(reader: Reader, email: str) -> Person | None:
    """The person with this (normalized) e-mail address."""
    row = await reader.fetch_one(PERSON_BY_EMAIL, email)
    return None if row is None else Person(*row)


async def person(reader: Reader, person_id: str) -> Person | None:
    """The person with this id."""
    row = await reader.fetch_one(PERSON_BY_ID, person_id)
    return None if row is None else Person(*row)


async def is_proven(reader: Reader, person_id: str) -> bool:
    """Whether the person's address is proven, by e-mail or by the operator."""
    return await reader.fetch_one(IS_PROVEN, person_id) is not None


async def roles(reader: Reader, person_id: str) -> dict[str, str]:
    """Map the id of each organisation to the person's role in it."""
    return {org_id: role for org_id, role in await reader.fetch(ROLES, person_id)}


async def client(reader: Reader, client_id: str) -> Client | None:
    """The OAuth client with this id."""
    if client_id.startswith(DYNAMIC_PREFIX):
        used_since = clock.later(clock.now(), seconds=-UNUSED_CLIENT_S)
        row = await reader.fetch_one(DYNAMIC_CLIENT, client_id, used_since)
    else:
        row = await reader.fetch_one(CLIENT, client_id)
    return None if row is None else _client(row)


async def clients(reader: Reader, org_id: str) -> list[Client]:
    """The organisation's OAuth clients, oldest first; 1,000 at most."""
    return [_client(row) for row in await reader.fetch(CLIENTS, org_id)]


def _client(row: tuple[str, str | None, str, bytes, str, Instant, str, int]) -> Client:
    client_id, org_id, name, secret_hash, scope_words, created_at, redirect_uris, implicit = row
    granted_scopes = frozenset(scope_words.split())
    uris = msgspec.json.decode(redirect_uris, type=tuple[str, ...])
    return Client(client_id, org_id, name, bytes(secret_hash), granted_scopes, created_at, uris, bool(implicit))


async def session(reader: Reader, token_hash: bytes) -> Session | None:
    """The session of this token, until it expires."""
    row = await reader.fetch_one(SESSION, token_hash, clock.now())
    return None if row is None else Session(*row)


async def end_own_session(transaction: Transaction, person_id: str, session_id: bytes) -> bool:
    """End a session of the person on every worker. Return False if the person has no session with this id."""
    if not await transaction.run(DELETE_OWN_SESSION, person_id, session_id, clock.now()):
        return False
    await versions.bump(transaction, "identity")
    return True


async def end_other_sessions(transaction: Transaction, person_id: str, kept_hash: bytes) -> None:
    """End all sessions of the person except one, on every worker."""
    if await transaction.run(DELETE_OTHER_SESSIONS, person_id, kept_hash):
        await versions.bump(transaction, "identity")


async def record_session_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Store when sessions were last used, unless a use within the last hour is stored; other ids are skipped."""
    for use_id, used_at in uses.items():
        if use_id.startswith(SESSION_PREFIX):
            token_hash = bytes.fromhex(use_id.removeprefix(SESSION_PREFIX))
            await transaction.run(SET_SEEN_AT, token_hash, used_at, clock.later(used_at, seconds=-SEEN_EVERY_S))


async def forget_old_sessions(transaction: Transaction) -> int:
    """Remove expired sessions; return their number."""
    return await transaction.run(DELETE_OLD_SESSIONS, clock.now())


async def end_every_session(transaction: Transaction) -> None:
    """End every session: each person has to sign in again."""
    await transaction.run(DELETE_EVERY_SESSION)


async def is_revoked(reader: Reader, jti: str) -> bool:
    """Whether the access token with this id is revoked."""
    return await reader.fetch_one(IS_REVOKED, jti) is not None


async def revoke_token(transaction: Transaction, jti: str, expires_at: Instant) -> None:
    """Revoke the access token with this id on every worker. The revocation is stored until the token expires."""
    if await transaction.run(REVOKE_TOKEN, jti, clock.later(expires_at, seconds=3600)):
        await versions.bump(transaction, "identity")


async def forget_old_revocations(transaction: Transaction) -> int:
    """Remove revocations of expired tokens; return their number."""
    return await transaction.run(DELETE_OLD_REVOCATIONS, clock.now())


async def tier_of_key(
    reader: Reader, key_hash: bytes, used_since: Instant
) -> Literal["community", "sandbox", "agent"] | None:
    """Return the tier of the self-serve key with this hash, if the key was created or used since `used_since`."""
    row = await reader.fetch_one(TIER_OF_KEY, key_hash, used_since)
    return None if row is None else row[0]


async def grant(reader: Reader, grant_id: str) -> Grant | None:
    """The registration or consent with this id. An unclaimed registration has the scopes of PRE_CLAIM at most."""
    statement = CONSENT_GRANT if grant_id.startswith(CONSENT_PREFIX) else REGISTRATION_GRANT
    row = await reader.fetch_one(statement, grant_id)
    if row is None:
        return None
    grant_id, generation, status, person_id, scope_words = row
    granted_scopes = frozenset(scope_words.split())
    if status == "unclaimed":
        return Grant(grant_id, generation, True, None, granted_scopes & PRE_CLAIM)
    return Grant(grant_id, generation, status == "claimed", person_id, granted_scopes)


async def newest_public_products(reader: Reader, limit: int) -> list[str]:
    """The slugs of the public products, the newest first."""
    return [str(slug) for (slug,) in await reader.fetch(NEWEST_PUBLIC_PRODUCTS, limit)]
