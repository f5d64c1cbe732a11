"""The account page: a person's own settings of this browser, and the sessions that the person can end."""

from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Desk


async def test_a_person_sets_theme_and_density_for_this_browser(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        await page.click(".side-person button")
        await page.click("[role=menuitem]:has-text('Account')")
        await page.wait_for_selector("h1:text-is('Account')")
        await page.select_option("#account-theme", "dark")
        await page.select_option("#account-density", "relaxed")

        await page.reload()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(page.locator("#account-theme")).to_have_value("dark")
        await page.goto("/models/lead")
        await expect(page.locator(".grid.relaxed")).to_have_count(1)
        # A list that says its own density keeps it.
        await page.goto("/models/lead?density=compact")
        await page.wait_for_selector(".grid .cell")
        await expect(page.locator(".grid.relaxed")).to_have_count(0)


async def test_a_person_changes_the_language_of_the_pages(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/account")
        await page.select_option("#account-language", "de")

        await page.wait_for_selector("h1:text-is('Konto')")
        await expect(page.locator("html")).to_have_attribute("lang", "de")


async def test_a_person_ends_another_session_and_stays_signed_in(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob")
        other_session = desk.caller("bob")
        session = other_session.run("session.list", order=[{"field": "started_at", "dir": "desc"}], limit=1)[0]
        await page.goto("/account")
        start_time = page.locator(f"time[datetime='{session['started_at']}']")
        await page.locator(".account-rows li", has=start_time).locator("button").click()
        await page.wait_for_selector(".toast:has-text('Session ended')")
        await expect(start_time).to_have_count(0)

        assert other_session.post("session/list", {}).status_code == 401
        await page.reload()
        await page.wait_for_selector("h1:text-is('Account')")
