"""Wire structs of registration, claim and exchange, in both dialects at once (agent-auth 7.4, 7.5)."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from countersign.kernel.http.response import Moment, Uri
from countersign.store.auth.schemas import TokenResponse

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
