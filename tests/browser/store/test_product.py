"""A product's page: the right download first, every release, and the publisher's text only as text."""

import asyncio
import re
from functools import partial

import httpx
import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.rules import evaluate
from tests.browser.store.people import PUBLISHER, call, sign_in
from tests.browser.store.products import create_product_with_file, create_updated_product, publish_release_with_file
from tests.browser.waiting import eventually
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running

NOTES = """## New <img src=x onerror=alert(1)>

- **Faster** than `1.0`
- a [page](https://example.com/a) and [none](javascript:alert(1))
"""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c636060600000000400016e4a8f5f"
    "0000000049454e44ae426082"
)


async def test_the_download_for_this_computer_is_the_first(browser: Browser, demo_store: Running, axe: str) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/brightwater-rally")
        await page.wait_for_selector(".get >> text=Download for Linux")
        await page.wait_for_selector(".files li:first-child >> text=Your system")
        await expect(page.locator(".files li:first-child summary .cut")).to_have_text("Linux x86-64")

        await expect(page.locator(".get a.strong")).to_have_attribute("download", "")
        command = "countersign pull pixel-harbour/brightwater-rally ./brightwater-rally"
        await expect(page.locator(".terminal")).to_contain_text(command)
        async with page.expect_download() as started_download:
            await page.click(".get a.strong")
        assert (await started_download.value).suggested_filename.endswith(".tar.gz")
        await page.click(".segments button:text('Beta')")
        await expect(page).to_have_url(re.compile(r"\?channel=beta$"))
        await assert_accessible(page, axe)


async def test_an_owner_of_an_older_version_is_offered_the_new_version_with_its_notes(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_product_with_file, demo_store)
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(f"/products/{slug}")
        async with page.expect_download():
            await page.click(".get a:has-text('Download for Linux')")
        await asyncio.to_thread(publish_release_with_file, demo_store, slug, "1.1.0")
        await page.reload()
        await page.locator(".get h2:has-text('Update available')").wait_for()

        panel = page.locator(".get")
        await expect(panel).to_contain_text("1.0.0 → 1.1.0")
        await expect(panel.locator("a.strong")).to_have_text(re.compile("^Download 1.1.0 · "))
        await panel.locator("a:text-is('Release notes')").click()
        await expect(page).to_have_url(re.compile("#releases$"))


HEAD = """(() => {
    const subtitle = document.querySelector(".subtitle");
    const lines = subtitle.offsetHeight / parseFloat(getComputedStyle(subtitle).lineHeight);
    const bottom = (selector) => document.querySelector(selector).getBoundingClientRect().bottom;
    return { lines: Math.round(lines), picture: bottom(".stage"), panel: bottom(".get") };
})()"""


async def has_its_head_on_the_first_screen(page: Page, slug: str, width: int) -> None:
    head = await evaluate(page, HEAD)
    assert head["lines"] <= 2, (slug, width)
    assert head["picture"] <= 900, (slug, width)
    assert width == 390 or head["panel"] <= 900, (slug, width)


async def test_summary_picture_and_panel_are_on_the_first_screen(browser: Browser, demo_store: Running) -> None:
    for slug in ("aurora-freight", "harbour-of-small-lights", "marginalia"):
        for width in (1440, 390):
            async with open_watched_page(browser, demo_store.url, width=width) as page:
                await page.goto(f"/products/{slug}")
                await page.locator(".get .button.strong").wait_for()
                await eventually(partial(has_its_head_on_the_first_screen, page, slug, width))


@pytest.mark.full
async def test_a_product_that_is_not_free_is_downloaded_by_its_owner(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.wait_for_selector(".get >> text=Sign in to redeem")
        await expect(page.locator("a[download]")).to_have_count(0)

        await sign_in(page, PUBLISHER, "/products/awl")
        await page.wait_for_selector(".get >> text=In your library")


@pytest.mark.full
async def test_notes_are_marked_up_and_never_markup(browser: Browser, demo_store: Running) -> None:
    # Only the publisher sees a draft, so all other visitors' pages stay the same.
    call(
        demo_store,
        "POST",
        "/products/awl/releases",
        {"version": "90.0.0", "channel": "alpha", "notes": NOTES, "notes_only": True},
    )
    call(demo_store, "POST", "/products/awl/releases/90.0.0/publish", {})
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/awl?channel=alpha")
        notes = page.locator(".release:has-text('90.0.0') .prose")

        await expect(notes.locator("h4")).to_have_text("New <img src=x onerror=alert(1)>")
        await expect(notes.locator("strong")).to_have_text("Faster")
        await expect(notes.locator("code")).to_have_text("1.0")
        await expect(notes.locator("a")).to_have_text(["page"])
        await expect(notes).to_contain_text("[none](javascript:alert(1))")
        await expect(notes.locator("img")).to_have_count(0)


@pytest.mark.full
async def test_pictures_can_be_viewed_by_keyboard(browser: Browser, demo_store: Running, axe: str) -> None:
    for alt in ("The first picture", "The second picture"):
        media_body = {"kind": "screenshot", "filename": "shot.png", "size": len(PIXEL), "alt": alt}
        announced_picture = call(demo_store, "POST", "/products/awl/media", media_body)
        assert httpx.put(announced_picture["upload_url"], content=PIXEL, timeout=60).status_code == 201
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.focus(".thumbs button[aria-label='The first picture']")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".picture[aria-label*='The first picture']")
        await page.focus(".picture")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("dialog img[alt='The first picture']")
        await page.keyboard.press("ArrowRight")
        await page.wait_for_selector("dialog img[alt='The second picture']")
        await assert_accessible(page, axe)
        await page.keyboard.press("Escape")

        await expect(page.locator(":focus")).to_have_class("picture")


@pytest.mark.full
async def test_a_product_is_read_without_a_script(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, java_script_enabled=False) as page:
        await page.goto("/products/brightwater-rally")

        await expect(page.locator("h1")).to_have_text("Brightwater Rally")
        await expect(page.locator("main a[href^='/api/v1/artifacts/']").nth(1)).to_be_attached()
        await expect(page.locator("main")).to_contain_text("Pixel Harbour")


@pytest.mark.full
async def test_the_signature_of_a_channel_is_shown_with_the_command_that_checks_it(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_product_with_file, demo_store)
    async with open_watched_page(browser, demo_store.url, expected=("status of 404",)) as page:
        await page.goto(f"/products/{slug}")
        await page.focus("summary:text('Channel signature')")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("dt:text('Key') + dd >> text=/[0-9a-f]{64}/")
        signature_details = page.locator("details:has-text('Channel signature')")
        await expect(signature_details).to_contain_text("--channel stable --verify")
        await assert_accessible(page, axe)

        await page.goto("/products/awl")
        await page.wait_for_selector(".build >> text=No signature, malware scan, provenance or component list")
        await expect(page.locator(".build >> text=Signed by")).to_have_count(0)
        await expect(page.locator(".signed-by")).to_have_text("Not signed by the publisher")


async def test_no_signature_is_shown_for_a_channel_before_it_is_loaded(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_product_with_file, demo_store)
    publish = partial(publish_release_with_file, demo_store, slug, "2.0.0-beta.1", channel="beta")
    await asyncio.to_thread(publish)
    released_event = asyncio.Event()

    async def answer_late(route: Route) -> None:
        if "channels/beta" not in (route.request.post_data or ""):
            await route.continue_()
            return
        await asyncio.wait_for(released_event.wait(), 60)
        response = await route.fetch()
        results = [{**result, "status": 503, "body": None} for result in (await response.json())["results"]]
        await route.fulfill(response=response, json={"results": results})

    async with open_watched_page(browser, demo_store.url) as page:
        await page.route("**/api/v1/batch", answer_late)
        await page.goto(f"/products/{slug}")
        await expect(page.locator(".files .signed-by")).to_have_text("Signed by Northwind Games")
        await page.click(".segments button:text('Beta')")
        await expect(page.locator("#files-title")).to_contain_text("2.0.0-beta.1")
        await expect(page.locator(".signed-by, .build >> text=Signed by")).to_have_count(0)
        released_event.set()
        missing_locator = page.locator(".build .missing b")
        await expect(missing_locator).to_have_text("No malware scan or provenance")
        await expect(page.locator(".signed-by")).to_have_count(0)
        await page.click(".segments button:text('Stable')")
        await expect(page.locator(".files .signed-by")).to_have_text("Signed by Northwind Games")


async def test_a_build_says_its_version_checksum_components_and_the_size_of_an_update(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(create_updated_product, demo_store)
    releases = httpx.get(f"{demo_store.url}/api/v1/products/{slug}/releases", timeout=60).json()
    file = releases[0]["artifacts"][0]
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(f"/products/{slug}")
        cards = page.locator(".build li")
        signed_card = cards.filter(has_text="Signed by Northwind Games")
        await signed_card.wait_for()
        checksum = cards.filter(has_text="SHA-256 of the file for Linux")
        update = cards.filter(has_text="Updates load only what changed")

        await expect(signed_card).to_contain_text("Version 1.1.0, signed")
        await expect(page.locator(".files .signed-by")).to_have_text("Signed by Northwind Games")
        latest = page.locator(".release.latest")
        await expect(latest).to_contain_text(re.compile(r"Update from 1\.0\.0: \d"))
        await expect(checksum).to_contain_text("zip · ")
        await expect(checksum.locator("code")).to_have_text(file["sha256"])
        await expect(update).to_contain_text(re.compile(r"From 1\.0\.0: .+ instead of .+\."))
        await expect(cards.filter(has_text="No malware scan or provenance")).to_have_count(1)
        bill = await page.get_attribute(".build a:text('Software bill of materials')", "href")
        await assert_accessible(page, axe)

    components = httpx.get(f"{demo_store.url}{bill}", timeout=60).json()
    assert {component["name"] for component in components["components"]} == {"SDL", "zlib"}


async def test_the_files_of_older_releases_are_shown_on_demand(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/aurora-freight")
        await expect(page.locator(".release")).to_have_count(4)
        older = page.locator(".release", has=page.locator("h3:has-text('1.3.1')"))
        await expect(page.locator(".release summary >> text=Files and checksums")).to_have_count(4)
        await older.locator("summary").focus()
        await page.keyboard.press("Enter")
        await older.locator("text=aurora-freight-1.3.1-linux-x86_64.tar.gz").first.wait_for()
        await page.click("text=Show all 5 releases")
        await expect(page.locator(".release")).to_have_count(5)
        await page.click(".segments >> text=Beta")
        await page.locator(".release h3:has-text('1.4.0-beta.1')").wait_for()


PLAYED = """(video) => new Promise((played) => {
    const look = () => (video.currentTime > 0 ? played() : setTimeout(look, 50));
    look();
})"""


async def test_a_trailer_is_played_on_demand_and_shows_the_cover_before(browser: Browser, demo_store: Running) -> None:
    product = httpx.get(f"{demo_store.url}/api/v1/products/aurora-freight", timeout=60).json()
    video = next(media_file for media_file in product["media"] if media_file["kind"] == "video")
    loaded: list[str] = []

    async with open_watched_page(browser, demo_store.url) as page:
        page.on("request", lambda request: loaded.append(request.url))
        await page.goto("/products/aurora-freight")
        await expect(page.locator(".stage .flag")).to_have_text("Trailer · 0:10")
        await expect(page.locator(".stage img").first).to_have_attribute("src", product["cover"]["url"])
        urls = [url for url in loaded if url.endswith(video["url"])]
        await page.get_by_role("button", name="0:10").wait_for()
        await page.get_by_role("button", name=video["alt"]).first.click()
        await page.locator(".stage video").evaluate(PLAYED)

    assert urls == []
    assert product["has_trailer"]
