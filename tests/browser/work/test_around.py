"""The pages around the records: the palette, the board, the figures."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, expect

from tests.browser.rules import evaluate, settle
from tests.browser.waiting import box, eventually, press, until_equal
from tests.browser.work.conftest import ApiCaller, Desk


async def test_the_palette_goes_to_a_record_by_keyboard(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    alice.run("lead.create", title="Needle in the hay")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        await press(page, "Control+k")
        await page.wait_for_selector("#palette:focus")
        await page.keyboard.type("needle in")
        await page.wait_for_selector("[role=option][aria-selected=true]:has-text('Needle')")
        await page.keyboard.press("Enter")

        await page.wait_for_selector("h1:text-is('Needle in the hay')")


SHIFTS = """new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(each => { sum += each.hadRecentInput ? 0 : each.value }))
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})"""
"""The cumulative layout shift of the page."""


@pytest.mark.parametrize("path", ["/", "/models/lead"])
async def test_the_page_does_not_shift_while_the_person_is_loaded(browser: Browser, desk: Desk, path: str) -> None:
    async with desk.page(browser) as page:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await desk.sign_in(page, "alice")
        await page.goto(path)
        await page.wait_for_selector(".side-link")
        await page.wait_for_load_state("networkidle")

        assert await evaluate(page, SHIFTS) < 0.02


async def test_a_card_is_moved_without_dragging(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    ticket = alice.run("ticket.create", subject="Moved by its menu")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/ticket/board")
        open_filter = [{"field": "state", "op": "eq", "value": "open"}]
        total = int(alice.run("ticket.search", filter=open_filter, limit=1)["total"])
        await expect(page.locator("#lane-open .lane-count")).to_have_text(str(total))
        card = page.locator(".lane:has(#lane-new) .board-card").first
        # The key of a card opens its menu.
        await card.locator("a").first.focus()
        await page.keyboard.press("m")
        await page.press(".board-card [role=menuitem]:has-text('Open')", "Enter")
        await page.wait_for_selector(".toast:has-text('Moved to')")

        await expect(page.locator("#lane-open .lane-count")).to_have_text(str(total + 1))
        assert ticket["state"] == "new"


async def test_figures_are_also_a_table_and_link_to_their_records(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=party")
        figure = page.locator(".figure:has(h2:text-is('Parties by Kind'))")
        await figure.get_by_text("Table", exact=True).click()
        await expect(figure.locator("tbody tr")).to_have_count(2)
        await figure.get_by_text("Table", exact=True).click()
        count = await figure.locator(".bar-count").first.inner_text()
        await figure.locator(".bar-count").first.click()

        await expect(page.locator(".count")).to_have_text(f"{count} records")


@pytest.mark.full
async def test_figures_are_split_by_a_second_field_and_link_to_their_records(browser: Browser, desk: Desk) -> None:
    root = desk.caller("root")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/dashboard?board=crm")
        figure = page.locator(".figure:has(h2:has-text('Leads by'))")
        await page.select_option("#across-lead", label="Source")
        table = figure.locator("table")
        await expect(table.locator("caption")).to_have_text("Leads by Stage, split by Source")
        total = root.run("lead.search", limit=1)["total"]

        async def adds_up() -> list[str]:
            sums = await table.locator("tbody td:last-child").all_inner_texts()
            assert sum(int(sum_.replace(",", "")) for sum_ in sums) == total
            return await table.locator("thead th").all_inner_texts()

        heads = await eventually(adds_up)
        column = heads.index("web")
        row = table.locator("tbody tr:has(th .chip:text-is('New'))")
        figure_link = row.locator(f":nth-child({column + 1}) a")
        count = await figure_link.inner_text()
        await figure_link.press("Enter")

        await expect(page.locator(".count")).to_have_text(f"{count} records")
        await expect(page.locator(".filter-token")).to_have_count(2)


@pytest.mark.full
async def test_a_printed_page_has_records_and_no_buttons(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead = alice.run("lead.list", limit=1)[0]
    async with desk.page(browser, scheme="dark") as page:
        for path in ("/models/lead", f"/models/lead/records/{lead['id']}", "/dashboard", "/approvals", "/agents"):
            await page.emulate_media(media="screen")
            await desk.sign_in(page, "alice", path)
            await page.wait_for_selector(".loading", state="detached")
            await page.emulate_media(media="print")
            await expect(page.locator("button:visible, nav:visible >> a, footer:visible")).to_have_count(0)
            await expect(page.locator("h1")).not_to_have_text("")
        await page.goto("/models/lead")
        await page.wait_for_selector("#cell-9-0 a", state="attached")

        async def are_below_each_other() -> None:
            tops = [(await box(page.locator(f"#cell-{row}-0")))["y"] for row in range(10)]
            assert tops == sorted(set(tops))

        await eventually(are_below_each_other)
        second_row = "document.querySelector('.grid-body .grid-row:nth-child(2)')"
        await until_equal(page, f"getComputedStyle({second_row}).backgroundColor", "rgb(255, 255, 255)")


@pytest.mark.full
async def test_without_single_key_shortcuts_the_grid_keeps_its_keys(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.wait_for_selector("#cell-0-0 a")
        await press(page, "?")
        sheet = page.locator("dialog[open]")
        await expect(sheet).to_contain_text("Filter the list")
        await expect(sheet).to_contain_text("New record")
        await page.locator("dialog[open] input[type=checkbox]").press("Space")
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        await press(page, "c", "f", "?")
        # What the keys do otherwise is shown then.
        await settle(page)
        assert urlsplit(page.url).path == "/models/lead"
        await expect(page.locator("dialog[open], [name=filter-field]")).to_have_count(0)
        await page.focus("[role=grid]")
        await page.keyboard.press("ArrowDown")

        await expect(page.locator("[role=grid]")).to_have_attribute("aria-activedescendant", "cell-1-0")


async def test_a_missing_page_fits_on_a_phone_and_links_to_the_start_page(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", "/models/none")
        await expect(page.locator("h1")).to_have_text("Page not found")
        text = await box(page.locator("main .state p"))
        await page.click("main a:text-is('Go to the start page')")
        await page.wait_for_selector("h1:not(:text-is('Page not found'))")

    assert text["x"] >= 12
    assert text["x"] + text["width"] <= 390 - 12
