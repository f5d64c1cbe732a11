"""Browser sessions: sign-in by password, the session cookie and its exchange for a token, CSRF tokens (attack T29)."""

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import clock
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.http.request import Headers
from countersign.kernel.security import passwords, secrets
from countersign.store import scopes
from countersign.store.auth import queries, tokens
from countersign.store.auth.authentication import missing_credential
from countersign.store.auth.schemas import TokenResponse
from countersign.store.auth.user_agent import device_of
from countersign.store.context import Store


class FormExpired(Refused):
    """The form belongs to another session, or was made by another site."""

    status = 403
    code = "form_expired"
    title = "Form expired"
    resolution = "Open the page again and send the form from there."


def form_token(store: Store, session_token: str, *shown_values: str) -> str:
    """The CSRF token of a form for this session. If `shown_values` is given, the token is valid only for a form that
    showed exactly these texts."""
    return (
        base64.urlsafe_b64encode(store.addresses.sign(_form_token_message(session_token, shown_values)))
        .rstrip(b"=")
        .decode()
    )


def is_form_token_valid(store: Store, session_token: str, token: str, *shown_values: str) -> bool:
    """Whether the token belongs to a form of this session that showed these texts."""
    try:
        signature = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (ValueError, binascii.Error):
        return False
    return store.addresses.verify(_form_token_message(session_token, shown_values), signature)


def require_form_token(store: Store, session_token: str, token: str) -> None:
    """Require the CSRF token of a form for this session.

    Raises:
        FormExpired: the token is not valid for this session.
    """
    if not is_form_token_valid(store, session_token, token):
        raise FormExpired("this form belongs to another session")


def _form_token_message(session_token: str, shown_values: Sequence[str]) -> bytes:
    of_session = b"csrf\0" + secrets.digest(session_token)
    return of_session + msgspec.json.encode(shown_values) if shown_values else of_session


MAX_ATTEMPTS_PER_MINUTE = 5
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class InsecureSignIn(Refused):
    """Sign-in over plain http from another machine would expose password and cookie to the network."""

    status = 403
    code = "insecure_sign_in"
    title = "Sign-in needs https"
    resolution = "Set COUNTERSIGN_DISTRIBUTION_URL to the https address the service is reached by."


class WrongCredentials(Refused):
    """E-mail or password is wrong; the response is the same for both."""

    status = 401
    code = "wrong_credentials"
    title = "Wrong e-mail or password"
    resolution = "Check both, or choose a new password at /auth/reset."


class ForeignOrigin(Refused):
    """The request was sent by a page of another site."""

    status = 403
    code = "foreign_origin"
    title = "Foreign origin"
    resolution = "Send the request from a page of this service."


def normalize_email(email: str) -> str:
    """The address as it is stored and compared: trimmed, in lower case."""
    return email.strip().lower()


def require_same_origin(store: Store, headers: Headers) -> None:
    """Require that a page of this service sent the request, according to the header Origin, or to Sec-Fetch-Site if the
    browser sends no Origin. If both headers are sent, both must match.

    Raises:
        ForeignOrigin: the request comes from another site.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site not in (None, "none", "same-origin") or headers.count("sec-fetch-site") > 1:
        raise ForeignOrigin("Sec-Fetch-Site names another site")
    if origin in (None, "null") and site == "same-origin":
        return
    if origin is None or _site(origin, store) != _site(store.root_url, store):
        raise ForeignOrigin("the Origin header must be that of this service")


def _site(origin: str, store: Store) -> tuple[str, str, int | None]:
    """Scheme, host and port of an origin; for a loopback store, all names of loopback are equal."""
    try:
        url_parts = urlsplit(origin)
        scheme, host, port = url_parts.scheme, url_parts.hostname or "", url_parts.port
    except ValueError:
        return "", "", None
    return scheme, "localhost" if store.is_loopback and host in LOOPBACK else host, port


def require_secure(store: Store) -> None:
    """Require https, or a service that only this machine can reach.

    Raises:
        InsecureSignIn: the request uses plain http, and other machines can reach the service.
    """
    if not store.root_url.startswith("https://") and not store.is_loopback:
        raise InsecureSignIn("sign-in requires https")


async def sign_in(store: Store, email: str, password: str, user_agent: str | None = None) -> str:
    """Open a session for the person with this e-mail and password; return the value of its cookie. `user_agent` is the
    header of the browser.

    Raises:
        RateLimited: there were more than five attempts for this address in a minute.
        WrongCredentials: no such person, no password is set, or the password is wrong.
    """
    email = normalize_email(email)[:254]
    quota = await store.counters.hit(f"sign-in\0{email}", MAX_ATTEMPTS_PER_MINUTE, 60)
    if not quota.allowed:
        passwords.SIGN_INS_FAILED.labels("distribution").value += 1
        raise RateLimited("too many attempts for this address", quota)
    person = await queries.person_with_email(store.database, email)
    matches = await passwords.verify(password, person.password_hash if person else None)
    if person is None or not matches:
        passwords.SIGN_INS_FAILED.labels("distribution").value += 1
        raise WrongCredentials("e-mail or password is wrong")
    async with store.database.transaction() as transaction:
        # Lock the person's row until the session is stored. A concurrent change of the password then either ends the
        # session or prevents it.
        if not await transaction.run(queries.LOCK_PASSWORD, person.id, person.password_hash):
            raise WrongCredentials("e-mail or password is wrong")
        return await start_session(transaction, person.id, store.settings.session_ttl_s, user_agent)


async def start_session(transaction: Transaction, person_id: str, ttl_s: int, user_agent: str | None = None) -> str:
    """Open a session for a person who has just authenticated; return the value of its cookie. The value is always new,
    never one that the browser sent (attack T29: session fixation). `user_agent` is the header of the browser."""
    token = secrets.new_secret("css")
    now = clock.now()
    expires_at = clock.later(now, seconds=ttl_s)
    device = device_of(user_agent)
    await transaction.run(queries.INSERT_SESSION, secrets.digest(token), person_id, now, expires_at, *device)
    return token


async def sign_out(store: Store, headers: Headers) -> None:
    """End the request's session, if it has one, and every token issued from it."""
    token = session_token(store, headers)
    if token is None:
        return
    async with store.database.transaction() as transaction:
        if await transaction.run(queries.DELETE_SESSION, secrets.digest(token)):
            await versions.bump(transaction, "identity")


async def exchange(store: Store, headers: Headers, scope: str | None) -> TokenResponse:
    """Issue a bearer token for the signed-in person. The token becomes invalid when the session ends. If `scope` is
    given, the token is limited to these scopes. Otherwise the token has all rights of the session.

    Raises:
        Unauthenticated: there is no session, or it has ended.
        InvalidScope: the person does not have the scope.
    """
    token = session_token(store, headers)
    name = b"" if token is None else secrets.digest(token)
    session = None if token is None else await queries.session(store.database, name)
    if session is None:
        raise missing_credential(store, "the request has no session", "Sign in at /auth/signin first.")
    available_scopes = await tokens.scopes_of_person(store.database, session.person_id)
    token_scopes = tokens.granted_scopes(scope, available_scopes)
    is_limited = bool((scope or "").strip())
    carried_scopes = token_scopes if is_limited else frozenset[str]()
    access_token, life_s = tokens.issue_in_session(store, session, name, carried_scopes)
    return TokenResponse(access_token, "Bearer", life_s, scopes.words(token_scopes))


def cookie_name(store: Store) -> str:
    """The name of the session cookie; the prefix makes browsers bind it to this host over https (RFC 6265bis)."""
    return "__Host-countersign" if store.root_url.startswith("https://") else "countersign"


def set_cookie(store: Store, token: str) -> tuple[str, str]:
    """The Set-Cookie header that starts a session; an empty token ends it."""
    secure = "; Secure" if store.root_url.startswith("https://") else ""
    age_s = store.settings.session_ttl_s if token else 0
    attributes = f"Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"
    return ("Set-Cookie", f"{cookie_name(store)}={token}; {attributes}")


def session_token(store: Store, headers: Headers) -> str | None:
    """The session token in the request's cookies, or None if the cookie is missing or is not a session token."""
    # No library parses the header, because cookies of other services on this host may be malformed (RFC 6265 §5.4).
    # Only spaces and tabs around a cookie are stripped. A cookie whose name begins with other white space is a
    # different cookie: any subdomain can set it, because the browser does not see the prefix `__Host-`.
    for pair in (headers.get("cookie") or "").split(";"):
        name, _, value = pair.strip(" \t").partition("=")
        if name == cookie_name(store):
            return value if secrets.looks_like_secret(value) else None
    return None
