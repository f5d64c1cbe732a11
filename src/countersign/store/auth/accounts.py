"""Sign-up, password reset, and the e-mailed links that both use: /auth/signup, /auth/reset, /auth/prove."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Options, Route, route
from countersign.kernel.mail.message import is_address
from countersign.kernel.mail.queue import Email
from countersign.kernel.security import passwords, secrets
from countersign.kernel.security.passwords import WeakPassword
from countersign.store.auth import people, queries, sessions, sign_in_pages
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.schemas import (
    ReturnTo,
)
from countersign.store.auth.sessions import ForeignOrigin, InsecureSignIn, normalize_email
from countersign.store.context import Store


class EmailLink(NamedTuple):
    """The content of a mailed link: the e-mail address that the link proves, and the path to open afterwards."""

    email: str
    return_to: str


INSERT_LINK = """
    INSERT INTO email_proof (token_hash, email, return_to, created_at, expires_at, used_at)
    VALUES ($1, $2, $3, $4, $5, NULL)
"""
UNUSED_LINK = """
    SELECT email, return_to FROM email_proof WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
# Lock all links of an address: if two links of the address are used at the same time, the second waits for the first.
LOCK_LINKS = """
    UPDATE email_proof SET used_at = used_at WHERE email = (SELECT email FROM email_proof WHERE token_hash = $1)
"""
USE_LINK = """
    UPDATE email_proof SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
SELECT_LINK = "SELECT email, return_to FROM email_proof WHERE token_hash = $1"
END_LINKS = "UPDATE email_proof SET used_at = $2 WHERE email = $1 AND used_at IS NULL"
END_EVERY_LINK = "UPDATE email_proof SET used_at = $1 WHERE used_at IS NULL"
DELETE_OLD_LINKS = "DELETE FROM email_proof WHERE expires_at <= $1"


async def add_link(transaction: Transaction, token_hash: bytes, link: EmailLink, ttl_s: int) -> None:
    """Store a link that is valid for `ttl_s` seconds; only the hash of its token is stored."""
    now = clock.now()
    await transaction.run(INSERT_LINK, token_hash, link.email, link.return_to, now, clock.later(now, seconds=ttl_s))


async def unused_link(reader: Reader, token_hash: bytes) -> EmailLink | None:
    """Return the link, or None if it was used or has expired."""
    row = await reader.fetch_one(UNUSED_LINK, token_hash, clock.now())
    return None if row is None else EmailLink(*row)


async def use_link(transaction: Transaction, token_hash: bytes) -> EmailLink | None:
    """Mark the link and all other links of its address as used. Return the link, or None if it is no longer valid. If
    calls are concurrent, exactly one of them gets the link."""
    now: Instant = clock.now()
    await transaction.run(LOCK_LINKS, token_hash)
    if not await transaction.run(USE_LINK, token_hash, now):
        return None
    row = await transaction.fetch_one(SELECT_LINK, token_hash)
    if row is None:
        return None
    link = EmailLink(*row)
    await transaction.run(END_LINKS, link.email, now)
    return link


async def forget_old_links(transaction: Transaction) -> int:
    """Remove expired links; return their number."""
    return await transaction.run(DELETE_OLD_LINKS, clock.now())


async def end_every_link(transaction: Transaction) -> None:
    """Invalidate every mailed link."""
    await transaction.run(END_EVERY_LINK, clock.now())


MAX_EMAILS_TO_ADDRESS = 5
MAX_EMAILS_FOR_CLIENT = 20
HOUR_S = 3_600
LINK_PREFIX = "cep"

_NOT_YOU = "If you did not ask for this, ignore this e-mail. Nothing has changed."


async def request_sign_up(store: Store, client: str, email: str, return_to: str) -> None:
    """After the response is sent, e-mail a link to open an account, or a note that the account exists. `client` is the
    IP address of the request.

    Raises:
        RateLimited: in the last hour, 5 e-mails to this address or 20 e-mails from this client were requested.
        Unavailable: the mail queue is full.
    """
    await _count_email(store, client, email)
    store.mail.enqueue(
        partial(_sign_up_email, store, EmailLink(normalize_email(email), sign_in_pages.local_path(return_to)))
    )


async def request_reset(store: Store, client: str, email: str, return_to: str) -> None:
    """After the response is sent, e-mail a link to set a new password. An unknown address gets no e-mail.

    Raises:
        RateLimited, Unavailable: the same conditions as in `request_sign_up`.
    """
    await _count_email(store, client, email)
    store.mail.enqueue(
        partial(_reset_email, store, EmailLink(normalize_email(email), sign_in_pages.local_path(return_to)))
    )


async def _count_email(store: Store, client: str, email: str) -> None:
    """Count a requested e-mail even if none is sent, so that the limit does not disclose which addresses are known
    (attack T43)."""
    limits = (
        (f"mail-for\0{client}", MAX_EMAILS_FOR_CLIENT),
        (f"mail-to\0{normalize_email(email)}", MAX_EMAILS_TO_ADDRESS),
    )
    for key, limit in limits:
        quota = await store.counters.hit(key, limit, HOUR_S)
        if not quota.allowed:
            wait_s = max(1, quota.reset_s)
            text = f"{limit} e-mails were requested within an hour; wait {-(-wait_s // 60)} minutes"
            raise RateLimited(text, quota)


async def _sign_up_email(store: Store, link: EmailLink) -> Email:
    person = await queries.person_with_email(store.database, link.email)
    name = store.settings.resource_name
    if person is not None and person.password_hash is not None:
        body = (
            f"Somebody asked for an account at {name} with this address. There is one already.\n\n"
            f"Sign in:\n{store.root_url}{sign_in_pages.with_return_to('/auth/signin', link.return_to)}\n\n"
            f"Choose a new password:\n{store.root_url}{sign_in_pages.with_return_to('/auth/reset', link.return_to)}\n\n"
            f"{_NOT_YOU}\n"
        )
        return Email(link.email, f"You have an account at {name}", body)
    address = await _new_link(store, link)
    body = (
        f"To open your account at {name}, choose a password here:\n{address}\n\n"
        f"{_link_lifetime(store)}\n\n{_NOT_YOU} Do not open the link then.\n"
    )
    return Email(link.email, f"Open your account at {name}", body)


async def _reset_email(store: Store, link: EmailLink) -> Email | None:
    if await queries.person_with_email(store.database, link.email) is None:
        return None
    name = store.settings.resource_name
    address = await _new_link(store, link)
    text = (
        f"To choose a new password at {name}, open:\n{address}\n\n"
        f"{_link_lifetime(store)} The old password works until you choose a new one.\n\n"
        f"{_NOT_YOU} Do not open the link then.\n"
    )
    return Email(link.email, f"Choose a new password at {name}", text)


async def _new_link(store: Store, link: EmailLink) -> str:
    token = secrets.new_secret(LINK_PREFIX)
    async with store.database.transaction() as transaction:
        await add_link(transaction, secrets.digest(token), link, store.settings.mail_link_ttl_s)
    return f"{store.root_url}/auth/prove?token={token}"


def _link_lifetime(store: Store) -> str:
    return f"The link works once, for {max(1, store.settings.mail_link_ttl_s // 60)} minutes."


OnFirstProof: TypeAlias = Callable[[Transaction, str], Awaitable[None]]
"""A function that is called with the person's id when the person first proves the address, in the same transaction. The
function revokes every agent's access for the person, because a stranger may have created it (attack T34:
pre-hijacking)."""


class OpenedSession(NamedTuple):
    """The cookie value of a new session, and the path to redirect to."""

    session: str
    return_to: str


class EmailLinkSpent(NotFound):
    """The mailed link was used, has expired, was replaced, or does not exist."""

    resolution = "Ask for another one."


async def require_unused(store: Store, token: str) -> EmailLink:
    """Return the link without marking it as used, because link scanners open links (attack T28).

    Raises:
        EmailLinkSpent: the link can no longer be used.
    """
    link = await unused_link(store.database, secrets.digest(token))
    if link is None:
        raise EmailLinkSpent("this link is used up or expired")
    return link


async def redeem_link(
    store: Store, token: str, password_hash: str, on_first_proof: OnFirstProof, user_agent: str | None = None
) -> OpenedSession:
    """Mark the link as used, set the password, and open a session. If calls are concurrent, exactly one succeeds.

    The person is created if no person has the address. Sessions that were opened with an old password end.
    `on_first_proof` is called if the address was not proven before. `user_agent` is the header of the browser.

    Raises:
        EmailLinkSpent: the link can no longer be used; nothing changes.
    """
    async with store.database.transaction() as transaction:
        link = await use_link(transaction, secrets.digest(token))
        if link is None:
            raise EmailLinkSpent("this link is used up or expired")
        person_id, is_first = await people.person_to_prove(transaction, link.email)
        if is_first:
            await on_first_proof(transaction, person_id)
        await people.set_password(transaction, person_id, password_hash)
        session = await sessions.start_session(transaction, person_id, store.settings.session_ttl_s, user_agent)
    return OpenedSession(session, link.return_to)


class EmailFormQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of the forms. `return_to` is the path of this service to open after signing in."""

    return_to: ReturnTo = "/"


class AskForm(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a link: the e-mail address, and the path to open after signing in."""

    email: Annotated[str, msgspec.Meta(max_length=254)] = ""
    return_to: ReturnTo = "/"


class ProveQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The token of a mailed link."""

    token: Annotated[str, msgspec.Meta(max_length=200, description="The token of the mailed link.")] = ""


class ProveForm(msgspec.Struct, forbid_unknown_fields=True):
    """The new password, and the token of the mailed link."""

    token: Annotated[str, msgspec.Meta(max_length=200)] = ""
    password: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


NO_ADDRESS = "This is not an e-mail address like name@example.com."

_PAGE: Options = {
    "refusals": (InsecureSignIn,),
    "produces": ("text/html; charset=utf-8", "text/html"),
    "quota": "token",
    "at_root": True,
}
_FORM: Options = {**_PAGE, "refusals": (InsecureSignIn, ForeignOrigin), "form": True}
_SIGNING_IN: Options = {**_FORM, "sends": {303: ("Location", "Set-Cookie")}}


async def show_sign_up(call: StoreRequest[EmailFormQuery, Nothing]) -> Response:
    """Show the sign-up page."""
    sessions.require_secure(call.context)
    covers = await sign_in_pages.newest_covers(call.context)
    return sign_in_pages.sign_up_page(sign_in_pages.local_path(call.query.return_to), covers=covers)


async def sign_up(call: StoreRequest[EmailFormQuery, AskForm]) -> Response:
    """E-mail a link to open an account, or a note that the account exists; the response is the same."""
    _require_own_page(call)
    store, email, return_to = call.context, call.body.email.strip(), sign_in_pages.local_path(call.body.return_to)
    covers = await sign_in_pages.newest_covers(store)
    if not is_address(email):
        return sign_in_pages.sign_up_page(return_to, NO_ADDRESS, 400, email, covers=covers)
    try:
        await request_sign_up(store, call.address, email, return_to)
    except RateLimited as refused:
        page = sign_in_pages.sign_up_page(return_to, f"{refused.detail}.", refused.status, email, covers=covers)
        return _rate_limited_page(page, refused)
    is_mailed = bool(store.settings.smtp_url)
    return sign_in_pages.sign_up_sent_page(return_to, email, is_mailed=is_mailed, covers=covers)


async def show_reset(call: StoreRequest[EmailFormQuery, Nothing]) -> Response:
    """Show the form that requests a link to set a new password."""
    sessions.require_secure(call.context)
    covers = await sign_in_pages.newest_covers(call.context)
    return sign_in_pages.reset_page(sign_in_pages.local_path(call.query.return_to), covers=covers)


async def reset(call: StoreRequest[EmailFormQuery, AskForm]) -> Response:
    """E-mail a link to set a new password if the address is known; the response is the same if it is not."""
    _require_own_page(call)
    store, email, return_to = call.context, call.body.email.strip(), sign_in_pages.local_path(call.body.return_to)
    covers = await sign_in_pages.newest_covers(store)
    if not is_address(email):
        return sign_in_pages.reset_page(return_to, NO_ADDRESS, 400, email, covers=covers)
    try:
        await request_reset(store, call.address, email, return_to)
    except RateLimited as refused:
        page = sign_in_pages.reset_page(return_to, f"{refused.detail}.", refused.status, email, covers=covers)
        return _rate_limited_page(page, refused)
    is_mailed = bool(store.settings.smtp_url)
    return sign_in_pages.reset_sent_page(return_to, email, is_mailed=is_mailed, covers=covers)


async def show_prove(call: StoreRequest[ProveQuery, Nothing]) -> Response:
    """Show the page of a mailed link. The link stays valid, because link scanners open links before people do."""
    sessions.require_secure(call.context)
    try:
        link = await require_unused(call.context, call.query.token)
    except EmailLinkSpent as refused:
        return sign_in_pages.expired_link_page(refused.status)
    covers = await sign_in_pages.newest_covers(call.context)
    return sign_in_pages.new_password_page(call.query.token, link.email, covers=covers)


async def prove(call: StoreRequest[ProveQuery, ProveForm], on_first_proof: OnFirstProof) -> Response:
    """Set the password, mark the link as used, start a session, and redirect to the path of the link."""
    _require_own_page(call)
    store, token = call.context, call.body.token
    try:
        link = await require_unused(store, token)
        try:
            password_hash = await passwords.hash_password(call.body.password, link.email)
        except WeakPassword as refused:
            covers = await sign_in_pages.newest_covers(store)
            error = f"{refused.detail}. {refused.remedy}"
            return sign_in_pages.new_password_page(token, link.email, error, refused.status, covers=covers)
        user_agent = call.headers.get("user-agent")
        proven_person = await redeem_link(store, token, password_hash, on_first_proof, user_agent)
    except EmailLinkSpent as refused:
        return sign_in_pages.expired_link_page(refused.status)
    # End the previous session of this browser, because it may belong to another person.
    await sessions.sign_out(store, call.headers)
    cookie = sessions.set_cookie(store, proven_person.session)
    return Response(303, headers=(cookie, ("Location", proven_person.return_to), ("Cache-Control", "no-store")))


def routes(on_first_proof: OnFirstProof) -> tuple[Route[Store], ...]:
    """Return the routes. `on_first_proof` is called when an address is proven for the first time."""

    async def prove_it(call: StoreRequest[ProveQuery, ProveForm]) -> Response:
        """Set a new password with a mailed link, and sign in."""
        return await prove(call, on_first_proof)

    answers_of_form, answers_of_link = {200: str, 400: str, 429: str}, {303: None, 400: str, 404: str}
    return (
        route("GET", "/auth/signup", show_sign_up, query=EmailFormQuery, answers={200: str}, **_PAGE),
        route("POST", "/auth/signup", sign_up, query=EmailFormQuery, body=AskForm, answers=answers_of_form, **_FORM),
        route("GET", "/auth/reset", show_reset, query=EmailFormQuery, answers={200: str}, **_PAGE),
        route("POST", "/auth/reset", reset, query=EmailFormQuery, body=AskForm, answers=answers_of_form, **_FORM),
        route("GET", "/auth/prove", show_prove, query=ProveQuery, answers={200: str, 404: str}, **_PAGE),
        route(
            "POST", "/auth/prove", prove_it, query=ProveQuery, body=ProveForm, answers=answers_of_link, **_SIGNING_IN
        ),
    )


def _require_own_page(call: StoreRequest[EmailFormQuery, AskForm] | StoreRequest[ProveQuery, ProveForm]) -> None:
    sessions.require_secure(call.context)
    sessions.require_same_origin(call.context, call.headers)


def _rate_limited_page(page: Response, rate_limited: RateLimited) -> Response:
    page.headers = (*page.headers, *rate_limited.headers.items())
    return page
