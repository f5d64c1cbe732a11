"""The list of any model: a grid of all its records, by keyboard alone."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.rules import settle
from tests.browser.waiting import box, clipboard_text, eventually, press, until_equal
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk, filter_parameter


async def is_at(page: Page, cell: str) -> None:
    """Wait until this cell has the keyboard focus."""
    await expect(page.locator("[role=grid]")).to_have_attribute("aria-activedescendant", cell)


def count(alice: ApiCaller) -> int:
    """Return the number of leads."""
    return int(alice.run("lead.search", limit=1)["total"])


async def width(page: Page, heading: str) -> int:
    """Return the width of a column in pixels."""
    await settle(page)
    return round((await box(page.locator(f"[role=columnheader]:text-is('{heading}')")))["width"])


async def is_wide(page: Page, heading: str, expected: int) -> None:
    """Wait until a column has this width in pixels."""

    async def is_so() -> None:
        assert await width(page, heading) == expected

    await eventually(is_so)


async def test_a_list_can_be_navigated_sorted_and_opened_by_keyboard(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    total = count(alice)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?view=all")
        await expect(page.locator("[role=grid]")).to_have_attribute("aria-rowcount", str(total + 1))
        while not await page.evaluate("document.activeElement.matches('[role=grid]')"):
            await page.keyboard.press("Tab")
        await is_at(page, "cell-0-0")
        await press(page, "ArrowDown", "End")
        await is_at(page, "cell-1-7")
        await press(page, "Control+End")
        await is_at(page, f"cell-{total - 1}-7")
        await page.wait_for_selector(f"#cell-{total - 1}-0 a")
        await press(page, "Control+Home", "ArrowUp")
        await is_at(page, "cell--1-0")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("[role=columnheader][aria-sort=ascending]")
        await expect(page).to_have_url(re.compile(r"\?view=all&order=title$"))
        await is_at(page, "cell--1-0")
        first_title = alice.run("lead.list", order=[{"field": "title", "dir": "asc"}], limit=1)[0]["title"]
        await expect(page.locator("#cell-0-0")).to_have_text(first_title)
        await press(page, "ArrowDown")
        await is_at(page, "cell-0-0")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("h1:focus")

        await expect(page.locator("h1")).to_have_text(first_title)


async def test_the_first_rows_do_not_wait_for_the_count(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        # Requests that the first page still sends do not count.
        await page.goto("about:blank")
        requested_paths: list[str] = []
        page.on("request", lambda request: requested_paths.append(urlsplit(request.url).path))
        await page.goto("/models/lead?view=all")
        await expect(page.locator(".count")).to_have_text(f"{count(alice)} records")

        assert requested_paths.index("/api/lead/list") < requested_paths.index("/api/lead/search")


async def test_the_filter_key_focuses_the_filter_and_escape_returns_to_the_list(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.wait_for_selector("#cell-0-0 a")
        await page.focus("[role=grid]")
        await press(page, "f")
        await expect(page.locator("#filter-field")).to_be_focused()
        await press(page, "Escape")
        await expect(page.locator("[role=grid]")).to_be_focused()
        await expect(page.locator("#filter-field")).to_have_count(0)


async def test_the_sheet_has_all_keys_of_the_page(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("title", "eq", "No such lead")))
        await page.wait_for_selector("text=Remove a filter")
        await press(page, "?")
        await page.wait_for_selector("dialog[open] kbd")

        async def has_all_keys() -> None:
            keys = await page.locator("dialog[open] kbd").all_inner_texts()
            assert {"↑", "Home", "PageDown", "Enter", "F2", "Space", "Ctrl", "K", "Escape", "f", "c", "?"} <= set(keys)

        await eventually(has_all_keys)


@pytest.mark.full
async def test_a_filter_is_built_kept_in_the_address_and_removed(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?view=all")
        await page.wait_for_selector("#cell-0-0 a")
        await press(page, "f")
        await page.select_option("#filter-field", "expected_revenue_minor")
        await page.select_option("#filter-op", "gte")
        await page.fill("#filter-value", "80,000.00")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".conditions")

        async def is_in_the_address() -> None:
            query = parse_qs(urlsplit(page.url).query)
            assert query["filter"] == ['[{"field":"expected_revenue_minor","op":"gte","value":8000000}]']

        await eventually(is_in_the_address)
        await expect(page.locator("#panel-filter")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.select_option("#filter-field", "stage")
        await page.select_option("#filter-op", "in")
        await page.fill("#filter-value", "new\nwon")
        await page.click("button:text-is('Apply')")
        tokens = page.locator(".filter-token")
        await expect(tokens).to_have_text(["Expected revenueis at least80,000.00", "Stageis one ofNew, Won"])
        conditions = [("expected_revenue_minor", "gte", 8_000_000), ("stage", "in", ["new", "won"])]
        lead_filter = [{"field": field, "op": op, "value": value} for field, op, value in conditions]
        few = f"{alice.run('lead.search', filter=lead_filter, limit=1)['total']} records"
        await expect(page.locator(".count")).to_have_text(few)
        await page.reload()
        await expect(page.locator(".count")).to_have_text(few)
        # A click on a condition's value opens it for a change.
        await tokens.nth(0).locator("button >> nth=2").click()
        await expect(page.locator("#filter-value")).to_be_focused()
        await expect(page.locator("#filter-value")).to_have_value("80000.00")
        await page.fill("#filter-value", "90,000")
        await page.keyboard.press("Enter")
        await expect(tokens.nth(0)).to_contain_text("90,000.00")
        await page.click("[aria-label='Remove filter: Stage is one of new, won']")
        await expect(tokens).to_have_count(1)
        await page.click("[aria-label^='Remove filter: Expected revenue']")

        await expect(page.locator(".count")).to_have_text(f"{count(alice)} records")


@pytest.mark.full
async def test_only_the_operators_of_the_api_are_offered(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.click("#panel-filter")
        offered = "[...document.querySelectorAll('#filter-op option')].map(each => each.value)"
        await page.select_option("#filter-field", "title")
        of_title = ["contains", "eq", "ne", "in", "is_null", "is_null.not", "gt", "gte", "lt", "lte"]
        await until_equal(page, offered, of_title)
        await page.select_option("#filter-field", "party")
        await until_equal(page, offered, ["eq", "ne", "in", "is_null", "is_null.not"])
        await page.select_option("#filter-field", "stage")
        await until_equal(page, f"{offered}.includes('eq')", expected=True)
        await until_equal(page, f"{offered}.includes('contains')", expected=False)


@pytest.mark.full
async def test_a_masked_field_is_neither_filtered_nor_sorted(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/models/party?order=email&" + filter_parameter(("email", "eq", "x")))
        await page.wait_for_selector("#cell-0-0 .masked")
        await page.click("#panel-filter")
        await expect(page.locator("#filter-field option[value=name]")).to_have_count(1)

        await expect(page.locator("#filter-field option[value=email]")).to_have_count(0)
        await expect(page.locator(".conditions")).to_have_count(0)
        await expect(page.locator("[aria-sort]")).to_have_count(0)


@pytest.mark.full
async def test_columns_are_chosen_and_kept_in_a_view(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.click("#panel-columns")
        await page.uncheck("label:text-is('Stage') input")
        await page.check("label:text-is('Contact email') input")
        await page.click("[aria-label='Move Contact email left']")

        async def are_chosen() -> None:
            heads = await page.locator("[role=columnheader]").all_text_contents()
            assert heads[-2:] == ["Contact email", "Source"]
            assert "Stage" not in heads

        await eventually(are_chosen)
        await page.check("text=Relaxed rows")
        narrow = await width(page, "Contact email")
        await page.click("[aria-label='Make Contact email wider']")

        async def is_wider() -> int:
            wide = await width(page, "Contact email")
            assert wide > narrow
            return wide

        wide = await eventually(is_wider)
        await page.keyboard.press("Escape")
        await page.click("#panel-views")
        await page.fill("#view-name", "By mail")
        await page.click("text=Save view")
        await expect(page.locator(".views [aria-current]")).to_contain_text("By mail")
        await page.goto("/models/lead")
        await page.click(".views a:has-text('By mail')")

        await expect(page.locator("[role=columnheader]:text-is('Contact email')")).to_have_count(1)
        await expect(page.locator(".grid.relaxed .cell.frozen.head")).to_have_count(1)
        await is_wide(page, "Contact email", wide)


@pytest.mark.full
async def test_a_changed_view_is_marked_and_can_be_saved_or_reset(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?order=-title")
        await page.click("#panel-views")
        await page.fill("#view-name", "Z to A")
        await page.click("text=Save view")
        await expect(page.locator(".views [aria-current]")).to_contain_text("Z to A")
        await expect(page.locator(".view-changed")).to_have_count(0)
        await page.click("[role=columnheader]:text-is('Stage')")
        await page.wait_for_selector(".view-changed")
        await page.click(".tool-bar button:has-text('Reset')")
        await expect(page.locator("[role=columnheader][aria-sort=descending]")).to_have_text("Title")
        await page.click("[role=columnheader]:text-is('Stage')")
        await page.click(".tool-bar button:has-text('Save')")
        await expect(page.locator(".view-changed")).to_have_count(0)
        await page.reload()

        await expect(page.locator("[role=columnheader][aria-sort=ascending]")).to_have_text("Stage")
        await expect(page.locator(".view-changed")).to_have_count(0)


@pytest.mark.full
async def test_a_column_is_resized_by_key_button_and_mouse_and_the_first_column_stays_in_sight(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser, width=900) as page:
        await desk.sign_in(page, "alice", "/models/lead?view=all")
        await page.wait_for_selector("#cell-0-0 a")
        first_width = await width(page, "Title")
        await page.focus("[role=grid]")
        await press(page, "ArrowUp", "Shift+ArrowRight", "Shift+ArrowRight")
        await is_wide(page, "Title", first_width + 32)
        await press(page, "Shift+ArrowLeft")
        await is_wide(page, "Title", first_width + 16)
        await page.reload()
        await page.wait_for_selector("#cell-0-0 a")
        await is_wide(page, "Title", first_width + 16)
        await settle(page)
        edge = await box(page.locator("#cell--1-1 .edge"))
        width_before = (await box(page.locator("#cell--1-1")))["width"]
        await page.mouse.move(edge["x"] + 5, edge["y"] + 5)
        await page.mouse.down()
        await page.mouse.move(edge["x"] + 85, edge["y"] + 5)
        await page.mouse.up()

        async def is_dragged() -> None:
            assert abs((await box(page.locator("#cell--1-1")))["width"] - width_before - 80) < 8

        await eventually(is_dragged)
        await settle(page)
        assert "order=" not in page.url
        await page.focus("[role=grid]")
        await press(page, "ArrowDown", "End")

        title, last_cell = page.locator("#cell-0-0"), page.locator("#cell-0-7")
        await expect(last_cell).to_be_in_viewport()

        async def stays_in_sight() -> None:
            grid, title_box = await box(page.locator("[role=grid]")), await box(title)
            assert abs(title_box["x"] - grid["x"]) <= 2

        await eventually(stays_in_sight)
        for column in (6, 5, 4, 3):
            await press(page, "ArrowLeft")
            await is_at(page, f"cell-0-{column}")

        async def is_beside_the_first() -> None:
            at, title_box = await box(page.locator("#cell-0-3")), await box(title)
            assert at["x"] >= title_box["x"] + title_box["width"] - 1

        await eventually(is_beside_the_first)
        await until_equal(page, "document.querySelector('.grid-body .grid-row').offsetHeight", 30)


@pytest.mark.full
async def test_a_cell_is_edited_in_place_and_the_change_is_undone(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Edited in place", expected_revenue_minor=100)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("id", "eq", lead["id"])))
        await page.wait_for_selector("#cell-0-0 a")
        await page.focus("[role=grid]")
        await press(page, "ArrowRight", "ArrowRight")
        await is_at(page, "cell-0-2")
        await press(page, "F2")
        await expect(page.locator("#cell-editor")).to_be_focused()
        await page.keyboard.type("90071992547409.91")
        await page.keyboard.press("Enter")
        await expect(page.locator("#cell-0-2")).to_have_text("90,071,992,547,409.91")
        assert alice.run("lead.get", id=lead["id"])["expected_revenue_minor"] == 2**53 - 1
        await expect(page.locator("[role=grid]")).to_be_focused()
        await page.click("text=Undo")

        await expect(page.locator("#cell-0-2")).to_have_text("1.00")


@pytest.mark.full
async def test_a_conflicting_edit_asks_which_value_to_keep(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead = alice.run("lead.create", title="Contested")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("id", "eq", lead["id"])))
        await page.wait_for_selector("#cell-0-0 a")
        alice.run("lead.update", id=lead["id"], title="Theirs")
        await page.focus("[role=grid]")
        await press(page, "F2")
        await expect(page.locator("#cell-editor")).to_be_focused()
        await page.keyboard.type("Mine")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("dialog[open]")
        await expect(page.locator("dialog[open]")).to_contain_text("Contested")
        await expect(page.locator("dialog[open]")).to_contain_text("Theirs")
        assert alice.run("lead.get", id=lead["id"])["title"] == "Theirs"
        await page.check("dialog[open] label:has-text('Your change') input")
        await page.click("button:text-is('Save')")

        await expect(page.locator("#cell-0-0")).to_have_text("Mine")


@pytest.mark.full
async def test_the_export_has_the_displayed_columns_and_rows(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        path = "/models/lead?columns=stage,title&order=-title&" + filter_parameter(("stage", "eq", "won"))
        await desk.sign_in(page, "alice", path)
        await page.wait_for_selector("#cell-0-0 a")
        async with page.expect_download() as download:
            await page.click(".tool-bar [aria-label='Export']")
            await page.click("text=Export these columns")
        lines = (await (await download.value).path()).read_text(encoding="utf-8-sig").splitlines()

        assert lines[0] == "Stage,Title"
        assert len(lines) >= 101
        assert all(line.lower().startswith("won,") for line in lines[1:])


@pytest.mark.full
async def test_the_list_is_copied_as_a_call_of_the_api(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        await desk.sign_in(page, "alice", "/models/lead?order=-title")
        await page.click(".tool-bar [aria-label='Export']")
        await page.click("text=Copy as API call")
        await page.wait_for_selector(".toast:has-text('Copied')")

        async def is_copied() -> None:
            call = await clipboard_text(page)
            assert f"{desk.url}/api/lead/search" in call
            assert re.search(r'"order":\[\{"field":"title","dir":"desc"\}\]', call)
            assert "css_" not in call

        await eventually(is_copied)


async def test_the_tabs_are_the_own_and_the_shared_views_also_for_an_administrator(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    by_date = '{"order": [{"field": "due", "dir": "desc"}]}'
    alice.run("view.create", model="activity", name=f"Alice alone {mark}", query=by_date)
    alice.run("view.create", model="activity", name=f"Due, from Alice {mark}", shared=True, query="{}")
    root = desk.caller("root")
    root.run("view.create", model="activity", name=f"Root alone {mark}")
    # An administrator may read everyone's views.
    assert {f"Alice alone {mark}", f"Root alone {mark}"} <= {view["name"] for view in root.run("view.list", limit=200)}

    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/models/activity")
        await expect(page.locator(f".views a:has-text('Root alone {mark}')")).to_have_count(1)
        await expect(page.locator(f".views a:has-text('Due, from Alice {mark}')")).to_have_count(1)
        await expect(page.locator(f".views a:has-text('Alice alone {mark}')")).to_have_count(0)

        # Only its owner changes a person's view.
        await page.click(f".views a:has-text('Due, from Alice {mark}')")
        await expect(page.locator(".views [aria-current]")).to_contain_text(f"Due, from Alice {mark}")
        await page.click("[role=columnheader]:text-is('Subject')")
        await expect(page.locator(".view-changed")).to_have_count(1)
        await expect(page.locator(".tool-bar button:has-text('Save')")).to_have_count(0)

    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/activity")
        await expect(page.locator(f".views a:has-text('Alice alone {mark}')")).to_have_count(1)
        await expect(page.locator(f".views a:has-text('Due, from Alice {mark}')")).to_have_count(1)
        await expect(page.locator(f".views a:has-text('Root alone {mark}')")).to_have_count(0)
        await page.click(f".views a:has-text('Alice alone {mark}')")

        await expect(page.locator("[role=columnheader][aria-sort=descending]")).to_have_text("Due")


async def test_a_view_is_shared_removed_and_brought_back(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    async def is_saved(expected: list[bool]) -> None:
        async def is_so() -> None:
            views = alice.run("view.list", limit=200)
            assert [view["shared"] for view in views if view["name"] == f"Parties for all {mark}"] == expected

        await eventually(is_so)

    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/party?order=-name")
        await page.click("#panel-views")
        await page.fill("#view-name", f"Parties for all {mark}")
        await page.check("text=Share with everyone")
        await page.click("text=Save view")
        await expect(page.locator(".views [aria-current]")).to_contain_text(f"Parties for all {mark}")
        await is_saved([True])
        await page.click("#panel-views")
        await page.click(f"text=Remove Parties for all {mark}")
        # A message stays as long as the pointer is on it.
        await page.hover(".toast")
        await expect(page.locator(f".views a:has-text('Parties for all {mark}')")).to_have_count(0)
        await is_saved([])
        await page.click("button:text-is('Undo')")
        await expect(page.locator(".views [aria-current]")).to_contain_text(f"Parties for all {mark}")

        await is_saved([True])


async def test_views_that_the_browser_has_kept_are_moved_to_the_server_once(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    def moved_views() -> list[str]:
        return [view["query"] for view in alice.run("view.list", limit=200) if view["name"] == f"Kept here {mark}"]

    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        views = json.dumps({f"Kept here {mark}": "order=-city"})
        await page.evaluate(f"localStorage.setItem('views:alice:address', {json.dumps(views)})")
        await page.goto("/models/address")
        await expect(page.locator(f".views a:has-text('Kept here {mark}')")).to_have_count(1)
        await until_equal(page, "localStorage.getItem('views:alice:address')", None)
        await page.reload()
        await page.click(f".views a:has-text('Kept here {mark}')")

        await expect(page).to_have_url(re.compile("&order=-city$"))
        assert moved_views() == ['{"order":[{"field":"city","dir":"desc"}]}']


async def test_favourites_are_marked_by_the_star_and_belong_to_their_person(browser: Browser, desk: Desk) -> None:
    bob, root = desk.caller("bob"), desk.caller("root")
    by_date = '{"order": [{"field": "due", "dir": "desc"}]}'
    view = bob.run("view.create", model="activity", name="By date", query=by_date)
    group = ".side-nav .side-group:has-text('Favourites') + ul .side-link"
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", f"/models/activity?view={view['id']}")
        await expect(page.locator("[role=columnheader][aria-sort=descending]")).to_have_text("Due")
        await page.click("button[aria-label=Favourite]")
        await expect(page.locator("button[aria-label=Favourite]")).to_have_attribute("aria-pressed", "true")
        await page.goto("/approvals")
        await page.click(f"{group}:has-text('Activities: By date')")
        await expect(page.locator("[role=columnheader][aria-sort=descending]")).to_have_text("Due")
        await expect(page.locator(f"{group}[aria-current]")).to_have_text("Activities: By date")

    # An administrator may read everyone's favourites, and sees only their own.
    assert "Activities: By date" in {favourite["name"] for favourite in root.run("favourite.list", limit=100)}
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", "/models/activity")
        await page.click("button[aria-label=Favourite]")
        await expect(page.locator(group)).to_have_text(["Activities"])
        await page.click("button[aria-label=Favourite]")
        await expect(page.locator(group)).to_have_count(0)

    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", f"/models/activity?view={view['id']}")
        await page.click("button[aria-label=Favourite][aria-pressed=true]")
        await expect(page.locator(group)).to_have_count(0)

    assert bob.run("favourite.list", limit=100) == []


async def test_a_list_is_sorted_by_its_date_with_the_newest_first_and_shows_the_order(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead?view=all")
        head = page.locator("[role=columnheader]:has-text('Expected close')")
        await expect(head).to_have_attribute("aria-sort", "descending")
        await head.click()
        await expect(head).to_have_attribute("aria-sort", "ascending")
        await expect(page).to_have_url(re.compile(r"\?view=all&order=expected_close$"))
        await head.click()
        await expect(head).to_have_attribute("aria-sort", "descending")
        await expect(page).not_to_have_url(re.compile("order="))
        title = page.locator("[role=columnheader]:has-text('Title')")
        await title.click()
        await expect(title).to_have_attribute("aria-sort", "ascending")
        await expect(head).not_to_have_attribute("aria-sort", "descending")
        await title.click()
        await expect(title).to_have_attribute("aria-sort", "descending")
        await title.click()

        await expect(head).to_have_attribute("aria-sort", "descending")


FOOT = "document.querySelector('.foot-bar')"


@pytest.fixture
def euros(desk: Desk) -> Iterator[None]:
    """The euro as the currency of all amounts."""
    root = desk.caller("root")
    setting = root.run("setting.create", title="base.currency", value='"EUR"')
    yield
    root.run("setting.delete", id=setting["id"])


@pytest.mark.usefixtures("euros")
@pytest.mark.parametrize("width", [390, 1440])
async def test_the_foot_shows_sums_with_their_currency_and_on_a_phone_no_average(
    browser: Browser, desk: Desk, width: int
) -> None:
    async with desk.page(browser, width=width) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        foot = page.locator(".foot-bar")
        await expect(foot.locator("b").first).to_have_text(re.compile(r"€[\d,]+\.\d\d"))
        average = foot.get_by_text("Average")
        await expect(average).to_contain_text("€")
        await expect(average).to_be_visible(visible=width > 760)

        await until_equal(page, f"{FOOT}.scrollWidth <= {FOOT}.clientWidth", expected=True)


async def test_on_a_phone_both_lines_of_a_row_have_the_same_left_edge(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    alice.run("lead.create", title=f"Aligned {mark}", contact_name="Noor Iyer")
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", "/models/lead?" + filter_parameter(("title", "eq", f"Aligned {mark}")))

        async def start_alike() -> None:
            title, fact = await box(page.locator(".line-name a")), await box(page.locator(".line-fact bdi"))
            assert abs(title["x"] - fact["x"]) < 1

        await eventually(start_alike)


async def test_a_list_opens_with_its_first_view_and_the_tabs_have_counts(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    view = next(model for model in alice.meta()["models"] if model["name"] == "lead")["views"][0]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        current = page.locator(".views [aria-current]")
        await expect(current).to_contain_text("Closing this quarter")
        total = alice.run("lead.search", filter=view["filter"], limit=1)["total"]
        await expect(current.locator(".count-of")).to_have_text(str(total))
        first_lead = alice.run("lead.list", filter=view["filter"], order=view["order"], limit=1)[0]
        await expect(page.locator("#cell-0-0")).to_have_text(first_lead["title"])
        await expect(page.locator(".filter-token")).to_have_count(2)
        own_tab = page.locator(".views a", has_text="Mine")
        await expect(own_tab.locator(".count-of")).to_have_text(re.compile(r"\d+"))
        await own_tab.click()
        await expect(page.locator(".filter-token").first).to_contain_text("Owneris")
        await page.click(".views a:has-text('All')")
        await expect(page.locator(".filter-token")).to_have_count(0)
        await expect(page.locator(".count")).to_have_text(f"{count(alice)} records")
        # A declared view is not changed: what one changes is saved as another view.
        await own_tab.click()
        await page.click("[role=columnheader]:has-text('Title')")
        await page.wait_for_selector(".view-changed")
        await expect(page.locator(".tool-bar button:text-is('Save')")).to_have_count(0)


async def test_a_record_links_to_the_next_record_of_its_list(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    ids = [str(alice.run("lead.create", title=f"Row of three {mark} {number}")["id"]) for number in range(3)]
    async with desk.page(browser) as page:
        lead_filter = filter_parameter(("title", "contains", f"Row of three {mark}"))
        await desk.sign_in(page, "alice", f"/models/lead?order=-title&{lead_filter}")
        await page.click("#cell-0-0 a")
        await page.wait_for_selector(f"h1:text-is('Row of three {mark} 2')")
        record_position = page.locator(".record-place")
        await expect(record_position).to_have_text("1 of 3")
        # The address has the list, so that it is the same after loading, and for others.
        await page.reload()
        await expect(record_position).to_have_text("1 of 3")
        await expect(page.get_by_role("button", name="Previous record")).to_be_disabled()
        await press(page, "j")
        await page.wait_for_selector(f"h1:text-is('Row of three {mark} 1')")
        await expect(record_position).to_have_text("2 of 3")
        await page.get_by_role("button", name="Next record").click()
        await page.wait_for_selector(f"h1:text-is('Row of three {mark} 0')")
        await expect(record_position).to_have_text("3 of 3")
        await expect(page).to_have_url(re.compile(f"/{ids[0]}(\\?|$)"))
        await press(page, "k")
        await page.wait_for_selector(f"h1:text-is('Row of three {mark} 1')")
        await page.click(".crumbs a")
        await expect(page.locator(".count")).to_have_text("3 records")


async def test_on_a_phone_a_new_record_is_below_the_list_and_the_filters_of_a_view_are_folded(
    browser: Browser, desk: Desk, axe: str
) -> None:
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        new = page.locator(".list-page .button.strong")
        await expect(new).to_have_text(re.compile("New lead"))

        async def are_below_each_other() -> None:
            parts = [page.locator(selector) for selector in ("h1", "nav.views", "[role=grid]")]
            boxes = [await box(part) for part in (*parts, new, page.locator(".bottom-bar"))]
            assert all(box_above["y"] + box_above["height"] <= next_["y"] for box_above, next_ in pairwise(boxes))
            assert boxes[3]["height"] >= 44

        await eventually(are_below_each_other)
        await expect(page.locator(".filter-token")).to_have_count(0)
        await page.click("button:text-is('2 filters')")
        await expect(page.locator(".filter-token")).to_have_count(2)
        await assert_accessible(page, axe)
        await new.click()
        await page.wait_for_selector("h1:text-is('New lead')")
