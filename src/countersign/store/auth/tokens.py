"""Access tokens: issued as ES256 JWTs (RFC 9068), and read back into a caller on every request."""

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import Refused
from countersign.kernel.security.jose import AccessClaims
from countersign.store import scopes
from countersign.store.auth import queries
from countersign.store.auth.callers import Caller
from countersign.store.auth.queries import Grant
from countersign.store.context import Store

FIRST_PARTY = "countersign"


class InvalidScope(Refused):
    """A scope was asked for that does not exist or that the caller does not hold."""

    code = "invalid_scope"
    title = "Invalid scope"
    resolution = f"Ask for scopes among: {' '.join(scopes.ALL)}; leave scope out for all that you hold."


def requested(scope: str | None, held: frozenset[str]) -> frozenset[str]:
    """The scopes to grant: those asked for, or all that are held when none are.

    Raises:
        InvalidScope: one is unknown or not held, or none is held at all.
    """
    if not held:
        raise InvalidScope("no scope is held any more")
    if scope is None or not scope.strip():
        return held
    wanted = frozenset(scope.split())
    missing = sorted(wanted - held)
    if missing:
        raise InvalidScope(f"the scope {missing[0][:64]} does not exist or is not held")
    return wanted


async def held_by_person(reader: Reader, person_id: str) -> frozenset[str]:
    """Every scope a person holds in any organisation; reading needs no role."""
    roles = await queries.roles(reader, person_id)
    return scopes.READING.union(*(scopes.OF_ROLE[role] for role in roles.values()))


async def held_through(reader: Reader, grant: Grant) -> frozenset[str]:
    """The scopes that a grant gives now: without those that its person has lost since."""
    if grant.person_id is None:
        return grant.scopes
    return grant.scopes & await held_by_person(reader, grant.person_id)


def issue(store: Store, subject: str, client_id: str, granted: frozenset[str]) -> str:
    """A signed access token for a person (`subject` is the person's id) or a client (its own id)."""
    now_s = clock.now() // clock.SECOND
    return store.tokens.issue(_claims(store, subject, client_id, granted, now_s, now_s + store.settings.token_ttl_s))


def issue_through(
    store: Store,
    subject: str,
    client_id: str,
    granted: frozenset[str],
    grant: Grant,
    auth_time_s: int | None = None,
    *,
    jti: str | None = None,
) -> tuple[str, AccessClaims]:
    """A signed access token by a registration or a consent, and its claims; it dies when the grant's generation
    rises. `subject` is the person's id, or the registration's own while nobody has claimed it; `jti` the token's id
    where that was chosen before."""
    now_s = clock.now() // clock.SECOND
    fresh = _claims(store, subject, client_id, granted, now_s, now_s + store.settings.token_ttl_s)
    claims = msgspec.structs.replace(
        fresh, reg=grant.id, gen=grant.generation, auth_time=auth_time_s, jti=jti or fresh.jti
    )
    return store.tokens.issue(claims), claims


def issue_in_session(
    store: Store, session: queries.Session, session_hash: bytes, granted: frozenset[str]
) -> tuple[str, int]:
    """A token of a signed-in person and its life in seconds; it ends with the session it names. With no scopes it is
    the session itself, which needs none."""
    now_s = clock.now() // clock.SECOND
    ends_s = min(now_s + store.settings.token_ttl_s, session.expires_at // clock.SECOND)
    claims = _claims(store, session.person_id, FIRST_PARTY, granted, now_s, ends_s)
    return store.tokens.issue(msgspec.structs.replace(claims, sid=session_hash.hex())), ends_s - now_s


def _claims(
    store: Store, subject: str, client_id: str, granted: frozenset[str], now_s: int, ends_s: int
) -> AccessClaims:
    return AccessClaims(
        iss=store.root_url,
        aud=store.root_url,
        sub=subject,
        client_id=client_id,
        iat=now_s,
        exp=ends_s,
        jti=ids.new_uuid(),
        scope=scopes.words(granted),
    )


async def caller_from(reader: Reader, claims: AccessClaims) -> Caller | None:
    """The caller a token stands for, with the roles and scopes held at this moment; None when the token was
    revoked, or the person, the client, the session or the grant behind it is no more."""
    if await queries.is_revoked(reader, claims.jti):
        return None
    carried = frozenset(claims.scope.split())
    if claims.reg is not None:
        return await _caller_through(reader, claims, carried)
    if claims.sub == claims.client_id:
        client = await queries.client(reader, claims.sub)
        if client is None or client.org_id is None:
            return None
        granted = carried & client.scopes
        return Caller("client", client.id, {client.org_id: granted}, granted)
    if claims.sid is not None and await queries.session(reader, bytes.fromhex(claims.sid)) is None:
        return None
    is_session = claims.sid is not None and not carried
    return await _person(reader, claims.sub, None if is_session else carried, None)


async def _caller_through(reader: Reader, claims: AccessClaims, carried: frozenset[str]) -> Caller | None:
    """The caller behind a registration or a consent, while that is of the generation the token was made in."""
    grant = await queries.grant(reader, str(claims.reg))
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        return None
    granted = carried & grant.scopes
    if claims.client_id != grant.id:
        # A client acts by it: with no more than the client holds, and no longer than there is the client.
        client = await queries.client(reader, claims.client_id)
        if client is None:
            return None
        granted &= client.scopes
    if grant.person_id is None:
        return Caller("agent", grant.id, {}, granted, through=grant.id)
    return await _person(reader, grant.person_id, granted, grant.id)


async def _person(reader: Reader, person_id: str, carried: frozenset[str] | None, through: str | None) -> Caller | None:
    """The person as a caller: with all that the roles give, or with `carried` of it."""
    person = await queries.person(reader, person_id)
    if person is None:
        return None
    # Whoever was bound to an address before its owner proved it gets nothing of what the owner is given (attack T34).
    counts = through is None or await queries.is_proven(reader, person.id)
    roles = await queries.roles(reader, person.id) if counts else {}
    held = {org: scopes.OF_ROLE[role] for org, role in roles.items()}
    orgs = held if carried is None else {org: role & carried for org, role in held.items()}
    return Caller("person", person.id, orgs, carried, person.email, through)
