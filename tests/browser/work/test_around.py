"""What is around the records: the palette, the board, the figures."""

from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Caller, Desk


async def test_the_palette_goes_to_a_record_by_keyboard(browser: Browser, desk: Desk, alice: Caller) -> None:
    alice.run("lead.create", title="Needle in the hay")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette:focus")
        await page.keyboard.type("needle in")
        await page.wait_for_selector("[role=option][aria-selected=true]:has-text('Needle')")
        await page.keyboard.press("Enter")

        await page.wait_for_selector("h1:text-is('Needle in the hay')")


async def test_a_card_is_moved_without_dragging(browser: Browser, desk: Desk, alice: Caller) -> None:
    ticket = alice.run("ticket.create", subject="Moved by its menu")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/ticket/board")
        total = int((await page.inner_text("#lane-open span")).strip())
        card = page.locator(".lane .board-card select").first
        await card.select_option("open")
        await page.wait_for_selector(".toast:has-text('is now')")

        await expect(page.locator("#lane-open span")).to_have_text(str(total + 1))
        assert ticket["state"] == "new"


async def test_figures_are_there_as_a_table_and_lead_to_their_records(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard")
        figure = page.locator(".figure:has(h2:text-is('Parties by Kind'))")
        await figure.get_by_text("As a table").click()
        await expect(figure.locator("tbody tr")).to_have_count(2)
        await figure.get_by_text("As a table").click()
        count = await figure.locator(".bar-count").first.inner_text()
        await figure.locator(".bar-count").first.click()

        await expect(page.locator(".count")).to_have_text(f"{count} records")
