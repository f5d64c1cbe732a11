"""Import of many records from a file: the file is checked first, and then all records are created or none."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, expect

from tests.browser.work.conftest import ApiCaller, Desk, filter_parameter

GOOD = 'Name of the lead;Expected revenue;Source\n"Imported; one";"1.234,50";web\nImported two;;fair\n'
BAD = "title,source\nFits,web\n,web\nToo,much\n"


def a_file(text: str) -> FilePayload:
    return {"name": "leads.csv", "mimeType": "text/csv", "buffer": text.encode()}


async def test_rows_that_do_not_fit_are_named_and_nothing_is_written(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead/import")
        await page.set_input_files("#file", a_file(BAD))
        await page.click("button:text-is('Check file')")
        await page.wait_for_selector("[role=alert] table")

        error_table = page.locator("[role=alert] table")
        await expect(error_table).to_contain_text("Title")
        await expect(error_table).to_contain_text("Source")
        await expect(error_table).not_to_contain_text("lead.")
        await expect(page.locator("button:text-is('Import 3 rows')")).to_be_disabled()
        assert not alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": "Fits"}])


async def test_the_page_says_who_imports_posted_invoices(browser: Browser, desk: Desk) -> None:
    notice = "Only an administrator can import"
    async with desk.page(browser) as page:
        await desk.sign_in(page, "carol", "/models/invoice/import")
        await page.wait_for_selector(f"text={notice}")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/models/invoice/import")
        await page.set_input_files("#file", a_file("party\n"))
        await page.wait_for_selector("text=including posted invoices. Administrators only.")
        await expect(page.locator(f"text={notice}")).to_have_count(0)


@pytest.mark.full
async def test_a_german_file_is_mapped_tried_and_imported(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    async with desk.page(browser, locale="de-DE") as page:
        await page.goto("/signin")
        await page.fill("#username", "alice")
        await page.fill("#password", "countersign-demo")
        await page.press("#password", "Enter")
        await page.wait_for_selector(".side-person:has-text('Angemeldet als')")
        await page.goto("/models/lead/import")
        await page.set_input_files("#file", a_file(GOOD))
        await expect(page.locator("#column-2")).to_have_value("source")
        await page.select_option("#column-0", "title")
        await expect(page.locator("#column-1")).to_have_value("expected_revenue_minor:amount")
        await page.click("button:text-is('Datei prüfen')")
        await page.wait_for_selector("text=Alle 2 Zeilen sind gültig")
        await page.click("button:text-is('2 Zeilen importieren')")
        await page.wait_for_selector("text=2 Datensätze importiert")

        imported_leads = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": "Imported; one"}])
        assert imported_leads[0]["expected_revenue_minor"] == 123450


async def test_an_exported_file_is_imported_again_unchanged(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    created_lead = alice.run(
        "lead.create", title=f"=There; 'and' back {mark}", expected_revenue_minor=123450, source="web"
    )
    condition = ("title", "eq", created_lead["title"])
    exported_columns = ("title", "expected_revenue_minor", "source")
    async with desk.page(browser) as page:
        await desk.sign_in(
            page, "alice", f"/models/lead?{filter_parameter(condition)}&columns={','.join(exported_columns)}"
        )
        await expect(page.locator(".count")).to_have_text("1 record")
        async with page.expect_download() as downloading:
            await page.click(".tool-bar [aria-label='Export']")
            await page.click("text=Export these columns")
        text = Path(await (await downloading.value).path()).read_text()
        await page.goto("/models/lead/import")
        await page.set_input_files("#file", a_file(text))
        await expect(page.locator("#column-1")).to_have_value("expected_revenue_minor:amount")
        await page.click("button:text-is('Check file')")
        await page.wait_for_selector("text=1 row is valid")
        await page.click("button:text-is('Import 1 row')")
        await page.wait_for_selector("text=1 record imported")

        both_leads = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": created_lead["title"]}])
        assert len(both_leads) == 2
        assert [both_leads[0][name] for name in exported_columns] == [both_leads[1][name] for name in exported_columns]


async def test_an_amount_in_another_languages_writing_is_refused_by_its_label(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead/import")
        await page.set_input_files("#file", a_file('title;Expected revenue\nForeign;"12,50"\n'))
        await page.click("button:text-is('Check file')")
        await page.wait_for_selector("td:text-is('Expected revenue must be an amount such as 1234.50')")
        await page.select_option("#decimal", ",")
        await page.click("button:text-is('Check file')")
        await page.wait_for_selector("text=1 row is valid")


@pytest.mark.full
async def test_a_file_of_another_encoding_separator_and_line_end_is_read(browser: Browser, desk: Desk) -> None:
    text = "TITLE\tExpected close\rKöln\t31/12/2026\r"
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead/import")
        for encoding in ("cp1252", "utf-16", "utf-8-sig"):
            file: FilePayload = {"name": "x.tsv", "mimeType": "text/plain", "buffer": text.encode(encoding)}
            await page.set_input_files("#file", file)
            await expect(page.locator("#column-0")).to_have_value("title")
            await expect(page.locator("pre")).to_contain_text("Köln")
            await page.select_option("#dates", "dmy")
            await page.click("button:text-is('Check file')")
            await page.wait_for_selector("text=1 row is valid")


async def test_an_administrator_restores_records_from_a_raw_export(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    created_lead = alice.run("lead.create", title=f"Restored {mark}")
    alice.run("lead.qualify", id=created_lead["id"])
    lead_filter = filter_parameter(("title", "eq", f"Restored {mark}"))
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/models/lead?{lead_filter}")
        await expect(page.locator(".count")).to_have_text("1 record")
        async with page.expect_download() as downloading:
            await page.click(".tool-bar [aria-label='Export']")
            await page.click("text=Export raw data")
        text = Path(await (await downloading.value).path()).read_text()
        root = alice.run("lead.delete", id=created_lead["id"])
        assert root["id"] == created_lead["id"]
        await page.goto("/models/lead/import")
        await page.set_input_files("#file", a_file(text))
        await page.check("#restore")
        await expect(page.locator("#column-0")).to_have_value("id")
        await page.click("button:text-is('Check file')")
        await page.wait_for_selector("text=1 row is valid")
        await page.click("button:text-is('Import 1 row')")
        await page.wait_for_selector("text=1 record imported")

        assert alice.run("lead.get", id=created_lead["id"])["stage"] == "qualified"
