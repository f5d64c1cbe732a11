"""The pages of sign-in, set-up, sign-up and password reset, and the signed-in person of a request."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

from countersign.kernel.clock import Instant
from countersign.kernel.http import html
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.kernel.security import secrets
from countersign.store.auth import queries, sessions
from countersign.store.auth.queries import Person
from countersign.store.context import PREFIX, Store

ROOT = "/"
MAX_COVERS, MIN_COVERS = 18, 9
"""The maximum and minimum number of covers beside a form. With fewer covers, only the form is shown."""

Covers: TypeAlias = Sequence[str]
"""Addresses of covers."""


async def newest_covers(store: Store) -> Covers:
    """The covers of the newest public products, which stand beside the forms."""
    slugs = await queries.newest_public_products(store.database, MAX_COVERS)
    return [f"{PREFIX}/products/{slug}/cover.svg" for slug in slugs] if len(slugs) >= MIN_COVERS else []


def local_path(return_to: str) -> str:
    """The path if it belongs to this service, otherwise the root.

    A path that begins with two slashes, or has a backslash, could name another host. The same is true of characters
    that browsers remove or convert.
    """
    is_local = (
        return_to.startswith("/")
        and not return_to.startswith("//")
        and return_to.isascii()
        and return_to.isprintable()
        and not {"\\", " "} & set(return_to)
    )
    return return_to if is_local else ROOT


def with_return_to(page: str, return_to: str) -> str:
    """The path of a page of this service, with `return_to` as its query parameter."""
    path = local_path(return_to)
    return page if path == ROOT else f"{page}?return_to={quote(path, safe='/')}"


def sign_in_page(
    return_to: str, error: str = "", status: int = 200, email: str = "", *, covers: Covers = ()
) -> Response:
    """The form for e-mail and password; `email` is filled in."""
    fields = (
        html.hidden_field("return_to", return_to)
        + html.field("email", "E-mail", "email", "username", email)
        + html.field("password", "Password", "password", "current-password")
    )
    links = (
        ("Create an account", with_return_to("/auth/signup", return_to)),
        ("Forgot your password?", with_return_to("/auth/reset", return_to)),
    )
    return html.form_page("Sign in", fields, "Sign in", error, status, links=links, pictures=covers)


def set_up_page(
    token: str, error: str = "", status: int = 200, *, slug: str = "", name: str = "", email: str = ""
) -> Response:
    """The form that creates the first organisation and its owner, with the given values filled in."""
    fields = (
        html.hidden_field("token", token)
        + html.field("slug", "Organisation (a-z, 0-9, -)", "text", "organization", slug)
        + html.field("name", "Organisation's name", "text", "organization", name)
        + html.field("email", "Your e-mail", "email", "username", email)
        + html.field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return html.form_page("Set up Countersign", fields, "Create", error, status)


def expired_set_up_page(status: int, *, has_people: bool) -> Response:
    """The page of a set-up link that cannot be used. If the store is already set up, the page has links to sign in."""
    title = "This link no longer works"
    if has_people:
        text = "The store is already set up. Sign in with your e-mail and password."
        links = (("Sign in", "/auth/signin"), ("Forgot your password?", "/auth/reset"))
        return html.message_page(title, text, status, links=links)
    text = "It is incomplete or older than a day. Restart the store: it prints a new link for the set-up."
    return html.message_page(title, text, status)


def redirect_page_to(target: str) -> Response:
    """A page that redirects to a path of this service. Browsers do not send the session cookie with a request from
    another site (SameSite=Strict), but send it with the request that this page makes. The Content-Security-Policy of
    the page with the form does not restrict a redirect of this page."""
    return html.redirect_page("One moment", "Continuing to the page you asked for.", target)


def is_cross_site(headers: Headers) -> bool:
    """Whether the request comes from another site, so that the browser did not send the session cookie."""
    return headers.get("sec-fetch-site") == "cross-site"


def redirect_to_sign_in(headers: Headers, target: str) -> Response:
    """Redirect a request without a session to the sign-in page, or to the same page when the browser may not have sent
    the cookie."""
    if is_cross_site(headers):
        return redirect_page_to(target)
    address = "/auth/signin?" + urlencode({"return_to": target})
    return Response(303, headers=(("Location", address), ("Cache-Control", "no-store")))


def after_sign_in(return_to: str, *headers: tuple[str, str]) -> Response:
    """Redirect a person who has just signed in to the page that they came from."""
    if return_to.startswith("/auth/authorize"):
        page = redirect_page_to(return_to)
        page.headers = (*page.headers, *headers)
        return page
    return Response(303, headers=(*headers, ("Location", return_to), ("Cache-Control", "no-store")))


_ADDRESS = ("email", "E-mail", "email", "email")


def sign_up_page(
    return_to: str, error: str = "", status: int = 200, email: str = "", *, covers: Covers = ()
) -> Response:
    """The form to request an account."""
    intro = "We send you a link by e-mail. Open it to choose your password."
    links = (("I have an account", with_return_to("/auth/signin", return_to)),)
    fields = html.hidden_field("return_to", return_to) + html.field(*_ADDRESS, email)
    return html.form_page(
        "Create an account", fields, "Send the link", error, status, intro=intro, links=links, pictures=covers
    )


def reset_page(
    return_to: str, error: str = "", status: int = 200, email: str = "", *, covers: Covers = ()
) -> Response:
    """The form to request a new password."""
    intro = "We send you a link by e-mail. Open it to choose a new password."
    links = (
        ("Back to sign-in", with_return_to("/auth/signin", return_to)),
        ("Create an account", with_return_to("/auth/signup", return_to)),
    )
    fields = html.hidden_field("return_to", return_to) + html.field(*_ADDRESS, email)
    return html.form_page(
        "Forgot your password?", fields, "Send the link", error, status, intro=intro, links=links, pictures=covers
    )


def sign_up_sent_page(return_to: str, email: str, *, is_mailed: bool, covers: Covers = ()) -> Response:
    """The page after a sign-up request. The page does not disclose whether the address has an account (attack T43)."""
    text = html.translate(
        "We have sent an e-mail to {email}. Open the link in it to continue; you can close this page.", email=email
    )
    return _sent_page(text, "/auth/signup", return_to, is_mailed=is_mailed, covers=covers)


def reset_sent_page(return_to: str, email: str, *, is_mailed: bool, covers: Covers = ()) -> Response:
    """The page after a password reset request. The page does not disclose whether the address is known (attack T43)."""
    text = html.translate(
        "If {email} has an account here, we have sent an e-mail. Open the link in it to continue.", email=email
    )
    return _sent_page(text, "/auth/reset", return_to, is_mailed=is_mailed, covers=covers)


def new_password_page(token: str, email: str, error: str = "", status: int = 200, *, covers: Covers = ()) -> Response:
    """The form that a mailed link opens, to choose a password."""
    fields = (
        html.hidden_field("token", token)
        + html.readonly_field("email", "E-mail", "username", email)
        + html.field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return html.form_page("Choose your password", fields, "Save and sign in", error, status, pictures=covers)


def expired_link_page(status: int) -> Response:
    """The page of a mailed link that is no longer valid."""
    text = "It was already used, has expired or is incomplete. You can sign in or request a new one."
    links = (
        ("Sign in", "/auth/signin"),
        ("Forgot your password?", "/auth/reset"),
        ("Create an account", "/auth/signup"),
    )
    return html.message_page("This link does not work", text, status, links=links)


def _sent_page(text: str, page: str, return_to: str, *, is_mailed: bool, covers: Covers) -> Response:
    hint = "Nothing after a few minutes? Check your spam folder, or send it again."
    if not is_mailed:
        hint = "This server has no mail server yet. Its operator can read the e-mail with “countersign mail”."
    links = (
        ("Send it again", with_return_to(page, return_to)),
        ("Sign in", with_return_to("/auth/signin", return_to)),
    )
    return html.message_page("Check your e-mail", f"{text}\n{hint}", links=links, pictures=covers)


class SignedInPerson(NamedTuple):
    """A signed-in person, with the token and the start of the session."""

    session: str
    person: Person
    since: Instant


async def current_person(store: Store, headers: Headers) -> SignedInPerson | None:
    """The person of the request's session."""
    token = sessions.session_token(store, headers)
    session = None if token is None else await queries.session(store.database, secrets.digest(token))
    person = None if session is None else await queries.person(store.database, session.person_id)
    if token is None or session is None or person is None:
        return None
    return SignedInPerson(token, person, session.created_at)


async def signed_in_or_redirect(store: Store, headers: Headers, target: str) -> SignedInPerson | Response:
    """The signed-in person, or a redirect to sign in and return to `target`, a path of this service.

    Raises:
        InsecureSignIn: the service is reached over plain http from other machines.
    """
    sessions.require_secure(store)
    return await current_person(store, headers) or redirect_to_sign_in(headers, target)
