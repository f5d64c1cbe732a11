"""The people of the demonstration at the store's pages, and its API as a script of theirs calls it."""

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
"""Cookies by store and person: one sign-in each, as the store slows down whoever signs in again and again."""


async def sign_in(page: Page, email: str, to: str) -> None:
    """Be at the address, signed in."""
    await page.goto("/logo.svg")
    store = urlsplit(page.url).netloc
    if (store, email) in _SESSIONS:
        await page.context.add_cookies(_SESSIONS[store, email])
    # A test may have ended the session, as a change of the password does.
    # The store uses the cookie only for requests of its own pages.
    own = {"Sec-Fetch-Site": "same-origin"}
    answer = await page.context.request.get("/api/v1/auth/me", headers=own)
    # It may also be the session of another person, who was signed in here before.
    if answer.ok and (await answer.json())["email"] == email:
        await page.goto(to)
    else:
        await type_sign_in(page, email, to)
        _SESSIONS[store, email] = await page.context.cookies()
    await page.wait_for_selector("header.top-bar .avatar")


async def type_sign_in(page: Page, email: str, to: str) -> None:
    """Sign in by the page for that, which leads on to the address."""
    await page.goto(f"/auth/signin?return_to={to}")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    await page.click("button")


def new_person(store: Running) -> str:
    """A new customer without products; their e-mail address."""
    email = f"customer-{secrets.token_hex(4)}@example.com"
    command(store, "person", "create", email, "--password-stdin", stdin=PASSWORD)
    return email


def call(
    store: Running, method: str, path: str, body: object = None, *, email: str = PUBLISHER, prefer: str = ""
) -> Any:
    """What the API answers a script of this person, which has to be a success."""
    headers = {"Authorization": f"Bearer {store.token(email)}", **({"Prefer": prefer} if prefer else {})}
    answer = httpx.request(method, f"{store.url}/api/v1{path}", json=body, headers=headers, timeout=60, verify=TLS)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None
