"""The JWT bearer grant: our own assertion of an agent, or an ID-JAG of a provider (RFC 7523 §2.1)."""

import base64
import binascii

import msgspec

from countersign.distribution.agents import exchange as agents
from countersign.distribution.agents.assertions import InvalidGrant
from countersign.distribution.context import Store
from countersign.distribution.identity.schemas import TokenResponse
from countersign.distribution.oauth import client_authentication
from countersign.distribution.oauth.schemas import TokenRequest
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http.request import Headers


class _Issued(msgspec.Struct):
    iss: str


async def exchange(store: Store, request: TokenRequest, headers: Headers) -> TokenResponse:
    """An access token for an assertion. Who seems to have issued it only chooses who checks it: an agent presents ours
    without client authentication, a provider's ID-JAG is for the authenticated client alone (agent-auth 7.7).

    Raises:
        InvalidRequest: no assertion.
        InvalidClient: credentials that do not hold, or none with an ID-JAG.
        UnauthorizedClient: the client registered itself.
        InvalidGrant: the assertion does not hold.
        InvalidScope: a scope that is not held.
    """
    if request.assertion is None:
        raise InvalidRequest("assertion is required", resolution="Send the assertion.")
    is_ours = _issuer(request.assertion) == store.root_url
    if is_ours and not client_authentication.is_offered(request, headers):
        return await agents.own_assertion(store, request.assertion, request.scope)
    client = await client_authentication.authenticated_for(store, request, headers)
    if is_ours:
        return await agents.own_assertion(store, request.assertion, request.scope)
    return await agents.foreign_assertion(store, request.assertion, client, request.scope)


def _issuer(assertion: str) -> str:
    """The issuer an assertion names, before anything about it is believed."""
    encoded = assertion.split(".")[1:2]
    try:
        text = base64.urlsafe_b64decode(encoded[0] + "=" * (-len(encoded[0]) % 4))
        return msgspec.json.decode(text, type=_Issued).iss
    except (IndexError, ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise InvalidGrant("the assertion is no JWT with an issuer") from error
