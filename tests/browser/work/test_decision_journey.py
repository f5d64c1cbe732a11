"""Ten decisions, made by keyboard alone and by mouse, beginning at My work. No typed reason is lost, although the
server restarts, the network is lost and the session ends."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.rules import settle
from tests.browser.work.conftest import PASSWORD, ApiCaller, Desk, require_pages
from tests.browser.work.test_connection import AWAY
from tests.servers.countersign import served
from tests.servers.process import free_port

DECISIONS = 10
ENOUGH_S = 120


class Keyboard:
    """Decides by keyboard alone."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def open_approvals(self) -> None:
        """Go from My work to the pending proposals."""
        await self.page.focus("a:text-is('Open approvals')")
        await self.page.keyboard.press("Enter")

    async def ask_to_reject(self) -> None:
        """Open the dialog for the reason."""
        await self.page.keyboard.press("r")

    async def send(self) -> None:
        """Reject with the typed reason."""
        await self.page.focus("#reject-reason")
        await self.page.keyboard.press("Tab")
        await self.page.keyboard.press("Enter")

    async def approve(self) -> None:
        """Approve the shown proposal, and confirm it."""
        await self.page.keyboard.press("a")
        await self.page.locator("dialog[open] .button:focus:text-is('Cancel')").wait_for()
        await self.page.keyboard.press("Shift+Tab")
        await self.page.keyboard.press("Enter")

    async def sign_in(self) -> None:
        """Sign in again above the page."""
        await self.page.focus("#session-password")
        await self.page.keyboard.type(PASSWORD)
        await self.page.keyboard.press("Enter")


class Mouse(Keyboard):
    """Decides by mouse."""

    async def open_approvals(self) -> None:
        """Go from My work to the pending proposals."""
        await self.page.click("a:text-is('Open approvals')")

    async def ask_to_reject(self) -> None:
        """Open the dialog for the reason."""
        await self.page.click("#reject")

    async def send(self) -> None:
        """Reject with the typed reason."""
        await self.page.click("dialog[open] .risky")

    async def approve(self) -> None:
        """Approve the shown proposal, and confirm it."""
        await self.page.click("#approve")
        await self.page.click("dialog[open] .ink")


def propose(agent: ApiCaller, lead: str, number: int) -> None:
    """Let the agent propose a deletion with a reason of its own, because equal proposals are decided together."""
    steps = [{"command": "lead.delete", "input": {"id": lead}}]
    agent.run("plan.propose", steps=steps, why=f"Wish {number}")


def decided_reasons(person: ApiCaller, state: str) -> list[str | None]:
    """Return the reasons of the proposals in this state."""
    return [plan["reason"] for plan in person.run("plan.list", filter=[{"field": "state", "op": "eq", "value": state}])]


async def waits(page: Page, count: int) -> None:
    """Wait until this number of proposals is listed, and one of them is shown and can be decided."""
    await expect(page.locator(".plan")).to_have_count(count, timeout=ENOUGH_S * 1000)
    await expect(page.locator("dialog[open]")).to_have_count(0, timeout=ENOUGH_S * 1000)
    # The list changes before the decision has ended, and the next proposal is shown after that.
    await page.locator("#approve:not(.is-busy)").wait_for()
    await settle(page)


async def type_reason(page: Page, keyboard: Keyboard, reason: str) -> None:
    """Type a reason without sending it."""
    await keyboard.ask_to_reject()
    await page.locator("dialog[open] #reject-reason").wait_for()
    await page.focus("#reject-reason")
    await page.keyboard.type(reason)
    await expect(page.locator("#reject-reason")).to_have_value(reason, timeout=ENOUGH_S * 1000)


async def refused_and_kept(page: Page, keyboard: Keyboard, reason: str) -> None:
    """Send the reason without a connection: the dialog reports this and keeps the reason."""
    async with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/plan/reject")):
        await keyboard.send()
    await page.wait_for_selector("dialog[open] [role=alert]")
    await expect(page.locator("dialog[open] #reject-reason")).to_have_value(reason, timeout=ENOUGH_S * 1000)


async def before_the_restart(page: Page, keyboard: Keyboard) -> None:
    """Decide four, and type the reason of the fifth."""
    await page.wait_for_selector("a:text-is('Open approvals')")
    await keyboard.open_approvals()
    await waits(page, DECISIONS)
    for number in (1, 2, 3):
        await type_reason(page, keyboard, f"Reason {number}")
        await keyboard.send()
        await waits(page, DECISIONS - number)
    await keyboard.approve()
    await waits(page, 6)
    await type_reason(page, keyboard, "Typed before the restart")


async def without_a_network(page: Page, keyboard: Keyboard) -> None:
    """Send a reason without a network, and again with a network."""
    await type_reason(page, keyboard, "Typed without a network")
    await page.context.set_offline(True)
    await refused_and_kept(page, keyboard, "Typed without a network")
    await page.context.set_offline(False)
    await page.wait_for_selector(".live[data-state=live]", timeout=ENOUGH_S * 1000)
    await keyboard.send()
    await waits(page, 4)


async def after_the_session(page: Page, keyboard: Keyboard, agent: ApiCaller, lead: str) -> None:
    """Type a reason, sign in again because the session has ended, and send it then."""
    await type_reason(page, keyboard, "Typed before the session ended")
    await page.context.clear_cookies()
    # The page detects this with its next request, which a new proposal triggers.
    propose(agent, lead, DECISIONS)
    await page.wait_for_selector("#session-password", timeout=ENOUGH_S * 1000)
    await keyboard.sign_in()
    await expect(page.locator("#session-password")).to_have_count(0, timeout=ENOUGH_S * 1000)
    await page.wait_for_selector(".live[data-state=live]", timeout=ENOUGH_S * 1000)
    await expect(page.locator("dialog[open] #reject-reason")).to_have_value(
        "Typed before the session ended", timeout=ENOUGH_S * 1000
    )
    await keyboard.send()
    await waits(page, 4)


async def after_a_reload(page: Page, keyboard: Keyboard) -> None:
    """Approve a proposal. Type a reason, reload the page and find the reason. Reject the last proposal."""
    await keyboard.approve()
    await waits(page, 3)
    await type_reason(page, keyboard, "Typed before the page was loaded again")
    await page.reload()
    await waits(page, 3)
    await keyboard.ask_to_reject()
    await expect(page.locator("#reject-reason")).to_have_value(
        "Typed before the page was loaded again", timeout=ENOUGH_S * 1000
    )
    await keyboard.send()
    await waits(page, 2)
    await type_reason(page, keyboard, "The last one")
    await keyboard.send()
    await waits(page, 1)


@pytest.mark.parametrize("kind", [Keyboard, Mouse])
async def test_ten_decisions_are_made_despite_disturbances(
    browser: Browser, tmp_path: Path, kind: type[Keyboard]
) -> None:
    require_pages()
    data, ports = tmp_path / "data", (free_port(), free_port())
    settings = {"COUNTERSIGN_GRACE_S": "1"}
    with served(data, "--demo", service="both", ports=ports, settings=settings) as running:
        desk = Desk(running)
        alice = desk.caller("alice")
        agent = alice.agent("wisher", "lead.*", "plan.*")
        leads = [str(alice.run("lead.create", title=f"Wished away {number}")["id"]) for number in range(DECISIONS + 1)]
        for number in range(DECISIONS):
            propose(agent, leads[number], number)
        watching = desk.page(browser, expected=(*AWAY, "ERR_INTERNET_DISCONNECTED", "401"))
        page = await watching.__aenter__()
        keyboard = kind(page)
        page.set_default_timeout(ENOUGH_S * 1000)
        await desk.sign_in(page, "alice")
        await before_the_restart(page, keyboard)
    await page.wait_for_selector(".live[data-state=reconnecting]", timeout=ENOUGH_S * 1000)
    await refused_and_kept(page, keyboard, "Typed before the restart")
    with served(data, service="both", ports=ports, settings=settings):
        await page.wait_for_selector(".live[data-state=live]", timeout=ENOUGH_S * 1000)
        await keyboard.send()
        await waits(page, 5)
        await without_a_network(page, keyboard)
        await after_the_session(page, keyboard, agent, leads[DECISIONS])
        await after_a_reload(page, keyboard)

        alice = desk.caller("alice")
        assert set(decided_reasons(alice, "rejected")) == {
            *(f"Reason {number}" for number in (1, 2, 3)),
            "Typed before the restart",
            "Typed without a network",
            "Typed before the session ended",
            "Typed before the page was loaded again",
            "The last one",
        }
        assert len(decided_reasons(alice, "executed")) == 2
        await watching.__aexit__(None, None, None)
