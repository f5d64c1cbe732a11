"""A publisher's forms: typed text survives a reload and an ended session; the preview, webhooks and signing keys."""

import asyncio
import secrets

import pytest
from playwright.async_api import Browser, expect

from tests.browser.store.people import PASSWORD, PUBLISHER, call, sign_in
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running


def create_product(store: Running, title: str) -> str:
    """Create a product, and return its slug."""
    slug = f"{title.lower().replace(' ', '-')}-{secrets.token_hex(3)}"
    product = {"slug": slug, "title": title, "kind": "game", "platforms": ["linux"], "access": "free"}
    call(store, "POST", "/products", product)
    return slug


async def test_typed_product_details_survive_a_reload_and_are_previewed_as_buyers_see_them(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_product, demo_store, "Slow Tide")
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, f"/publisher/products/{slug}?tab=details")
        await page.fill("#title", "Slower Tide")
        await page.fill("#summary", "A calm sea.")
        await expect(page.locator(".product-preview .card h3")).to_have_text("Slower Tide")
        await expect(page.locator(".preview-page")).to_contain_text("A calm sea.")
        await assert_accessible(page, axe)
        await page.reload()

        await page.wait_for_selector("text=Your unsaved changes are back.")
        await expect(page.locator("#title")).to_have_value("Slower Tide")
        await expect(page.locator("#summary")).to_have_value("A calm sea.")
        await page.click("button:text('Discard changes')")
        await expect(page.locator("#title")).to_have_value("Slow Tide")
        await page.fill("#summary", "A calm sea.")
        await page.click("button:text-is('Save')")
        await page.wait_for_selector("text=Saved")
        await page.reload()
        await expect(page.locator("#summary")).to_have_value("A calm sea.")
        await expect(page.locator("text=Your unsaved changes are back.")).to_have_count(0)
    saved = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}")
    assert (saved["title"], saved["summary"]) == ("Slow Tide", "A calm sea.")


@pytest.mark.full
async def test_typed_input_survives_a_lost_network_and_an_ended_session(
    browser: Browser, demo_store: Running
) -> None:
    title = f"Long Way {secrets.token_hex(3)}"
    async with open_watched_page(browser, demo_store.url, width=390, expected=("status of 401", "ERR_")) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto("/publisher/new")
        await page.fill("#title", title)
        await page.check("text=Linux")
        await page.context.set_offline(True)
        await page.click("text=Create draft")
        await page.wait_for_selector("main .summary")
        await page.context.set_offline(False)
        await page.context.clear_cookies()
        await page.goto("/auth/signin?return_to=/publisher/new")
        await page.fill("#email", PUBLISHER)
        await page.fill("#password", PASSWORD)
        await page.click("button")
        await expect(page.locator("#title")).to_have_value(title)
        await page.click("text=Create draft")

        await page.wait_for_selector(f"h1:text-is('{title}')")
        await page.goto("/publisher/new")
        await expect(page.locator("#title")).to_have_value("")


def create_product_with_draft(store: Running, title: str) -> str:
    """Create a product with the draft 1.0.0, and return its slug."""
    slug = create_product(store, title)
    call(store, "POST", f"/products/{slug}/releases", {"version": "1.0.0", "channel": "beta", "notes": "As saved"})
    return slug


async def test_unsaved_notes_survive_another_step_a_reload_and_a_lost_network(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_product_with_draft, demo_store, "Noted")
    path = f"/publisher/products/{slug}/releases/1.0.0"
    async with open_watched_page(browser, demo_store.url, width=390, expected=("ERR_",)) as page:
        await sign_in(page, PUBLISHER, f"{path}?step=notes")
        notes = page.locator("#notes")
        await expect(notes).to_have_value("As saved")
        await notes.fill("**New** ships")
        await expect(page.locator(".notes-preview strong")).to_have_text("New")
        await page.click(".steps button:has-text('Review')")
        await page.wait_for_selector("text=The release notes have unsaved changes.")
        await page.go_back()
        await expect(notes).to_have_value("**New** ships")
        await page.reload()
        await page.wait_for_selector("text=Your unsaved changes are back.")
        await expect(notes).to_have_value("**New** ships")
        await assert_accessible(page, axe)
        await page.context.set_offline(True)
        await page.click("button:text-is('Save and continue')")
        await page.wait_for_selector(".step:visible .summary")
        await expect(notes).to_have_value("**New** ships")
        await page.context.set_offline(False)
        await page.click("button:text-is('Save and continue')")

        await expect(page.locator(".step:visible")).to_contain_text("New ships")
        await expect(page.locator(".steps li:has-text('Release notes')")).to_contain_text("(done)")
    drafts = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}/drafts")
    assert [draft["notes"] for draft in drafts] == ["**New** ships"]


async def test_a_refused_file_shows_the_reason_and_links_to_the_upload(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_product_with_draft, demo_store, "Refused")
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, f"/publisher/products/{slug}/releases/1.0.0")
        await page.select_option("#platform", "linux")
        broken = {"name": "broken.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04 no archive at all"}
        await page.set_input_files("input[type=file]", broken)
        await page.wait_for_selector("tr:has-text('broken.zip') >> text=Uploaded")
        await page.click(".steps button:has-text('Checks')")
        await page.wait_for_selector(".step [role=status] >> text=Refused", timeout=60_000)
        await page.wait_for_selector("text=Upload a corrected file for the same platform under another name.")
        await assert_accessible(page, axe)
        await page.click(".steps button:has-text('Review')")
        await expect(page.locator(".review-missing")).to_contain_text("broken.zip")
        await expect(page.locator("button:text-is('Publish')")).to_be_disabled()
        await page.click(".steps button:has-text('Checks')")
        await page.click("button:text('Upload a corrected file')")

        await expect(page.locator("h2:text-is('Files')")).to_be_focused()
        # Files and the saved notes, not the checks.
        await expect(page.locator(".steps li.done")).to_have_count(1 + 1)


@pytest.mark.full
async def test_a_webhook_is_added_with_a_secret_shown_once_and_removed(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    url = f"https://hooks.example/{secrets.token_hex(6)}"
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/publisher?tab=webhooks")
        await page.click("button:text-is('Add webhook')")
        await expect(page.locator("#url-fault")).to_have_text("Enter URL")
        await page.fill("#url", url)
        await page.check("text=release.published")
        await page.click("button:text-is('Add webhook')")
        await page.wait_for_selector("text=Copy the secret now.")
        row = page.locator(f"tr:has-text('{url}')")
        await expect(row).to_contain_text("release.published")
        await expect(row).to_contain_text("Nothing sent yet")
        await assert_accessible(page, axe)
        await page.reload()
        await expect(row).to_have_count(1)
        await expect(page.locator("text=Copy the secret now.")).to_have_count(0)
        await row.locator("button:has-text('Remove')").click()
        await page.wait_for_selector("dialog[open] >> text=Queued events are dropped")
        await page.click("dialog >> button.risky")
        await expect(row).to_have_count(0)


@pytest.mark.full
async def test_signing_keys_are_listed_and_a_rotation_asks_first(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    if not await asyncio.to_thread(call, demo_store, "GET", "/org/signing-keys"):
        await asyncio.to_thread(call, demo_store, "POST", "/org/signing-keys")
    keys = await asyncio.to_thread(call, demo_store, "GET", "/org/signing-keys")
    async with open_watched_page(browser, demo_store.url, scheme="dark") as page:
        await sign_in(page, PUBLISHER, "/publisher?tab=signing")
        row = page.locator(f"tr:has-text('{keys[-1]['keyid']}')")
        await expect(row).to_contain_text("Current")
        await page.click("main button:text-is('Rotate key')")
        await page.wait_for_selector("dialog[open] >> text=can’t become the current key again")
        await expect(page.locator("dialog[open] button:text-is('Cancel')")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        await assert_accessible(page, axe)
    assert await asyncio.to_thread(call, demo_store, "GET", "/org/signing-keys") == keys
