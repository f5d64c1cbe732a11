"""An administrator invites people, changes their roles, resets their link, disables and enables them on one page."""

import httpx
from playwright.async_api import Browser, expect

from tests.browser.shop import TLS
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import Desk

CHOSEN = "a long password of dora"


def sign_in_status(desk: Desk, name: str) -> int:
    """The status of a sign-in to the API as this person with the chosen password."""
    sent = {"username": name, "password": CHOSEN}
    return httpx.post(f"{desk.url}/api/auth/login", json=sent, timeout=60, verify=TLS).status_code


async def test_an_administrator_invites_gives_roles_resets_and_disables(
    browser: Browser, desk: Desk, axe: str, mark: str
) -> None:
    dora = f"dora-{mark}"
    root = desk.caller("root")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users")
        await page.click("button:text-is('Invite a person')")
        await page.fill("#person-username", dora)
        await page.select_option("#person-role", label="accountant")
        await page.press("#person-username", "Enter")
        link = await page.inner_text(".signed .secret")
        row = page.locator(f"tr:has(th:has-text('{dora}'))")
        await expect(row).to_contain_text("accountant")
        await assert_accessible(page, axe)
        other = await page.context.browser.new_page() if page.context.browser else page
        await other.goto(link)
        await other.fill("#password", CHOSEN)
        async with other.expect_navigation():
            await other.click("button")
        assert sign_in_status(desk, dora) == 200

        await row.get_by_label(f"Roles of {dora}").click()
        await page.locator("dialog[open]").get_by_label("accountant").uncheck()
        await page.locator("dialog[open]").get_by_label("sales_manager").check()
        await page.click("dialog[open] .button.strong")
        await expect(row).to_contain_text("sales_manager")
        await expect(row).not_to_contain_text("accountant")
        await row.get_by_label(f"Set-up link for {dora}").click()
        await page.click("dialog[open] .button.strong")
        await expect(page.locator(".signed .secret")).not_to_have_text(link)
        await row.get_by_label(f"Disable {dora}").click()
        await page.click("dialog[open] .button.risky")
        await expect(row).to_contain_text("Disabled")
        assert sign_in_status(desk, dora) == 401
        await row.get_by_label(f"Enable {dora}").click()
        await expect(row).to_contain_text("Active")
        assert sign_in_status(desk, dora) == 200
        await other.close()

    invited = root.run("user.list", filter=[{"field": "username", "op": "eq", "value": dora}])[0]
    assert invited["is_active"]


async def test_a_role_shows_what_it_may_do_by_type_of_record(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users")
        await page.click(".page-head button:text-is('Roles')")
        await page.click(".role:has-text('clerk')")
        of_parties = page.locator(".matrix tr:has(th a:text-is('Parties')) td")

        await expect(of_parties.nth(0)).to_contain_text("allowed")
        await expect(of_parties.nth(3)).to_have_text("–")
