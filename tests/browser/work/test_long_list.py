"""A list that is higher than the maximum height of a browser's element: its scrollbar is scaled, and its last row can
be reached."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.work.conftest import Desk
from tests.servers.countersign import served

ROWS = 400_000
MANY = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO activity (id, revision, changed, kind, subject, subject__folded, state, lead)
SELECT printf('ffffff%018x', n), 1, changed, kind, 'Row ' || n, 'row ' || n, state, lead
FROM numbers, (SELECT changed, kind, state, lead FROM activity LIMIT 1)
"""


@pytest.mark.full
async def test_the_last_of_very_many_rows_is_reached_by_key_bar_and_wheel(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    with served(tmp_path / "data", "--demo", service="both") as running:
        with closing(sqlite3.connect(tmp_path / "data/records.sqlite", timeout=60)) as database, database:
            database.execute(MANY, (ROWS,))
        long = Desk(running)
        total = int(long.caller("alice").run("activity.search", limit=1)["total"])
        async with long.page(browser) as page:
            await long.sign_in(page, "alice", "/models/activity")
            await expect(page.locator("[role=grid]")).to_have_attribute("aria-rowcount", str(total + 1))
            await page.focus("[role=grid]")
            await page.keyboard.press("Control+End")
            last_cell = page.locator(f"#cell-{total - 1}-0")
            await expect(last_cell).to_have_text(f"Row {ROWS}")
            await expect(last_cell).to_be_in_viewport()
            await page.evaluate("document.querySelector('[role=grid]').scrollTop = 0")
            await expect(page.locator("#cell-0-0")).to_be_in_viewport()
            await page.evaluate("document.querySelector('[role=grid]').scrollTop = 1e9")
            await expect(last_cell).to_be_in_viewport()
            await page.evaluate("document.querySelector('[role=grid]').scrollTop = 6e6")
            await expect(last_cell).to_have_count(0)
            first_row = page.locator(".grid-body [role=row]").first
            index_before = int(await first_row.get_attribute("aria-rowindex") or 0)
            await page.hover("[role=grid]")
            await page.mouse.wheel(0, 300)

            # The wheel scrolls its usual number of rows, although one pixel of the scrollbar stands for several.
            await expect(first_row).to_have_attribute("aria-rowindex", str(index_before + 10))
