"""Authentication of bearer tokens. Callers are cached, and any change of access rights invalidates the cache."""

from collections.abc import Callable
from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader
from countersign.kernel.http.request import Headers
from countersign.kernel.security import secrets
from countersign.records.access import agent_tokens, grants, visibility
from countersign.records.access.view import Caller, Domain, View
from countersign.records.access.visibility import Commands, Rights, ScopeLimit
from countersign.records.context import Records

MAX_CACHED = 10_000

_CREDENTIAL = """
SELECT kind, record_id, user_id, expires_at
FROM credential
WHERE digest = $1 AND kind IN ('session', 'agent') AND ended_at IS NULL AND expires_at > $2
"""
_AGENT = """
SELECT "user", label, scopes, unmask, expires_at
FROM agent_token
WHERE id = $1 AND ended_at IS NULL AND expires_at > $2
"""


class _CachedCaller(NamedTuple):
    """A cached caller, the number of the version `access` (a counter that every change of access rights increases) at
    which the caller was read, and the time at which its credential expires."""

    number: int
    expires_at: Instant
    caller: Caller


class Callers:
    """Authenticates callers by their tokens.

    Callers are cached by the digest of their token. The cache is valid while the number of version `access`, which
    every request reads, stays the same. Each change of access rights, such as ending a token, deactivating a person or
    changing a grant, increases the number. It therefore takes effect immediately on every worker.

    Callers with equal rights share one view. `narrow_caller` is called once for each caller and may return a caller
    with another view.
    """

    def __init__(
        self, records: Records, commands: Commands, narrow_caller: Callable[[Caller], Caller] = lambda caller: caller
    ) -> None:
        """`commands` maps each model to the names of all its commands."""
        self._records = records
        self._commands = commands
        self._narrow = narrow_caller
        self._cached: dict[bytes, _CachedCaller] = {}
        self._views: dict[tuple[str, ScopeLimit | None], View] = {}
        self._views_version = -1

    def forget(self) -> None:
        """Forget all cached callers, because they would now be narrowed in another way."""
        self._cached.clear()

    async def caller_of(self, headers: Headers) -> Caller | None:
        """Return the caller that the Authorization header authenticates (API document, Authentication 4). Return None
        if the header is missing, malformed or repeated, if the token is unknown, expired or revoked, or if its person
        is inactive.

        Raises:
            Unavailable: the database cannot be reached.
        """
        authorization = headers.get("authorization")
        if authorization is None or headers.count("authorization") != 1:
            return None
        kind, _, token = authorization.partition(" ")
        token = token.strip()
        return await self._caller_with_token(token) if kind.lower() == "bearer" and token else None

    async def agent(self, reader: Reader, token_id: str) -> Caller | None:
        """Return the agent of an agent_token record with its current rights, or None if it can no longer authenticate.

        Read everything through the given reader, and cache nothing. If a transaction needed a second connection, it
        could deadlock with transactions that wait for it.

        Raises:
            Unavailable: the database cannot be reached.
        """
        row = await reader.fetch_one(_AGENT, token_id, clock.now())
        if row is None:
            return None
        user_id, label, scopes, unmask, _ = row
        rights = await grants.rights_of(reader, self._records.registry, user_id)
        domain = await agent_tokens.find_domain(reader, self._records.secret, user_id, label)
        if rights is None or domain is None:
            return None
        limit = ScopeLimit(grants.split_list(scopes), frozenset(grants.split_list(unmask)))
        view = visibility.view_of(self._records.registry, self._commands, rights, limit)
        return self._narrow(_agent_caller(token_id, label, rights, limit, view, domain))

    async def person(self, reader: Reader, user_id: str) -> Caller | None:
        """Return a person with the current rights and without a session, or None if the person can no longer sign in.

        Raises:
            Unavailable: the database cannot be reached.
        """
        rights = await grants.rights_of(reader, self._records.registry, user_id)
        if rights is None:
            return None
        view = visibility.view_of(self._records.registry, self._commands, rights, None)
        return self._narrow(_person_caller(rights, "", view, None))

    async def _caller_with_token(self, token: str) -> Caller | None:
        version_number = (await self._records.versions())[0]
        digest = secrets.digest(token)
        cached_caller = self._cached.get(digest)
        if (
            cached_caller is not None
            and cached_caller.number == version_number
            and cached_caller.expires_at > clock.now()
        ):
            return cached_caller.caller
        self._cached.pop(digest, None)
        if not secrets.looks_like_secret(token):
            return None
        loaded_caller = await self._load_caller(version_number, digest)
        if loaded_caller is None:
            return None
        if len(self._cached) >= MAX_CACHED:
            self._cached.clear()
        self._cached[digest] = loaded_caller
        return loaded_caller.caller

    async def _load_caller(self, version_number: int, digest: bytes) -> _CachedCaller | None:
        row = await self._records.database.fetch_one(_CREDENTIAL, digest, clock.now())
        if row is None:
            return None
        kind, record_id, user_id, expires_at = row
        if kind == "agent":
            return await self._load_agent(version_number, record_id)
        rights = await self._rights(user_id)
        if rights is None:
            return None
        view = self._view(version_number, rights, None)
        domain = await self._domain(user_id, "") if view.is_masked else None
        return _CachedCaller(version_number, expires_at, self._narrow(_person_caller(rights, record_id, view, domain)))

    async def _load_agent(self, version_number: int, token_id: str) -> _CachedCaller | None:
        row = await self._records.database.fetch_one(_AGENT, token_id, clock.now())
        if row is None:
            return None
        user_id, label, scopes, unmask, expires_at = row
        rights = await self._rights(user_id)
        if rights is None:
            return None
        limit = ScopeLimit(grants.split_list(scopes), frozenset(grants.split_list(unmask)))
        view, domain = self._view(version_number, rights, limit), await self._domain(user_id, label)
        caller = _agent_caller(token_id, label, rights, limit, view, domain)
        return _CachedCaller(version_number, expires_at, self._narrow(caller))

    async def _rights(self, user_id: str) -> Rights | None:
        return await grants.rights_of(self._records.database, self._records.registry, user_id)

    def _view(self, version_number: int, rights: Rights, limit: ScopeLimit | None) -> View:
        if version_number != self._views_version:
            self._views, self._views_version = {}, version_number
        key = (rights.user_id, limit)
        if key not in self._views:
            self._views[key] = visibility.view_of(self._records.registry, self._commands, rights, limit)
        return self._views[key]

    async def _domain(self, user_id: str, label: str) -> Domain:
        """Return the token domain. If no domain is open, open one. This happens when the first fields become masked for
        a person."""
        database, secret = self._records.database, self._records.secret
        domain = await agent_tokens.find_domain(database, secret, user_id, label)
        if domain is None:
            async with database.transaction() as transaction:
                await agent_tokens.open_domain(transaction, user_id, label)
                domain = await agent_tokens.find_domain(transaction, secret, user_id, label)
        if domain is None:
            raise LookupError("a token domain was closed while it was being opened")
        return domain


def _person_caller(rights: Rights, session_id: str, view: View, domain: Domain | None) -> Caller:
    return Caller(
        kind="person",
        user_id=rights.user_id,
        username=rights.username,
        credential_id=session_id,
        view=view,
        roles=rights.roles,
        domain=domain,
        external_id=rights.external_id,
        tenant=rights.tenant,
    )


def _agent_caller(token_id: str, label: str, rights: Rights, limit: ScopeLimit, view: View, domain: Domain) -> Caller:
    return Caller(
        kind="agent",
        user_id=rights.user_id,
        username=rights.username,
        credential_id=token_id,
        view=view,
        roles=rights.roles,
        domain=domain,
        agent=label,
        scopes=limit.scopes,
        external_id=rights.external_id,
        tenant=rights.tenant,
    )
