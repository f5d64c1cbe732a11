"""The client-credentials grant: a client acts for its organisation (RFC 6749 §4.4)."""

from countersign.distribution.context import Store
from countersign.distribution.identity import scopes, tokens
from countersign.distribution.identity.queries import Client
from countersign.distribution.identity.schemas import TokenResponse


def exchange(store: Store, client: Client, scope: str | None) -> TokenResponse:
    """An access token for an authenticated client, with the scopes it asks for or all it holds.

    Raises:
        InvalidScope: a scope the client does not hold.
    """
    granted = tokens.requested(scope, client.scopes)
    token = tokens.issue(store, client.id, client.id, granted)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))
