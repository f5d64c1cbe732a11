"""An administrator invites people, changes their roles, resets their link, disables and enables them on one page."""

import httpx
from playwright.async_api import Browser, Route, expect

from tests.browser.shop import TLS
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import Desk

CHOSEN = "a long password of dora"


def sign_in_status(desk: Desk, name: str) -> int:
    """Return the status of a sign-in to the API as this person with the chosen password."""
    credentials = {"username": name, "password": CHOSEN}
    return httpx.post(f"{desk.url}/api/auth/login", json=credentials, timeout=60, verify=TLS).status_code


async def refuse(route: Route) -> None:
    """Answer a request with a refusal."""
    await route.fulfill(status=400, content_type="application/problem+json", body='{"title": "Refused", "status": 400}')


async def test_an_administrator_invites_gives_roles_resets_and_disables(
    browser: Browser, desk: Desk, axe: str, mark: str
) -> None:
    dora = f"dora-{mark}"
    root = desk.caller("root")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users")
        await page.click("button:text-is('Invite a person')")
        await page.fill("#person-username", dora)
        await page.select_option("#person-role", label="Accountant")
        await page.press("#person-username", "Enter")
        link = await page.inner_text(".signed .secret")
        row = page.locator(f"tr:has(th:has-text('{dora}'))")
        await expect(row).to_contain_text("Accountant")
        await assert_accessible(page, axe)
        other_page = await page.context.browser.new_page() if page.context.browser else page
        await other_page.goto(link)
        await other_page.fill("#password", CHOSEN)
        async with other_page.expect_navigation():
            await other_page.click("button")
        assert sign_in_status(desk, dora) == 200

        await row.get_by_label(f"Roles of {dora}").click()
        await page.locator("dialog[open]").get_by_label("accountant").uncheck()
        await page.locator("dialog[open]").get_by_label("Sales manager").check()
        await page.click("dialog[open] .button.strong")
        await expect(row).to_contain_text("Sales manager")
        await expect(row).not_to_contain_text("Accountant")
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
        await other_page.close()

    invited = root.run("user.list", filter=[{"field": "username", "op": "eq", "value": dora}])[0]
    assert invited["is_active"]


async def test_a_role_shows_its_rights_by_type_of_record(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users")
        await page.click(".page-head button:text-is('Roles')")
        await page.click(".role:has-text('clerk')")
        of_parties = page.locator(".matrix tr:has(th a:text-is('Parties')) td")

        await expect(of_parties.nth(0)).to_contain_text("allowed")
        await expect(of_parties.nth(3)).to_have_text("–")


async def test_a_person_whose_invitation_failed_does_not_get_the_role_of_the_next_invitation(
    browser: Browser, desk: Desk, mark: str
) -> None:
    root = desk.caller("root")
    first_username, second_username = f"first-{mark}", f"second-{mark}"

    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users?invite=1")
        await page.route("**/api/user/invite", refuse)
        await page.fill("#person-username", first_username)
        await page.press("#person-username", "Enter")
        await page.wait_for_selector("form [role=alert]")
        await page.unroute("**/api/user/invite")
        await page.reload()
        await expect(page.locator("#person-username")).to_have_value(first_username)
        await page.fill("#person-username", second_username)
        await page.select_option("#person-role", label="Accountant")
        await page.press("#person-username", "Enter")
        await page.wait_for_selector(".signed .secret")

    ids: dict[str, str] = {}
    for name in (first_username, second_username):
        (user,) = root.run("user.list", filter=[{"field": "username", "op": "eq", "value": name}])
        ids[name] = user["id"]
    roles = {
        name: len(root.run("user_role.list", filter=[{"field": "user", "op": "eq", "value": user}]))
        for name, user in ids.items()
    }
    assert roles == {first_username: 0, second_username: 1}


async def test_an_invitation_that_failed_continues_with_the_same_person_and_only_the_last_role(
    browser: Browser, desk: Desk, mark: str
) -> None:
    root = desk.caller("root")
    name = f"again-{mark}"

    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/users?invite=1")
        await page.route("**/api/user/invite", refuse)
        await page.fill("#person-username", name)
        await page.select_option("#person-role", label="Accountant")
        await page.press("#person-username", "Enter")
        await page.wait_for_selector("form [role=alert]")
        await page.unroute("**/api/user/invite")
        await page.reload()
        await page.select_option("#person-role", label="Clerk")
        await page.press("#person-username", "Enter")
        await page.wait_for_selector(".signed .secret")

    (user,) = root.run("user.list", filter=[{"field": "username", "op": "eq", "value": name}])
    grants = root.run("user_role.list", filter=[{"field": "user", "op": "eq", "value": user["id"]}])
    titles = [root.run("role.get", id=grant["role"])["title"] for grant in grants]
    assert titles == ["clerk"]
