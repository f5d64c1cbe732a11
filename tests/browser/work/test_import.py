"""Many records from a file: tried first, all or none."""

import pytest
from playwright.async_api import Browser, FilePayload, expect

from tests.browser.work.conftest import Caller, Desk

GOOD = 'Name of the lead;Revenue;Source\n"Imported; one";"1.234,50";web\nImported two;;fair\n'
BAD = "title,source\nFits,web\n,web\nToo,much\n"


def a_file(text: str) -> FilePayload:
    return {"name": "leads.csv", "mimeType": "text/csv", "buffer": text.encode()}


async def test_rows_that_do_not_fit_are_named_and_nothing_is_written(
    browser: Browser, desk: Desk, alice: Caller
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead/import")
        await page.set_input_files("#file", a_file(BAD))
        await page.click("button:text-is('Trial run')")
        await page.wait_for_selector("[role=alert] table")

        said = await page.inner_text("[role=alert] table")
        assert "lead.title" in said
        assert "lead.source" in said
        assert await page.is_disabled("button:text-is('Import 3 rows')")
        assert not alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": "Fits"}])


@pytest.mark.full
async def test_a_german_file_is_mapped_tried_and_imported(browser: Browser, desk: Desk, alice: Caller) -> None:
    async with desk.page(browser, locale="de-DE") as page:
        await page.goto("/signin")
        await page.fill("#username", "alice")
        await page.fill("#password", "countersign-demo")
        await page.press("#password", "Enter")
        await page.wait_for_selector("h1:text-is('Modelle')")
        await page.goto("/models/lead/import")
        await page.set_input_files("#file", a_file(GOOD))
        await expect(page.locator("#column-2")).to_have_value("source")
        await page.select_option("#column-0", "title")
        await page.select_option("#column-1", "expected_revenue_minor:amount")
        await page.click("button:text-is('Probelauf')")
        await page.wait_for_selector("text=Alle 2 Zeilen passen")
        await page.click("button:text-is('2 Zeilen importieren')")
        await page.wait_for_selector("text=2 Datensätze angelegt")

        made = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": "Imported; one"}])
        assert made[0]["expected_revenue_minor"] == 123450
