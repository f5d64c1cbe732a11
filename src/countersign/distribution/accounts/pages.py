"""The pages of sign-up, password reset, and the mailed link."""

from countersign.distribution.identity import return_to as returning
from countersign.kernel.http import html
from countersign.kernel.http.response import Response

_ADDRESS = ("email", "E-mail", "email", "email")


def sign_up(return_to: str, error: str = "", status: int = 200, email: str = "") -> Response:
    """The form that asks for an account."""
    intro = "We send you a link by e-mail. Behind it you choose your password."
    links = (("I have an account", returning.through("/auth/signin", return_to)),)
    fields = html.hidden_field("return_to", return_to) + html.field(*_ADDRESS, email)
    return html.form_page("Create an account", fields, "Send the link", error, status, intro=intro, links=links)


def reset(return_to: str, error: str = "", status: int = 200, email: str = "") -> Response:
    """The form that asks for a new password."""
    intro = "We send you a link by e-mail. Behind it you choose a new password."
    links = (
        ("Back to sign-in", returning.through("/auth/signin", return_to)),
        ("Create an account", returning.through("/auth/signup", return_to)),
    )
    fields = html.hidden_field("return_to", return_to) + html.field(*_ADDRESS, email)
    return html.form_page("Forgot your password?", fields, "Send the link", error, status, intro=intro, links=links)


def sent_sign_up(return_to: str, email: str, *, is_mailed: bool) -> Response:
    """What whoever asked for an account reads, whether or not the address has one (attack T43)."""
    text = html.translate(
        "A letter to {email} is on its way. Open the link in it to go on; this page can be closed.", email=email
    )
    return _sent(text, "/auth/signup", return_to, is_mailed=is_mailed)


def sent_reset(return_to: str, email: str, *, is_mailed: bool) -> Response:
    """What whoever asked for a new password reads, whether or not the address is known (attack T43)."""
    text = html.translate(
        "If {email} has an account here, a letter is on its way. Open the link in it to go on.", email=email
    )
    return _sent(text, "/auth/reset", return_to, is_mailed=is_mailed)


def prove(token: str, email: str, error: str = "", status: int = 200) -> Response:
    """The form behind a mailed link."""
    fields = (
        html.hidden_field("token", token)
        + html.readonly_field("email", "E-mail", "username", email)
        + html.field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return html.form_page("Choose your password", fields, "Save and sign in", error, status)


def spent(status: int) -> Response:
    """What there is behind a mailed link that no longer works."""
    text = "It was used already, has expired, or is not whole. You can sign in, or ask for a new one."
    links = (
        ("Sign in", "/auth/signin"),
        ("Forgot your password?", "/auth/reset"),
        ("Create an account", "/auth/signup"),
    )
    return html.message_page("This link does not work", text, status, links=links)


def _sent(text: str, page: str, return_to: str, *, is_mailed: bool) -> Response:
    told = "Nothing there after a few minutes? Look among unwanted mail, or send it again."
    if not is_mailed:
        told = "This server has no mail server yet: whoever runs it finds the letter with “countersign mail”."
    links = (
        ("Send it again", returning.through(page, return_to)),
        ("Sign in", returning.through("/auth/signin", return_to)),
    )
    return html.message_page("Look into your mail", f"{text}\n{told}", links=links)
