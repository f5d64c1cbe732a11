"""The data map shows administrators what agents see of each field."""

from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Desk


async def test_an_administrator_sees_which_fields_agents_see_as_placeholders(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/data")
        leads = page.locator("details", has=page.locator("summary b:text-is('Leads')"))

        await expect(leads.locator("tr:has(code:text-is('contact_email'))")).to_contain_text("EMAIL_…")
        await expect(leads.locator("tr:has(code:text-is('stage'))")).to_contain_text("In clear")

        await page.click("button:text-is('As placeholders')")
        await expect(leads.locator("code:text-is('contact_email')")).to_be_visible()
        await expect(leads.locator("code:text-is('stage')")).to_have_count(0)

        await page.click("button:text-is('In clear')")
        await page.fill("#find", "lead.st")
        await expect(page.locator("main h2")).to_have_text("No field fits")
        await page.fill("#find", "stage")
        await expect(page.locator("main tbody tr")).to_have_count(1)
        await page.reload()
        await expect(page.locator("main tbody tr")).to_have_count(1)


async def test_people_who_do_not_manage_people_have_no_data_map(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/data")

        await expect(page.locator("main h1")).to_have_text("Page not found")
        await expect(page.locator("a[href='/data']")).to_have_count(0)
