"""The sign-in and set-up pages."""

from countersign.distribution.identity import return_to as returning
from countersign.kernel.http import forms
from countersign.kernel.http.answer import Answer


def sign_in(return_to: str, error: str = "", status: int = 200) -> Answer:
    """The form for e-mail and password."""
    fields = (
        forms.hidden("return_to", return_to)
        + forms.field("email", "E-mail", "email", "username")
        + forms.field("password", "Password", "password", "current-password")
    )
    links = (
        ("Create an account", returning.through("/auth/signup", return_to)),
        ("Forgot your password?", returning.through("/auth/reset", return_to)),
    )
    return forms.form("Sign in", fields, "Sign in", error, status, links=links)


def set_up(token: str, error: str = "", status: int = 200) -> Answer:
    """The form that makes the first organisation and its owner."""
    fields = (
        forms.hidden("token", token)
        + forms.field("slug", "Organisation (a-z, 0-9, -)", "text", "organization")
        + forms.field("name", "Organisation's name", "text", "organization")
        + forms.field("email", "Your e-mail", "email", "username")
        + forms.field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return forms.form("Set up Countersign", fields, "Create", error, status)
