"""Takes the pictures of the README from the demonstration data: the products of the store, and a proposal of an agent.

    python -m tools.readme_pictures

Needs a built package (`make setup`) and Chromium.
"""

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.async_api import Browser

from tests.browser.work.conftest import Desk
from tests.servers.chromium import PROGRAMS, launch_chromium
from tests.servers.countersign import Running, served

IMAGES = Path(__file__).parents[1] / "docs" / "images"
VIEWPORT = {"width": 1280, "height": 800}


async def take(browser: Browser, services: Running) -> None:
    """Write both pictures."""
    context = await browser.new_context(base_url=services.url, viewport=VIEWPORT, locale="en-GB")
    page = await context.new_page()
    await page.goto("/")
    await page.wait_for_selector(".card")
    await page.screenshot(path=IMAGES / "store.png")
    await context.close()

    desk = Desk(services)
    agent = desk.caller("alice").agent("mailbot", "lead.*")
    leads = agent.run("lead.list", filter=[{"field": "stage", "op": "eq", "value": "new"}], limit=2)
    for lead in leads:
        agent.run("lead.delete", id=lead["id"], cascade=True)
    context = await browser.new_context(base_url=desk.url, viewport=VIEWPORT, locale="en-GB")
    page = await context.new_page()
    await desk.sign_in(page, "alice", "/approvals")
    await page.wait_for_selector("text=Approve")
    await page.screenshot(path=IMAGES / "records.png")
    await context.close()


async def main() -> None:
    """Serve the demonstration data and take the pictures."""
    program = next((program_path for name in PROGRAMS if (program_path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("Chromium is not installed (Debian: apt install chromium)")
    with TemporaryDirectory() as folder, served(Path(folder, "data"), "--demo", service="both") as services:
        async with launch_chromium(program) as browser:
            await take(browser, services)


if __name__ == "__main__":
    asyncio.run(main())
