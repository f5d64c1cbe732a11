"""The caller of a request: an anonymous address, a person, an OAuth client, an unclaimed agent, or a self-serve key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from countersign.kernel.http.request import BodyT, QueryT, Request
from countersign.store import scopes
from countersign.store.context import Store

_NO_ROLES: Mapping[str, frozenset[str]] = {}
_QUOTAS = {"anonymous": "anonymous", "person": "person", "client": "person", "agent": "community"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request, with the caller's current scopes.

    `orgs` maps each organisation's id to the scopes that the caller has in the organisation, according to both role and
    token. `scopes` contains the scopes of the token, or None for a person's own session, which needs no scopes.
    `grant_id` is the id of the registration or consent by which an agent or client acts for the person.
    `granted_quota` replaces the quota of the caller's kind. `session` is the hash of the browser session that the token
    belongs to.
    """

    kind: Literal["anonymous", "person", "client", "agent", "key"]
    id: str
    orgs: Mapping[str, frozenset[str]] = field(default_factory=lambda: _NO_ROLES)
    scopes: frozenset[str] | None = frozenset()
    email: str | None = None
    grant_id: str | None = None
    granted_quota: str | None = None
    session: bytes | None = None

    @property
    def key(self) -> str:
        """The key of the caller in counters and idempotency records. Each agent of a person has a separate key."""
        return f"{self.kind}:{self.id}" if self.grant_id is None else f"{self.kind}:{self.id}:{self.grant_id}"

    @property
    def quota(self) -> str:
        """The name of the rate limit that applies to this caller."""
        return self.granted_quota or _QUOTAS[self.kind]

    @property
    def is_anonymous(self) -> bool:
        """Whether no credential was presented."""
        return self.kind == "anonymous"

    @property
    def owner(self) -> str:
        """The owner of the products that this caller redeems: the person, or the client's organisation (a site
        licence). Callers of other kinds own no products."""
        return f"org:{next(iter(self.orgs))}" if self.kind == "client" else f"{self.kind}:{self.id}"

    def allows(self, scope: str) -> bool:
        """Whether the caller has the scope. The token or session is enough for a reading scope; any other scope also
        requires a role."""
        if scope in scopes.READING:
            is_granted = self.scopes is None or scope in self.scopes
            return is_granted or (self.kind == "client" and "admin:org" in (self.scopes or ()))
        return bool(self.orgs_allowing(scope))

    def orgs_allowing(self, scope: str) -> tuple[str, ...]:
        """The organisations in which the caller has the scope."""
        return tuple(org for org, scopes_in_org in self.orgs.items() if scopes.satisfies(scopes_in_org, scope))


StoreRequest: TypeAlias = Request[Store, Caller, QueryT, BodyT]
"""The decoded request that a handler of the store gets."""


def anonymous_caller(address: str) -> Caller:
    """The caller of a request without a credential, identified by its address."""
    return Caller("anonymous", address)
