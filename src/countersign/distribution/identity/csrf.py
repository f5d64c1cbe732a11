"""Tokens in our own forms that only a page made for this very sign-in carries (attack T29)."""

import base64
import binascii

from countersign.distribution.context import Store
from countersign.kernel.errors import Refused
from countersign.kernel.security import secrets


class FormExpired(Refused):
    """The form was made for another sign-in, or by another site."""

    status = 403
    code = "form_expired"
    title = "Form expired"
    resolution = "Open the page again and send the form from there."


def token_of(store: Store, session_token: str) -> str:
    """What a form for this session carries beside its own fields."""
    return base64.urlsafe_b64encode(store.addresses.sign(_message(session_token))).rstrip(b"=").decode()


def require(store: Store, session_token: str, given: str) -> None:
    """Insist that a form was made for this session.

    Raises:
        FormExpired: it was not.
    """
    try:
        signature = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
    except (ValueError, binascii.Error):
        signature = b""
    if not store.addresses.verify(_message(session_token), signature):
        raise FormExpired("this form was not made for the present sign-in")


def _message(session_token: str) -> bytes:
    return b"csrf\0" + secrets.digest(session_token)
