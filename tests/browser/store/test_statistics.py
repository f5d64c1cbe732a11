"""A publisher's analytics: dates, products, steps and figures, the markers of releases, and the export."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.rules import settle
from tests.browser.store.people import PUBLISHER, call, sign_in
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running

ORG = "northwind-games"


def days(last_age: int, first_age: int) -> str:
    """Return the query parameters of the period from `first_age` to `last` days ago."""
    today = datetime.now(UTC).date()
    return f"from={today - timedelta(days=first_age)}&to={today - timedelta(days=last_age)}"


async def test_analytics_compare_a_period_with_the_previous_period(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    period, earlier_period = days(10, 39), days(40, 69)
    path = f"/org/stats?org={ORG}&metric=downloads"
    now = await asyncio.to_thread(call, demo_store, "GET", f"{path}&{period}&by=product")
    earlier_figures = await asyncio.to_thread(call, demo_store, "GET", f"{path}&{earlier_period}")
    change = now["total"] / earlier_figures["total"] - 1
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}&{period}")

        tile = page.locator(".kpi:has-text('Downloads')")
        await expect(tile).to_contain_text(f"{now['total']:,}")
        await expect(tile.locator("small")).to_have_attribute(
            "title", f"{earlier_figures['total']:,} in the 30 days before"
        )
        await expect(tile.locator("small")).to_have_class("up" if change >= 0 else "down")
        row = page.locator(f".stats-panel tr:has-text('{now['groups'][0]['label']}') >> nth=0")
        await expect(row).to_contain_text(f"{now['groups'][0]['total']:,}")
        for heading in ("By product", "By release", "By platform", "Codes by batch", "Data served"):
            await expect(page.locator(f"h2:text-is('{heading}')")).to_be_visible()
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_figure_a_step_and_a_product_are_chosen_and_kept_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    period = days(1, 90)
    path = f"/org/stats?org={ORG}&metric=redemptions&product=owl-hour&{period}"
    redeemed = await asyncio.to_thread(call, demo_store, "GET", path)
    async with open_watched_page(browser, demo_store.url, width=390, scheme="dark") as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}&{period}")
        await page.click(".kpi:has-text('Codes redeemed')")
        await page.wait_for_selector("h2:text-is('Codes redeemed per day')")
        await page.focus(".segments button:text-is('Week')")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("h2:text-is('Codes redeemed per week')")
        await page.select_option(".stats-controls select", "owl-hour")
        await expect(page.locator(".kpi:has-text('Codes redeemed')")).to_contain_text(f"{redeemed['total']:,}")
        await page.reload()

        await page.wait_for_selector("h2:text-is('Codes redeemed per week')")
        await expect(page.locator(".stats-controls select")).to_have_value("owl-hour")
        await expect(page.locator(".kpi:has-text('Codes redeemed')")).to_have_attribute("aria-pressed", "true")
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_releases_are_marked_in_the_series_and_lead_to_their_page(browser: Browser, demo_store: Running) -> None:
    period = days(1, 365)
    path = f"/org/stats?org={ORG}&metric=downloads&product=owl-hour&{period}"
    markers = (await asyncio.to_thread(call, demo_store, "GET", path))["markers"]
    assert markers
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}&product=owl-hour&step=day&{period}")
        first_tag = page.locator(".chart-tags a >> nth=0")
        await first_tag.focus()
        await expect(page.locator(".chart-tag-tip")).to_contain_text(f"Owl Hour {markers[-1]['version']}")
        await page.keyboard.press("Enter")

        await page.wait_for_url(f"**/publisher/products/owl-hour/releases/{markers[-1]['version']}")


async def test_chart_marks_name_their_product_or_list_the_releases_at_one_position(
    browser: Browser, demo_store: Running
) -> None:
    period = days(1, 90)
    path = f"/org/stats?org={ORG}&metric=downloads&{period}"
    markers = (await asyncio.to_thread(call, demo_store, "GET", path))["markers"]
    assert len(markers) > 1
    async with open_watched_page(browser, demo_store.url, width=390) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}&step=day&{period}")
        chart_tags = page.locator(".chart-tags > li")
        await chart_tags.first.wait_for()
        # The width of the chart says which marks share a place.
        await settle(page)
        listed_releases: list[str] = []
        for chart_tag in await chart_tags.all():
            several = chart_tag.locator(".menu > button")
            if await several.count():
                name = await several.inner_text()
                await several.focus()
                await page.keyboard.press("Enter")
                await chart_tag.locator("[role=menuitem]:focus").wait_for()
                entries = await chart_tag.locator("[role=menuitem]").all_inner_texts()
                assert name.strip() == f"{len(entries)} releases"
                listed_releases += entries
                await page.keyboard.press("Escape")
                await expect(several).to_be_focused()
            else:
                listed_releases += [(await chart_tag.locator("a > .hidden-text").inner_text()).removeprefix(": ")]

        assert len(listed_releases) == len(markers)
        assert all(not entry[0].isdigit() for entry in listed_releases), "each names its product before the version"


async def test_a_product_without_earlier_downloads_is_new_and_all_products_are_shown_on_request(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    period, earlier_period = days(1, 90), days(91, 180)
    path = f"/org/stats?org={ORG}&metric=downloads&by=product"
    now = (await asyncio.to_thread(call, demo_store, "GET", f"{path}&{period}"))["groups"]
    earlier_groups = (await asyncio.to_thread(call, demo_store, "GET", f"{path}&{earlier_period}"))["groups"]
    downloaded_before = {group["key"] for group in earlier_groups if group["total"]}
    new_products = [group["label"] for group in now[:20] if group["total"] and group["key"] not in downloaded_before]
    assert new_products
    async with open_watched_page(browser, demo_store.url, scheme="dark") as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}&{period}")
        rows = page.locator(".stats-products tbody tr")
        await expect(rows).to_have_count(5)
        await page.focus(".stats-more")
        await page.keyboard.press("Enter")

        await expect(rows).to_have_count(min(len(now), 20))
        row = rows.filter(has=page.get_by_role("link", name=new_products[0], exact=True))
        await expect(row.locator("small")).to_have_text("New")
        await expect(row.locator("small")).to_have_attribute("title", "0 in the 90 days before")
        await assert_accessible(page, axe)


async def test_the_area_of_a_publisher_is_a_menu_at_phone_width(browser: Browser, demo_store: Running) -> None:
    name = (await asyncio.to_thread(call, demo_store, "GET", f"/org?org={ORG}"))["name"]
    async with open_watched_page(browser, demo_store.url, width=390) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}")
        await expect(page.locator(".side-org")).to_contain_text(name)
        await expect(page.locator(".side-nav")).to_be_hidden()
        await page.focus(".side-org .menu > button")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("[role=menuitem]:focus")
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")

        await expect(page.locator("h1")).to_have_text("Signing keys")


@pytest.mark.full
async def test_dates_are_chosen_by_keyboard_and_exported(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PUBLISHER, "/redeem")
        await page.goto(f"/publisher?tab=usage&org={ORG}")
        await page.focus(".stats-controls .menu > button")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("[role=menuitem]:focus")
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await page.fill("dialog #from", "2020-01-02")
        await page.fill("dialog #to", "2020-01-01")
        await page.click("dialog >> button.strong")
        await expect(page.locator("#to-fault")).to_contain_text("Choose a start before the end")
        await page.fill("dialog #from", "2020-01-01")
        await page.fill("dialog #to", "2020-01-03")
        await page.click("dialog >> button.strong")
        await page.wait_for_selector("text=3 days, compared with the 3 before")
        async with page.expect_download() as started_download:
            await page.click(".stats-controls a.button")
        download = await started_download.value
        rows = (await asyncio.to_thread(Path(await download.path()).read_text)).split()

    assert download.suggested_filename == f"{ORG}-downloads-2020-01-01-2020-01-03.csv"
    assert rows == ["at,key,label,downloads", "2020-01-01,,,0", "2020-01-02,,,0", "2020-01-03,,,0"]
