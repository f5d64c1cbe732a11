"""My work: the tasks that wait for a person, the due records that are assigned to them, and the records that they
opened last."""

from datetime import datetime, timedelta

from playwright.async_api import Browser, expect

from tests.browser.waiting import eventually
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk

LAST_IS_UNCOVERED = """() => {
  scrollTo(0, document.documentElement.scrollHeight);
  const last = [...document.querySelectorAll(".home .widget")].at(-1);
  return last.getBoundingClientRect().bottom <= document.querySelector(".head-action").getBoundingClientRect().top;
}"""
"""A JavaScript condition: at the end of the page, its last panel is above the main action."""


async def test_a_person_sees_pending_proposals_due_records_and_recently_opened_records(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    people = {user["username"]: user["id"] for user in alice.run("user.list")}
    tomorrow = (datetime.now().astimezone().date() + timedelta(days=1)).isoformat()
    own_lead = alice.run("lead.create", title="Closes tomorrow", owner=people["alice"], expected_close=tomorrow)
    alice.run("lead.create", title="Somebody else's", owner=people["bob"], expected_close=tomorrow)
    proposal = alice.agent("home-helper", "lead.*").run("lead.delete", id=own_lead["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/")
        decisions = page.locator(".widget:has(h2:text-is('Waiting for your decision'))")
        await expect(decisions.locator(".widget-row").first).to_contain_text("home-helper")
        closing_locator = page.locator(".widget:has(h2:text-is('Leads closing soon'))")
        # Other tests' records may have the same title.
        link = f"a[href='/models/lead/records/{own_lead['id']}']"
        await expect(closing_locator.locator(".widget-row", has=page.locator(link))).to_contain_text("Tomorrow")
        await expect(closing_locator).not_to_contain_text("Somebody else's")

        await closing_locator.locator(link).press("Enter")
        await page.wait_for_selector("h1:text-is('Closes tomorrow')")
        await page.click(".side-link >> text=My work")
        recent = page.locator(".widget:has(h2:text-is('Recently viewed'))")
        await expect(recent.locator(link)).to_have_text("Closes tomorrow")
        await decisions.locator(f"a[href='/approvals?plan={proposal['plan_id']}']").click()
        await page.wait_for_url("**/approvals?plan=*")


async def test_overdue_records_are_first_with_their_days_and_actions_name_the_new_state(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    people = {user["username"]: user["id"] for user in alice.run("user.list")}
    overdue_day = (datetime.now().astimezone().date() - timedelta(days=3)).isoformat()
    lead = alice.run("lead.create", title=f"Three days late {mark}", owner=people["root"], expected_close=overdue_day)
    alice.run("lead.qualify", id=lead["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/")
        closing_locator = page.locator(".widget:has(h2:text-is('Leads closing soon'))")
        await expect(closing_locator.locator(".widget-row", has_text=f"Three days late {mark}")).to_have_count(1)

        async def is_overdue() -> None:
            rows = await closing_locator.locator(".widget-row").all_inner_texts()
            row_positions = [at for at, text in enumerate(rows) if f"Three days late {mark}" in text]
            assert row_positions
            assert "3 days overdue" in rows[row_positions[0]]
            assert all("overdue" in text for text in rows[: row_positions[0]])

        await eventually(is_overdue)
        move_line = page.locator(f".feed li:has-text('moved Three days late {mark} to')")
        await expect(move_line.locator(".chip")).to_have_text("Qualified")


async def test_a_mention_is_listed_until_the_record_is_opened(
    browser: Browser, desk: Desk, alice: ApiCaller, axe: str
) -> None:
    lead = str(alice.run("lead.create", title="Talked about")["id"])
    alice.run("comment.create", model="lead", record=lead, text="@bob please call them")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/")
        mention = page.locator(f".widget-row a[href='/models/lead/records/{lead}']", has_text="alice mentioned you")
        await expect(mention).to_contain_text("Talked about")
        await assert_accessible(page, axe)
        await mention.click()
        await expect(page.locator(".comment-text b")).to_have_text("@bob")

        async def is_seen() -> None:
            mentions = desk.caller("bob").run("user.home")["mentions"]
            assert lead not in [each["record"]["id"] for each in mentions]

        await eventually(is_seen)


async def test_a_person_without_work_is_shown_how_to_begin(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        empty_result = {"denied": [], "value": {"rows": [], "total": 0}}
        await page.route("**/api/*/search", lambda route: route.fulfill(json=empty_result))
        empty_home = {
            "waiting": {"count": 0, "high": 0, "items": []},
            "due": [],
            "tickets": [],
            "recent": [],
            "feed": [],
            "mentions": [],
        }
        await page.route("**/api/user/home", lambda route: route.fulfill(json={"denied": [], "value": empty_home}))
        await desk.sign_in(page, "bob", "/")

        await expect(page.locator(".steps h3")).to_have_text(["Import your records", "Connect an agent"])
        await expect(page.locator(".tile")).to_have_count(0)


async def test_the_main_action_is_at_the_bottom_of_a_phone_and_covers_nothing(
    browser: Browser, desk: Desk, axe: str
) -> None:
    height = 844
    async with desk.page(browser) as page:
        await page.set_viewport_size({"width": 390, "height": height})
        await desk.sign_in(page, "root", "/")
        actions = {"/": "New record", "/agents": "New agent", "/users": "Invite a person"}
        for path, name in actions.items():
            await page.goto(path)
            button = page.locator(f".head-action .button:has-text('{name}')")
            box = await button.bounding_box()
            bar = await page.locator(".bottom-bar").bounding_box()
            assert box
            assert bar
            assert box["height"] >= 44
            # Within the lower fifth of the window, and above the bar of pages.
            assert height * 0.8 <= box["y"] <= bar["y"] - box["height"], path
        await page.goto("/")
        await page.locator(".home .widget").first.wait_for()
        await assert_accessible(page, axe)
        await page.wait_for_function(LAST_IS_UNCOVERED)
        await page.click(".head-action .button")
        await page.click("[role=menuitem]:has-text('Leads'), [role=menuitem]:has-text('Lead')")
        await page.wait_for_url("**/models/lead/new")
