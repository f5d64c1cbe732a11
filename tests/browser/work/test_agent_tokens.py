"""Agents' tokens: made with what they may do, shown once, at an end at once."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Caller, Desk


async def test_a_token_is_made_shown_once_works_and_is_revoked(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        await desk.sign_in(page, "alice", "/agents")
        await page.click("button:text-is('New token')")
        await page.fill("#label", "ledger")
        await page.click("summary:has-text('Leads')")
        await page.check("label:has(code:text-is('lead.update')) input")
        await page.select_option("#life", "7")
        await page.click("button:text-is('Create token')")
        token = await page.inner_text(".secret")
        await page.click("[aria-label='Copy: the settings']")
        settings = await page.evaluate("navigator.clipboard.readText()")
        assert token in settings
        assert f"{desk.url}/mcp" in settings
        await page.wait_for_selector("text=Live answer from the API")
        leads = page.locator(".signed tr:has(th:text-is('Leads'))")
        await expect(leads.locator("td").nth(2)).to_contain_text("Contact email")
        agent = Caller(desk.url, token)
        assert agent.post("lead/list", {"limit": 1}).status_code == 200
        assert agent.post("lead/delete", {"id": "x"}).status_code == 404
        await page.reload()
        await page.wait_for_selector("table")
        assert token not in await page.content()
        assert token not in await page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        await page.click("[aria-label='Revoke “ledger”?']")
        await page.click("dialog[open] .risky")
        await expect(page.locator("tr:has-text('ledger')")).to_contain_text("Revoked")

        assert agent.post("lead/list", {"limit": 1}).status_code == 401


@pytest.mark.full
async def test_a_token_without_a_scope_is_not_made(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/agents")
        await page.click("button:text-is('New token')")
        await page.fill("#label", "idle")
        for summary in await page.query_selector_all(".scope-model summary"):
            await summary.click()
        for ticked in await page.query_selector_all(".scope-model input:checked"):
            if await ticked.is_checked():
                await ticked.uncheck()
        await page.click("button:text-is('Create token')")

        await page.wait_for_selector("[role=alert] >> text=Select at least one permission")
