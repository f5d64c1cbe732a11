"""Agents' tokens: created with their rights, shown once, revoked at once."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.waiting import copied, eventually
from tests.browser.watched import ENOUGH_MS, assert_accessible
from tests.browser.work.conftest import Caller, Desk


async def test_a_token_is_made_shown_once_works_and_is_revoked(
    browser: Browser, desk: Desk, axe: str, mark: str
) -> None:
    async with desk.page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click("button:has-text('New agent')")
        await page.fill("#label", f"ledger-{mark}")
        await page.select_option("#life", "7")
        await page.press("#label", "Enter")
        await page.check("label:has-text('Custom') input")
        await page.click("summary:has-text('Leads')")
        await page.check("label:has(code:text-is('lead.update')) input")
        leads = page.locator(".matrix tr:has(th:text-is('Leads')) td")
        await expect(leads.nth(1)).to_contain_text("allowed")
        await expect(leads.nth(2)).to_contain_text("not allowed")
        await assert_accessible(page, axe)
        await page.click("button:text-is('Create token')")
        token = await page.inner_text(".secret")
        await page.click("[aria-label='Copy: the settings']")

        async def are_copied() -> None:
            settings = await copied(page)
            assert token in settings
            assert f"{desk.url}/mcp" in settings

        await eventually(are_copied)
        await page.wait_for_selector("text=Live answer from the API")
        leads = page.locator(".signed tr:has(th:text-is('Leads'))")
        await expect(leads.locator("td").nth(2)).to_contain_text("Contact email")
        agent = Caller(desk.url, token)
        assert agent.post("lead/list", {"limit": 1}).status_code == 200
        assert agent.post("lead/delete", {"id": "x"}).status_code == 404
        await page.reload()
        await page.wait_for_selector(f".agent-label:text-is('ledger-{mark}')")
        assert token not in await page.content()
        assert token not in await page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        await page.click(f".agent:has-text('ledger-{mark}')")
        await page.click(f"[aria-label='Revoke “ledger-{mark}”?']")
        await page.click("dialog[open] .risky")
        await expect(page.locator(f".agent:has-text('ledger-{mark}')")).to_contain_text("Revoked")

        assert agent.post("lead/list", {"limit": 1}).status_code == 401


@pytest.mark.full
async def test_a_token_without_a_scope_is_not_made(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/agents")
        await page.click("button:has-text('New agent')")
        await page.fill("#label", "idle")
        await page.press("#label", "Enter")
        await page.check("label:has-text('Custom') input")
        await page.locator(".scope-model summary").first.wait_for()
        for summary in await page.locator(".scope-model summary").all():
            await summary.click()
        ticked = page.locator(".scope-model input:checked")
        while await ticked.count():
            await ticked.first.uncheck()
        await page.click("button:text-is('Create token')")

        await page.wait_for_selector("[role=alert] >> text=Select at least one permission")


async def test_an_agent_is_shown_with_what_it_did_and_may_do_as_it_happens(
    browser: Browser, desk: Desk, alice: Caller, mark: str
) -> None:
    leads = [alice.run("lead.create", title=f"Watched {number}") for number in range(2)]
    agent = alice.agent(f"watched-{mark}", "lead.get", "lead.delete")
    agent.run("lead.delete", id=leads[0]["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click(f".agent:has-text('watched-{mark}')")
        await page.wait_for_selector(f"h2:text-is('watched-{mark}')")
        log = page.locator(".log tbody tr")
        # A call that is recorded during the page's first request appears with its next one.
        await expect(log).to_have_count(1, timeout=ENOUGH_MS)
        await expect(log.first).to_contain_text("Watched 0")
        of_leads = page.locator(".matrix tr:has(th:text-is('Leads')) td")
        await expect(of_leads.nth(1)).to_contain_text("not allowed")
        await expect(of_leads.nth(2)).to_contain_text("Proposes")
        await page.mouse.move(0, 0)

        agent.run("lead.delete", id=leads[1]["id"])
        await expect(log).to_have_count(2, timeout=ENOUGH_MS)
        await expect(log.first).to_contain_text("Watched 1")


async def test_an_agents_permissions_agree_in_table_and_words_and_all_clients_are_reached(
    browser: Browser, desk: Desk, alice: Caller, axe: str, mark: str
) -> None:
    # A phone has the list of agents in a menu if there are several.
    alice.agent("another-bot", "lead.list")
    agent = alice.agent(f"worded-{mark}", "lead.list", "activity.delete", "plan.*")
    agent.run("lead.list", limit=1)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click(f".agent:has-text('worded-{mark}')")
        await page.wait_for_selector(f"h2:text-is('worded-{mark}')")
        await expect(page.locator(".matrix tbody th")).to_have_text(["Activities", "Leads"])
        await expect(page.locator(".may-words")).to_be_hidden()
        await page.click("summary:text-is('In words')")
        await expect(page.locator(".may-words")).to_be_visible()
        await expect(page.locator(".may-words")).not_to_contain_text("plans")
        await expect(page.locator(".log .log-on").first).to_have_text("–", timeout=ENOUGH_MS)
        await page.click(".setup [role=tab]:text-is('More')")
        await page.click(".setup [role=tab]:text-is('Cursor')")
        await expect(page.locator(".setup [data-client=Cursor]")).to_be_visible()
        await assert_accessible(page, axe)

        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(page.locator(".agents-all > summary")).to_contain_text(f"worded-{mark}")


async def test_the_permissions_of_an_agent_are_changed_by_a_new_token_that_replaces_the_old_one(
    browser: Browser, desk: Desk, alice: Caller, axe: str
) -> None:
    old = alice.agent("replaced-bot", "lead.list", "lead.get", "activity.*")
    old.run("lead.list", limit=1)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click(".agent:has-text('replaced-bot')")
        await page.wait_for_selector("h2:text-is('replaced-bot')")
        await page.click("summary:text-is('Not allowed')")
        denied = page.locator(".denied > li:has(strong:text-is('Leads'))")
        await expect(denied.locator("summary")).to_contain_text("high risk")
        await expect(page.locator(".denied > li:has(strong:text-is('Activities'))")).to_have_count(0)
        await denied.locator("summary").click()
        await expect(denied.locator("li[title='lead.delete']")).to_contain_text("High risk")
        await expect(denied.locator("li[title='lead.get']")).to_have_count(0)
        await assert_accessible(page, axe)

        await page.click(".widget-head a:text-is('Edit')")
        await page.wait_for_selector("h2:text-is('Change permissions of “replaced-bot”')")
        await page.click("summary:has-text('Leads')")
        await expect(page.locator("label:has(code:text-is('lead.get')) input")).to_be_checked()
        await page.check("label:has(code:text-is('lead.update')) input")
        await page.uncheck("label:has(code:text-is('lead.get')) input")
        await assert_accessible(page, axe)
        await page.click("button:text-is('Create token')")
        new = Caller(desk.url, await page.inner_text(".secret"))
        assert old.post("lead/list", {"limit": 1}).status_code == 200
        await page.click("button:text-is('Revoke the old token…')")
        await page.click("dialog[open] .risky")
        await expect(page.locator(".toast").last).to_contain_text("Revoked")

    assert old.post("lead/list", {"limit": 1}).status_code == 401
    lead = new.run("lead.list", limit=1)[0]
    assert new.post("lead/get", {"id": lead["id"]}).status_code == 404
    assert new.post("lead/update", {"id": lead["id"], "source": "phone"}).status_code == 200
