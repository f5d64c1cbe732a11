"""The page about MCP: settings as in the documentation, a token's tools from the endpoint, the agent's activity."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.rules import evaluate
from tests.browser.waiting import clipboard_text, eventually
from tests.browser.work.conftest import ApiCaller, Desk

DOCUMENT = Path(__file__).parents[3] / "docs/how-to/connect-an-agent.md"


def in_document(url: str) -> dict[str, str]:
    """Return the settings of each client as in the documentation, for this address."""
    snippets: dict[str, str] = {}
    for section_text in DOCUMENT.read_text().replace("\n## ", "\n### ").split("\n### ")[1:]:
        name, _, text = section_text.partition("\n")
        fenced_match = re.search(r"```(?:json|toml)\n(.*?)\n```", text, re.DOTALL)
        lines = [line[4:] for line in text.partition("```")[0].splitlines() if line.startswith("    ")]
        snippet = (
            "\n".join(lines)
            if name in ("Claude Code", "Look at it by hand")
            else fenced_match[1]
            if fenced_match
            else ""
        )
        snippets[name] = snippet.replace("http://127.0.0.1:8080", url)
    return {**snippets, "Inspector": snippets["Look at it by hand"]}


def without_spaces(text: str) -> str:
    return re.sub(r"\s+", "", text)


async def copy_settings(page: Page, settings_by_name: dict[str, str], name: str) -> None:
    """Copy the settings of this client, and compare them with the documentation."""
    await page.click("[role=tabpanel] button")

    async def are_copied() -> None:
        assert without_spaces(await clipboard_text(page)) == without_spaces(settings_by_name[name]), name

    await eventually(are_copied)


async def test_settings_are_copied_and_a_tokens_tools_come_from_the_endpoint(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    agent = alice.agent(f"wired-{mark}", "lead.list", "lead.delete")
    async with desk.page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        await desk.sign_in(page, "alice", "/connect")
        settings_by_name = in_document(desk.url)
        tabs = page.locator("[role=tab]")
        await tabs.first.wait_for()
        for number in range(await tabs.count()):
            await expect(tabs.nth(number)).to_have_attribute("aria-selected", "true")
            await copy_settings(page, settings_by_name, await tabs.nth(number).inner_text())
            await tabs.nth(number).press("ArrowRight")
        await page.fill("#token", agent.token)
        await page.press("#token", "Enter")
        deleting_locator = page.locator("tr:has(code:text-is('lead__delete'))")
        await expect(deleting_locator).to_contain_text("Proposes")
        await expect(page.locator("tr:has(code:text-is('lead__list'))")).to_contain_text("Reads")
        await expect(page.locator("code:text-is('lead__create')")).to_have_count(0)
        assert agent.token not in await evaluate(page, "JSON.stringify([localStorage, sessionStorage, location.href])")
        token = alice.run("agent_token.list", filter=[{"field": "label", "op": "eq", "value": f"wired-{mark}"}])[0]
        alice.run("agent_token.revoke", id=token["id"])
        await page.press("#token", "Enter")

        await page.wait_for_selector("[role=alert]:focus >> text=expired or revoked")


@pytest.mark.full
async def test_the_work_of_an_agent_is_shown_from_the_audit_or_from_its_proposals(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    by_root = desk.caller("root").agent("logged", "lead.*")
    created_lead = by_root.run("lead.create", title="By an agent")
    by_alice = alice.agent("asking", "lead.*")
    by_alice.run("lead.delete", id=created_lead["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/connect")
        await page.select_option("#of-token", label="logged")
        await expect(page.locator("section:has(#calls) tbody tr")).to_have_count(1)
        await page.click("section:has(#calls) >> text=Show all in the audit log")
        await page.wait_for_selector("h1:text-is('Audit log')")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await desk.sign_in(page, "alice", "/connect")
        await page.select_option("#of-token", label="asking")

        await page.wait_for_selector("h2:text-is('Proposals')")
        await expect(page.locator("section:has(#calls) tbody")).to_contain_text("lead.delete")
