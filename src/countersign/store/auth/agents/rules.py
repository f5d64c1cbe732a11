"""Decisions about registrations: which kind a request means, what an agent calls itself, which scopes it may get."""

from collections.abc import Iterable

from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.mail import message as mail
from countersign.store import scopes
from countersign.store.auth.agents.registrations import Kind
from countersign.store.auth.agents.schemas import RegisterRequest
from countersign.store.auth.tokens import InvalidScope

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


def asked(scope: str | None) -> frozenset[str]:
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


def not_held(wanted: frozenset[str], roles: Iterable[str]) -> frozenset[str]:
    """The scopes that a person with these roles cannot give to an agent: writing, unless the person may publish."""
    may_write = any("write:releases" in scopes.OF_ROLE[role] for role in roles)
    return wanted - (DEFAULT | WRITING if may_write else DEFAULT)


def require_held(wanted: frozenset[str], roles: Iterable[str]) -> None:
    """Insist that a person with these roles holds all that the agent asked for.

    Raises:
        InvalidScope: the person does not; it names the scopes.
    """
    lacking = not_held(wanted, roles)
    if lacking:
        raise InvalidScope(
            f"your person's account lacks {scopes.words(lacking)}",
            resolution="Register again without these scopes, or have the person be made a publisher first.",
        )


def name_of(user_agent: str | None) -> str:
    """What an agent calls itself, as far as it can be shown to people."""
    text = "".join(letter if letter.isprintable() else " " for letter in user_agent or "")
    return " ".join(text.split())[:MAX_NAME_LENGTH] or _UNNAMED
