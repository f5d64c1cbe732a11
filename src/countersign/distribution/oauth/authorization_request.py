"""What a client asks a person for at the authorization endpoint, checked (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 9700)."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from countersign.distribution.context import Store
from countersign.distribution.identity import queries, redirect_uris, scopes
from countersign.distribution.identity.queries import Client
from countersign.distribution.oauth import dynamic_clients, targets
from countersign.distribution.oauth.schemas import AuthorizeQuery
from countersign.kernel.http.response import Response

PATH = "/auth/authorize"
MAX_STATE_LENGTH = 1_024
NO_CLIENT = "There is no client with this client_id."
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class NoWayBack(Exception):
    """Client or address are not known to belong together: the person is told here, and sent nowhere."""


class Way(NamedTuple):
    """How the answer reaches the client: by its registered address, in the query or, for a token, in the fragment. The
    address `is_trusted` when an administrator registered it."""

    issuer: str
    redirect_uri: str
    state: str
    in_fragment: bool
    is_trusted: bool

    def address(self, members: Mapping[str, str]) -> str:
        """The client's address with these members, `state` and `iss` (RFC 9207 §2)."""
        told = {**members, **({"state": self.state} if self.state else {}), "iss": self.issuer}
        mark = "#" if self.in_fragment else "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{mark}{urlencode(told)}"

    def back(self, members: Mapping[str, str]) -> Response:
        """Send the person back with these members; never repeated as a POST."""
        headers = (
            ("Location", self.address(members)),
            ("Cache-Control", "no-store"),
            ("Pragma", "no-cache"),
            ("Referrer-Policy", "no-referrer"),
        )
        return Response(303, headers=headers)


class SentBack(Exception):
    """A refusal that the client is told, by way of the person's browser (RFC 6749 §4.1.2.1).

    The browser goes there by itself only where `is_automatic`. Without that the person is shown the refusal first, and
    decides whether to go on: an address that nobody verified gets no visitors from us (RFC 9700 §4.11.2), nor does a
    client learn what a person's account lacks before the person answers.
    """

    def __init__(self, way: Way, error: str, description: str, *, is_automatic: bool | None = None) -> None:
        super().__init__(error)
        self.way = way
        self.error = error
        self.description = description
        self.is_automatic = way.is_trusted if is_automatic is None else is_automatic

    @property
    def members(self) -> dict[str, str]:
        """What the client is told."""
        return {"error": self.error, "error_description": self.description}


class PermissionsMissing(SentBack):
    """The person's account has none of the scopes that the client asked for."""

    def __init__(self, way: Way) -> None:
        super().__init__(way, "invalid_scope", "the person holds none of these scopes", is_automatic=False)


class Asked(NamedTuple):
    """A request that may be put to a person. Without a challenge it is for a token (the implicit grant)."""

    client: Client
    way: Way
    scopes: frozenset[str]
    challenge: str | None
    resource: str


def target_of(sent: AuthorizeQuery) -> str:
    """The path that asks the same again."""
    names = AuthorizeQuery.__struct_fields__
    return f"{PATH}?" + urlencode({name: value for name in names if (value := getattr(sent, name))})


async def addressed(store: Store, sent: AuthorizeQuery) -> tuple[Client, Way]:
    """The client of a request, and how the answer reaches it.

    Raises:
        NoWayBack: unknown client, or an address that is not registered for it.
    """
    client = await queries.client(store.database, sent.client_id)
    if client is None or not dynamic_clients.is_enabled(store, client):
        raise NoWayBack(NO_CLIENT)
    # A client that registered itself has no port to choose, not even of a loopback address.
    is_exact = sent.redirect_uri in client.redirect_uris
    if not is_exact and (client.is_dynamic or not redirect_uris.is_among(sent.redirect_uri, client.redirect_uris)):
        raise NoWayBack("The redirect_uri is not one that is registered for this client.")
    if len(sent.state) > MAX_STATE_LENGTH:
        raise NoWayBack(f"The state is longer than {MAX_STATE_LENGTH} characters.")
    in_fragment = sent.response_type == "token"
    # No exception for loopback addresses: any program of the machine may listen there, and any page of the web could
    # have the browser call it, with a path of its choice, from this service's address.
    return client, Way(store.root_url, sent.redirect_uri, sent.state, in_fragment, is_trusted=not client.is_dynamic)


def checked(store: Store, sent: AuthorizeQuery, client: Client, way: Way) -> Asked:
    """The request, when it may be put to a person.

    Raises:
        SentBack: something is wrong with it.
    """
    challenge = _challenge(sent, client, way)
    if sent.resource and not targets.is_ours(store, sent.resource):
        raise SentBack(way, "invalid_target", "the token was asked for another service")
    return Asked(client, way, _scopes(sent, client, way), challenge, sent.resource)


def _challenge(sent: AuthorizeQuery, client: Client, way: Way) -> str | None:
    """The PKCE challenge of a request for a code; S256 alone, as `plain` protects from nobody who sees the request."""
    if sent.response_type == "token":
        if not client.is_implicit:
            raise SentBack(way, "unauthorized_client", "this client may not use response_type=token; use code")
        return None
    if sent.response_type != "code":
        error = "unsupported_response_type" if sent.response_type else "invalid_request"
        raise SentBack(way, error, "response_type must be code")
    if sent.code_challenge_method != "S256" or _CHALLENGE.fullmatch(sent.code_challenge) is None:
        raise SentBack(way, "invalid_request", "PKCE is required: code_challenge with code_challenge_method=S256")
    return sent.code_challenge


def _scopes(sent: AuthorizeQuery, client: Client, way: Way) -> frozenset[str]:
    """The scopes asked for as far as the client may have them; all of those when none is named."""
    held = client.scopes & scopes.DELEGABLE
    allowed = (frozenset(sent.scope.split()) or held) & held
    if not allowed:
        raise SentBack(way, "invalid_scope", f"this client may ask for: {scopes.words(held) or 'nothing'}")
    return allowed
