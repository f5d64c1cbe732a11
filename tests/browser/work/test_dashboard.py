"""Dashboards: figures over time that lead to their records, for a period and an owner."""

from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Desk


async def test_a_chart_is_read_by_keyboard_shown_as_a_table_and_leads_to_its_records(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=crm&period=year")
        await expect(page.locator(".kpi")).to_have_count(4)
        over_time = page.locator(".widget:has(h2:text-is('Expected revenue per month'))")
        chart = over_time.locator("svg[role=img]")
        await chart.focus()
        await chart.press("End")
        await expect(over_time.locator("[role=status]")).to_contain_text("Expected revenue:")
        parts = page.locator(".widget:has(h2:text-is('Leads to close by source'))")
        assert await parts.locator("svg .bar").count() > 3
        await over_time.get_by_text("Table").click()
        await expect(over_time.locator("tbody tr")).to_have_count(12)
        await over_time.get_by_text("Table").click()
        await chart.focus()
        await chart.press("End")
        await chart.press("Enter")

        await page.wait_for_selector("h1:text-is('Leads')")
        assert await page.locator(".filter-token").count() == 2


async def test_a_dashboard_is_narrowed_to_an_owner_and_its_address_says_so(browser: Browser, desk: Desk) -> None:
    bob = next(each["id"] for each in desk.caller("alice").run("user.list") if each["username"] == "bob")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/dashboard?board=crm")
        new = page.locator(".states li:has-text('New') a")
        everybody = int(await new.inner_text())
        await page.select_option("[aria-label='Owner']", bob)
        await expect(new).not_to_have_text(str(everybody))
        assert f"owner={bob}" in page.url
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
        await parts.locator("svg .bar").first.wait_for()
        fills = "bars => bars.map(each => getComputedStyle(each).fill)"
        assert len(set(await parts.locator("svg .bar").evaluate_all(fills))) > 3
