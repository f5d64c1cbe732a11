"""Dashboards: figures over time that lead to their records, for a period and an owner."""

import re

from playwright.async_api import Browser, expect

from countersign.kernel import clock
from tests.browser.waiting import eventually
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk

THIRD_ROW_IS_LAST = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  return box(".of-list").bottom < innerHeight && box(".of-pivot").top >= innerHeight;
}"""
"""A JavaScript condition: the third row of tiles is in the window, and the fourth is not."""


async def test_a_chart_is_read_by_keyboard_shown_as_a_table_and_leads_to_its_records(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=crm&period=year")
        await expect(page.locator(".kpi")).to_have_count(4)
        over_time = page.locator(".widget:has(h2:text-is('Revenue won per month'))")
        chart = over_time.locator("svg[role=img]")
        await chart.focus()
        await chart.press("End")
        await expect(over_time.locator("[role=status]")).to_contain_text("Revenue won:")
        parts = page.locator(".widget:has(h2:text-is('Leads to close by source'))")
        # There are more than three.
        await expect(parts.locator("svg .bar").nth(3)).to_be_attached()
        await over_time.get_by_text("Table", exact=True).click()
        await expect(over_time.locator("tbody tr")).to_have_count(12)
        await over_time.get_by_text("Table", exact=True).click()
        await chart.focus()
        await chart.press("End")
        await chart.press("Enter")

        await page.wait_for_selector("h1:text-is('Leads')")
        # The first day, the last day, and the stage that the measure counts.
        await expect(page.locator(".filter-token")).to_have_count(3)
        await expect(page.locator(".filter-token:has-text('Stage')")).to_contain_text("Won")


def count_of(alice: ApiCaller, stages: list[str], first_day: str, last_day: str) -> int:
    """Return the number of leads in these stages that close in the period."""
    conditions = [("stage", "in", stages), ("expected_close", "gte", first_day), ("expected_close", "lte", last_day)]
    filters = [{"field": field, "op": operator, "value": value} for field, operator, value in conditions]
    return int(alice.run("lead.search", filter=filters, limit=1)["total"])


async def test_the_win_rate_and_the_open_pipeline_match_the_leads(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    first_day, last_day = [clock.rfc3339(clock.later(clock.now(), seconds=days * 86_400))[:10] for days in (0, 120)]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/dashboard?board=crm&period=custom&from={first_day}&to={last_day}")
        rate = page.locator(".kpi[aria-label='Win rate'] .kpi-value")
        won, lost_count = [count_of(alice, [stage], first_day, last_day) for stage in ("won", "lost")]
        assert min(won, lost_count) > 0

        async def is_of_the_leads() -> None:
            percentages = re.findall(r"^\d+(?=%)", await rate.inner_text())
            assert len(percentages) == 1
            assert abs(int(percentages[0]) - 100 * won / (won + lost_count)) <= 0.5

        await eventually(is_of_the_leads)
        await expect(page.locator(".kpi[aria-label='Open pipeline'] .kpi-value")).to_contain_text("until")
        # The bar of each stage has its number and its amount.
        amount = page.locator(".states li:has-text('Qualified') .number").last
        await expect(amount).to_contain_text(re.compile(r"\d(\.\d+)?M$"))


async def test_every_tile_of_a_dashboard_counts_something_different(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=crm")
        pivot = page.locator(".of-pivot:has(h2:text-is('Leads by Owner'))")
        await expect(pivot.locator("th:text-is('Qualified')")).to_have_count(1)
        await page.wait_for_selector(".dashboard :is(.loading, .skeleton, [aria-busy=true])", state="detached")
        titles = [inner_text.lower() for inner_text in await page.locator(".dashboard h2").all_inner_texts()]
        assert len(titles) == len(set(titles))


async def test_a_dashboard_filtered_by_owner_has_the_filter_in_its_address(browser: Browser, desk: Desk) -> None:
    bob = next(user["id"] for user in desk.caller("alice").run("user.list") if user["username"] == "bob")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=crm")
        new = page.locator(".states li:has-text('New') a")
        await expect(new).to_have_text(re.compile(r"^\d+$"))
        everybody = int(await new.inner_text())
        await page.select_option("[aria-label='Owner']", bob)
        await expect(new).not_to_have_text(str(everybody))
        await expect(page).to_have_url(re.compile(f"owner={bob}"))
        await page.select_option("[aria-label='Period']", "custom")
        await page.fill("[aria-label='From']", "2026-01-01")
        await page.press("[aria-label='From']", "Tab")

        await page.reload()
        await expect(page.locator("[aria-label='From']")).to_have_value("2026-01-01")
        await expect(new).not_to_have_text(str(everybody))


async def test_the_parts_of_bars_differ_in_forced_colours_too(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await page.emulate_media(forced_colors="active")
        await desk.sign_in(page, "alice", "/dashboard?board=crm&period=year")
        parts = page.locator(".widget:has(h2:text-is('Leads to close by source'))")
        fills = "bars => bars.map(each => getComputedStyle(each).fill)"

        async def differ() -> None:
            assert len(set(await parts.locator("svg .bar").evaluate_all(fills))) > 3

        await eventually(differ)


async def test_the_head_of_a_dashboard_is_one_row_on_a_phone_and_the_other_choices_open_from_it(
    browser: Browser, desk: Desk, axe: str
) -> None:
    bob = next(user["id"] for user in desk.caller("alice").run("user.list") if user["username"] == "bob")
    async with desk.page(browser) as page:
        await page.set_viewport_size({"width": 390, "height": 844})
        await desk.sign_in(page, "alice", "/dashboard?board=crm")
        new = page.locator(".states li:has-text('New') a")
        everybody = await new.inner_text()
        head = await page.locator(".page-head").bounding_box()
        menu = await page.locator(".sheet-button").bounding_box()
        assert head
        assert menu
        assert head["height"] < 2 * menu["height"]
        await page.click("#board-more")
        await page.wait_for_selector(".popover-panel [aria-label='Owner']")
        await assert_accessible(page, axe)
        await page.locator(".popover-panel").wait_for(state="detached")
        await page.click("#board-more")
        # The box closes when the keyboard leaves it, so that it covers nothing that has the focus.
        await page.focus(".states a")
        await expect(page.locator(".popover-panel")).to_have_count(0)
        await page.click("#board-more")
        await page.select_option("[aria-label='Owner']", bob)
        await expect(new).not_to_have_text(everybody)
        await page.keyboard.press("Escape")
        await expect(page.locator("#board-more")).to_be_focused()

        await page.select_option(".of-board select", label="Help desk")
        await expect(page.locator(".dashboard h2").first).to_contain_text("Tickets")
        assert f"owner={bob}" in page.url


async def test_three_rows_of_tiles_are_visible_without_scrolling(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await desk.sign_in(page, "alice", "/dashboard?board=crm")
        await page.locator(".of-bars svg .bar").first.wait_for()
        await page.locator(".of-list tbody tr").first.wait_for()

        # The next row begins below the window, so that none of its tiles is cut.
        await page.wait_for_function(THIRD_ROW_IS_LAST)
