"""A page while the server is down: it says so, reports no input as wrong, and continues by itself."""

import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Desk, require_pages
from tests.figures import Figures
from tests.servers.countersign import served
from tests.servers.process import free_port

AWAY = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE", "ERR_FAILED", "503")
LIVE_S = 5
BUSY_S = 20
"""Long enough for a busy machine, but less than the API lets a watching page wait."""


async def test_pages_go_on_by_themselves_after_a_restart_of_the_server(
    browser: Browser, tmp_path: Path, figures: Figures, pytestconfig: pytest.Config
) -> None:
    require_pages()
    data, ports = tmp_path / "data", (free_port(), free_port())
    settings = {"COUNTERSIGN_GRACE_S": "1"}
    with served(data, "--demo", service="both", ports=ports, settings=settings) as running:
        desk = Desk(running)
        watching = desk.page(browser, expected=AWAY)
        page = await watching.__aenter__()
        await desk.sign_in(page, "alice", "/approvals")
        await page.wait_for_selector(".live[data-state=live]")
        form = await page.context.new_page()
        await form.goto(f"{desk.url}/models/lead/new")
        await form.fill("#title", "Typed while it was away")
    await page.wait_for_selector(".live[data-state=reconnecting]")
    await page.wait_for_selector(".frame >> text=Offline")
    await form.press("#title", "Enter")
    await expect(form.locator("[role=alert] h2")).to_have_text("Something went wrong")
    with served(data, service="both", ports=ports):
        back_s = time.monotonic()
        await page.wait_for_selector(".live[data-state=live]")
        took_s = time.monotonic() - back_s
        await expect(page.locator(".frame >> text=Offline")).to_have_count(0)
        await expect(form.locator("[role=alert] h2")).to_have_count(0)
        await form.press("#title", "Enter")
        await form.wait_for_selector("h1:text-is('Typed while it was away')")
        await watching.__aexit__(None, None, None)

    figures["live_again_s"] = round(took_s, 2)
    assert took_s < (LIVE_S if pytestconfig.getoption("--full") else BUSY_S)
