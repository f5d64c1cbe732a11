"""Request and response bodies of registration, claim and exchange (agent-auth 7.4), and their validation."""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http.response import Moment, Uri
from countersign.kernel.mail import message as mail
from countersign.store import scopes
from countersign.store.auth.agents.registrations import Kind
from countersign.store.auth.schemas import TokenResponse
from countersign.store.auth.tokens import InvalidScope

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=2_000)]
Assertion: TypeAlias = Annotated[str, msgspec.Meta(max_length=16_384)]


class RegisterRequest(msgspec.Struct):
    """The registration of an agent, in the format of agent-auth (with `type`) or of the API document (with `method` or
    `grant_type`). Unknown members are ignored."""

    type: Text | None = None
    method: Text | None = None
    grant_type: Text | None = None
    assertion_type: Text | None = None
    assertion: Assertion | None = None
    email: Text | None = None
    login_hint: Text | None = None
    scope: Text | None = None


class ScopesByClaim(msgspec.Struct, omit_defaults=True):
    """The scopes of an agent before and after a person has claimed it."""

    post_claim: list[str]
    pre_claim: list[str] | UnsetType = UNSET


class Identity(msgspec.Struct):
    """The identity assertion that the store issues to an agent, and the time when it expires."""

    assertion: str
    expires_at: Moment


class AttemptLink(msgspec.Struct):
    """The address of the page that shows the person a code for the agent."""

    verification_uri: Uri
    expires_at: Moment


class Ceremony(msgspec.Struct, omit_defaults=True):
    """How a person claims the agent: the person types `user_code` at `verification_uri`, or gives the agent the code
    that the page of `attempt` shows. The agent polls `url` with `token` every `interval` seconds."""

    token: str
    expires_at: Moment
    url: Uri
    user_code: str | UnsetType = UNSET
    verification_uri: Uri | UnsetType = UNSET
    expires_in: int | UnsetType = UNSET
    interval: int | UnsetType = UNSET
    attempt: AttemptLink | UnsetType = UNSET


class Registered(msgspec.Struct, omit_defaults=True):
    """The response to a registration. It contains an assertion if the agent can use it at once, a claim if a person
    must confirm first, and both for an anonymous agent."""

    registration_id: str
    id: str
    registration_type: str
    type: str
    scopes: list[str] | ScopesByClaim
    identity_assertion: str | UnsetType = UNSET
    assertion_expires: Moment | UnsetType = UNSET
    identity: Identity | UnsetType = UNSET
    pre_claim_scopes: list[str] | UnsetType = UNSET
    post_claim_scopes: list[str] | UnsetType = UNSET
    claim_token: str | UnsetType = UNSET
    claim_token_expires: Moment | UnsetType = UNSET
    claim_url: Uri | UnsetType = UNSET
    claim: Ceremony | UnsetType = UNSET


class ClaimRequest(msgspec.Struct):
    """A poll for the result of a claim, or the start of another attempt. The claim token can be sent in the header
    Authorization instead."""

    claim_token: Text | None = None
    type: Text | None = None
    email: Text | None = None
    login_hint: Text | None = None
    assertion: Assertion | None = None


class CompleteRequest(msgspec.Struct):
    """The code that the claim page showed to the person, and that the person gave to the agent."""

    claim_token: Text | None = None
    user_code: Text | None = None


class TypedCode(msgspec.Struct):
    """The code that the agent shows to the person, and the address of the page on which the person types it."""

    user_code: str
    verification_uri: Uri
    expires_in: int
    interval: int


class Initiated(msgspec.Struct):
    """The response to the start of another attempt. The links and codes of earlier attempts are no longer valid."""

    registration_id: str
    id: str
    type: str
    claim_attempt_id: str
    status: str
    expires_at: Moment
    claim_attempt: TypedCode
    attempt: AttemptLink


class Pending(msgspec.Struct):
    """The person has not decided yet."""

    status: str
    registration_id: str
    interval: int
    expires_in: int
    error: str = "authorization_pending"


class Claimed(msgspec.Struct):
    """The response after a person has claimed the agent, with the assertion to exchange at the token endpoint."""

    status: str
    registration_id: str
    id: str
    identity_assertion: str
    assertion_expires: Moment
    identity: Identity
    scopes: list[str]


class ClaimedToken(TokenResponse):
    """The response to the claim grant: an access token, and an assertion with which the agent gets later access
    tokens."""

    identity_assertion: str
    assertion_expires: Moment
    registration_id: str


class Me(msgspec.Struct, omit_defaults=True):
    """The caller that an access token stands for (agent-auth 7.5). `roles` maps organisations to the caller's role; a
    client has no role."""

    sub: str
    client_id: str
    claimed: bool
    scope: str
    expires_at: Moment
    orgs: list[str]
    roles: dict[str, str]
    email: str | None = None
    registration_id: str | UnsetType = UNSET
    registration_type: str | UnsetType = UNSET


class ClaimQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The link's token."""

    claim_attempt_token: Annotated[str, msgspec.Meta(max_length=200, description="The token of the link.")] = ""


class ClaimForm(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the claim page: `confirm`, with or without a typed code, or `decline`."""

    csrf: Annotated[str, msgspec.Meta(max_length=200)] = ""
    confirm: Annotated[str, msgspec.Meta(max_length=20)] = ""
    decline: Annotated[str, msgspec.Meta(max_length=20)] = ""
    user_code: Annotated[str, msgspec.Meta(max_length=40)] = ""


JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
KINDS: tuple[Kind, ...] = ("anonymous", "service_auth", "identity_assertion")
DEFAULT = frozenset({"read:products", "read:releases", "read:library"})
WRITING = frozenset({"write:products", "write:releases"})
MAX_NAME_LENGTH = 120
_UNNAMED = "an agent that gave no name"


class UnsupportedIdentityType(Refused):
    """The registration has an unknown type of identity."""

    code = "unsupported_identity_type"
    title = "Unsupported identity type"
    resolution = f"Use one of {', '.join(KINDS)}; see /auth.md."


def registration_kind(body: RegisterRequest) -> Kind:
    """The kind of a registration, in the format of agent-auth or of the API document (agent-auth 7.4).

    Raises:
        InvalidRequest: no member names the kind, or two members contradict each other.
        UnsupportedIdentityType: the kind is unknown.
    """
    named_kinds = {word for word in (body.type, body.method) if word is not None}
    if body.grant_type is not None:
        if body.grant_type != JWT_BEARER:
            raise UnsupportedIdentityType("this grant_type is not supported for registration")
        named_kinds.add("identity_assertion")
    if not named_kinds:
        raise InvalidRequest("type (or method) is required: it names the kind of registration")
    if len(named_kinds) > 1:
        raise InvalidRequest("type, method and grant_type contradict each other")
    for kind in KINDS:
        if kind in named_kinds:
            return kind
    raise UnsupportedIdentityType("this kind of registration is not supported")


def person_email(*hints: str | None) -> str:
    """The e-mail address of a request, under either of its names.

    Raises:
        InvalidLoginHint: the address is missing or invalid, or the two names have different values.
    """
    named_emails = {text.strip().lower() for text in hints if text is not None and text.strip()}
    if len(named_emails) != 1:
        raise InvalidLoginHint("name the person by one e-mail address: email (or login_hint)")
    address = named_emails.pop()
    if not mail.is_address(address):
        raise InvalidLoginHint("email must be an e-mail address")
    return address


class InvalidLoginHint(Refused):
    """The login hint is not an e-mail address."""

    code = "invalid_login_hint"
    title = "Invalid login hint"
    resolution = "Send a valid e-mail address of the person the agent works for."


def requested_scopes(scope: str | None) -> frozenset[str]:
    """The requested scopes of an agent, without admin:org, which agents cannot get.

    Raises:
        InvalidScope: a scope does not exist, or agents cannot get any of the requested scopes.
    """
    if scope is None or not scope.strip():
        return DEFAULT
    requested_names = frozenset(scope.split())
    unknown_scopes = sorted(requested_names - frozenset(scopes.ALL))
    if unknown_scopes:
        raise InvalidScope(f"the scope {unknown_scopes[0][:64]} does not exist")
    if not requested_names - {"admin:org"}:
        raise InvalidScope("agents cannot get admin:org")
    return requested_names - {"admin:org"}


def missing_scopes(requested_names: frozenset[str], roles: Iterable[str]) -> frozenset[str]:
    """The scopes that a person with these roles cannot grant to an agent: the write scopes, unless the person may
    publish."""
    may_write = any("write:releases" in scopes.OF_ROLE[role] for role in roles)
    return requested_names - (DEFAULT | WRITING if may_write else DEFAULT)


def require_scopes(requested_names: frozenset[str], roles: Iterable[str]) -> None:
    """Require that a person with these roles can grant all requested scopes.

    Raises:
        InvalidScope: the person cannot grant a scope; the error names the scopes.
    """
    missing_names = missing_scopes(requested_names, roles)
    if missing_names:
        raise InvalidScope(
            f"your person's account lacks {scopes.words(missing_names)}",
            resolution="Register again without these scopes, or ask an owner of the organisation to make the person a "
            "publisher.",
        )


def agent_name(user_agent: str | None) -> str:
    """The name that the agent gave itself, without characters that cannot be displayed."""
    text = "".join(letter if letter.isprintable() else " " for letter in user_agent or "")
    return " ".join(text.split())[:MAX_NAME_LENGTH] or _UNNAMED
