"""Registrations of agents: creation, lookup, revocation, last use; identity assertions.

A delegation binds a subject (an account at an identity provider) to a person of the store.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.security import secrets
from countersign.kernel.security.jose import SKEW_S, InvalidToken
from countersign.store import scopes
from countersign.store.auth import queries
from countersign.store.context import Store

Kind: TypeAlias = Literal["anonymous", "service_auth", "identity_assertion"]
Status: TypeAlias = Literal["unclaimed", "claimed", "denied", "revoked"]

PREFIX = "reg_"
# For this long, an expired claim token is reported as expired. Afterwards it is reported as unknown (attack T31).
REMEMBERED_S = 7 * 86_400
# The time in which a claimed agent can fetch its assertion.
FETCHABLE_S = 600

_COLUMNS = """
    id, kind, status, generation, person_id, email, issuer, subject, client_id, scopes, agent, address,
    claim_expires_at, interval_s, polled_at, created_at, claimed_at, used_at
"""
BY_ID = f"SELECT {_COLUMNS} FROM registration WHERE id = $1"
BY_CLAIM = f"SELECT {_COLUMNS} FROM registration WHERE claim_hash = $1"
OF_PERSON = f"""
    SELECT {_COLUMNS}
    FROM registration
    WHERE person_id = $1 AND status = 'claimed' AND (issuer IS NOT NULL OR claimed_at > $2)
    ORDER BY created_at DESC, id DESC
    LIMIT 200
"""
OF_CLIENT = f"""
    SELECT {_COLUMNS}
    FROM registration
    WHERE issuer = $1 AND subject = $2 AND client_id = $3 AND person_id = $4 AND status = 'claimed'
    ORDER BY created_at DESC
    LIMIT 100
"""
INSERT = """
    INSERT INTO registration (id, kind, status, generation, person_id, email, issuer, subject, client_id, scopes,
        agent, address, claim_hash, claim_expires_at, interval_s, created_at, claimed_at)
    VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
NAME_PERSON = """
    UPDATE registration SET email = $2, issuer = $3, subject = $4, client_id = $5
    WHERE id = $1 AND status = 'unclaimed'
"""
NARROW = "UPDATE registration SET scopes = $2 WHERE id = $1 AND status = 'unclaimed'"
CLAIM = """
    UPDATE registration
    SET status = 'claimed', person_id = $2, scopes = $3, claimed_at = $4, generation = generation + 1, email = $5
    WHERE id = $1 AND status = 'unclaimed' AND claim_expires_at > $4
"""
DENY = "UPDATE registration SET status = 'denied', generation = generation + 1 WHERE id = $1 AND status = 'unclaimed'"
REVOKE = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE id = $1 AND status IN ('unclaimed', 'claimed')
"""
REVOKE_SUBJECT = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE issuer = $1 AND subject = $2 AND status IN ('unclaimed', 'claimed')
"""
REVOKE_ISSUER = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE issuer = $1 AND status IN ('unclaimed', 'claimed')
"""
END_DELEGATIONS_BY = "DELETE FROM delegation WHERE issuer = $1"
REVOKE_OF_PERSON = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE person_id = $1 AND status = 'claimed'
"""
REVOKE_ALL = """
    UPDATE registration SET status = 'revoked', generation = generation + 1
    WHERE status IN ('unclaimed', 'claimed')
"""
END_EVERY_DELEGATION = "DELETE FROM delegation"
DELEGATION_OF_PERSON = "SELECT 1 FROM delegation WHERE issuer = $1 AND person_id = $2"
ANY_OF_PERSON = "SELECT 1 FROM registration WHERE person_id = $1 LIMIT 1"
LOCK_DELEGATION = "UPDATE delegation SET created_at = created_at WHERE issuer = $1 AND subject = $2"
DELEGATED = "SELECT person_id FROM delegation WHERE issuer = $1 AND subject = $2"
DELEGATE = """
    INSERT INTO delegation (issuer, subject, person_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
END_DELEGATION = "DELETE FROM delegation WHERE issuer = $1 AND subject = $2"
END_DELEGATIONS_OF = "DELETE FROM delegation WHERE person_id = $1"
POLLED = """
    UPDATE registration SET polled_at = $2
    WHERE id = $1 AND (polled_at IS NULL OR polled_at + interval_s * 1000000 <= $2)
"""
SLOW_DOWN = """
    UPDATE registration
    SET polled_at = $2, interval_s = CASE WHEN interval_s + 5 > 60 THEN 60 ELSE interval_s + 5 END
    WHERE id = $1
"""
SET_USED_AT = "UPDATE registration SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)"
# A registration that was claimed with a code is removed after its last token has expired, because it cannot be used
# again. A registration of a provider is kept, because the provider can assert it again.
FORGET_ATTEMPTS = """
    DELETE FROM claim_attempt WHERE registration_id IN (
        SELECT id FROM registration
        WHERE (claim_expires_at <= $1 AND (status <> 'claimed' OR issuer IS NULL))
            OR (status = 'revoked' AND created_at <= $1)
        LIMIT 1000)
"""
FORGET = """
    DELETE FROM registration
    WHERE ((claim_expires_at <= $1 AND (status <> 'claimed' OR issuer IS NULL))
            OR (status = 'revoked' AND created_at <= $1))
        AND NOT EXISTS (SELECT 1 FROM claim_attempt a WHERE a.registration_id = registration.id)
"""
LOCK = "UPDATE registration SET generation = generation WHERE id = $1"
LOCK_UNCLAIMED = "UPDATE registration SET generation = generation WHERE id = $1 AND status = 'unclaimed'"


class Registration(NamedTuple):
    """The registration of an agent. `scopes` contains the requested scopes until the agent is claimed, and the granted
    scopes afterwards. `email` is the person's address, as named by the agent or its provider. `agent` is the name that
    the agent gives itself."""

    id: str
    kind: Kind
    status: Status
    generation: int
    person_id: str | None
    email: str | None
    issuer: str | None
    subject: str | None
    client_id: str | None
    scopes: frozenset[str]
    agent: str
    address: str
    claim_expires_at: Instant | None
    interval_s: int
    polled_at: Instant | None
    created_at: Instant
    claimed_at: Instant | None
    used_at: Instant | None

    @property
    def terms(self) -> tuple[object, ...]:
        """The terms that a person agrees to: the named person, the provider, and the scopes."""
        return self.email, self.issuer, self.subject, self.client_id, self.scopes


class Applicant(NamedTuple):
    """An agent that registers: the name that it gives itself, its IP address, and the requested scopes."""

    agent: str
    address: str
    scopes: frozenset[str]


class AssertionOrigin(NamedTuple):
    """The origin of an assertion: its issuer, the subject, and the client it is for."""

    issuer: str
    subject: str
    client_id: str


async def add(
    transaction: Transaction,
    kind: Kind,
    applicant: Applicant,
    *,
    email: str | None = None,
    person_id: str | None = None,
    origin: AssertionOrigin | None = None,
    claim_ttl_s: int,
    interval_s: int,
) -> tuple[Registration, str]:
    """Add a registration, and return it with its claim token. If `person_id` is given, the registration is already
    claimed."""
    now = clock.now()
    registration_id = PREFIX + ids.new_uuid().replace("-", "")
    token = secrets.new_secret("clm")
    is_claimed = person_id is not None
    issuer, subject, client_id = origin or (None, None, None)
    await transaction.run(
        INSERT,
        registration_id,
        kind,
        "claimed" if is_claimed else "unclaimed",
        person_id,
        email,
        issuer,
        subject,
        client_id,
        scopes.words(applicant.scopes),
        applicant.agent,
        applicant.address,
        None if is_claimed else secrets.digest(token),
        None if is_claimed else clock.later(now, seconds=claim_ttl_s),
        interval_s,
        now,
        now if is_claimed else None,
    )
    registration = await with_id(transaction, registration_id)
    if registration is None:
        raise LookupError("the registration was not stored")
    return registration, token


async def with_id(reader: Reader, registration_id: str) -> Registration | None:
    """The registration with this id."""
    row = await reader.fetch_one(BY_ID, registration_id)
    return None if row is None else _registration(row)


async def with_claim_token(reader: Reader, token: str) -> Registration | None:
    """The registration with this claim token."""
    row = await reader.fetch_one(BY_CLAIM, secrets.digest(token))
    return None if row is None else _registration(row)


async def of_person(store: Store, person_id: str) -> list[Registration]:
    """The agents that can act for a person, newest first; 200 at most."""
    settings = store.settings
    lifetime_s = FETCHABLE_S + settings.assertion_ttl_s + settings.token_ttl_s + 2 * SKEW_S
    oldest_valid = clock.later(clock.now(), seconds=-lifetime_s)
    return [_registration(row) for row in await store.database.fetch(OF_PERSON, person_id, oldest_valid)]


async def is_first_of_issuer(reader: Reader, issuer: str, person_id: str) -> bool:
    """Whether no subject of the provider is bound to the person."""
    return await reader.fetch_one(DELEGATION_OF_PERSON, issuer, person_id) is None


async def is_first_of_person(reader: Reader, person_id: str) -> bool:
    """Whether the person has no stored registration of an agent."""
    return await reader.fetch_one(ANY_OF_PERSON, person_id) is None


async def lock(transaction: Transaction, registration_id: str) -> None:
    """Lock the registration until the transaction ends."""
    await transaction.run(LOCK, registration_id)


async def lock_unclaimed(transaction: Transaction, registration_id: str) -> bool:
    """Lock a registration. Return False if it can no longer be claimed."""
    return bool(await transaction.run(LOCK_UNCLAIMED, registration_id))


async def of_client(reader: Reader, origin: AssertionOrigin, person_id: str) -> list[Registration]:
    """Return the registrations that an agent already has when its provider asserts the person again. An agent has one
    registration for each set of scopes."""
    return [_registration(row) for row in await reader.fetch(OF_CLIENT, *origin, person_id)]


async def person_of_subject(transaction: Transaction, issuer: str, subject: str) -> str | None:
    """Return the person that a provider's subject is bound to. The row is locked, so that a concurrent removal of the
    delegation happens either before or after this transaction."""
    if not await transaction.run(LOCK_DELEGATION, issuer, subject):
        return None
    row = await transaction.fetch_one(DELEGATED, issuer, subject)
    return None if row is None else str(row[0])


async def set_person(
    transaction: Transaction, registration_id: str, email: str | None, origin: AssertionOrigin | None
) -> bool:
    """Set the person and the provider of an unclaimed registration. Return False if the registration has been claimed
    or has ended."""
    issuer, subject, client_id = origin or (None, None, None)
    return bool(await transaction.run(NAME_PERSON, registration_id, email, issuer, subject, client_id))


async def limit_scopes(transaction: Transaction, registration_id: str, granted_scopes: frozenset[str]) -> None:
    """Limit the requested scopes of an unclaimed registration."""
    await transaction.run(NARROW, registration_id, scopes.words(granted_scopes))


async def revoke(transaction: Transaction, registration_id: str) -> bool:
    """Revoke a registration: its tokens and assertions become invalid at once on every worker. Afterwards, the person
    must confirm the next assertion of the provider again. Return False if the registration has already ended."""
    registration = await with_id(transaction, registration_id)
    if registration is None or not await transaction.run(REVOKE, registration_id):
        return False
    if registration.issuer is not None and registration.subject is not None and registration.status == "claimed":
        await transaction.run(END_DELEGATION, registration.issuer, registration.subject)
    await versions.bump(transaction, "identity")
    return True


async def revoke_subject(transaction: Transaction, issuer: str, subject: str) -> int:
    """Revoke every registration of a provider's subject, and remove the subject's delegation. Return the number of
    registrations."""
    # Remove the delegation first. A concurrent registration locks the delegation, so that this statement waits until
    # the registration is committed and visible. Remove the delegation again at the end, because a concurrent claim
    # may have added one.
    await transaction.run(END_DELEGATION, issuer, subject)
    ended_rows = await transaction.run(REVOKE_SUBJECT, issuer, subject)
    await transaction.run(END_DELEGATION, issuer, subject)
    if ended_rows:
        await versions.bump(transaction, "identity")
    return ended_rows


async def revoke_issuer(transaction: Transaction, issuer: str) -> int:
    """Revoke every registration that an issuer asserted, and remove the delegations of its subjects. Return the number
    of registrations."""
    await transaction.run(END_DELEGATIONS_BY, issuer)
    ended_rows = await transaction.run(REVOKE_ISSUER, issuer)
    await transaction.run(END_DELEGATIONS_BY, issuer)
    await versions.bump(transaction, "identity")
    return ended_rows


async def revoke_all_of(transaction: Transaction, person_id: str) -> None:
    """Revoke every registration of a person, and remove every delegation to the person. Otherwise an agent that was
    bound to an address before the owner proved the address would keep its access (attack T34)."""
    await transaction.run(END_DELEGATIONS_OF, person_id)
    ended_rows = await transaction.run(REVOKE_OF_PERSON, person_id)
    await transaction.run(END_DELEGATIONS_OF, person_id)
    if ended_rows:
        await versions.bump(transaction, "identity")


async def revoke_all(transaction: Transaction) -> None:
    """Revoke every registration, and remove every delegation. Agents must register and be claimed again."""
    await transaction.run(REVOKE_ALL)
    await transaction.run(END_EVERY_DELEGATION)
    await versions.bump(transaction, "identity")


async def record_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Store when registrations were last used."""
    for registration_id, used_at in uses.items():
        if registration_id.startswith(PREFIX):
            await transaction.run(SET_USED_AT, registration_id, used_at)


async def forget_old(transaction: Transaction) -> None:
    """Remove registrations that can no longer be claimed or used, `REMEMBERED_S` seconds after that time."""
    oldest_kept = clock.later(clock.now(), seconds=-REMEMBERED_S)
    await transaction.run(FORGET_ATTEMPTS, oldest_kept)
    await transaction.run(FORGET, oldest_kept)


def _registration(row: Row) -> Registration:
    return Registration._make((*row[:9], frozenset(row[9].split()), *row[10:]))


TYP = "oauth-id-jag+jwt"


class InvalidGrant(Refused):
    """The assertion or code is not valid (RFC 6749 §5.2, RFC 7521 §4.1.1)."""

    code = "invalid_grant"
    title = "Invalid grant"
    resolution = "Register again, or start the authorization anew."


class AssertionClaims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of an assertion (agent-auth 7.7). `sub` is the id of the registration, and `gen` is its generation."""

    iss: str
    aud: str
    sub: str
    client_id: str
    iat: int
    exp: int
    jti: str
    gen: int
    email: str | None = None
    email_verified: bool | None = None


async def grant_of(reader: Reader, registration: Registration) -> queries.Grant:
    """The current grant of a registration.

    Raises:
        InvalidGrant: the registration has ended.
    """
    grant = await queries.grant(reader, registration.id)
    if grant is None or not grant.is_live:
        raise InvalidGrant("the registration has ended")
    return grant


def issue_assertion(store: Store, registration: Registration, email: str | None) -> tuple[str, Instant]:
    """Issue an assertion of the registration; return it with its expiry. `email` is the person's proven address."""
    now_s = clock.now() // clock.SECOND
    ends_s = now_s + store.settings.assertion_ttl_s
    claims = AssertionClaims(
        iss=store.root_url,
        aud=store.root_url,
        sub=registration.id,
        client_id=registration.id,
        iat=now_s,
        exp=ends_s,
        jti=ids.new_uuid(),
        gen=registration.generation,
        email=email,
        email_verified=None if email is None else True,
    )
    return store.tokens.ring.sign(msgspec.json.encode(claims), TYP), Instant(ends_s * clock.SECOND)


def read_assertion(store: Store, token: str) -> AssertionClaims:
    """Verify an assertion that this service issued. The caller must check that the registration is still valid.

    Raises:
        InvalidGrant: the assertion is malformed, has another type or issuer, or has expired.
    """
    try:
        claims = msgspec.json.decode(store.tokens.ring.open(token, TYP), type=AssertionClaims)
    except (InvalidToken, msgspec.DecodeError) as error:
        raise InvalidGrant("the assertion is malformed or was not issued here") from error
    if claims.iss != store.root_url or claims.aud != store.root_url:
        raise InvalidGrant("the assertion was issued for another service")
    if clock.now() // clock.SECOND > claims.exp + SKEW_S:
        raise InvalidGrant("the assertion has expired")
    return claims
