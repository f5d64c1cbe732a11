"""Request and response bodies of registration, claim and exchange (agent-auth 7.4), and the rules for them."""

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
    """A registration in either dialect; unknown members are ignored."""

    type: Text | None = None
    method: Text | None = None
    grant_type: Text | None = None
    assertion_type: Text | None = None
    assertion: Assertion | None = None
    email: Text | None = None
    login_hint: Text | None = None
    scope: Text | None = None


class ScopesByClaim(msgspec.Struct, omit_defaults=True):
    """What an agent may do before and after a person has claimed it."""

    post_claim: list[str]
    pre_claim: list[str] | UnsetType = UNSET


class Identity(msgspec.Struct):
    """The service's assertion of an agent, and when it expires."""

    assertion: str
    expires_at: Moment


class AttemptLink(msgspec.Struct):
    """The page that shows the person a code for the agent."""

    verification_uri: Uri
    expires_at: Moment


class Ceremony(msgspec.Struct, omit_defaults=True):
    """How a person claims the agent: by typing `user_code` at `verification_uri`, or by reading the agent the code
    that the page of `attempt` shows. Poll `url` every `interval` seconds with `token`."""

    token: str
    expires_at: Moment
    url: Uri
    user_code: str | UnsetType = UNSET
    verification_uri: Uri | UnsetType = UNSET
    expires_in: int | UnsetType = UNSET
    interval: int | UnsetType = UNSET
    attempt: AttemptLink | UnsetType = UNSET


class Registered(msgspec.Struct, omit_defaults=True):
    """The answer to a registration: with an assertion when the agent may go on, with a claim when its person has to
    confirm it first, with both for an anonymous one."""

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
    """A poll, or the beginning of another attempt; the claim token may stand in Authorization instead."""

    claim_token: Text | None = None
    type: Text | None = None
    email: Text | None = None
    login_hint: Text | None = None
    assertion: Assertion | None = None


class CompleteRequest(msgspec.Struct):
    """The code that the page showed the person."""

    claim_token: Text | None = None
    user_code: Text | None = None


class TypedCode(msgspec.Struct):
    """The code the agent shows its person, and where it is typed."""

    user_code: str
    verification_uri: Uri
    expires_in: int
    interval: int


class Initiated(msgspec.Struct):
    """Another attempt was begun; links and codes of earlier ones are dead."""

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
    """A person claimed the agent: its assertion, to be exchanged at the token endpoint."""

    status: str
    registration_id: str
    id: str
    identity_assertion: str
    assertion_expires: Moment
    identity: Identity
    scopes: list[str]


class ClaimedToken(TokenResponse):
    """The answer to the claim grant: an access token at once, and the assertion for later ones."""

    identity_assertion: str
    assertion_expires: Moment
    registration_id: str


class Me(msgspec.Struct, omit_defaults=True):
    """Whoever a token stands for (agent-auth 7.5); `roles` are by organisation, and a client has none."""

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
    """What the claim page sends: `confirm`, with a typed code or without, or `decline`."""

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
    """The registration names a kind of identity that there is not."""

    code = "unsupported_identity_type"
    title = "Unsupported identity type"
    resolution = f"Use one of {', '.join(KINDS)}; see /auth.md."


def kind_of(body: RegisterRequest) -> Kind:
    """Which of the three kinds of registration is meant, in either dialect (agent-auth 7.4).

    Raises:
        InvalidRequest: nothing says it, or two members contradict each other.
        UnsupportedIdentityType: there is no such kind.
    """
    named = {word for word in (body.type, body.method) if word is not None}
    if body.grant_type is not None:
        if body.grant_type != JWT_BEARER:
            raise UnsupportedIdentityType("this grant_type does not register anybody")
        named.add("identity_assertion")
    if not named:
        raise InvalidRequest("say which kind of registration is meant: type (or method) is missing")
    if len(named) > 1:
        raise InvalidRequest("type, method and grant_type contradict each other")
    for kind in KINDS:
        if kind in named:
            return kind
    raise UnsupportedIdentityType("there is no such kind of registration")


def email_of(*given: str | None) -> str:
    """The one e-mail address a request names under either of its names.

    Raises:
        InvalidLoginHint: none, two different ones, or no address.
    """
    named = {text.strip().lower() for text in given if text is not None and text.strip()}
    if len(named) != 1:
        raise InvalidLoginHint("name the person by one e-mail address: email (or login_hint)")
    address = named.pop()
    if not mail.is_address(address):
        raise InvalidLoginHint("email must be an e-mail address")
    return address


class InvalidLoginHint(Refused):
    """What should name the person is no e-mail address."""

    code = "invalid_login_hint"
    title = "Invalid login hint"
    resolution = "Send a valid e-mail address of the person the agent works for."


def requested_scopes(scope: str | None) -> frozenset[str]:
    """The scopes an agent asks for, without admin:org, which no registration gives.

    Raises:
        InvalidScope: one does not exist, or nothing that an agent may have is left.
    """
    if scope is None or not scope.strip():
        return DEFAULT
    wanted = frozenset(scope.split())
    unknown = sorted(wanted - frozenset(scopes.ALL))
    if unknown:
        raise InvalidScope(f"there is no scope {unknown[0][:64]}")
    if not wanted - {"admin:org"}:
        raise InvalidScope("admin:org is not given to agents")
    return wanted - {"admin:org"}


def missing_scopes(wanted: frozenset[str], roles: Iterable[str]) -> frozenset[str]:
    """The scopes that a person with these roles cannot give to an agent: writing, unless the person may publish."""
    may_write = any("write:releases" in scopes.OF_ROLE[role] for role in roles)
    return wanted - (DEFAULT | WRITING if may_write else DEFAULT)


def require_scopes(wanted: frozenset[str], roles: Iterable[str]) -> None:
    """Insist that a person with these roles holds all that the agent asked for.

    Raises:
        InvalidScope: the person does not; it names the scopes.
    """
    lacking = missing_scopes(wanted, roles)
    if lacking:
        raise InvalidScope(
            f"your person's account lacks {scopes.words(lacking)}",
            resolution="Register again without these scopes, or have the person be made a publisher first.",
        )


def name_of(user_agent: str | None) -> str:
    """What an agent calls itself, as far as it can be shown to people."""
    text = "".join(letter if letter.isprintable() else " " for letter in user_agent or "")
    return " ".join(text.split())[:MAX_NAME_LENGTH] or _UNNAMED
