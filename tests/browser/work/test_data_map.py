"""The data map shows administrators what agents see of each field, and takes their decisions on connected tables."""

import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.waiting import press
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import PASSWORD, Desk, require_pages
from tests.servers.countersign import COMMAND, environment, served

TABLES = """
CREATE TABLE customer (
    id INTEGER PRIMARY KEY, first_name TEXT, email TEXT, hobby TEXT, remark TEXT, born DATE, password TEXT
);
CREATE TABLE gadget (id INTEGER PRIMARY KEY, color TEXT);
INSERT INTO customer VALUES (1, 'Ada', 'ada@example.com', 'tea', 'calls', '1985-12-10', 'x');
"""
REASON = "looked at its values"


class ConnectedDesk(Desk):
    """The app of a service without a store, over a table of another application."""

    @property
    def url(self) -> str:
        """Its root address."""
        return self.running.url

    @property
    def file(self) -> Path:
        """The module text."""
        return self.running.log.parent / "shop.py"


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[ConnectedDesk]:
    """The app with the module text that `countersign connect` writes, and an administrator."""
    require_pages()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(TABLES)
    subprocess.run([*COMMAND, "connect", "sqlite:///shop.db"], cwd=tmp_path, env=environment(), check=True)
    settings = {"COUNTERSIGN_EXISTING_URL": f"sqlite:///{tmp_path / 'shop.db'}"}
    options = ("--try", "--modules", str(tmp_path / "shop.py"))
    with served(tmp_path / "data", *options, service="records", settings=settings) as running:
        link = re.search(r"/setup\?token=(\S+)", running.log.read_text())
        assert link is not None
        form = {"token": link[1], "username": "root", "password": PASSWORD}
        assert httpx.post(f"{running.url}/setup", data=form, timeout=60).status_code in (200, 303)
        yield ConnectedDesk(running)


def row_of(page: Page, name: str) -> Locator:
    """Return the row of a field of the customer."""
    return page.locator(f"tr:has(code:text-is('{name}'))")


async def test_an_administrator_sees_which_fields_agents_see_as_placeholders(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/data")
        leads = page.locator("details", has=page.locator("summary b:text-is('Leads')"))

        await expect(leads.locator("tr:has(code:text-is('contact_email'))")).to_contain_text("EMAIL_…")
        await expect(leads.locator("tr:has(code:text-is('stage'))")).to_contain_text("In clear")
        # Without connected tables there is nothing to decide.
        await expect(page.locator("button:text-is('To decide'), .decided-share")).to_have_count(0)

        await page.click("button:text-is('As placeholders')")
        await expect(leads.locator("code:text-is('contact_email')")).to_be_visible()
        await expect(leads.locator("code:text-is('stage')")).to_have_count(0)

        await page.click("button:text-is('In clear')")
        await page.fill("#find", "lead.st")
        await expect(page.locator("main h2")).to_have_text("No fields match")
        await page.fill("#find", "stage")
        await expect(page.locator("main tbody tr")).to_have_count(1)
        await page.reload()
        await expect(page.locator("main tbody tr")).to_have_count(1)


async def test_people_who_do_not_manage_people_have_no_data_map(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/data")

        await expect(page.locator("main h1")).to_have_text("Page not found")
        await expect(page.locator("a[href='/data']")).to_have_count(0)


async def test_decisions_are_written_into_the_module_text(browser: Browser, connected: ConnectedDesk) -> None:
    async with connected.page(browser) as page:
        await connected.sign_in(page, "root", "/data")
        hobby, remark = row_of(page, "hobby"), row_of(page, "remark")
        await expect(page.locator(".decided-share")).to_contain_text("0 of 4 fields decided")
        await expect(hobby).to_contain_text("text that no one has looked at")
        await expect(row_of(page, "password").get_by_role("button")).to_have_count(0)

        await hobby.get_by_role("button").first.click()
        await page.fill("#decide-label", "hobby")
        await page.fill("#decide-reason", REASON)
        await page.press("#decide-reason", "Enter")

        await expect(hobby).to_contain_text("Decided by root")
        await expect(hobby).to_contain_text("after the next start: HOBBY_…")
        await expect(page.locator(".decided-share")).to_contain_text("1 of 4 fields decided")
        await expect(page.locator(".notice")).to_contain_text("when the server starts again")
        await expect(page.locator(".toasts")).to_contain_text("shop.py")
        assert 'hobby = Text(personal="HOBBY")  # decided by root on ' in connected.file.read_text()

        # The focus is on the next field, and the reason is there already.
        await expect(remark.get_by_role("button").first).to_be_focused()
        await remark.get_by_role("button", name="Hidden:").click()
        await expect(page.locator("#decide-reason")).to_have_value(REASON)
        await page.click("dialog[open] .button.strong")
        await expect(remark).to_contain_text("after the next start: Nothing")

        # A decision can be changed.
        await remark.get_by_role("button", name="Change").click()
        await page.locator("dialog[open] .segments button:text-is('Personal')").click()
        await page.check("[name=decide-confirmed]")
        await page.click("dialog[open] button[type=submit]")
        await expect(remark).not_to_contain_text("after the next start")
        await page.reload()
        await expect(page.locator(".decided-share")).to_contain_text("2 of 4 fields decided")

        await page.click("button:text-is('To decide')")
        await expect(page.locator("main tbody tr")).to_have_count(2)


async def test_values_are_shown_to_agents_only_after_a_confirmation(
    browser: Browser, connected: ConnectedDesk
) -> None:
    async with connected.page(browser) as page:
        await connected.sign_in(page, "root", "/data")
        hobby = row_of(page, "hobby")
        before = connected.file.read_text()
        await hobby.get_by_role("button", name="Not personal:").click()
        await page.fill("#decide-reason", REASON)

        await page.press("#decide-reason", "Enter")
        await expect(page.locator("dialog[open] [name=decide-confirmed]:invalid")).to_be_visible()
        assert connected.file.read_text() == before

        await page.check("[name=decide-confirmed]")
        await page.click("dialog[open] button:text-is('Show values to agents')")
        await expect(hobby).to_contain_text("after the next start: In clear")
        assert "hobby = Text()  # decided by root" in connected.file.read_text()

    decisions = [{"field": "command", "op": "eq", "value": "setting.decide"}]
    entries = connected.caller("root").run("audit_entry.list", filter=decisions)
    assert ['"widens":true' in each["changes"]["value"][1] for each in entries] == [True]


async def test_fields_are_decided_on_with_the_keyboard_alone(browser: Browser, connected: ConnectedDesk) -> None:
    async with connected.page(browser) as page:
        await connected.sign_in(page, "root", "/data?show=undecided")
        await expect(page.locator("main tbody tr")).to_have_count(4)

        await press(page, "j")
        await expect(row_of(page, "hobby").get_by_role("button").first).to_be_focused()
        await press(page, "j")
        await expect(row_of(page, "remark").get_by_role("button").first).to_be_focused()
        await press(page, "k")
        await press(page, "Enter")
        await expect(page.locator("#decide-reason")).to_be_focused()
        await page.keyboard.type(REASON)
        await press(page, "Escape")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        await expect(row_of(page, "hobby").get_by_role("button").first).to_be_focused()
        await press(page, "Enter")
        await expect(page.locator("#decide-reason")).to_be_focused()
        await page.keyboard.type(REASON)
        await press(page, "Enter")

        await expect(page.locator("main tbody tr")).to_have_count(3)
        await expect(row_of(page, "remark").get_by_role("button").first).to_be_focused()


async def test_a_field_that_has_changed_meanwhile_is_not_decided_on(
    browser: Browser, connected: ConnectedDesk
) -> None:
    async with connected.page(browser) as page:
        await connected.sign_in(page, "root", "/data")
        await row_of(page, "hobby").get_by_role("button", name="Hidden:").click()
        await page.fill("#decide-reason", REASON)
        changed = connected.file.read_text().replace("    hobby = Text(", '    hobby = Text(label="Pastime", ')
        connected.file.write_text(changed)

        await page.press("#decide-reason", "Enter")
        await expect(page.locator("dialog[open] .summary")).to_contain_text("customer.hobby has changed in shop.py")
        assert connected.file.read_text() == changed
        await page.click("dialog[open] button:text-is('Reload data map')")
        await row_of(page, "hobby").get_by_role("button", name="Hidden:").click()
        await page.fill("#decide-reason", REASON)
        await page.press("#decide-reason", "Enter")

        await expect(row_of(page, "hobby")).to_contain_text("Decided by root")


async def test_a_map_that_cannot_be_loaded_says_why_and_is_loaded_again(
    browser: Browser, connected: ConnectedDesk
) -> None:
    async with connected.page(browser) as page:
        written = connected.file.read_text()
        connected.file.write_text("import os")
        await connected.sign_in(page, "root", "/data")

        await expect(page.locator(".state.failed")).to_contain_text("shop.py: line 1")
        # What agents see now is shown all the same.
        await expect(row_of(page, "email")).to_contain_text("EMAIL_…")
        connected.file.write_text(written)
        await page.click(".state.failed button")

        await expect(page.locator(".decided-share")).to_be_visible()
        await expect(page.locator(".state.failed")).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "scheme", "locale", "title"),
    [(1440, "light", "en-US", "Data map"), (390, "dark", "de-DE", "Datenkarte")],
)
async def test_the_map_and_its_dialog_are_accessible(
    browser: Browser, connected: ConnectedDesk, axe: str, *, width: int, scheme: str, locale: str, title: str
) -> None:
    async with connected.page(browser, width=width, scheme=scheme, locale=locale) as page:
        await connected.sign_in(page, "root", "/data")
        await expect(page.locator("main h1")).to_have_text(title)
        await expect(page.locator(".decided-share")).to_be_visible()
        await assert_accessible(page, axe)

        await row_of(page, "hobby").get_by_role("button").nth(1).click()
        await expect(page.locator("[name=decide-confirmed]")).to_be_visible()
        await assert_accessible(page, axe)
        await page.fill("#decide-reason", REASON)
        await page.check("[name=decide-confirmed]")
        await page.press("#decide-reason", "Enter")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        await assert_accessible(page, axe)
        is_wider = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert is_wider is False
