"""A publisher's pages: from a title to a published release, codes for it, and simultaneous changes."""

import asyncio
import io
import secrets
import subprocess
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.rules import evaluate
from tests.browser.store.people import PLAYER, PUBLISHER, call, sign_in
from tests.browser.store.products import create_product_with_file
from tests.browser.waiting import until_equal
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running

LARGE = 9 << 20
WIDTHS = """[...document.querySelectorAll("progress")]
  .map((each) => each.parentElement.clientWidth - each.clientWidth).filter((lack) => lack > 1)"""
"""Maps each upload line that is too narrow to the number of pixels by which it is narrower than its space."""


def archive() -> bytes:
    """Return a small build."""
    zip_bytes = io.BytesIO()
    with zipfile.ZipFile(zip_bytes, "w") as file:
        file.writestr("game/run.sh", "#!/bin/sh\necho hello\n")
    return zip_bytes.getvalue()


async def draft(page: Page, store: Running, title: str, *, notes_only: bool = False) -> str:
    """Create a product with the draft 1.0.0, open the draft's page, and return the product's slug."""
    slug = f"{title.lower().replace(' ', '-')}-{secrets.token_hex(3)}"
    product = {"slug": slug, "title": title, "kind": "game", "platforms": ["linux"], "access": "free"}
    await asyncio.to_thread(call, store, "POST", "/products", product)
    release = {"version": "1.0.0", "channel": "beta", "notes_only": notes_only}
    await asyncio.to_thread(call, store, "POST", f"/products/{slug}/releases", release)
    await sign_in(page, PUBLISHER, f"/publisher/products/{slug}/releases/1.0.0")
    return slug


async def choose(page: Page, name: str, content: bytes) -> None:
    """Choose a file to upload."""
    await page.set_input_files("input[type=file]", {"name": name, "mimeType": "application/zip", "buffer": content})


async def test_a_product_is_created_and_its_release_published(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    title = f"Night Ferry {secrets.token_hex(3)}"
    slug = title.lower().replace(" ", "-")
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/publisher/new")
        await page.fill("#title", title)
        await expect(page.locator("#slug")).to_have_value(slug)
        await page.check("text=Linux")
        await page.select_option("#access", "free")
        await page.click("text=Create draft")
        await page.click("summary:text('New release')")
        await page.fill("#version", "1.0.0")
        await page.fill("#notes", "The **first** one")
        await page.click("text=Save draft")
        await page.wait_for_selector("h2:text('Files')")
        await page.click(".steps button:has-text('Review')")
        visible_step = page.locator(".step:visible")
        await expect(visible_step).to_contain_text("The release has no files")
        await expect(visible_step.locator("button:text-is('Publish')")).to_be_disabled()
        await visible_step.locator(".review-missing button:text('Files')").click()
        await expect(page.locator("h2:text-is('Files')")).to_be_focused()
        await page.select_option("#platform", "linux")
        await choose(page, "ferry.zip", archive())
        await page.wait_for_selector("tr:has-text('ferry.zip') >> text=Uploaded")
        await visible_step.locator("button:text-is('Continue')").click()
        await page.wait_for_selector(".step [role=status] >> text=Passed", timeout=60_000)
        await expect(page.locator(".log")).to_contain_text("Done")
        await assert_accessible(page, axe)
        await picture(page, "release-processed-1440-light")
        await visible_step.locator("button:text-is('Continue')").click()
        await expect(page.locator("#notes")).to_have_value("The **first** one")
        await expect(page.locator(".notes-preview strong")).to_have_text("first")
        await visible_step.locator("button:text-is('Continue')").click()
        for expected_text in (title, "1.0.0", "Stable", "1 file", "Linux", "The first one", "becomes public"):
            await expect(visible_step).to_contain_text(expected_text)
        await assert_accessible(page, axe)
        await visible_step.locator("button:text-is('Publish')").click()
        await page.wait_for_selector(".page-head >> text=Published")

        await page.goto(f"/products/{slug}")
        await page.wait_for_selector(".get >> text=Download for Linux")


@pytest.mark.full
async def test_missing_values_of_a_form_are_named_at_its_fields(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, expected=("status of 4",)) as page:
        await sign_in(page, PUBLISHER, "/publisher/new")
        await page.wait_for_selector("legend:has-text('(required)')")
        await page.click("text=Create draft")
        await expect(page.locator(".summary li")).to_have_text(
            ["Enter Title", "Enter URL name", "Select at least one platform"]
        )
        await expect(page.locator("#title-fault")).to_have_text("Enter Title")
        await expect(page.locator("#platforms-fault")).to_have_text("Select at least one platform")
        await assert_accessible(page, axe)
        await page.fill("#title", "Too Long")
        await page.check("text=Linux")
        await page.fill("#license", "x" * 10_000)
        await page.click("text=Create draft")
        await expect(page.locator("#license-fault")).to_have_text("At most 200 characters")
        await expect(page.locator(".summary")).not_to_contain_text("expected")


async def test_a_field_that_the_api_refuses_is_explained_in_german(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, locale="de-DE", expected=("status of 4",)) as page:
        await sign_in(page, PUBLISHER, "/publisher/new")
        await page.fill("#title", "Zu lang")
        await page.check("text=Linux")
        await page.fill("#license", "x" * 10_000)
        await page.click("main form button[type=submit]")
        await expect(page.locator("#license-fault")).to_have_text("Höchstens 200 Zeichen")


@pytest.mark.full
async def test_an_interrupted_upload_continues_at_its_position(browser: Browser, demo_store: Running) -> None:
    content = secrets.token_bytes(LARGE)
    sent_ranges: list[str] = []

    async def cut_upload(route: Route) -> None:
        if route.request.method != "PUT":
            await route.continue_()
            return
        sent_ranges.append(route.request.headers["content-range"])
        if len(sent_ranges) == 2:
            await route.abort()
        else:
            await route.continue_()

    async with open_watched_page(browser, demo_store.url, expected=("ERR_FAILED", "status of 4")) as page:
        await draft(page, demo_store, "Cut Short")
        await page.route("**/uploads/*", cut_upload)
        await choose(page, "large.bin", content)
        await page.wait_for_selector("tr:has-text('large.bin')", timeout=60_000)

    part_size = 4 << 20
    starts = [int(header.split()[1].split("-")[0]) for header in sent_ranges]
    assert starts == [0, part_size, part_size, 2 * part_size]


@pytest.mark.full
async def test_an_upload_continues_after_a_reload(browser: Browser, demo_store: Running, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    await asyncio.to_thread(file.write_bytes, secrets.token_bytes(LARGE))
    starts: list[int] = []
    is_cut = True

    async def cut_upload(route: Route) -> None:
        if route.request.method != "PUT":
            await route.continue_()
            return
        starts.append(int(route.request.headers["content-range"].split()[1].split("-")[0]))
        if is_cut and starts[-1]:
            await route.abort()
        else:
            await route.continue_()

    async with open_watched_page(browser, demo_store.url, expected=("ERR_FAILED", "status of 4")) as page:
        await draft(page, demo_store, "Loaded Anew")
        await page.route("**/uploads/*", cut_upload)
        async with page.expect_event("requestfailed"):
            await page.set_input_files("input[type=file]", file)
        await page.reload()
        is_cut = False
        await page.wait_for_selector(".drop")
        await page.set_input_files("input[type=file]", file)
        await page.wait_for_selector("tr:has-text('large.bin')", timeout=60_000)

    assert starts.count(0) == 1


@pytest.mark.full
async def test_a_file_can_be_dropped_too(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await draft(page, demo_store, "Dropped")
        transfer = await page.evaluate_handle(
            "() => { const it = new DataTransfer(); it.items.add(new File(['hello'], 'drop.txt')); return it; }"
        )
        await page.wait_for_selector(".drop")
        await page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})

        await page.wait_for_selector("tr:has-text('drop.txt')")


@pytest.mark.full
async def test_a_release_is_promoted_and_yanked_with_a_reason(browser: Browser, demo_store: Running, axe: str) -> None:
    async with open_watched_page(browser, demo_store.url, width=360, scheme="dark") as page:
        slug = await draft(page, demo_store, "Taken Back")
        await choose(page, "taken.zip", archive())
        await page.wait_for_selector("tr:has-text('taken.zip') >> text=Uploaded", timeout=60_000)
        await page.click(".steps button:has-text('Review')")
        await page.click("button:text-is('Publish'):enabled", timeout=60_000)
        await page.click("button:text('Promote')")
        await page.wait_for_selector("dialog[open]")
        await assert_accessible(page, axe)
        await page.select_option("#channel", "stable")
        await page.click("dialog >> button.strong")
        await page.wait_for_selector(".page-head >> text=stable")
        await page.click("button:text('Withdraw')")
        await expect(page.locator("dialog >> button.risky")).to_be_disabled()
        await page.fill("#reason", "It deletes <b>saves</b>")
        await page.click("dialog >> button.risky")
        await page.wait_for_selector("text=It deletes <b>saves</b>")

    releases = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}/releases")
    assert [(release["channel"], release["yank_reason"]) for release in releases] == [
        ("stable", "It deletes <b>saves</b>")
    ]


@pytest.mark.full
async def test_conflicting_changes_of_a_product_are_both_shown(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, expected=("status of 412",)) as page:
        slug = await draft(page, demo_store, "Two Hands")
        await page.goto(f"/publisher/products/{slug}?tab=details")
        await page.fill("#title", "Mine")
        their_product = {"slug": slug, "title": "Theirs", "kind": "game", "platforms": ["linux"], "access": "free"}
        await asyncio.to_thread(call, demo_store, "PUT", f"/products/{slug}", their_product)
        await page.click("button:text('Save')")
        await page.wait_for_selector("text=Someone else changed this")
        await expect(page.locator("tr:has-text('Mine') >> td")).to_have_text(["Mine", "Theirs"])
        await assert_accessible(page, axe)
        assert (await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}"))["title"] == "Theirs"

        await page.click("text=Keep my version")
        await page.wait_for_selector("h1:text('Mine')")
    assert (await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}"))["title"] == "Mine"


@pytest.mark.full
async def test_codes_are_issued_kept_as_a_file_and_revoked(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, expected=("status of 4",)) as page:
        await sign_in(page, PUBLISHER, "/publisher?tab=codes")
        await page.click("summary")
        await page.fill("#products", "gantry, no-such-product")
        await page.click("button:text('Issue codes')")
        await expect(page.locator("#products-fault")).to_have_text(
            "Your organisation has no product with one of these URL names"
        )
        await page.fill("#products", "")
        await page.check(".product-picker label:has-text('Gantry')")
        await expect(page.locator("#products")).to_have_value("gantry")
        await page.fill("#count", "7")
        await page.click("button:text('Issue codes')")
        await page.wait_for_selector("h3:text('7 codes')")
        async with page.expect_download() as started_download:
            await page.click("text=Download as CSV")
        lines = (await asyncio.to_thread(Path(await (await started_download.value).path()).read_text)).split()
        assert lines[0] == "code"
        assert len(lines) == 8
        batch = page.locator("tr:has-text('0 of 7')")
        await expect(batch.locator("a")).to_have_text("Gantry")
        await batch.locator("button").click()
        await page.click("dialog >> button.risky")

        await expect(batch).to_contain_text("Revoked")


@pytest.mark.full
async def test_the_team_gets_a_program_whose_secret_is_shown_once(browser: Browser, demo_store: Running) -> None:
    name = f"Builder {secrets.token_hex(3)}"
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/publisher?tab=team")
        await page.fill("#email", PLAYER)
        await page.click("button:text('Add a member')")
        await expect(page.locator(f"tr:has-text('{PLAYER}')")).to_contain_text("Viewer")
        await page.click(f"tr:has-text('{PLAYER}') >> button")
        await page.wait_for_selector(f"dialog >> text=Remove {PLAYER}?")
        await page.click("dialog >> button:text('Cancel')")
        await expect(page.locator(f"tr:has-text('{PLAYER}')")).to_have_count(1)
        await page.click(f"tr:has-text('{PLAYER}') >> button")
        await page.click("dialog >> button.risky")
        await expect(page.locator(f"tr:has-text('{PLAYER}')")).to_have_count(0)
        await page.fill("#name", name)
        await page.click("button:text('New API client')")
        await page.wait_for_selector("text=Copy it now")
        await page.reload()
        await page.wait_for_selector(f"tr:has-text('{name}')")
        await expect(page.locator("text=Copy it now")).to_have_count(0)
        await page.click(f"tr:has-text('{name}') >> button")

        await expect(page.locator(f"tr:has-text('{name}')")).to_have_count(0)


@pytest.mark.full
async def test_a_person_without_an_organisation_is_informed_on_the_publisher_page(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, "/publisher")

        await page.wait_for_selector("text=You’re not a publisher yet")
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_release_is_rolled_back_to_the_previous_release(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        slug = await draft(page, demo_store, "Rolled Back", notes_only=True)
        releases = f"/products/{slug}/releases"
        await asyncio.to_thread(call, demo_store, "POST", f"{releases}/1.0.0/publish", {})
        await asyncio.to_thread(
            call, demo_store, "POST", releases, {"version": "1.1.0", "channel": "beta", "notes_only": True}
        )
        await asyncio.to_thread(call, demo_store, "POST", f"{releases}/1.1.0/publish", {})
        await page.reload()
        await page.wait_for_selector("button:text('Promote')")
        await expect(page.locator("button:text('Roll back')")).to_have_count(0)

        await page.goto(f"/publisher/products/{slug}")
        await page.click("tr:has-text('1.1.0') >> a:text('Roll back to 1.0.0')")
        await page.focus("button:text('Roll back to 1.0.0')")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog[open] h2")).to_have_text("Roll back")
        await page.wait_for_selector("dialog >> text=This withdraws 1.1.0")
        await page.wait_for_selector("dialog >> text=Customers on beta get 1.0.0 instead.")
        await expect(page.locator("dialog[open] button.risky")).to_have_text("Roll back to 1.0.0")
        await assert_accessible(page, axe)
        await page.focus("dialog >> button.risky")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=Withdrawn: Rolled back to 1.0.0")

    product = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}")
    assert [(channel["channel"], channel["version"]) for channel in product["channels"]] == [("beta", "1.0.0")]


@pytest.mark.full
async def test_usage_shows_which_versions_are_downloaded(browser: Browser, demo_store: Running, axe: str) -> None:
    slug = await asyncio.to_thread(create_product_with_file, demo_store)
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(f"/products/{slug}")
        async with page.expect_download():
            await page.click(".get a.strong")
        await sign_in(page, PUBLISHER, "/publisher?tab=usage")

        versions = page.locator("table:has-text('Most downloaded versions')")
        await expect(versions.locator(f"tr:has-text('{slug} 1.0.0')")).to_contain_text("Linux")
        await assert_accessible(page, axe)
        await picture(page, "usage-1440-light")


@pytest.mark.full
async def test_an_upload_shows_its_remaining_time_and_is_paused_by_keyboard(
    browser: Browser, demo_store: Running
) -> None:
    sent_ranges: list[str] = []
    request_held = asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == "PUT":
            sent_ranges.append(route.request.headers["content-range"])
        if len(sent_ranges) == 3 and not request_held.is_set():
            # The third part stays in transit until the upload is paused.
            request_held.set()
            return
        await route.continue_()

    async with open_watched_page(browser, demo_store.url) as page:
        await draft(page, demo_store, "In A Hurry")
        await page.route("**/uploads/*", hold)
        await choose(page, "large.bin", secrets.token_bytes(LARGE))
        await expect(page.locator("label:has(progress)")).to_contain_text("/s, ")
        await expect(page.locator("label:has(progress)")).to_contain_text(" left")
        # An upload's line is as wide as the text above it.
        await until_equal(page, WIDTHS, [])
        await request_held.wait()
        await page.focus("button:text('Pause')")
        await page.keyboard.press("Enter")
        await page.click("button:text('Resume')")
        await page.wait_for_selector("tr:has-text('large.bin')", timeout=60_000)

    assert len(sent_ranges) == 4
    assert sent_ranges[2] == sent_ranges[3]


@pytest.mark.full
async def test_members_who_are_not_owners_see_publisher_pages_without_owner_functions(
    browser: Browser, demo_store: Running
) -> None:
    member = {"email": PLAYER, "role": "publisher"}
    await asyncio.to_thread(call, demo_store, "POST", "/org/members", member)
    try:
        async with open_watched_page(browser, demo_store.url) as page:
            await sign_in(page, PLAYER, "/publisher")
            await page.wait_for_selector(".side-org >> text=Publisher")

            await expect(page.locator(".side-nav a > .cut")).to_have_text(["Products", "Public profile"])
    finally:
        await asyncio.to_thread(call, demo_store, "DELETE", f"/org/members?email={PLAYER}")


@pytest.mark.full
async def test_actions_can_be_copied_as_requests(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, permissions=["clipboard-read", "clipboard-write"]) as page:
        slug = await draft(page, demo_store, "Copied", notes_only=True)

        async def copied(command_name: str) -> str:
            await page.focus(f"button[aria-label^='Copy as curl: {command_name}']")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(f"button[aria-label^='Copy as curl: {command_name}'] >> text=Copied")
            return await evaluate(page, "navigator.clipboard.readText()")

        line = await copied("POST")
        assert line.startswith(f"curl -X POST '{demo_store.url}/api/v1/products/{slug}/releases/1.0.0/publish'")
        # The user's shell inserts the token, because the page does not know it.
        assert '"Authorization: Bearer $TOKEN"' in line
        token = await asyncio.to_thread(demo_store.token, PUBLISHER)
        await asyncio.to_thread(
            subprocess.run, ["/bin/sh", "-c", line.replace("curl", "curl -sf", 1)], env={"TOKEN": token}, check=True
        )
        await page.goto("/?kind=tool&access=free")
        await page.wait_for_selector(".card")
        assert "Authorization" not in await copied("GET")
        await page.goto("/publisher?tab=team")
        await page.fill("#email", "o'hara@example.com")
        line = await copied("POST /api/v1/org/members")
        assert """-d '{"email":"o'\\''hara@example.com","role":"viewer"}'""" in line
    product = await asyncio.to_thread(call, demo_store, "GET", f"/products/{slug}")
    assert product["status"] == "public"
