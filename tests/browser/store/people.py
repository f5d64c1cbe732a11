"""Signs the people of the demonstration in on the store's pages, and calls the API as them."""

import secrets
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.async_api import Page

from tests.browser.shop import TLS, command
from tests.servers.countersign import Running

PLAYER, PUBLISHER = "player@example.com", "publisher@example.com"
PASSWORD = "countersign-demo"


_SESSIONS: dict[tuple[str, str], Any] = {}
"""Cookies by store and person: each signs in once, because the store slows down repeated sign-ins."""


async def sign_in(page: Page, email: str, target_path: str) -> None:
    """Open the address, signed in."""
    await page.goto("/logo.svg")
    store = urlsplit(page.url).netloc
    if (store, email) in _SESSIONS:
        await page.context.add_cookies(_SESSIONS[store, email])
    # A test may have ended the session, for example by a new password. The store accepts the cookie only from its own
    # pages.
    same_origin = {"Sec-Fetch-Site": "same-origin"}
    answer = await page.context.request.get("/api/v1/auth/me", headers=same_origin)
    # It may also be the session of another person, who was signed in here before.
    if answer.ok and (await answer.json())["email"] == email:
        await page.goto(target_path)
    else:
        await type_sign_in(page, email, target_path)
        # The browser has the cookie of the session when the next page is there.
        await page.wait_for_selector("header.top-bar .avatar")
        _SESSIONS[store, email] = await page.context.cookies()
    await page.wait_for_selector("header.top-bar .avatar")


async def type_sign_in(page: Page, email: str, return_to: str) -> None:
    """Sign in on the sign-in page, which then leads to the address."""
    await page.goto(f"/auth/signin?return_to={return_to}")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    async with page.expect_navigation():
        await page.click("button")


def new_person(store: Running) -> str:
    """Create a customer without products, and return their e-mail address."""
    email = f"customer-{secrets.token_hex(4)}@example.com"
    command(store, "person", "create", email, "--password-stdin", stdin=PASSWORD)
    return email


def call(
    store: Running, method: str, path: str, body: object = None, *, email: str = PUBLISHER, prefer: str = ""
) -> Any:
    """Return the API's answer to a request of this person, which must succeed."""
    headers = {"Authorization": f"Bearer {store.token(email)}", **({"Prefer": prefer} if prefer else {})}
    answer = httpx.request(method, f"{store.url}/api/v1{path}", json=body, headers=headers, timeout=60, verify=TLS)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None
