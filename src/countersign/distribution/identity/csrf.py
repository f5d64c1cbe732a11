"""Tokens in our own forms that only a page made for this very sign-in carries (attack T29)."""

import base64
import binascii
from collections.abc import Sequence

import msgspec

from countersign.distribution.context import Store
from countersign.kernel.errors import Refused
from countersign.kernel.security import secrets


class FormExpired(Refused):
    """The form was made for another sign-in, or by another site."""

    status = 403
    code = "form_expired"
    title = "Form expired"
    resolution = "Open the page again and send the form from there."


def token_of(store: Store, session_token: str, *shown: str) -> str:
    """What a form for this session carries beside its own fields. With `shown` it is another token, which is good for
    a decision about these very texts alone."""
    return base64.urlsafe_b64encode(store.addresses.sign(_message(session_token, shown))).rstrip(b"=").decode()


def is_for(store: Store, session_token: str, given: str, *shown: str) -> bool:
    """Whether a form was made for this session, and showed these texts."""
    try:
        signature = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
    except (ValueError, binascii.Error):
        return False
    return store.addresses.verify(_message(session_token, shown), signature)


def require(store: Store, session_token: str, given: str) -> None:
    """Insist that a form was made for this session.

    Raises:
        FormExpired: it was not.
    """
    if not is_for(store, session_token, given):
        raise FormExpired("this form was not made for the present sign-in")


def _message(session_token: str, shown: Sequence[str]) -> bytes:
    of_session = b"csrf\0" + secrets.digest(session_token)
    return of_session + msgspec.json.encode(shown) if shown else of_session
