"""The audit: filtered, linked permanently, verified and exported."""

import csv
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.waiting import clipboard_text, eventually
from tests.browser.work.conftest import ApiCaller, Desk
from tests.servers.countersign import served


async def test_an_entry_is_found_by_keyboard_and_has_a_permanent_address(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Watched closely")
    alice.run("lead.update", id=lead["id"], title="Changed since")
    async with desk.page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        await desk.sign_in(page, "root", "/")
        await page.click("nav >> text=Audit log")
        await page.wait_for_selector("h1:focus")
        await page.locator("summary:text-is('More filters')").press("Enter")
        await page.focus("#record")
        await page.keyboard.type(lead["id"])
        await page.keyboard.press("Enter")
        await expect(page.locator("tbody tr")).to_have_count(2)
        await expect(page).to_have_url(re.compile(f"record={lead['id']}"))
        await page.focus("#command")
        await page.keyboard.type("lead.update")
        await page.keyboard.press("Enter")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await page.locator("tbody [aria-expanded]").press("Enter")
        await expect(page.locator(".entry-detail .before")).to_contain_text("Watched closely")
        await page.locator("tbody th a").press("Enter")
        await page.wait_for_selector("h1:text-is('lead.update')")
        await expect(page.locator(".changes .before").first).to_contain_text("Watched closely")
        await expect(page.locator(".changes .after").first).to_contain_text("Changed since")
        await expect(page.locator(".facts").first).to_contain_text("alice")
        await page.click("[aria-label='Copy link: to this entry']")

        async def is_copied() -> str:
            link = await clipboard_text(page)
            assert link == page.url
            return link

        link = await eventually(is_copied)
        await page.goto("/")
        await page.goto(link)

        await page.wait_for_selector("h1:text-is('lead.update')")
        await page.click("text=Open record")
        await page.wait_for_selector("h1:text-is('Changed since')")


@pytest.mark.full
async def test_the_chain_is_checked_and_changes_made_outside_the_service_are_shown(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    with served(tmp_path / "data", "--demo", service="both") as running:
        own_desk = Desk(running)
        own_desk.caller("alice").run("lead.create", title="Hidden tracks")
        async with own_desk.page(browser) as page:
            await own_desk.sign_in(page, "root", "/audit")
            await page.locator("text=Verify now").press("Enter")
            await page.wait_for_selector("[role=status]:has-text('The log is intact.')")
            with closing(sqlite3.connect(tmp_path / "data/records.sqlite", timeout=60)) as database, database:
                find_entry = "SELECT id FROM audit_entry WHERE command = 'lead.create' ORDER BY at DESC LIMIT 1"
                (entry,) = database.execute(find_entry).fetchone()
                database.execute("UPDATE audit_entry SET user_id = 'nobody' WHERE id = ?", (entry,))
            await page.locator("text=Verify now").press("Enter")
            await page.wait_for_selector("[role=alert]:has-text('tampered with')")

            await page.click(f"a:text-is('{entry}')")
            await page.wait_for_selector("h1:text-is('lead.create')")


@pytest.mark.full
async def test_the_filtered_entries_are_exported_and_paging_continues(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="=1+1")["id"]
    for number in range(60):
        alice.run("lead.update", id=lead, title=f"=1+{number}")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/audit?record={lead}")
        await expect(page.locator("tbody tr")).to_have_count(50)
        async with page.expect_download() as download:
            await page.click("text=Export results")
        text = (await (await download.value).path()).read_text()
        rows = list(csv.DictReader(text.splitlines()))
        await page.click("text=Older")
        await expect(page.locator("tbody tr")).to_have_count(11)

        assert len(rows) == 61
        assert {row["record_id"] for row in rows} == {lead}
        assert '"=1+59"' in rows[0]["changes"]
        await page.fill("#since", "2099-01-01")
        await page.press("#since", "Enter")
        await page.wait_for_selector("h2:text-is('No entries')")


@pytest.mark.full
async def test_people_without_the_right_to_read_the_audit_find_no_audit_page(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/audit")
        await page.wait_for_selector("h1:text-is('Page not found')")

        await expect(page.locator("nav >> text=Approvals").first).to_be_attached()
        await expect(page.locator("nav >> text=Audit log")).to_have_count(0)
