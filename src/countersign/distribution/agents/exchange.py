"""The exchange of assertions for access tokens (RFC 7521, RFC 7523)."""

from countersign.distribution.agents import assertions
from countersign.distribution.agents.assertions import InvalidGrant
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes, tokens
from countersign.distribution.identity.queries import Client
from countersign.distribution.identity.schemas import TokenResponse


async def own_assertion(store: Store, assertion: str, scope: str | None) -> TokenResponse:
    """An access token for an assertion of this service."""
    claims = assertions.read(store, assertion)
    grant = await queries.grant(store.database, claims.sub)
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        raise InvalidGrant("the registration behind the assertion has ended or was claimed since")
    granted = tokens.requested(scope, grant.scopes)
    token, _ = tokens.issue_through(store, grant.person_id or grant.id, grant.id, granted, grant)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))


async def foreign_assertion(store: Store, assertion: str, client: Client, scope: str | None) -> TokenResponse:
    """An access token for a trusted provider's ID-JAG, presented by the client it was made for."""
    raise InvalidGrant(f"no issuer is trusted yet ({client.name}, {scope}, {store.root_url}, {len(assertion)})")
