"""The plain pages around signing in are complete in German, and keep the typed values."""

from collections.abc import Callable

import pytest

from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.store.auth import sign_in_pages as accounts
from countersign.store.auth import sign_in_pages as identity
from countersign.store.auth.agents import claim_page
from countersign.store.auth.agents.claim import WrongAccount

EMAIL = "ann@example.com"
PAGES: dict[str, Callable[[], Response]] = {
    "sign-in": lambda: identity.sign_in_page("/", "e-mail or password is wrong", 401, EMAIL),
    "set-up": lambda: identity.set_up_page("token"),
    "set-up spent": lambda: identity.expired_set_up_page(404, has_people=True),
    "set-up incomplete": lambda: identity.expired_set_up_page(404, has_people=False),
    "onward": lambda: identity.redirect_page_to("/"),
    "sign-up": lambda: accounts.sign_up_page("/", "This is not an e-mail address like name@example.com.", 400, EMAIL),
    "reset": lambda: accounts.reset_page("/"),
    "sent sign-up": lambda: accounts.sign_up_sent_page("/", EMAIL, is_mailed=True),
    "sent reset": lambda: accounts.reset_sent_page("/", EMAIL, is_mailed=False),
    "prove": lambda: accounts.new_password_page("token", EMAIL),
    "spent": lambda: accounts.expired_link_page(404),
    "agent's code": lambda: claim_page.code_page("123456"),
    "agent allowed": claim_page.allowed_page,
    "agent declined": claim_page.declined_page,
    "agent that asks for too much": claim_page.missing_scopes_page,
    "agent for another account": lambda: claim_page.wrong_account_page(WrongAccount("another account"), EMAIL, "/"),
}


class StrictTexts(dict[str, str]):
    """The texts. A text that is not among them fails, unless it already has its values."""

    def get(self, key: str, default: str | None = None, /) -> str | None:  # type: ignore[override]
        """Return the German text."""
        assert key in self or not key or EMAIL in key, f"there is no German text for: {key}"
        return super().get(key, default)


@pytest.mark.parametrize("name", PAGES)
def test_every_text_of_the_sign_in_pages_exists_in_german(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "GERMAN", StrictTexts(html.GERMAN))
    language_token = html.LANGUAGE.set("de")
    try:
        page = PAGES[name]()
    finally:
        html.LANGUAGE.reset(language_token)

    assert b'<html lang="de">' in (page.body if isinstance(page.body, bytes) else b"")


def test_a_refused_sign_in_keeps_the_email_and_begins_at_the_password() -> None:
    body = identity.sign_in_page("/", "e-mail or password is wrong", 401, 'ann"@example.com').body

    assert isinstance(body, bytes)
    assert b'value="ann&quot;@example.com" required' in body
    assert b'autocomplete="current-password" autofocus required' in body
    assert body.count(b"autofocus") == 1
