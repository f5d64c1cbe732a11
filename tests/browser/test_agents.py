"""The pages about agents in a real browser: accessible in every state, and reached from other sites by signed-in
people."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser import shop as shops
from tests.browser.pages import (
    NARROW,
    SCHEMES,
    WIDE,
    Faults,
    Looks,
    Scheme,
    no_faults,
    open_page,
    send,
)
from tests.browser.shop import CUSTOMER, PASSWORD, RETURNS_TO, STRANGER, TLS, Shop
from tests.servers.countersign import served

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A store set up by its operator."""
    with served(tmp_path / "data") as running:
        yield shops.set_up(running)


async def press(page: Page, button_text: str) -> None:
    """Press a button and wait for the next page."""
    async with page.expect_navigation():
        await page.click(f"button:text-is('{button_text}')")


async def self_registered_client(shop: Shop) -> str:
    """Return the id of an unverified client that registered itself."""
    async with httpx.AsyncClient(verify=TLS) as http:
        answer = await http.post(f"{shop.url}/auth/clients", json={"redirect_uris": [RETURNS_TO]})
    return str(answer.json()["client_id"])


def wrong_request(shop: Shop, client_id: str) -> str:
    """Return a request for a code without a challenge."""
    return f"{shop.url}/auth/authorize?response_type=code&client_id={client_id}&redirect_uri={RETURNS_TO}&state=s"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def faults(
    shared_browser: Browser, axe: str, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Faults:
    """The faults of each page, which is loaded once and checked in each look."""
    looks = Looks(axe, bool(pytestconfig.getoption("--full")), no_faults())
    with served(tmp_path_factory.mktemp("agents") / "data") as running:
        shop = shops.set_up(running)
        first_agent, second_agent, foreign = (
            shop.register(),
            shop.register(),
            shop.register(method="service_auth", email=STRANGER),
        )
        async with open_page(shared_browser, running) as (_, page):

            async def look(title: str, path: str = "") -> None:
                if path:
                    await page.goto(path)
                await expect(page.locator("h1")).to_have_text(title)
                await looks.add(page)

            await page.goto(first_agent["claim"]["verification_uri"])
            await send(page, email=CUSTOMER, password=PASSWORD)
            await page.wait_for_selector("#user_code")
            await look("Allow this agent?")
            await page.fill("#user_code", "BBBB-BBBB")
            await press(page, "Allow")
            await expect(page.locator("[role=alert]")).to_contain_text("not the code")
            await look("Allow this agent?")
            await page.fill("#user_code", first_agent["claim"]["user_code"])
            await press(page, "Allow")
            await look("Connected")
            await look("The link or code is used up", first_agent["claim"]["verification_uri"])
            await look("Allow this agent?", second_agent["claim"]["attempt"]["verification_uri"])
            await press(page, "Allow")
            await look("Your code")
            await page.goto(second_agent["claim"]["attempt"]["verification_uri"])
            await press(page, "Decline")
            await look("Declined")
            await look("Wrong account", foreign["claim"]["verification_uri"])
            await look("Not found", f"{shop.url}/auth/claim?claim_attempt_token=none")
            query = f"response_type=code&client_id={shop.client_id}&redirect_uri={RETURNS_TO}&scope=read:library"
            query += f"&code_challenge={CHALLENGE}&code_challenge_method=S256"
            await look("Allow Chart Room?", f"{shop.url}/auth/authorize?{query}")
            await look("This link does not work", f"{shop.url}/auth/authorize?client_id=nobody")
            await look("This link does not work", wrong_request(shop, await self_registered_client(shop)))
            await look("Connected agents", f"{shop.url}/auth/agents")
            await press(page, "Disconnect")
            await expect(page.locator("main")).to_contain_text("No agents are connected")
            await look("Connected agents")
    return looks.faults


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_every_page_about_agents_keeps_the_rules_of_accessibility(faults: Faults, scheme: Scheme, width: int) -> None:
    assert not faults[scheme, width]


async def test_a_link_on_another_site_finds_the_signed_in_person(browser: Browser, shop: Shop) -> None:
    link = shop.register()["claim"]["verification_uri"]
    async with open_page(browser, shop.running, java_script_enabled=False) as (context, page):
        await page.goto(f"{shop.url}/auth/signin")
        await send(page, email=CUSTOMER, password=PASSWORD)
        await page.wait_for_url(f"{shop.url}/")
        # The browser also sends another cookie of this host, as it does for links from other sites.
        await context.add_cookies([{"name": "other", "value": "1", "url": shop.url, "sameSite": "Lax"}])
        for target, title in ((link, "Allow this agent?"), (f"{shop.url}/auth/agents", "Connected agents")):
            other_page = await context.new_page()
            await other_page.set_content(f'<a href="{target}">go</a>')
            await other_page.click("a")
            await other_page.wait_for_selector(f"h1:text-is('{title}')")


async def test_a_wrong_request_of_an_unverified_client_leaves_the_store_only_by_a_click(
    browser: Browser, shop: Shop
) -> None:
    wrong_url = wrong_request(shop, await self_registered_client(shop))
    return_requests: list[str] = []
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    page.on(
        "request", lambda request: return_requests.append(request.url) if request.url.startswith(RETURNS_TO) else None
    )
    await page.goto(wrong_url)
    await send(page, email=CUSTOMER, password=PASSWORD)
    await page.wait_for_selector("h1:text-is('This link does not work')")
    stayed = list(return_requests)
    async with page.expect_request(f"{RETURNS_TO}*"):
        await page.click("a:text-is('Return to 127.0.0.1:9')")
    await context.close()

    assert stayed == []
    assert [parse_qs(urlsplit(url).query)["error"] for url in return_requests] == [["invalid_request"]]
