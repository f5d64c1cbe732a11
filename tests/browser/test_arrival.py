"""An agent that knows only the API's address gets access. Its person decides in a browser without scripts."""

import json
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from tests import docs
from tests.browser import shop as shops
from tests.browser.pages import heading, open_page, send
from tests.browser.shop import CUSTOMER, PASSWORD, TLS, Shop
from tests.servers.countersign import COMMAND, environment, served

AGENT = docs.ROOT / "examples/store_agent/agent.py"
MOST_REQUESTS = 6
POLL = ("POST", "/auth/me")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A store set up by its operator, which logs its requests."""
    settings = {"COUNTERSIGN_LOG_REQUESTS": "true", "COUNTERSIGN_POLL_INTERVAL_S": "1"}
    with served(tmp_path / "data", settings=settings) as running:
        arrival_shop = shops.set_up(running)
        wait_for_logged_request(arrival_shop, ("POST", "/redeem"))
        yield arrival_shop


class Arriving:
    """A program that requests access to the store, and its output so far."""

    def __init__(self, *command: str | Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            [str(argument) for argument in command],
            env=environment(PYTHONUNBUFFERED="1", **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._watch = threading.Timer(300, self.process.kill)
        self._watch.start()

    def reads(self, pattern: str) -> re.Match[str]:
        """Wait until its output matches."""
        assert self.process.stdout is not None
        output = ""
        while letter := self.process.stdout.read(1):
            output += letter
            if match := re.search(pattern, output):
                return match
        raise AssertionError(output)

    def answer(self, text: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ends(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and its last output."""
        remaining_output, _ = self.process.communicate(timeout=300)
        self._watch.cancel()
        self._watch.join()
        return self.process.returncode, remaining_output


def logged_requests_of(shop: Shop) -> list[tuple[str, str]]:
    """Method and route of every request the store has answered."""
    lines = [json.loads(line) for line in shop.running.log.read_text().splitlines() if line.startswith("{")]
    return [(line["method"], line["route"]) for line in lines if line.get("event") == "request"]


def wait_for_logged_request(shop: Shop, last_request: tuple[str, str]) -> list[tuple[str, str]]:
    """Wait until the request `last` is in the log, because an answer is sent before its line is written. Return the
    logged requests."""
    until = time.monotonic() + 60
    while (requests := logged_requests_of(shop))[-1:] != [last_request]:
        assert time.monotonic() < until, f"the last request is {requests[-1:]} instead of {last_request}"
        time.sleep(0.1)
    return requests


async def decide(browser: Browser, shop: Shop, link: str, code: str, decision: str = "Allow") -> str:
    """Do the person's part: sign in, type the code and decide. Return the heading of the next page."""
    async with open_page(browser, shop.running, java_script_enabled=False) as (_, page):
        await page.goto(link)
        await send(page, email=CUSTOMER, password=PASSWORD)
        await page.fill("#user_code", code)
        async with page.expect_navigation():
            await page.click(f"button:text-is('{decision}')")
        return await heading(page)


async def test_an_agent_that_knows_the_base_reaches_its_library_in_six_requests(browser: Browser, shop: Shop) -> None:
    count_before = len(logged_requests_of(shop))
    agent = Arriving(sys.executable, AGENT, shop.base, "--email", CUSTOMER, "--keep")
    prompt = agent.reads(r"(?s)calls itself (.*)\[y/N\] ")
    assert "Countersign" in prompt[1]
    assert "read:library" in prompt[1]
    logged_requests = wait_for_logged_request(shop, ("GET", "/.well-known/oauth-authorization-server"))
    assert len(logged_requests) - count_before == 3, "nothing is sent while the person has not agreed"
    agent.answer("y")
    link = agent.reads(r"open (\S+)\n")[1]
    code = agent.reads(r"the code (\S+)\n")[1]

    decision_heading = await decide(browser, shop, link, code)

    assert decision_heading == "Connected"
    assert agent.ends() == (0, "night-ferry: Night Ferry\n")
    logged_requests = wait_for_logged_request(shop, ("GET", "/library"))[count_before:]
    pages = [request for request in logged_requests if request[1] in ("/auth/claim", "/auth/signin")]
    requests = [request for request in logged_requests if request not in pages and request != POLL]
    assert len(requests) <= MOST_REQUESTS
    assert requests[-1] == ("GET", "/library")


async def test_an_agent_without_its_persons_yes_registers_nowhere(shop: Shop) -> None:
    agent = Arriving(sys.executable, AGENT, shop.base, "--email", CUSTOMER)
    agent.reads(r"\[y/N\] ")
    agent.answer("n")

    code, output = agent.ends()

    assert (code, output.strip()) == (1, "not without your yes")
    # The log is read after the line of a later request.
    httpx.get(f"{shop.base}/auth/me", timeout=60, verify=TLS)
    assert ("POST", "/auth/register") not in wait_for_logged_request(shop, ("GET", "/auth/me"))


def login(shop: Shop, home: Path, *options: str) -> tuple[Arriving, str, str]:
    """Return the command that signs in, with link and code."""
    login_settings = variables(shop, home)
    command = Arriving(*COMMAND, "login", "--email", CUSTOMER, *options, **login_settings)
    return command, command.reads(r"Open (\S+)\n")[1], command.reads(r"the code (\S+)\n")[1]


async def test_login_to_publish_is_refused_without_the_right_and_reports_the_refusal_on_both_sides(
    browser: Browser, shop: Shop, tmp_path: Path
) -> None:
    command, link, _ = login(shop, tmp_path, "--publish")
    async with open_page(browser, shop.running, java_script_enabled=False) as (_, page):
        await page.goto(link)
        await send(page, email=CUSTOMER, password=PASSWORD)
        page_text = await page.inner_text("main")
        async with page.expect_navigation():
            await page.click("button:text-is('Tell the agent to ask for less')")
        decision_heading = await heading(page)

    assert "You cannot allow it" in page_text
    assert "publish releases and upload files" in page_text.partition("You cannot allow it")[2]
    assert decision_heading == "Not connected"
    exit_code, output = command.ends()
    assert exit_code == 4
    assert "this account may not publish" in output
    assert not (tmp_path / "config/countersign").exists()


def variables(shop: Shop, home: Path) -> dict[str, Any]:
    """Return the environment variables of a new user."""
    return {"COUNTERSIGN_SERVER": shop.url, "XDG_CONFIG_HOME": str(home / "config"), "NO_COLOR": "1"}


async def test_login_keeps_a_token_once_the_person_has_confirmed(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    command, link, code = login(shop, tmp_path)

    assert await decide(browser, shop, link, code) == "Connected"

    assert command.ends()[0] == 0
    credentials_file = tmp_path / "config/countersign/credentials.json"
    assert stat.S_IMODE(credentials_file.stat().st_mode) == 0o600
    login_settings = environment(**variables(shop, tmp_path))
    for subcommand, line in (("whoami", f"account: {CUSTOMER}"), ("library", "night-ferry")):
        process = subprocess.run(
            [*COMMAND, subcommand], env=login_settings, capture_output=True, text=True, check=False, timeout=120
        )
        assert process.returncode == 0, process.stderr
        assert line in process.stdout


async def test_login_that_is_declined_fails_and_keeps_nothing(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    command, link, code = login(shop, tmp_path)

    assert await decide(browser, shop, link, code, "Decline") == "Declined"

    exit_code, output = command.ends()
    assert exit_code == 4
    assert "the person declined" in output
    assert not (tmp_path / "config/countersign").exists()
