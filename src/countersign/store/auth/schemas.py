"""Request and response bodies of sign-in, of organisations and of the OAuth endpoints."""

from typing import Annotated, TypeAlias

import msgspec

from countersign.kernel.http.response import Moment
from countersign.store.scopes import Role, Scope

# `$` also matches before a final line break. `(?!\n)` prevents this in every dialect of regular expressions.
Email = Annotated[
    str,
    msgspec.Meta(
        min_length=3,
        max_length=254,
        pattern=r"^[^@\s]+@[^@\s]+(?!\n)$",
        extra={"needs": "must be an e-mail address, like name@example.com"},
    ),
]
Slug = Annotated[
    str,
    msgspec.Meta(pattern=r"^[a-z0-9-]{1,64}(?!\n)$", extra={"needs": "must be 1 to 64 of a-z, 0-9 and -"}),
]
OwnOrg = Annotated[
    Slug,
    msgspec.Meta(
        description="The slug of the organisation. Required if the caller has roles in several organisations."
    ),
]
RedirectUri = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S", extra={"needs": "must not be blank"})]


class TokenResponse(msgspec.Struct):
    """An access token (RFC 6749 §5.1). `expires_in` is in seconds."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str


class SessionTokenRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The scopes of the token that a page requests for the signed-in person. They can be fewer than the person has."""

    scope: str | None = None


class OrgQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Selects one of the caller's organisations."""

    org: OwnOrg | None = None


class Organisation(msgspec.Struct):
    """An organisation, with the members that only its administrators see. `name`, `text` and `website` are public when
    the organisation has products."""

    slug: str
    name: str
    created_at: Moment
    text: str | None
    website: str | None


ProfileText = Annotated[
    str,
    msgspec.Meta(
        max_length=2_000,
        # The text must not contain characters that change its direction, nor control characters except line breaks
        # and tabs.
        pattern=r"^(?=[\s\S]*\S)[^\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*$",
        extra={"needs": "must be plain text of at most 2000 characters, and not blank"},
    ),
]
Website = Annotated[
    str,
    msgspec.Meta(
        max_length=2_000,
        pattern=r"^https?://[^\s]+(?!\n)$",
        extra={"needs": "must be an address that begins with https:// or http://"},
    ),
]


class OrganisationUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """A change of an organisation. If `text` or `website` is omitted, it does not change; null removes it."""

    name: Name
    text: ProfileText | None | msgspec.UnsetType = msgspec.UNSET
    website: Website | None | msgspec.UnsetType = msgspec.UNSET


class Member(msgspec.Struct):
    """A person with a role in an organisation."""

    email: str
    role: str
    since: Moment


class NewMember(msgspec.Struct, forbid_unknown_fields=True):
    """The role that a person gets in the organisation. It replaces the previous role."""

    email: Email
    role: Role


class MemberQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The member to remove."""

    email: Annotated[Email, msgspec.Meta(description="The e-mail address of the member.")]
    org: OwnOrg | None = None


class Client(msgspec.Struct):
    """An OAuth client. `client_secret` is only in the response that creates the client."""

    client_id: str
    name: str
    scopes: list[str]
    created_at: Moment
    redirect_uris: list[str]
    implicit: bool
    client_secret: str | None | msgspec.UnsetType = msgspec.UNSET


class NewClient(msgspec.Struct, forbid_unknown_fields=True):
    """A client to create, with at most the scopes of its creator. If the client has `redirect_uris`, people can allow
    the client to act for them. With `implicit` (discouraged), the client gets its token in the redirect address."""

    name: Name
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=6)]
    redirect_uris: Annotated[list[RedirectUri], msgspec.Meta(max_length=10)] = []
    implicit: bool = False


class ClientQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The client to remove."""

    client_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128, description="The id of the client.")]
    org: OwnOrg | None = None


class Downloaded(msgspec.Struct):
    """The downloads of one version for one platform. `platform` is null for files without a platform."""

    product: str
    version: str
    platform: str | None
    downloads: int


class Usage(msgspec.Struct):
    """The current usage of an organisation, and its most downloaded versions.

    Two things count as a download: a file that was sent from its first byte, and a build whose installation a client
    reported.
    """

    products: int
    public_products: int
    releases: int
    artifacts: int
    stored_bytes: int
    downloads: int
    codes: int
    redemptions: int
    members: int
    clients: int
    downloaded: list[Downloaded]


ReturnTo = Annotated[
    str,
    msgspec.Meta(
        max_length=8_000, description="The path of this service to which the browser is redirected afterwards."
    ),
]


class SignInQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The path to which the browser is redirected after sign-in."""

    return_to: ReturnTo = "/"


class SignInForm(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the sign-in page."""

    email: Annotated[str, msgspec.Meta(max_length=254)] = ""
    password: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    return_to: Annotated[str, msgspec.Meta(max_length=8_000)] = "/"


class SetUpQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The token of a set-up link."""

    token: Annotated[str, msgspec.Meta(max_length=200, description="The token of the set-up link.")]


class SetUpForm(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the set-up page."""

    token: Annotated[str, msgspec.Meta(max_length=200)]
    slug: Annotated[str, msgspec.Meta(max_length=64)] = ""
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    email: Annotated[str, msgspec.Meta(max_length=254)] = ""
    password: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=2_000)]
Secret: TypeAlias = Annotated[str, msgspec.Meta(max_length=16_384)]


class Credentials(msgspec.Struct, kw_only=True):
    """The credentials of a client in a request body (RFC 6749 §2.3.1)."""

    client_id: Text | None = None
    client_secret: Text | None = None
    client_assertion: Secret | None = None


class TokenRequest(Credentials, kw_only=True):
    """A token request: the members of all grant types. Unknown members are ignored (RFC 6749 §3.2)."""

    grant_type: Text | None = None
    scope: Text | None = None
    resource: Text | list[Text] | None = None
    code: Secret | None = None
    redirect_uri: Text | None = None
    code_verifier: Text | None = None
    assertion: Secret | None = None
    claim_token: Secret | None = None


class ClientMetadata(msgspec.Struct, kw_only=True):
    """The metadata of a client that registers itself (RFC 7591 §2); unknown members are ignored."""

    redirect_uris: list[Text] | None = None
    client_name: Text | None = None
    grant_types: list[Text] | None = None
    response_types: list[Text] | None = None
    scope: Text | None = None
    token_endpoint_auth_method: Text | None = None


class ClientRegistered(msgspec.Struct, kw_only=True):
    """The registered client with its secret (RFC 7591 §3.2.1). Requested values that were not granted
    are omitted."""

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
    """The token to revoke (RFC 7009 §2.1). The hint is ignored, because the store recognises the type of each token."""

    token: Secret | None = None
    token_type_hint: Text | None = None


class AuthorizeQuery(msgspec.Struct):
    """The parameters of an authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2); unknown parameters are
    ignored. An empty parameter counts as omitted."""

    response_type: Annotated[
        Text, msgspec.Meta(description="`code`, or `token` if the client is registered for it.")
    ] = ""
    client_id: Annotated[Text, msgspec.Meta(description="The id of the client.")] = ""
    redirect_uri: Annotated[
        Text,
        msgspec.Meta(
            description="A registered redirect address of the client. The port of a loopback address may differ."
        ),
    ] = ""
    scope: Annotated[
        Text,
        msgspec.Meta(description="The requested scopes, separated by spaces. Default: all scopes of the client."),
    ] = ""
    state: Annotated[Text, msgspec.Meta(description="A value that is returned unchanged with the response.")] = ""
    code_challenge: Annotated[Text, msgspec.Meta(description="The PKCE challenge (RFC 7636).")] = ""
    code_challenge_method: Annotated[
        Text, msgspec.Meta(description="The method of the challenge; only `S256` is supported.")
    ] = ""
    resource: Annotated[Text, msgspec.Meta(description="The resource that the token is for (RFC 8707).")] = ""


class AuthorizeForm(AuthorizeQuery):
    """The person's decision, `allow` or `deny`. `csrf` binds the form to the session. `shown` is a MAC of what the page
    showed."""

    csrf: Text = ""
    shown: Text = ""
    decision: Text = ""


class DisconnectForm(msgspec.Struct):
    """The registration or consent that a person revokes."""

    csrf: Text = ""
    id: Text = ""
