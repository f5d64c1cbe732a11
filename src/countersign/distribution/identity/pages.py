"""The sign-in and set-up pages, and the ways to them."""

from urllib.parse import urlencode

from countersign.distribution.identity import return_to as returning
from countersign.kernel.http import html
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response


def sign_in(return_to: str, error: str = "", status: int = 200, email: str = "") -> Response:
    """The form for e-mail and password; `email` is there already."""
    fields = (
        html.hidden_field("return_to", return_to)
        + html.field("email", "E-mail", "email", "username", email)
        + html.field("password", "Password", "password", "current-password")
    )
    links = (
        ("Create an account", returning.through("/auth/signup", return_to)),
        ("Forgot your password?", returning.through("/auth/reset", return_to)),
    )
    return html.form_page("Sign in", fields, "Sign in", error, status, links=links)


def set_up(
    token: str, error: str = "", status: int = 200, *, slug: str = "", name: str = "", email: str = ""
) -> Response:
    """The form that makes the first organisation and its owner; what was typed before is there already."""
    fields = (
        html.hidden_field("token", token)
        + html.field("slug", "Organisation (a-z, 0-9, -)", "text", "organization", slug)
        + html.field("name", "Organisation's name", "text", "organization", name)
        + html.field("email", "Your e-mail", "email", "username", email)
        + html.field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return html.form_page("Set up Countersign", fields, "Create", error, status)


def spent_set_up(status: int, *, has_people: bool) -> Response:
    """What a person finds behind a set-up link that cannot be used; after the set-up everybody signs in."""
    title = "This link no longer works"
    if has_people:
        text = "The store is set up already. Sign in with your e-mail and password."
        links = (("Sign in", "/auth/signin"), ("Forgot your password?", "/auth/reset"))
        return html.message_page(title, text, status, links=links)
    text = "It is incomplete or older than a day. Restart the store: it prints a new link for the set-up."
    return html.message_page(title, text, status)


def bounce(target: str) -> Response:
    """A page that leads on to a path of this service. The session cookie does not come with a request that another
    site began (SameSite=Strict), but it does with the one this page makes; and a form's answer that goes on from here
    is no longer bound by the policy of the form's page."""
    return html.redirect_page("One moment", "Going on to the page you asked for.", target)


def is_led_here(headers: Headers) -> bool:
    """Whether another site led the browser here, so that it held the session's cookie back. Cookies of others on the
    same host may have come all the same."""
    return headers.get("sec-fetch-site") == "cross-site"


def to_sign_in(headers: Headers, target: str) -> Response:
    """The way to a page that needs a signed-in person, when the request shows none: over the sign-in page, or round
    once more when the cookie may only have been held back."""
    if is_led_here(headers):
        return bounce(target)
    way = "/auth/signin?" + urlencode({"return_to": target})
    return Response(303, headers=(("Location", way), ("Cache-Control", "no-store")))


def after_sign_in(return_to: str, *headers: tuple[str, str]) -> Response:
    """Lead a person who has just signed in to where they came from."""
    if return_to.startswith("/auth/authorize"):
        onward = bounce(return_to)
        onward.headers = (*onward.headers, *headers)
        return onward
    return Response(303, headers=(*headers, ("Location", return_to), ("Cache-Control", "no-store")))
