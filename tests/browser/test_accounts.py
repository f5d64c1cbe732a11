"""The account pages in a real browser: the whole walk without scripts, and the rules of accessibility on each page."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.conftest import Site
from tests.servers.countersign import COMMAND, environment

ANN = "ann@example.com"
LONG = "a.rather.long.address.that.does.not.fit@a-domain-as-long-as-the-window.example.com"
NARROW, WIDE = 360, 1440
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@asynccontextmanager
async def opened(browser: Browser, site: Site, **options: Any) -> AsyncIterator[tuple[BrowserContext, Page]]:
    """A fresh page of a fresh browser context; whatever it asks another site for fails the test."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield context, page
    await context.close()
    assert not [url for url in asked if not url.startswith(site.url)]


def mailed_link(site: Site, to: str, *, other_than: str = "") -> str:
    """The link in the newest letter, as whoever runs the service finds it."""
    command = [*COMMAND, "mail", "--last", "--to", to, "--json", "--data", str(site.running.data)]
    for _ in range(100):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=30)
        if done.returncode == 0 and (link := str(json.loads(done.stdout)["letters"][0]["links"][0])) != other_than:
            return link
    raise AssertionError(done.stdout + done.stderr)


async def is_signed_in(site: Site, context: BrowserContext) -> bool:
    answer = await context.request.post(f"{site.url}/auth/session/token", data={}, headers={"Origin": site.url})
    return answer.ok


async def send(page: Page, **fields: str) -> None:
    """Fill the form's fields by their labels' names and press its button."""
    for name, value in fields.items():
        await page.fill(f"#{name}", value)
    await page.click("button")


async def test_the_whole_walk_works_without_scripts(browser: Browser, site: Site) -> None:
    async with opened(browser, site, java_script_enabled=False) as (context, page):
        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        await page.click("text=Create an account")
        await send(page, email=ANN)
        assert await page.inner_text("h1") == "Look into your mail"

        await page.goto(mailed_link(site, ANN))
        assert await page.input_value("#email") == ANN
        await send(page, password="short")
        assert "at least 10" in await page.inner_text("[role=alert]")
        await send(page, password="the first password")
        assert page.url == f"{site.url}/healthz"
        assert await is_signed_in(site, context)

        await context.request.post(f"{site.url}/auth/signout", form={}, headers={"Origin": site.url}, max_redirects=0)
        assert not await is_signed_in(site, context)

        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        await page.click("text=Forgot your password?")
        before = mailed_link(site, ANN)
        await send(page, email=ANN)
        await page.goto(mailed_link(site, ANN, other_than=before))
        await send(page, password="the second password")
        assert page.url == f"{site.url}/healthz"

        await context.clear_cookies()
        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        await send(page, email=ANN, password="the first password")
        assert await page.inner_text("[role=alert]") == "E-mail or password is wrong"
        await send(page, email=ANN, password="the second password")
        assert page.url == f"{site.url}/healthz"
        assert await is_signed_in(site, context)
        await page.goto(before)
        assert await page.inner_text("h1") == "This link does not work"


async def faults(page: Page, axe: str) -> list[str]:
    """What breaks a rule of axe-core on the page, and whether it is wider than its window."""
    await page.evaluate(axe)
    result = await page.evaluate("tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", TAGS)
    found = [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in result["violations"]]
    is_wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return [f"{page.url}: {each}" for each in (*found, *(["wider than its window"] if is_wide else []))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
async def test_every_page_holds_the_rules_of_accessibility(
    browser: Browser, site: Site, axe: str, scheme: str, width: int
) -> None:
    viewport = {"width": width, "height": 740}
    # The policy of the pages lets no script in, those of the test neither.
    options = {"color_scheme": scheme, "viewport": viewport, "bypass_csp": True}
    found: list[str] = []
    async with opened(browser, site, **options) as (_, page):
        for path in ("/auth/signin", "/auth/signup?return_to=/library", "/auth/reset", "/auth/prove?token=none"):
            await page.goto(site.url + path)
            found += await faults(page, axe)
        await page.goto(f"{site.url}/auth/signin")
        await send(page, email=ANN, password="not the password")
        found += await faults(page, axe)
        await page.goto(f"{site.url}/auth/signup")
        await send(page, email=LONG)
        found += await faults(page, axe)
        await page.goto(mailed_link(site, LONG))
        found += await faults(page, axe)
        await page.goto(site.set_up_link())
        found += await faults(page, axe)
        members = {"slug": "north", "name": "North", "email": "owner@example.com", "password": "a long password"}
        await send(page, **members)
        assert await page.inner_text("h1") == "Ready"
        found += await faults(page, axe)

    assert not found


async def test_a_page_with_a_fault_is_found(browser: Browser, site: Site, axe: str) -> None:
    async with opened(browser, site, bypass_csp=True) as (_, page):
        await page.set_content("<html><body><input><div style='width:9000px'>x</div></body></html>")

        found = " ".join(await faults(page, axe))

    assert "label" in found
    assert "wider than its window" in found


async def test_the_keyboard_alone_is_enough_and_shows_where_it_is(browser: Browser, site: Site) -> None:
    async with opened(browser, site) as (_, page):
        await page.goto(f"{site.url}/auth/signin")
        reached: list[str] = []
        for _ in range(5):
            await page.keyboard.press("Tab")
            where, outline = await page.evaluate(
                "[document.activeElement.id || document.activeElement.textContent,"
                " getComputedStyle(document.activeElement).outlineWidth]"
            )
            assert outline == "3px"
            reached.append(where)

    assert reached == ["email", "password", "Sign in", "Create an account", "Forgot your password?"]
