"""Personal notes about products, followed products, and updates since the last download."""

import asyncio
import json
import secrets

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.rules import evaluate
from tests.browser.store.people import PLAYER, PUBLISHER, call, new_person, sign_in
from tests.browser.store.products import (
    create_free_product,
    create_owned_product,
    publish_release_with_file,
    publish_release_without_files,
)
from tests.browser.visits import REFUSALS
from tests.browser.waiting import eventually, press_together, until_equal
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running

LINES = """new Set([...document.querySelectorAll(".library-head .input, .library-head .button")]
  .map((each) => each.getBoundingClientRect().top)).size"""
"""On how many lines the library's search and the button beside it are."""


PLACE_LINES = """new Set([...document.querySelectorAll(".place-line > *")]
  .map((each) => each.getBoundingClientRect().top)).size"""
"""On how many lines the library's sections are on a phone."""


async def test_a_product_is_followed_by_keyboard_and_its_news_are_shown(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_free_product, demo_store)
    await asyncio.to_thread(call, demo_store, "POST", "/me/notifications/seen", {}, email=PLAYER)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, f"/products/{slug}")
        button = page.locator(".get button:has(.hidden-text)", has_text="Follow")
        await expect(button).not_to_have_attribute("aria-disabled", "true")
        await button.focus()
        async with page.expect_response("**/api/v1/me/follows/product/*"):
            await page.keyboard.press("Enter")
        await expect(button).to_have_attribute("aria-pressed", "true")
        await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.1.0")

        # Another browser of the same person shows it as well.
        await page.evaluate("localStorage.clear()")
        await page.click("h1")
        await press_together(page, "g", "f")
        entry = page.locator(".feed-entry", has_text=slug.title())
        await expect(entry).to_contain_text("1.1.0")
        await expect(entry.locator(".chip")).to_have_text("New")
        await assert_accessible(page, axe)
        await picture(page, "following-1440-light")
        async with page.expect_response(f"**/{slug}/feed") as feed_response:
            await evaluate(page, f"fetch(document.querySelector('a[href*=\"{slug}/feed\"]').href).then(() => 0)")
        assert f"{slug.title()} 1.1.0" in await (await feed_response.value).text()

        await page.click(".bell > button")
        note = page.locator(".bell-panel .note", has_text=f"{slug.title()} 1.1.0")
        await expect(note).to_have_class("note unseen")
        await expect(page.locator(".bell-count")).to_have_count(0)
        await page.keyboard.press("Escape")
        await expect(page.locator(".bell > button")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(note).to_have_class("note")
        await assert_accessible(page, axe)
        await page.goto("/notifications")
        await expect(page.locator(".note", has_text=f"{slug.title()} 1.1.0")).to_have_class("note")
        await page.goto("/following")
        await page.click(f".followed li:has-text('{slug.title()}') button")
        await expect(page.locator(".followed li", has_text=slug.title())).to_have_count(0)
        await page.reload()
        await page.wait_for_selector("text=/You follow|Nothing followed yet/")
        await expect(page.locator("main", has_text=slug.title())).to_have_count(0)


@pytest.mark.full
async def test_a_person_without_a_session_signs_in_before_following(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.click(".get a:has-text('Follow')")

        await page.wait_for_url("**/auth/signin?return_to=%2Fproducts%2Fawl")
        await page.goto("/following")
        await page.wait_for_selector("h2:text-is('Sign in')")


@pytest.mark.full
async def test_notes_collections_and_hidden_products_are_kept_in_the_account(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    cosy, note = f"Cosy {secrets.token_hex(3)}", f"Left at <b>chapter {secrets.token_hex(3)}</b>"
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, "/library?order=title")
        await page.wait_for_selector(".card")
        await until_equal(page, LINES, 1)

        async def are_sorted() -> list[str]:
            titles = await page.locator(".card h3").all_inner_texts()
            assert titles
            assert titles == sorted(titles, key=str.lower)
            return titles

        titles = await eventually(are_sorted)
        first_card = page.locator(".card").first
        await first_card.locator(".get-more").click()
        await page.fill("dialog label:text('New collection') ~ input", cosy)
        async with page.expect_response("**/api/v1/me/collections/*/items/*"):
            await page.keyboard.press("Enter")
        await expect(page.locator(f"dialog label:has-text('{cosy}') input")).to_be_checked()
        await page.fill("dialog textarea", note)
        async with page.expect_response("**/api/v1/library/*"):
            await page.keyboard.press("Tab")
        await page.evaluate("localStorage.clear()")
        await page.goto("/library")
        await page.click(f".side-nav >> text={cosy}")
        await expect(page.locator(".card h3")).to_have_text([titles[0]])
        await expect(page.locator(".card")).to_contain_text(note)
        await assert_accessible(page, axe)
        await picture(page, "library-noted-1440-light")

        await page.click(".card .get-more")
        await page.click("dialog >> button:text('Hide')")
        await expect(page.locator("#find")).to_be_focused()
        await page.click("[role=status] >> text=Undo")
        await page.click(".card .get-more")
        async with page.expect_response("**/api/v1/library/*"):
            await page.click("dialog >> button:text('Hide')")
        await page.goto("/library?order=updated&view=list")
        await expect(page.locator(".product-rows > li")).to_have_count(len(titles) - 1)
        await page.fill("#find", note)
        await expect(page.locator(".product-rows > li")).to_have_count(0)
        await page.click(".side-nav >> text=Hidden")
        await expect(page.locator(".card", has_text=note)).to_have_count(1)

        await sign_in(page, PUBLISHER, "/library?hidden=1")
        await expect(page.locator("main", has_text=note)).to_have_count(0)
        await sign_in(page, PLAYER, "/library?hidden=1")
        await page.click(f".card:has-text('{titles[0]}') .get-more")
        async with page.expect_response("**/api/v1/library/*"):
            await page.click("dialog >> button:text('Unhide')")
        await page.goto("/library")
        await expect(page.locator(".card")).to_have_count(len(titles))


@pytest.mark.full
async def test_the_library_shows_releases_newer_than_the_downloaded_release(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_owned_product, demo_store)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, f"/products/{slug}")
        async with page.expect_response("**/api/v1/library/*"), page.expect_download():
            await page.click(".get a.strong")
        await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.1.0")
        await page.goto("/library?order=updated")

        await expect(page.locator(".updates > li", has_text=slug.title())).to_contain_text("1.1.0 · you have 1.0.0")
        await expect(page.locator(".card").first.locator(".flag")).to_have_text("Update")
        await page.click(f".updates >> text={slug.title()}")
        await page.wait_for_selector(f"h1:text('{slug.title()}')")


async def test_notes_that_an_earlier_version_kept_in_the_browser_move_to_the_account(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_free_product, demo_store)
    followed = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}")
    owned = (await asyncio.to_thread(call, demo_store, "GET", "/library?limit=1", email=PLAYER))[0]
    note, collection = f"Kept {secrets.token_hex(4)}", f"Shelf {secrets.token_hex(4)}"
    stored_shelf = {
        owned["id"]: {"note": note, "collections": [collection]},
        followed["id"]: {"followed": "2026-11-20T10:00:00Z"},
        "none": {"followed": "2026-11-20T10:00:00Z"},
    }
    await asyncio.to_thread(call, demo_store, "PATCH", f"/library/{owned['id']}", {"note": None}, email=PLAYER)
    async with open_watched_page(browser, demo_store.url, expected=REFUSALS) as page:
        await sign_in(page, PLAYER, "/redeem")
        await evaluate(
            page, f"localStorage.setItem('countersign-shelf {PLAYER}', {json.dumps(json.dumps(stored_shelf))})"
        )
        await page.goto("/library")
        await page.locator(".side-nav", has_text=collection).wait_for()
        shelf_keys = f"Object.keys(JSON.parse(localStorage['countersign-shelf {PLAYER}'] ?? '{{}}'))"
        await until_equal(page, shelf_keys, ["none"])

    items = await asyncio.to_thread(call, demo_store, "GET", "/library?limit=100", email=PLAYER)
    state = await asyncio.to_thread(call, demo_store, "GET", f"/me/owned?ids={followed['id']}", email=PLAYER)
    assert next(item["note"] for item in items if item["id"] == owned["id"]) == note
    assert state["followed"] == [followed["id"]]


async def test_a_note_that_was_changed_elsewhere_is_not_replaced_unseen(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_owned_product, demo_store)
    product = (await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}"))["id"]

    async def save_elsewhere(note: str) -> None:
        await asyncio.to_thread(call, demo_store, "PATCH", f"/library/{product}", {"note": note}, email=PLAYER)

    async def saved() -> str:
        items = await asyncio.to_thread(call, demo_store, "GET", "/library?limit=100", email=PLAYER)
        return str(next(item["note"] for item in items if item["id"] == product))

    async with open_watched_page(browser, demo_store.url) as page:
        await save_elsewhere("Written before")
        await sign_in(page, PLAYER, "/library")
        await page.click(f".card:has-text('{slug.title()}') .get-more")
        note = page.locator("dialog textarea")
        await expect(note).to_have_value("Written before")
        await save_elsewhere("Written on the phone")
        await note.fill("Written here")
        await note.press("Tab")
        choice = page.locator("dialog [role=alert]")
        await expect(choice).to_contain_text("Written on the phone")
        assert await saved() == "Written on the phone"
        await assert_accessible(page, axe)
        async with page.expect_response(lambda response: response.request.method == "PATCH"):
            await page.click("button:text-is('Keep this note')")
        await expect(choice).to_have_count(0)
        await expect(note).to_be_focused()
        assert await saved() == "Written here"

        await save_elsewhere("Written on the phone again")
        await note.fill("Not needed")
        await note.press("Tab")
        await expect(choice).to_contain_text("Written on the phone again")
        await save_elsewhere("Written on the phone last")
        await page.click("button:text-is('Keep the other note')")
        await expect(note).to_have_value("Written on the phone last")
        await expect(note).to_be_focused()
        await expect(choice).to_have_count(0)
        assert await saved() == "Written on the phone last"


async def test_a_draft_that_outlives_a_reload_does_not_replace_a_note_that_was_changed_elsewhere(
    browser: Browser, demo_store: Running
) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    await asyncio.to_thread(create_owned_product, demo_store, email)
    product = (await asyncio.to_thread(call, demo_store, "GET", "/library", email=email))[0]["id"]

    async def save_elsewhere(note: str) -> None:
        await asyncio.to_thread(call, demo_store, "PATCH", f"/library/{product}", {"note": note}, email=email)

    async def saved() -> str:
        return str((await asyncio.to_thread(call, demo_store, "GET", "/library", email=email))[0]["note"])

    async with open_watched_page(browser, demo_store.url) as page:
        await save_elsewhere("Written before")
        await sign_in(page, email, "/library")
        await page.click(".card .get-more")
        note = page.locator("dialog textarea")
        await note.fill("Written here")
        await save_elsewhere("Written on the phone")
        await page.reload()
        await page.click(".card .get-more")
        await expect(note).to_have_value("Written here")
        await note.press("End")
        await note.press("!")
        await note.press("Tab")

        await expect(page.locator("dialog [role=alert]")).to_contain_text("Written on the phone")
        assert await saved() == "Written on the phone"


async def test_typing_while_a_note_is_saved_does_not_cause_a_conflict(
    browser: Browser, demo_store: Running
) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    await asyncio.to_thread(create_owned_product, demo_store, email)
    save_requested, released_event = asyncio.Event(), asyncio.Event()

    async def save_late(route: Route) -> None:
        save_requested.set()
        await asyncio.wait_for(released_event.wait(), 60)
        await route.continue_()

    async def is_saved() -> None:
        assert (await asyncio.to_thread(call, demo_store, "GET", "/library", email=email))[0]["note"] == "One two"

    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, email, "/library")
        await page.click(".card .get-more")
        await page.route("**/api/v1/library/*", save_late)
        note = page.locator("dialog textarea")
        await note.fill("One")
        await note.press("Tab")
        await asyncio.wait_for(save_requested.wait(), 60)
        await note.fill("One two")
        async with page.expect_response("**/api/v1/library/*"):
            released_event.set()
        await expect(page.locator(".card")).to_contain_text("One")
        await note.press("Tab")

        await eventually(is_saved)
        await expect(page.locator("dialog [role=alert]")).to_have_count(0)


WITH_A_STAR = """const sent = fetch;
window.fetch = async (address, init) => {
  const answer = await sent(address, init);
  return answer.ok && String(address).includes("/api/v1/library?")
    ? new Response((await answer.text()).replace(/"title":"[^"]*"/g, '"title":"★"'), { headers: answer.headers })
    : answer;
};"""
"""Names each product of the library "★"."""


async def test_a_note_of_a_product_whose_title_has_no_letter_is_saved(browser: Browser, demo_store: Running) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    await asyncio.to_thread(create_owned_product, demo_store, email)

    async with open_watched_page(browser, demo_store.url) as page:
        await page.add_init_script(WITH_A_STAR)
        await sign_in(page, email, "/library")
        await expect(page.locator(".card h3")).to_have_text("★")
        await page.click(".card .get-more")
        await page.fill("dialog textarea", "Written here")
        async with page.expect_response(lambda response: response.request.method == "PATCH"):
            await page.press("dialog textarea", "Tab")

    assert (await asyncio.to_thread(call, demo_store, "GET", "/library", email=email))[0]["note"] == "Written here"


def updatable(store: Running, email: str) -> list[str]:
    """Create two products of the person, both with a newer release than the downloaded release, and return their
    slugs."""
    slugs = [create_owned_product(store, email) for _ in range(2)]
    for slug, product_slug in zip(slugs, reversed(call(store, "GET", "/library", email=email)), strict=True):
        downloaded = {"version": "1.0.0", "platform": "linux", "at": None}
        call(store, "PATCH", f"/library/{product_slug['id']}", {"downloaded": downloaded}, email=email)
        publish_release_with_file(store, slug, "1.1.0")
    return slugs


async def test_all_updates_are_downloaded_with_one_press(browser: Browser, demo_store: Running) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    slugs = await asyncio.to_thread(updatable, demo_store, email)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, email, "/library")
        await expect(page.locator(".updates > li")).to_have_count(2)
        downloads: list[str] = []
        page.on("download", lambda download: downloads.append(download.suggested_filename))
        await page.focus("button:text('Download all')")
        await page.keyboard.press("Enter")

        await expect(page.locator(".updates")).to_have_count(0)
        await page.wait_for_selector("[role=status] >> text=2 downloads started.")
        await expect(page.locator("#products")).to_be_focused()

        async def are_downloaded() -> None:
            assert len(downloads) == 2

        await eventually(are_downloaded)

    items = await asyncio.to_thread(call, demo_store, "GET", "/library", email=email)
    assert {item["slug"]: item["installed_version"] for item in items} == dict.fromkeys(slugs, "1.1.0")


async def test_a_collection_is_made_renamed_and_deleted_beside_the_products(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    slug = await asyncio.to_thread(create_owned_product, demo_store, email)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, email, "/library")
        await page.click("button:text('New collection')")
        await expect(page.locator("#collection-name")).to_be_focused()
        await assert_accessible(page, axe)
        await page.keyboard.type("Rainy days & more")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=No products in this collection yet")
        await expect(page.locator("#products")).to_have_text("Rainy days & more")
        await page.click("main >> a:text('All products')")
        await page.click(".card .get-more")
        async with page.expect_response("**/api/v1/me/collections/*/items/*"):
            await page.check("dialog label:has-text('Rainy days & more') input")
        await page.keyboard.press("Escape")

        await page.click(".side-nav a:has-text('Rainy days & more')")
        await expect(page.locator(".card h3")).to_have_text([slug.title()])
        await page.click("[aria-label='Edit collection']")
        await page.fill("#collection-name", "Sunny days")
        await page.click("dialog >> button:text('Save')")
        await expect(page.locator("#products")).to_have_text("Sunny days")
        await expect(page.locator(".card h3")).to_have_text([slug.title()])
        await page.reload()
        await page.click("[aria-label='Edit collection']")
        await page.click("dialog >> button:text('Delete collection')")
        await expect(page.locator("#products")).to_have_text("All products")
        await expect(page.locator(".side-nav", has_text="days")).to_have_count(0)
        await expect(page.locator(".card h3")).to_have_text([slug.title()])


async def test_at_phone_width_the_library_sections_fit_on_one_line_and_the_search_opens(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, width=390) as page:
        await sign_in(page, PLAYER, "/library")
        await page.wait_for_selector(".card")
        await until_equal(page, PLACE_LINES, 1)
        await page.click(".place-line button:text('More')")
        await assert_accessible(page, axe)
        await page.click(".place-line button:text('More')")
        await page.click("[role=menuitem]:has-text('Tools')")
        await expect(page.locator("#products")).to_have_text("Tools")
        await expect(page.locator(".place-line button")).to_contain_text("Tools")
        await expect(page.locator("#find")).to_be_hidden()
        await page.click(".library-head [aria-label='Search your library']")
        await expect(page.locator("#find")).to_be_focused()
        await page.keyboard.type("zzzz")
        await page.wait_for_selector("text=No results")
        await assert_accessible(page, axe)
