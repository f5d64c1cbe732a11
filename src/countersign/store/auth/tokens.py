"""Access tokens (ES256 JWTs, RFC 9068): issuing tokens, finding the caller of a token, and the signing keys."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.jose import AccessClaims, AccessTokens, KeyRing
from countersign.kernel.security.masterkey import MasterKey
from countersign.store import scopes
from countersign.store.auth import queries
from countersign.store.auth.callers import Caller
from countersign.store.auth.queries import Grant
from countersign.store.context import Store

FIRST_PARTY = "countersign"


class InvalidScope(Refused):
    """A requested scope does not exist, or the caller does not have it."""

    code = "invalid_scope"
    title = "Invalid scope"
    resolution = f"Ask for scopes among: {' '.join(scopes.ALL)}; omit scope to get all scopes that you have."


def granted_scopes(scope: str | None, available_scopes: frozenset[str]) -> frozenset[str]:
    """Return the scopes to grant: the requested scopes, or all available scopes if none are requested.

    Raises:
        InvalidScope: a requested scope is unknown or not available, or none is available.
    """
    if not available_scopes:
        raise InvalidScope("no scope is available any more")
    if scope is None or not scope.strip():
        return available_scopes
    scopes_requested = frozenset(scope.split())
    missing_scopes = sorted(scopes_requested - available_scopes)
    if missing_scopes:
        raise InvalidScope(f"the scope {missing_scopes[0][:64]} does not exist or is not available")
    return scopes_requested


async def scopes_of_person(reader: Reader, person_id: str) -> frozenset[str]:
    """Return every scope that a person has in any organisation, and the reading scopes, which require no role."""
    roles = await queries.roles(reader, person_id)
    return scopes.READING.union(*(scopes.OF_ROLE[role] for role in roles.values()))


async def scopes_of_grant(reader: Reader, grant: Grant) -> frozenset[str]:
    """Return the current scopes of a grant, without the scopes that its person no longer has."""
    if grant.person_id is None:
        return grant.scopes
    return grant.scopes & await scopes_of_person(reader, grant.person_id)


def issue(store: Store, subject: str, client_id: str, granted_scopes: frozenset[str]) -> str:
    """Issue an access token for a person or a client. `subject` is the id of the person or client."""
    now_s = clock.now() // clock.SECOND
    return store.tokens.issue(
        _claims(store, subject, client_id, granted_scopes, now_s, now_s + store.settings.token_ttl_s)
    )


def issue_for_grant(
    store: Store,
    subject: str,
    client_id: str,
    granted_scopes: frozenset[str],
    grant: Grant,
    auth_time_s: int | None = None,
    *,
    jti: str | None = None,
) -> tuple[str, AccessClaims]:
    """Issue an access token for a registration or consent, and return it with its claims. The token becomes invalid
    when the generation of the grant changes. `subject` is the id of the person, or of an unclaimed registration. `jti`
    is the id of the token, if the id was chosen beforehand."""
    now_s = clock.now() // clock.SECOND
    new_claims = _claims(store, subject, client_id, granted_scopes, now_s, now_s + store.settings.token_ttl_s)
    claims = msgspec.structs.replace(
        new_claims, reg=grant.id, gen=grant.generation, auth_time=auth_time_s, jti=jti or new_claims.jti
    )
    return store.tokens.issue(claims), claims


def issue_in_session(
    store: Store, session: queries.Session, session_hash: bytes, granted_scopes: frozenset[str]
) -> tuple[str, int]:
    """Issue a token for a signed-in person, and return it with its lifetime in seconds. The token becomes invalid when
    the session ends. A token without scopes has all rights of the session."""
    now_s = clock.now() // clock.SECOND
    ends_s = min(now_s + store.settings.token_ttl_s, session.expires_at // clock.SECOND)
    claims = _claims(store, session.person_id, FIRST_PARTY, granted_scopes, now_s, ends_s)
    return store.tokens.issue(msgspec.structs.replace(claims, sid=session_hash.hex())), ends_s - now_s


def _claims(
    store: Store, subject: str, client_id: str, granted_scopes: frozenset[str], now_s: int, ends_s: int
) -> AccessClaims:
    return AccessClaims(
        iss=store.root_url,
        aud=store.root_url,
        sub=subject,
        client_id=client_id,
        iat=now_s,
        exp=ends_s,
        jti=ids.new_uuid(),
        scope=scopes.words(granted_scopes),
    )


async def resolve_caller(reader: Reader, claims: AccessClaims) -> Caller | None:
    """Return the caller of a token, with the caller's current roles and scopes. Return None if the token is revoked, or
    the person, client, session or grant of the token no longer exists."""
    if await queries.is_revoked(reader, claims.jti):
        return None
    carried_scopes = frozenset(claims.scope.split())
    if claims.reg is not None:
        return await _caller_of_grant(reader, claims, carried_scopes)
    if claims.sub == claims.client_id:
        client = await queries.client(reader, claims.sub)
        if client is None or client.org_id is None:
            return None
        granted_scopes = carried_scopes & client.scopes
        return Caller("client", client.id, {client.org_id: granted_scopes}, granted_scopes)
    if claims.sid is not None:
        return await _caller_of_session(reader, claims, bytes.fromhex(claims.sid), carried_scopes)
    return await _caller_of_person(reader, claims.sub, carried_scopes, None)


async def _caller_of_session(
    reader: Reader, claims: AccessClaims, session_hash: bytes, carried_scopes: frozenset[str]
) -> Caller | None:
    """Return the person of a session, if the session has not ended."""
    if await queries.session(reader, session_hash) is None:
        return None
    return await _caller_of_person(reader, claims.sub, carried_scopes or None, None, session_hash)


async def _caller_of_grant(reader: Reader, claims: AccessClaims, carried_scopes: frozenset[str]) -> Caller | None:
    """Return the caller of a registration or consent, if it has the same generation as the token."""
    grant = await queries.grant(reader, str(claims.reg))
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        return None
    granted_scopes = carried_scopes & grant.scopes
    if claims.client_id != grant.id:
        # An OAuth client uses the grant: require that the client exists, and limit the scopes to those of the client.
        client = await queries.client(reader, claims.client_id)
        if client is None:
            return None
        granted_scopes &= client.scopes
    if grant.person_id is None:
        return Caller("agent", grant.id, {}, granted_scopes, grant_id=grant.id)
    return await _caller_of_person(reader, grant.person_id, granted_scopes, grant.id)


async def _caller_of_person(
    reader: Reader,
    person_id: str,
    carried_scopes: frozenset[str] | None,
    client_id: str | None,
    session_hash: bytes | None = None,
) -> Caller | None:
    """Return the person as a caller. The caller has all scopes of the person's roles, or only those in
    `carried_scopes`."""
    person = await queries.person(reader, person_id)
    if person is None:
        return None
    # An agent or client gets none of the person's roles until the person's address is proven (attack T34).
    is_trusted = client_id is None or await queries.is_proven(reader, person.id)
    roles = await queries.roles(reader, person.id) if is_trusted else {}
    available_scopes = {org: scopes.OF_ROLE[role] for org, role in roles.items()}
    orgs = (
        available_scopes
        if carried_scopes is None
        else {org: role & carried_scopes for org, role in available_scopes.items()}
    )
    return Caller("person", person.id, orgs, carried_scopes, person.email, client_id, session=session_hash)


KEYS_NAME = "token-keys"
PURPOSE = "token-keys"
SELECT_KEYS = "SELECT sealed FROM service_key WHERE name = $1"
INSERT_KEYS = "INSERT INTO service_key (name, sealed, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
DELETE_KEYS = "DELETE FROM service_key WHERE name = $1"
REPLACE_KEYS = "UPDATE service_key SET sealed = $2, created_at = $3 WHERE name = $1 AND sealed = $4"

ENCRYPTED_COLUMN = EncryptedColumn(
    table="service_key",
    purpose=PURPOSE,
    page="SELECT sealed, name FROM service_key WHERE name > $2 ORDER BY name LIMIT $1",
    first_key=("",),
    smallest="SELECT sealed FROM service_key WHERE sealed >= $1 ORDER BY sealed LIMIT 1",
    replace="UPDATE service_key SET sealed = $2 WHERE sealed = $1 AND name = $3",
)


class KeysChanged(Refused):
    """A concurrent call changed the keys."""

    status = 409
    code = "keys_changed"
    title = "Keys changed"
    resolution = "List the keys, and rotate again if it is still needed."


async def load_keys(database: Database, master: MasterKey) -> KeyRing:
    """The ring of signing keys: the current key, and earlier keys that may still verify tokens. If several processes
    start at once, the first creates the ring and the others read it.

    Raises:
        DecryptionFailed: the master key is not the one that encrypted the ring.
    """
    stored_ring = await stored_keys(database, master)
    if stored_ring is not None:
        return stored_ring
    new_ring = encrypt(master, KeyRing.new().to_json(), PURPOSE)
    async with database.transaction() as transaction:
        await transaction.run(INSERT_KEYS, KEYS_NAME, new_ring, clock.now())
    concurrent_ring = await stored_keys(database, master)
    if concurrent_ring is None:
        raise LookupError("the token keys were removed while they were read")
    return concurrent_ring


async def stored_keys(reader: Reader, master: MasterKey) -> KeyRing | None:
    """The stored ring, or None if no ring is stored.

    Raises:
        DecryptionFailed: the master key is not the one that encrypted the ring.
    """
    row = await reader.fetch_one(SELECT_KEYS, KEYS_NAME)
    return None if row is None else KeyRing.from_json(decrypt(master, bytes(row[0]), PURPOSE))


async def forget_keys(transaction: Transaction) -> None:
    """Remove the ring. The next process that opens the database creates a new ring."""
    await transaction.run(DELETE_KEYS, KEYS_NAME)


async def rotate_keys(database: Database, master: MasterKey, *, drop_previous: bool) -> KeyRing:
    """Add a new signing key. Earlier keys stay published until the last token that they signed has expired, unless
    `drop_previous` is set. Every worker loads the new ring with its next request.

    Raises:
        KeysChanged: a concurrent rotation changed the keys.
        DecryptionFailed: the master key is not the one that encrypted the ring.
    """
    await load_keys(database, master)
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(SELECT_KEYS, KEYS_NAME)
        stored_ring = b"" if row is None else bytes(row[0])
        ring_before = KeyRing.from_json(decrypt(master, stored_ring, PURPOSE))
        ring = KeyRing.new() if drop_previous else ring_before.rotated()
        new_ring = encrypt(master, ring.to_json(), PURPOSE)
        if not await transaction.run(REPLACE_KEYS, KEYS_NAME, new_ring, clock.now(), stored_ring):
            raise KeysChanged("a concurrent rotation changed the keys")
        await versions.bump(transaction, "identity")
    return ring


async def replace_keys(transaction: Transaction, master: MasterKey) -> None:
    """Replace the stored ring by a new one, so that every earlier token becomes invalid.

    Raises:
        DecryptionFailed: the master key is not the one that encrypted the ring.
    """
    if await stored_keys(transaction, master) is None:
        return
    await forget_keys(transaction)
    await transaction.run(INSERT_KEYS, KEYS_NAME, encrypt(master, KeyRing.new().to_json(), PURPOSE), clock.now())
    await versions.bump(transaction, "identity")


class SigningKeyReloader:
    """Reads the change counters, and reloads the signing keys if the counter of identities has changed. `position` is
    the index of the counter of identities."""

    def __init__(
        self,
        read_versions: Callable[[], Awaitable[tuple[int, ...]]],
        position: int,
        database: Database,
        master: MasterKey,
        tokens: AccessTokens,
    ) -> None:
        self._current = read_versions
        self._position = position
        self._database = database
        self._master = master
        self._tokens = tokens
        self._identity = 0
        self._stored = b""
        self._renewing = asyncio.Lock()

    async def current(self) -> tuple[int, ...]:
        """Return the counters. They are read from the database after the call begins.

        Raises:
            Unavailable: the database cannot be reached.
            DecryptionFailed: the ring was encrypted with a master key that this process does not have.
        """
        numbers = await self._current()
        if numbers[self._position] != self._identity:
            async with self._renewing:
                await self._reload()
                self._identity = numbers[self._position]
        return numbers

    async def _reload(self) -> None:
        row = await self._database.fetch_one(SELECT_KEYS, KEYS_NAME)
        stored_ring = b"" if row is None else bytes(row[0])
        if stored_ring and stored_ring != self._stored:
            self._tokens.use(KeyRing.from_json(decrypt(self._master, stored_ring, PURPOSE)))
            self._stored = stored_ring
