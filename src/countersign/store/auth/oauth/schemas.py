"""Wire structs of the OAuth addresses."""

from typing import Annotated, TypeAlias

import msgspec

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=2_000)]
Secret: TypeAlias = Annotated[str, msgspec.Meta(max_length=16_384)]


class Credentials(msgspec.Struct, kw_only=True):
    """How a client authenticates in a body (RFC 6749 §2.3.1)."""

    client_id: Text | None = None
    client_secret: Text | None = None
    client_assertion: Secret | None = None


class TokenRequest(Credentials, kw_only=True):
    """The members of every grant; unknown ones are ignored (RFC 6749 §3.2)."""

    grant_type: Text | None = None
    scope: Text | None = None
    resource: Text | list[Text] | None = None
    code: Secret | None = None
    redirect_uri: Text | None = None
    code_verifier: Text | None = None
    assertion: Secret | None = None
    claim_token: Secret | None = None


class ClientMetadata(msgspec.Struct, kw_only=True):
    """What a client says of itself when it registers (RFC 7591 §2); unknown members are ignored."""

    redirect_uris: list[Text] | None = None
    client_name: Text | None = None
    grant_types: list[Text] | None = None
    response_types: list[Text] | None = None
    scope: Text | None = None
    token_endpoint_auth_method: Text | None = None


class ClientRegistered(msgspec.Struct, kw_only=True):
    """The client as it is registered, with its secret (RFC 7591 §3.2.1); what it did not get is left out."""

    client_id: str
    client_secret: str
    client_id_issued_at: int
    client_secret_expires_at: int
    client_name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    scope: str
    token_endpoint_auth_method: str


class RevokeRequest(Credentials, kw_only=True):
    """What is to end (RFC 7009 §2.1); the hint is not needed, as each kind of token is recognised."""

    token: Secret | None = None
    token_type_hint: Text | None = None


class AuthorizeQuery(msgspec.Struct):
    """Where a client sends its person (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2); unknown parameters are ignored.
    An empty one counts as omitted."""

    response_type: Annotated[
        Text, msgspec.Meta(description="`code`; `token` where the client is registered for it.")
    ] = ""
    client_id: Annotated[Text, msgspec.Meta(description="The id of the client.")] = ""
    redirect_uri: Annotated[
        Text,
        msgspec.Meta(
            description="A redirect address of the client, as registered; the port of a loopback one may differ."
        ),
    ] = ""
    scope: Annotated[
        Text,
        msgspec.Meta(description="The scopes to ask for, separated by spaces; left out: all that the client may have."),
    ] = ""
    state: Annotated[Text, msgspec.Meta(description="A value that comes back unchanged with the answer.")] = ""
    code_challenge: Annotated[Text, msgspec.Meta(description="The PKCE challenge (RFC 7636).")] = ""
    code_challenge_method: Annotated[Text, msgspec.Meta(description="How the challenge is made: `S256` alone.")] = ""
    resource: Annotated[Text, msgspec.Meta(description="The resource that the token is for (RFC 8707).")] = ""


class AuthorizeForm(AuthorizeQuery):
    """The person's decision, `allow` or `deny`, on a page made for their sign-in; `shown` is the seal of what the page
    showed."""

    csrf: Text = ""
    shown: Text = ""
    decision: Text = ""


class DisconnectForm(msgspec.Struct):
    """The registration or the consent that a person takes back."""

    csrf: Text = ""
    id: Text = ""
