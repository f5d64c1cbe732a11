"""A work app with the demonstration, its people and an agent that proposes."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Browser, Page

from countersign.web.assets import Assets
from tests.browser.shop import TLS
from tests.browser.watched import open_watched_page
from tests.servers.countersign import Running, served

PASSWORD = "countersign-demo"
ANSWER_S = 120
"""How long an answer may take on a busy machine."""


@dataclass
class ApiCaller:
    """A caller of the API."""

    url: str
    token: str

    def post(self, path: str, body: object) -> httpx.Response:
        """Return the answer of the API."""
        return httpx.post(
            f"{self.url}/api/{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=ANSWER_S,
            verify=TLS,
        )

    def meta(self) -> Any:
        """Return the models and commands that the caller may use."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.url}/api/meta", headers=headers, timeout=ANSWER_S, verify=TLS).json()

    def run(self, command: str, /, **body: object) -> Any:
        """Return the result of a command, or the proposal that it became."""
        answer = self.post(command.replace(".", "/"), body)
        assert answer.status_code in (200, 202), answer.text
        envelope = answer.json()
        return envelope.get("value", envelope)

    def agent(self, label: str, *scopes: str) -> "ApiCaller":
        """Return an agent of this person."""
        return ApiCaller(self.url, self.post("auth/agent-token", {"label": label, "scopes": scopes}).json()["token"])


@dataclass
class Desk:
    """The served work app."""

    running: Running

    @property
    def url(self) -> str:
        """Its root address."""
        return f"http://127.0.0.1:{self.running.records_port}"

    def caller(self, name: str) -> ApiCaller:
        """Return a person of the demonstration at the API."""
        credentials = {"username": name, "password": PASSWORD}
        answer = httpx.post(f"{self.url}/api/auth/login", json=credentials, timeout=ANSWER_S, verify=TLS)
        return ApiCaller(self.url, answer.json()["token"])

    def page(self, browser: Browser, **options: Any) -> Any:
        """Return a watched page of the app. The browser also logs refusals to the console."""
        return open_watched_page(browser, self.url, **{"expected": ("400", "401", "404"), **options})

    async def sign_in(self, page: Page, name: str, path: str = "/") -> None:
        """Sign in as that person, and open that page."""
        await page.goto("/signin")
        await page.fill("#username", name)
        await page.fill("#password", PASSWORD)
        # The page shows who is signed in already while it asks for another session, and has requests of its own.
        async with page.expect_response(lambda answer: answer.request.method == "POST" and _is_sign_in(answer.url)):
            await page.press("#password", "Enter")
        # Hidden when the page is narrow.
        await page.wait_for_selector(f".side-person:has-text('{name}')", state="attached")
        if path != "/":
            await page.goto(path)
            await page.wait_for_selector("main h1")


def _is_sign_in(url: str) -> bool:
    return urlsplit(url).path == "/signin"


def require_pages() -> None:
    """Skip the test if the pages of the work app are not built."""
    if Assets.of_package().entry_assets("work") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The app with the demonstration; the test is skipped when the pages are not built."""
    require_pages()
    with served(tmp_path_factory.mktemp("desk") / "data", "--demo", service="both") as running:
        yield Desk(running)


@pytest.fixture
def mark() -> str:
    """A word for the titles of this run of the test, because another run may have left records in the same app."""
    return secrets.token_hex(3)


@pytest.fixture
def alice(desk: Desk) -> ApiCaller:
    """The sales manager, at the API."""
    return desk.caller("alice")


def filter_parameter(*conditions: tuple[str, str, object]) -> str:
    """Return the query of a list's address for these conditions."""
    return "filter=" + json.dumps([{"field": field, "op": op, "value": value} for field, op, value in conditions])
