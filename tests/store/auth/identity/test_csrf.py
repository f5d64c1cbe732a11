"""CSRF tokens of the store's forms."""

import pytest

from countersign.store.auth import sessions
from countersign.store.auth.sessions import FormExpired
from countersign.store.context import Store


async def test_t29_a_form_is_valid_for_one_session(store: Store) -> None:
    token = sessions.form_token(store, "css_one")

    sessions.require_form_token(store, "css_one", token)

    assert token != sessions.form_token(store, "css_two")
    for session, form_token in (("css_two", token), ("css_one", ""), ("css_one", token[:-1]), ("css_one", token + "A")):
        with pytest.raises(FormExpired):
            sessions.require_form_token(store, session, form_token)


@pytest.mark.parametrize("form_token", ["ä", "=", "a" * 10_000, "\0", "%%%"])
async def test_t29_a_malformed_form_token_is_refused(store: Store, form_token: str) -> None:
    with pytest.raises(FormExpired):
        sessions.require_form_token(store, "css_one", form_token)


async def test_t29_a_signature_for_another_purpose_is_no_token(store: Store) -> None:
    other_token = sessions.form_token(store, "x")

    with pytest.raises(FormExpired):
        sessions.require_form_token(store, "csrf\0x", other_token)
