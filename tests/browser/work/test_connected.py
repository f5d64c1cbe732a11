"""The pages over the tables of a connected database, which are only read."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.browser.waiting import press
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import PASSWORD, Desk, require_pages
from tests.servers.countersign import served

COUNT = 60
TEXT = '''"""A shop."""

from countersign.declare import Decimal, Model, Module, Money, Number, Ref, Table, Text


class Category(Model, table=Table("category", key="id")):
    """A category."""

    title = Text()


class Product(Model, table=Table("product", key="id")):
    """A product."""

    title = Text()
    price_minor = Money(column="price")
    weight = Decimal()
    stock = Number()
    category = Ref("category", columns="category_id")
    color = Text()
    material = Text()
    supplier = Text()
    warehouse = Text()
    shelf = Text()


module = Module("shop", version="1.0.0", models=(Category, Product), search_path=("public",))
'''
SCHEMA = """
CREATE TABLE category (id INTEGER PRIMARY KEY, title TEXT);
CREATE TABLE product (
    id INTEGER PRIMARY KEY, title TEXT, price REAL, weight REAL, stock INTEGER, category_id INTEGER REFERENCES category,
    color TEXT, material TEXT, supplier TEXT, warehouse TEXT, shelf TEXT
);
INSERT INTO category VALUES (1, 'Chairs');
"""


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The app with an SQLite file of another application, and an administrator."""
    require_pages()
    folder = tmp_path_factory.mktemp("connected")
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.executescript(SCHEMA)
        for number in range(1, COUNT + 1):
            numbers, texts = (number + 0.5, 1.25, number), ("red", "oak", "Ash & Sons", "Hall 1", "A-1")
            values = (number, f"Chair {number}", *numbers, *texts)
            connection.execute("INSERT INTO product VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)", values)
    (folder / "shop.py").write_text(TEXT)
    settings = {"COUNTERSIGN_EXISTING_URL": f"sqlite:///{folder / 'shop.db'}"}
    options = ("--try", "--modules", str(folder / "shop.py"))
    with served(folder / "data", *options, service="records", settings=settings) as running:
        link = re.search(r"/setup\?token=(\S+)", running.log.read_text())
        assert link is not None
        form = {"token": link[1], "username": "root", "password": PASSWORD}
        assert httpx.post(f"{running.url}/setup", data=form, timeout=60).status_code in (200, 303)
        yield ConnectedDesk(running)


class ConnectedDesk(Desk):
    """The app of a service without a store."""

    @property
    def url(self) -> str:
        """Its root address."""
        return self.running.url


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
async def test_a_connected_table_is_read_and_offers_no_change(
    browser: Browser, connected: Desk, axe: str, width: int, scheme: str
) -> None:
    async with connected.page(browser, width=width, scheme=scheme) as page:
        await connected.sign_in(page, "root", "/models/product")
        await expect(page.locator("main .chip:text-is('Read only')")).to_have_count(1)
        await expect(page.get_by_text(f"{COUNT} records")).to_be_visible()
        await expect(page.locator("main a[href$='/new'], main a[href$='/import']")).to_have_count(0)
        await expect(page.locator("main [role=grid] [type=checkbox]")).to_have_count(0)
        assert "F2" not in await page.locator(".foot-bar").inner_text()
        await assert_accessible(page, axe)
        await page.get_by_text("Chair 1", exact=True).first.click()
        await expect(page.locator("main h1, main h2").filter(has_text="Chair 1").first).to_be_visible()
        await expect(page.get_by_text("1.25", exact=True).first).to_be_visible()
        await page.locator("main [aria-label='More']").first.click()
        await expect(page.locator("[role=menuitem]").first).to_be_visible()
        changes = "[role=menuitem]:has-text('Edit'), [role=menuitem]:has-text('Delete')"
        await expect(page.locator(changes)).to_have_count(0)
        await page.keyboard.press("Escape")
        await assert_accessible(page, axe)


async def test_a_connected_table_is_searched_from_every_page(browser: Browser, connected: Desk) -> None:
    async with connected.page(browser) as page:
        await connected.sign_in(page, "root", "/models/category")
        await press(page, "Control+k")
        await page.wait_for_selector("#palette:focus")
        await page.fill("#palette", "chair 37")
        await expect(page.locator("[role=option]").filter(has_text="Chair 37").first).to_be_visible()
        await page.locator("[role=option]").filter(has_text="Chair 37").first.click()
        await expect(page.locator("main h1, main h2").filter(has_text="Chair 37").first).to_be_visible()
