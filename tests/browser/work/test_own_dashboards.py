"""Dashboards that a person arranges by keyboard and by mouse. The service stores them and shows them to everyone who
may see them."""

import json
from collections.abc import Sequence

from playwright.async_api import Browser, Page, expect

from tests.browser.rules import settle
from tests.browser.waiting import press
from tests.browser.work.conftest import ApiCaller, Desk

TILES = (
    {"kind": "kpi", "model": "lead", "fn": "count", "w": 3, "title": "First"},
    {"kind": "bar", "model": "lead", "by": "stage", "x": 3, "w": 4, "title": "Second"},
    {"kind": "text", "text": "Read me.", "x": 7, "w": 4, "title": "Third"},
)


def create_dashboard(person: ApiCaller, name: str, tiles: Sequence[object] = TILES, **options: object) -> str:
    """Create a dashboard of the person, and return its id."""
    return str(person.run("dashboard.create", name=name, tiles=json.dumps(tiles), **options)["id"])


def stored_tiles(person: ApiCaller, dashboard: str) -> list[tuple[str, int]]:
    """Return the title and width of each stored tile of the dashboard, from the first position to the last."""
    tiles = json.loads(person.run("dashboard.get", id=dashboard)["tiles"])
    in_place = sorted(tiles, key=lambda tile: (tile.get("y", 0), tile.get("x", 0)))
    return [(tile.get("title", ""), tile["w"]) for tile in in_place]


async def save(page: Page) -> None:
    """Save the arrangement, and wait until the service has stored it."""
    await page.click(".board-edit button:text-is('Save')")
    await page.wait_for_selector(".toast:has-text('Saved')")
    await expect(page.locator(".board-edit")).to_have_count(0)


async def test_the_arrangement_of_a_copied_dashboard_is_kept(browser: Browser, desk: Desk, mark: str) -> None:
    bob = desk.caller("bob")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/dashboard?board=crm")
        await page.wait_for_selector(".states li")
        await page.click("#edit-board")
        await page.fill("#board-name", f"Bob arranges it {mark}")
        frames = page.locator(".tile-frame")
        await frames.first.wait_for()
        count = await frames.count()
        await page.click("button:has-text('Add a tile')")
        await page.select_option("#tile-kind", "text")
        await page.fill("#tile-text", "Call them before noon.")
        await page.fill("#tile-title", "Remember")
        await page.click("dialog[open] button:text-is('Add')")
        await expect(frames).to_have_count(count + 1)
        await page.click("[aria-label='Remove tile 1']")
        await expect(frames).to_have_count(count)
        await save(page)

        await page.reload()
        await expect(page.locator(".board-tab[aria-current]")).to_have_text(f"Bob arranges it {mark}")
        await expect(frames).to_have_count(count)
        await expect(frames.last).to_contain_text("Call them before noon.")
    (row,) = bob.run("dashboard.list", filter=[{"field": "name", "op": "eq", "value": f"Bob arranges it {mark}"}])
    assert stored_tiles(bob, row["id"])[-1] == ("Remember", 4)


async def test_tiles_are_moved_resized_and_removed_by_keyboard(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    own_dashboard = create_dashboard(alice, "By keyboard")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/dashboard?dashboard={own_dashboard}&edit=1")
        await page.focus("[aria-label$='Move tile 1']")
        await press(page, "ArrowRight")
        await expect(page.locator("[data-handle]:focus[aria-label$='Move tile 2']")).to_be_visible()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("[data-handle]:focus[aria-label$='Move tile 3']")).to_be_visible()
        await expect(page.locator(".dashboard > [role=status]")).to_have_text("Position 3 of 3")
        await page.keyboard.press("Shift+ArrowRight")
        await expect(page.locator("[aria-label='Width of tile 3']")).to_have_value("4")
        await page.focus("[aria-label$='Move tile 1']")
        await page.keyboard.press("Delete")
        await expect(page.locator("[data-handle]:focus[aria-label$='Move tile 1']")).to_be_visible()
        await save(page)

    assert stored_tiles(alice, own_dashboard) == [("Third", 4), ("First", 4)]


async def test_tiles_are_dragged_and_their_width_is_chosen_by_mouse(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    own_dashboard = create_dashboard(alice, "By mouse")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/dashboard?dashboard={own_dashboard}&edit=1")
        frames = page.locator(".tile-frame")
        await expect(frames).to_have_count(3)
        await settle(page)
        await frames.nth(2).locator("[data-handle]").drag_to(frames.nth(0))
        await expect(frames.first).to_contain_text("Read me.")
        await page.select_option("[aria-label='Width of tile 1']", "12")
        await save(page)

    assert stored_tiles(alice, own_dashboard) == [("Third", 12), ("First", 3), ("Second", 4)]


async def test_discarded_changes_are_not_saved_and_deleted_dashboards_are_gone(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    own_dashboard = create_dashboard(alice, f"To be deleted {mark}")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/dashboard?dashboard={own_dashboard}&edit=1")
        await page.click("[aria-label='Remove tile 1']")
        await expect(page.locator(".tile-frame")).to_have_count(2)
        await page.click("button:text-is('Discard changes')")
        await expect(page.locator(".tile-frame")).to_have_count(3)
        assert len(stored_tiles(alice, own_dashboard)) == 3

        await page.click("#edit-board")
        await page.click("button:text-is('Delete dashboard…')")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector(".toast:has-text('deleted')")
        await expect(page.locator(f".board-tab:text-is('To be deleted {mark}')")).to_have_count(0)
    assert not alice.run("dashboard.list", filter=[{"field": "id", "op": "eq", "value": own_dashboard}])


async def test_another_person_sees_shared_dashboards_and_no_private_dashboards(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    create_dashboard(alice, f"For all of us {mark}", shared=True)
    create_dashboard(alice, f"For me alone {mark}")
    for person in ("bob", "root"):
        async with desk.page(browser) as page:
            await desk.sign_in(page, person, "/dashboard")
            await page.click(f".board-tab:text-is('For all of us {mark}')")
            await page.wait_for_selector(".tile-frame:has-text('Read me.')")
            # Another person's dashboard can only be copied.
            await expect(page.locator("#edit-board")).to_have_text("Edit a copy")
            await expect(page.locator(f".board-tab:text-is('For me alone {mark}')")).to_have_count(0)
