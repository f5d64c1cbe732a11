"""The caller of a request: an anonymous address, a person, an OAuth client, an agent that is nobody's yet, a
self-serve key."""

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
    """Whoever calls, with what they hold now.

    `orgs` maps each organisation's id to the scopes held in it (role and token together); `scopes` is what the
    token itself carries, None for a person's own session, which needs none. `through` is the registration or the
    consent by which somebody else acts for the person. `granted_quota` is a quota of its own, where it has one.
    """

    kind: Literal["anonymous", "person", "client", "agent", "key"]
    id: str
    orgs: Mapping[str, frozenset[str]] = field(default_factory=lambda: _NO_ROLES)
    scopes: frozenset[str] | None = frozenset()
    email: str | None = None
    through: str | None = None
    granted_quota: str | None = None

    @property
    def key(self) -> str:
        """Names the caller in counters and idempotency records: each agent of a person apart from the others."""
        return f"{self.kind}:{self.id}" if self.through is None else f"{self.kind}:{self.id}:{self.through}"

    @property
    def quota(self) -> str:
        """Which rate limit counts this caller."""
        return self.granted_quota or _QUOTAS[self.kind]

    @property
    def is_anonymous(self) -> bool:
        """Whether no credential was presented."""
        return self.kind == "anonymous"

    @property
    def owner(self) -> str:
        """Who owns what this caller redeems: the person, or the client's organisation (a site licence). Nothing is ever
        given to the others."""
        return f"org:{next(iter(self.orgs))}" if self.kind == "client" else f"{self.kind}:{self.id}"

    def allows(self, scope: str) -> bool:
        """Whether the caller may do this at all: by the token (or session) for reading, by a role for the rest."""
        if scope in scopes.READING:
            granted = self.scopes is None or scope in self.scopes
            return granted or (self.kind == "client" and "admin:org" in (self.scopes or ()))
        return bool(self.orgs_allowing(scope))

    def orgs_allowing(self, scope: str) -> tuple[str, ...]:
        """The organisations in which the caller may do this."""
        return tuple(org for org, held in self.orgs.items() if scopes.satisfies(held, scope))


StoreRequest: TypeAlias = Request[Store, Caller, QueryT, BodyT]
"""A decoded request to the store, as every handler of it gets."""


def anonymous(address: str) -> Caller:
    """The caller that presented no credential, known by its address alone."""
    return Caller("anonymous", address)
