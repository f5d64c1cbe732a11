"""Many records at a time: selected by keyboard, reviewed before the action, with a result for each."""

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.rules import settle
from tests.browser.waiting import box, eventually, press
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk, filter_parameter

LONG_MS = 120_000
"""How long many commands may take on a busy machine."""


def several(alice: ApiCaller, name: str, count: int) -> list[str]:
    """Create leads with this name."""
    return [alice.run("lead.create", title=f"{name} {number}")["id"] for number in range(count)]


async def choose(page: Page, choice_text: str, menu: str = "") -> None:
    """Choose an action for the selected records by keyboard, in a menu or beside it, and review it."""
    if menu:
        await page.press(f".bulk-bar .menu > button:has-text('{menu}')", "Enter")
    await page.press(f".bulk-bar :is([role=menuitem], .button):has-text('{choice_text}')", "Enter")
    await page.wait_for_selector("dialog[open]")


TICKED = """[["::before", "color"], [null, "backgroundColor"]].map(([part, of]) =>
  getComputedStyle(document.querySelector(".grid-row.picked .pick"), part)[of])
  .concat(getComputedStyle(document.querySelector(".grid-row.picked")).backgroundColor)"""
"""The colours of a tick, of its box, and of its row."""


async def test_rows_selected_by_keyboard_are_changed_separately_and_each_result_is_shown(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    ids = several(alice, f"Bulky {mark}", 4)
    alice.run("lead.qualify", id=ids[3])
    async with desk.page(browser) as page:
        lead_filter = filter_parameter(("title", "contains", f"Bulky {mark}"))
        await desk.sign_in(page, "alice", f"/models/lead?order=title&{lead_filter}")
        await page.wait_for_selector("#cell-3-0 a")
        await expect(page.locator(".count")).to_have_text("4 records")
        await settle(page)
        box_before = await box(page.locator("#cell-1-0"))
        await page.click("#cell-1-0 .pick")
        await page.wait_for_selector(".bulk-bar")

        async def stays_and_is_ticked() -> None:
            assert await box(page.locator("#cell-1-0")) == box_before
            tick, ground, row = await page.evaluate(TICKED)
            assert ground not in (tick, row, "rgba(0, 0, 0, 0)")

        await settle(page)
        await eventually(stays_and_is_ticked)
        await page.click("#cell-1-0 .pick")
        await expect(page.locator(".bulk-bar")).to_have_count(0)
        await page.focus("[role=grid]")
        await press(page, "Control+Home")
        await expect(page.locator("[role=grid]")).to_have_attribute("aria-activedescendant", "cell-0-0")
        await press(page, "Space", "ArrowDown", "ArrowDown", "ArrowDown")
        await expect(page.locator("[role=grid]")).to_have_attribute("aria-activedescendant", "cell-3-0")
        await press(page, "Shift+Space")
        await expect(page.locator(".bulk-bar strong[role=status]")).to_have_text("4 selected")
        await expect(page.locator("[role=row][aria-selected=true]")).to_have_count(4)
        alice.run("lead.update", id=ids[1], source="fair")
        await choose(page, "Qualify", "Stage")
        await expect(page.locator("dialog[open]")).to_contain_text("lead.qualify runs on 4 records")
        await expect(page.locator("dialog[open]")).to_contain_text("3 of 4 can be changed now")
        await page.keyboard.press("Tab")
        await page.click("dialog[open] button:text-is('Apply to 4 records')")
        await expect(page.locator("dialog[open] p[role=status]")).to_have_text(
            "Done: 2. Sent for approval: 0. Refused: 2. Not run: 0.", timeout=LONG_MS
        )

        result_rows = page.locator("dialog[open] tbody tr")
        for number, result in enumerate(("Done", "record has changed", "Done")):
            row = result_rows.filter(has=page.locator(f"th a:text-is('Bulky {mark} {number}')"))
            await expect(row.locator("td")).to_have_text(result)
        row = result_rows.filter(has=page.locator(f"th a:text-is('Bulky {mark} 3')"))
        await expect(row.locator("td")).to_contain_text("qualified")
        stages = [alice.run("lead.get", id=id_)["stage"] for id_ in ids]
        assert stages == ["qualified", "new", "qualified", "qualified"]
        await page.keyboard.press("Escape")
        await expect(page.locator(".bulk-bar strong[role=status]")).to_have_text("2 selected")
        await choose(page, "Qualify", "Stage")
        await page.click("dialog[open] .button.strong")
        await expect(page.locator("dialog[open] p[role=status]")).to_contain_text("Done: 1.")
        assert alice.run("lead.get", id=ids[1])["stage"] == "qualified"


@pytest.mark.full
async def test_all_matching_rows_are_selected_beyond_the_loaded_rows_and_changed_in_the_same_way(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    ids = several(alice, f"Wide net {mark}", 130)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("title", "contains", f"Wide net {mark}")))
        await expect(page.locator(".count")).to_have_text("130 records")
        await page.focus("[role=grid]")
        await press(page, "Control+a")
        await expect(page.locator(".bulk-bar strong[role=status]")).to_have_text("130 selected")
        await choose(page, "Source", "Edit field")
        await page.select_option("#bulk-source", "fair")
        await page.click("dialog[open] .button.strong")
        await expect(page.locator("dialog[open] p[role=status]")).to_contain_text("Done: 130.", timeout=LONG_MS)

        changed_leads = alice.run("lead.list", filter=[{"field": "id", "op": "in", "value": ids}])
        assert {lead["source"] for lead in changed_leads} == {"fair"}
        await page.keyboard.press("Escape")
        await expect(page.locator(".bulk-bar")).to_have_count(0)


@pytest.mark.full
async def test_deletion_of_many_is_stopped_and_a_session_that_ends_leaves_the_rest(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    ids = several(alice, f"Half way {mark}", 6)
    lead_filter = [{"field": "id", "op": "in", "value": ids}]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("title", "contains", f"Half way {mark}")))
        await page.wait_for_selector("#cell-5-0 a")
        for row in (0, 5):
            await page.locator(f"#cell-{row}-0 .pick").click(modifiers=["Shift"] if row else [])
        await choose(page, "Delete")
        requested_urls: list[str] = []

        async def answer_third(route: Route) -> None:
            requested_urls.append(route.request.url)
            if len(requested_urls) == 3:
                await page.context.clear_cookies()
            await route.continue_()

        await page.route("**/api/lead/delete", answer_third)
        await page.click("dialog[open] .risky")

        await expect(page.locator("p[role=status]:has-text('Refused')")).to_have_text(
            "Done: 2. Sent for approval: 0. Refused: 0. Not run: 4.", timeout=LONG_MS
        )
        assert len(alice.run("lead.list", filter=lead_filter)) == 4
        assert len(requested_urls) == 3
        await page.fill("#session-password", "countersign-demo")
        await page.press("#session-password", "Enter")
        await page.wait_for_selector(".ended", state="detached")
        await page.click("dialog[open] >> text=Close")
        await expect(page.locator(".bulk-bar strong[role=status]")).to_have_text("4 selected")


@pytest.mark.full
async def test_actions_that_a_role_may_not_use_are_not_offered_and_dialogs_follow_the_rules(
    browser: Browser, desk: Desk, axe: str
) -> None:
    async with desk.page(browser, width=320) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.wait_for_selector("#cell-0-0 a")
        await page.locator("#cell-0-0 .pick").click()
        await page.wait_for_selector(".bulk-bar")
        await assert_accessible(page, axe)
        await choose(page, "Mark as lost", "Stage")
        await page.click("dialog[open] .button.strong")
        await page.wait_for_selector("dialog[open] [role=alert]:focus >> text=Enter Lost reason")
        await expect(page.locator("#bulk-lost_reason")).to_have_attribute("aria-invalid", "true")
        await assert_accessible(page, axe)
        await page.keyboard.press("Escape")
        await page.press(".bulk-bar .menu > button:has-text('Edit field')", "Enter")
        await expect(page.locator(".bulk-bar [role=menuitem]:text-is('Title')")).to_have_count(1)
        await desk.sign_in(page, "bob", "/models/party")
        await page.wait_for_selector("#cell-0-0 .masked")

        await expect(page.locator(".pick, [aria-selected]")).to_have_count(0)
