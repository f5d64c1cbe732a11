"""Agents' tokens: created with their rights, shown once, revoked at once."""

from datetime import datetime, timedelta

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.waiting import clipboard_text, eventually
from tests.browser.watched import ENOUGH_MS, assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk

DAY_S = 86_400


async def refuse(route: Route) -> None:
    """Answer a request with a refusal."""
    await route.fulfill(status=400, content_type="application/problem+json", body='{"title": "Refused", "status": 400}')


def tokens_of(caller: ApiCaller, label: str) -> list[dict[str, str]]:
    """Return the tokens of agents with this label that the caller may see, the newest first."""
    label_filter = [{"field": "label", "op": "eq", "value": label}]
    return caller.run("agent_token.list", filter=label_filter, order=[{"field": "issued_at", "dir": "desc"}])


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
            settings = await clipboard_text(page)
            assert token in settings
            assert f"{desk.url}/mcp" in settings

        await eventually(are_copied)
        await page.wait_for_selector("text=Live answer from the API")
        leads = page.locator(".signed tr:has(th:text-is('Leads'))")
        await expect(leads.locator("td").nth(2)).to_contain_text("Contact email")
        agent = ApiCaller(desk.url, token)
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
        ticked_locator = page.locator(".scope-model input:checked")
        while await ticked_locator.count():
            await ticked_locator.first.uncheck()
        await page.click("button:text-is('Create token')")

        await page.wait_for_selector("[role=alert] >> text=Select at least one permission")


async def test_an_agent_page_shows_its_actions_and_rights_live(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
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


async def test_the_permissions_of_an_agent_agree_in_table_and_text_and_all_clients_are_reached(
    browser: Browser, desk: Desk, alice: ApiCaller, axe: str, mark: str
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
        await expect(page.locator(".log .log-on").first).to_have_text("Leads", timeout=ENOUGH_MS)
        await page.click(".setup [role=tab]:text-is('More')")
        await page.click(".setup [role=tab]:text-is('Cursor')")
        await expect(page.locator(".setup [data-client=Cursor]")).to_be_visible()
        await assert_accessible(page, axe)

        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(page.locator(".agents-all > summary")).to_contain_text(f"worded-{mark}")


OVERHANG = """(head) => Math.max(...[...head.querySelectorAll("button")].map((each) =>
    each.getBoundingClientRect().right - head.getBoundingClientRect().right))"""


async def test_on_a_phone_the_filter_of_the_call_log_fits_its_panel(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    lead = alice.run("lead.create", title=f"Filtered {mark}")
    agent = alice.agent(f"filtered-{mark}", "lead.list", "lead.delete", "lead.update", "plan.*")
    agent.run("lead.list", limit=1)
    agent.run("lead.delete", id=lead["id"])
    assert agent.post("lead/update", {"id": lead["id"], "title": 1}).is_client_error
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click(f".agent:has-text('filtered-{mark}')")
        filters = page.locator(".log-filter button")
        await expect(filters).to_have_text(["All", "Read", "Proposed", "Refused"], timeout=ENOUGH_MS)
        await page.set_viewport_size({"width": 320, "height": 700})
        head = page.locator(".widget-head:has(.log-filter)")

        async def fits() -> None:
            assert await head.evaluate(OVERHANG) <= 0

        await eventually(fits)
        await filters.last.click()
        await expect(page.locator(".log tbody tr")).to_have_count(1)
        await expect(page.locator(".log tbody tr")).to_contain_text("lead.update")


async def test_the_permissions_of_an_agent_are_changed_with_a_token_that_replaces_the_old_token(
    browser: Browser, desk: Desk, alice: ApiCaller, axe: str
) -> None:
    old = alice.agent("replaced-bot", "lead.list", "lead.get", "activity.*")
    old.run("lead.list", limit=1)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click(".agent:has-text('replaced-bot')")
        await page.wait_for_selector("h2:text-is('replaced-bot')")
        await page.click("summary:text-is('Not allowed')")
        denied_leads = page.locator(".denied > li:has(strong:text-is('Leads'))")
        await expect(denied_leads.locator("summary")).to_contain_text("high risk")
        await expect(page.locator(".denied > li:has(strong:text-is('Activities'))")).to_have_count(0)
        await denied_leads.locator("summary").click()
        await expect(denied_leads.locator("li[title='lead.delete']")).to_contain_text("High risk")
        await expect(denied_leads.locator("li[title='lead.get']")).to_have_count(0)
        await assert_accessible(page, axe)

        await page.click(".widget-head a:text-is('Edit')")
        await page.wait_for_selector("h2:text-is('Change permissions of “replaced-bot”')")
        await page.click("summary:has-text('Leads')")
        await expect(page.locator("label:has(code:text-is('lead.get')) input")).to_be_checked()
        await page.check("label:has(code:text-is('lead.update')) input")
        await page.uncheck("label:has(code:text-is('lead.get')) input")
        await assert_accessible(page, axe)
        lists_of_tokens = "**/api/agent_token/list"
        await page.route(lists_of_tokens, refuse)
        async with page.expect_response(lists_of_tokens):
            await page.click("button:text-is('Create token')")
        new = ApiCaller(desk.url, await page.inner_text(".secret"))
        await page.wait_for_selector("text=Live answer from the API")
        assert old.post("lead/list", {"limit": 1}).status_code == 200
        await expect(page.locator(".signed")).to_contain_text("works with its old permissions until you revoke it")
        await expect(page.locator(".signed button:text-is('Keep both')")).to_be_visible()
        await assert_accessible(page, axe)
        await page.unroute(lists_of_tokens)
        await page.click(".signed .strong:text-is('Revoke the old token…')")
        await page.click("dialog[open] .risky")
        await expect(page.locator(".toast").last).to_contain_text("Revoked")
        await expect(page.locator(".signed p:text-is('The old token no longer works.')")).to_be_focused()
        await expect(page.locator(".secret")).to_have_text(new.token)
        await expect(page.locator(".signed button:text-is('Done')")).to_be_visible()

    assert old.post("lead/list", {"limit": 1}).status_code == 401
    lead = new.run("lead.list", limit=1)[0]
    assert new.post("lead/get", {"id": lead["id"]}).status_code == 404
    assert new.post("lead/update", {"id": lead["id"], "source": "phone"}).status_code == 200


async def test_an_administrator_does_not_replace_the_token_of_another_persons_agent(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    root = desk.caller("root")
    alice.agent(f"alices-{mark}", "lead.list")
    root.agent(f"roots-{mark}", "lead.list")
    (of_alice,), (of_root,) = tokens_of(root, f"alices-{mark}"), tokens_of(root, f"roots-{mark}")
    edit = ".widget-head a:text-is('Edit')"
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/agents?agent={of_root['id']}")
        await page.wait_for_selector(edit)
        await page.goto(f"/agents?agent={of_alice['id']}")
        await page.wait_for_selector(f"h2:text-is('alices-{mark}')")
        await page.wait_for_selector(".widget-head:has-text('Permissions')")
        await expect(page.locator(edit)).to_have_count(0)

        await page.goto(f"/agents?new=1&like={of_alice['id']}")
        await page.wait_for_selector("h2:text-is('New agent')")
        await expect(page.locator("#label")).to_have_value("")


@pytest.mark.parametrize("scope", ["*", "*.get"])
async def test_a_token_for_all_models_is_replaced_with_its_remaining_lifetime(
    browser: Browser, desk: Desk, mark: str, scope: str
) -> None:
    root = desk.caller("root")
    label = f"wide-{mark}"
    request = {"label": label, "scopes": [scope], "expires_in": 5 * DAY_S, "unmask": ["lead.contact_email"]}
    assert root.post("auth/agent-token", request).status_code == 200
    (old,) = tokens_of(root, label)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/agents?new=1&like={old['id']}")
        await expect(page.locator("#life")).to_have_value("5")
        await page.click("summary:text-is('View as this agent')")
        of_leads = page.locator("details tr:has(th:text-is('Leads')) td")
        await expect(of_leads.nth(1)).to_contain_text("Contact email")
        await expect(of_leads.nth(2)).not_to_contain_text("Contact email")
        await expect(page.locator(".scope-model summary:has-text('Views')")).to_have_count(0)
        await page.click("button:text-is('Create token')")
        await page.wait_for_selector(".secret")

    new = tokens_of(root, label)[0]
    assert new["id"] != old["id"]
    assert datetime.fromisoformat(new["expires_at"]) - datetime.fromisoformat(new["issued_at"]) == timedelta(days=5)
    assert new["unmask"] == "lead.contact_email"


async def test_on_a_phone_the_bar_of_pages_does_not_cover_the_button_that_makes_a_token(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    alice.agent(f"phone-{mark}", "lead.list")
    (token,) = tokens_of(alice, f"phone-{mark}")
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", f"/agents?new=1&like={token['id']}")
        await page.wait_for_selector(f"h2:text-is('Change permissions of “phone-{mark}”')")
        await page.click("button:text-is('Create token')")
        await page.wait_for_selector(".secret")
