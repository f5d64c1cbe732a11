"""The account page: where a person is signed in, the end of other sessions, and the export of the person's data."""

import asyncio
import json
from contextlib import ExitStack, closing

import httpx
from playwright.async_api import Browser, Page, expect

from tests.browser.shop import TLS
from tests.browser.store.people import PASSWORD, new_person, sign_in
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running

PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 "
    "Mobile/15E148 Safari/604.1"
)


def sign_in_elsewhere(store: Running, email: str, user_agent: str) -> httpx.Client:
    """Sign in from another browser, and return it."""
    headers = {"User-Agent": user_agent, "Origin": store.url}
    client = httpx.Client(base_url=store.url, headers=headers, verify=TLS, timeout=60)
    answer = client.post("/auth/signin", data={"email": email, "password": PASSWORD})
    assert answer.status_code == 303, answer.text
    return client


def status(client: httpx.Client) -> int:
    """Return the status of a request for a token of the browser's session."""
    return client.post("/auth/session/token", json={}).status_code


async def end(page: Page, name: str, message: str) -> None:
    """Press the button with the keyboard, and wait for the message."""
    button = page.get_by_role("button", name=name, exact=True)
    await button.focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f".toast:has-text('{message}')")
    await expect(page.locator("#sessions")).to_be_focused()


async def test_a_person_ends_one_session_and_then_all_others(browser: Browser, demo_store: Running, axe: str) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    with ExitStack() as clients:
        phone, *others = [
            clients.enter_context(closing(await asyncio.to_thread(sign_in_elsewhere, demo_store, email, user_agent)))
            for user_agent in (PHONE, "other", "other")
        ]
        async with open_watched_page(browser, demo_store.url) as page:
            await sign_in(page, email, "/account")
            rows = page.locator("section:has(#sessions) li")
            await expect(rows).to_have_count(4)
            await expect(rows.first).to_contain_text("This browser")
            await expect(rows.first.get_by_role("button")).to_have_count(0)
            await expect(rows.filter(has_text="Safari on iPhone")).to_contain_text("Last used")
            await assert_accessible(page, axe)
            await picture(page, "account-1440-light")

            await end(page, "End the session: Safari on iPhone", "Session ended")
            await expect(rows).to_have_count(3)
            assert [status(each) for each in (phone, *others)] == [401, 200, 200]

            await end(page, "End all others", "All other sessions ended")
            await expect(rows).to_have_count(1)
            await expect(page.get_by_text("You’re not signed in anywhere else.")).to_be_visible()
            assert [status(each) for each in others] == [401, 401]
            await page.reload()
            await expect(rows).to_have_count(1)
            await page.set_viewport_size({"width": 320, "height": 844})
            assert await page.evaluate("document.documentElement.scrollWidth") <= 320
            await assert_accessible(page, axe)


async def test_a_person_downloads_their_data(browser: Browser, demo_store: Running) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, email, "/account")
        async with page.expect_download() as download_event:
            await page.get_by_role("button", name="Export my data").click()
        download = await download_event.value
        document = json.loads((await download.path()).read_text())

    assert download.suggested_filename == "countersign-account.json"
    assert document["person"]["email"] == email
    assert [each["is_current"] for each in document["sessions"]] == [True]


async def test_the_export_never_contains_the_data_of_another_person(browser: Browser, demo_store: Running) -> None:
    first, second = [await asyncio.to_thread(new_person, demo_store) for _ in range(2)]
    async with open_watched_page(browser, demo_store.url, expected=("401",)) as page:
        await sign_in(page, first, "/account")
        downloads: list[object] = []
        page.on("download", lambda download: downloads.append(download))
        # The other person signs in in another window of the same browser.
        answer = await page.context.request.post(
            f"{demo_store.url}/auth/signin",
            form={"email": second, "password": PASSWORD},
            headers={"Origin": demo_store.url},
        )
        assert answer.ok, await answer.text()
        await page.get_by_role("button", name="Export my data").click()
        await expect(page.locator(".toast").first).to_be_visible()

    assert not downloads
