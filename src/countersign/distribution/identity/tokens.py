"""Access tokens: issued as ES256 JWTs (RFC 9068), and read back into a caller on every request."""

import msgspec

from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes
from countersign.distribution.identity.callers import Caller
from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import Refused
from countersign.kernel.security.jose import AccessClaims

FIRST_PARTY = "countersign"


class InvalidScope(Refused):
    """A scope was asked for that does not exist or that the caller does not hold."""

    code = "invalid_scope"
    title = "Invalid scope"
    resolution = f"Ask for scopes among: {' '.join(scopes.ALL)}; leave scope out for all that you hold."


def requested(scope: str | None, held: frozenset[str]) -> frozenset[str]:
    """The scopes to grant: those asked for, or all that are held when none are.

    Raises:
        InvalidScope: one is unknown or not held.
    """
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


def issue(store: Store, subject: str, client_id: str, granted: frozenset[str]) -> str:
    """A signed access token for a person (`subject` is the person's id) or a client (its own id)."""
    now_s = clock.now() // clock.SECOND
    return store.tokens.issue(_claims(store, subject, client_id, granted, now_s, now_s + store.settings.token_ttl_s))


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
    """The caller a token stands for, with the roles and scopes held at this moment; None when the person, the
    client or the session is no more."""
    carried = frozenset(claims.scope.split())
    if claims.sub == claims.client_id:
        client = await queries.client(reader, claims.sub)
        if client is None:
            return None
        granted = carried & client.scopes
        return Caller("client", client.id, {client.org_id: granted}, granted)
    person = await queries.person(reader, claims.sub)
    if person is None:
        return None
    roles = await queries.roles(reader, person.id)
    if claims.sid is not None and await queries.session(reader, bytes.fromhex(claims.sid)) is None:
        return None
    if claims.sid is not None and not carried:
        orgs = {org: scopes.OF_ROLE[role] for org, role in roles.items()}
        return Caller("person", person.id, orgs, None, person.email)
    orgs = {org: scopes.OF_ROLE[role] & carried for org, role in roles.items()}
    return Caller("person", person.id, orgs, carried, person.email)
