"""Starts Debian's Firefox for tests of pages, and controls it with its built-in WebDriver BiDi protocol."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.servers.process import installed_program, run_until_ready

LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "End": "\ue010", "ArrowDown": "\ue015"}
WAIT_S = 60
PAINTED = """Promise.race([
    new Promise((painted) => requestAnimationFrame(() => setTimeout(painted))),
    new Promise((late) => setTimeout(late, 500)),
])"""
# Firefox sends no requests other than the requests of the test: no updates, no pages of the vendor, no telemetry.
PREFERENCES: Mapping[str, object] = {
    "app.update.enabled": False,
    "browser.aboutConfig.showWarning": False,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "intl.accept_languages": "en-GB",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
}


@pytest.fixture(scope="session")
def firefox() -> Path:
    """Return the path of Firefox, or skip the test if Firefox cannot be installed."""
    return installed_program("firefox-esr", "firefox-esr")


class Page:
    """The only page of a running Firefox."""

    def __init__(self, socket: ClientConnection, context: str) -> None:
        self._socket = socket
        self._context = context
        self._commands = 0
        self.errors: list[str] = []
        """The errors in the console of the page."""

    async def command(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command of WebDriver BiDi and return its result."""
        self._commands += 1
        number = self._commands
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message: dict[str, Any] = json.loads(await asyncio.wait_for(self._socket.recv(), WAIT_S * 2))
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(str(message["params"]["text"]))
            if message.get("id") == number:
                assert message["type"] == "success", (method, message)
                return message["result"]

    async def open(self) -> None:
        """Start a session and find the page."""
        await self.command("session.new", capabilities={})
        await self.command("session.subscribe", events=["log.entryAdded"])
        tree = await self.command("browsingContext.getTree")
        self._context = tree["contexts"][0]["context"]

    async def goto(self, url: str) -> None:
        """Open this address and wait until it is loaded."""
        await self.command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression if it is a primitive value."""
        target = {"context": self._context}
        message = await self.command("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert message["type"] == "success", message
        return message["result"].get("value")

    async def wait(self, expression: str) -> None:
        """Wait until the JavaScript expression is true."""
        for _ in range(WAIT_S * 10):
            if await self.evaluate(f"Boolean({expression})"):
                return
            await asyncio.sleep(0.1)
        page_text = await self.evaluate("document.body.innerText.slice(0, 500)")
        raise AssertionError(f"{expression} does not become true: {page_text}")

    async def wait_text(self, selector: str, text: str) -> None:
        """Wait until an element that matches the selector contains the text."""
        elements = f"[...document.querySelectorAll({json.dumps(selector)})]"
        await self.wait(f"{elements}.some((each) => each.textContent.includes({json.dumps(text)}))")

    async def wait_focus(self, selector: str) -> None:
        """Wait until the focused element matches the selector."""
        await self.wait(f"document.activeElement?.matches({json.dumps(selector)})")

    async def press(self, *keys: str) -> None:
        """Press the keys one after the other. A key is a name in KEYS or a character. A page listens for its shortcuts
        only after it is painted."""
        await self.evaluate(PAINTED)
        strokes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": stroke} for stroke in strokes for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        await self.command("input.performActions", context=self._context, actions=[source])

    async def type(self, text: str) -> None:
        """Type the text into the focused element."""
        await self.press(*text)


@asynccontextmanager
async def launch_firefox(firefox: Path, profile: Path) -> AsyncGenerator[Page]:
    """Run Firefox without a window until the block ends, with a new profile folder. Return its page."""
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    log = profile.with_name(profile.name + ".log")
    command = ["env", f"HOME={profile}", "MOZ_HEADLESS=1", firefox, "--remote-debugging-port", "0", "--no-remote"]
    with run_until_ready(
        [*command, "--profile", profile, "about:blank"],
        is_ready=lambda: LISTENING.search(log.read_text(errors="replace")) is not None,
        log=log,
    ):
        match = LISTENING.search(log.read_text(errors="replace"))
        assert match is not None
        async with connect(f"{match[1]}/session", max_size=1 << 24) as socket:
            page = Page(socket, "")
            await page.open()
            yield page
