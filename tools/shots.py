"""Takes pictures of every page with demonstration data, and compares them with reference pictures.

    python -m tools.shots [--reference FOLDER] [--only NAME,NAME] [--to FOLDER]

Each page is taken 1440 pixels wide in light and dark, and 768 and 390 pixels wide in light. The pictures are written to
the folder of `--to` (default: build/shots). For each reference picture of a page, `sheet-NAME.png` shows both pictures,
with the page on the left. The program needs a built package (`make setup`) and Chromium.
"""

import argparse
import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlencode

from PIL import Image
from playwright.async_api import Browser, Page
from playwright.async_api import TimeoutError as WaitTimeout

from tests.browser.store.people import PLAYER, PUBLISHER, sign_in
from tests.browser.store.places import FORMS, STORE
from tests.browser.visits import Place, Visitor, wait_until_loaded
from tests.browser.work.conftest import ApiCaller, Desk
from tests.browser.work.places import WORK
from tests.servers.chromium import PROGRAMS, launch_chromium
from tests.servers.countersign import Running, served

VIEWS = {"1440-light": (1440, 900), "1440-dark": (1440, 900), "768-light": (768, 1024), "390-light": (390, 844)}
"""Maps the name of each view to the width and the height of its window in pixels."""

MAX_HEIGHT = 3200
"""The maximum height of a picture in pixels."""

REFERENCES = {
    "store-front": "store-home",
    "store-search": "store-browse",
    "store-publisher": "store-publisher-page",
    "store-analytics": "store-publisher-usage",
    "work-leads": "work-list",
}
"""Maps the name of a reference picture to the name of its page, where the names differ."""

PUBLISHERS = ("publisher", "new-product", "managed", "keys", "sandbox", "codes", "release")
"""The prefixes of the names of pages that a publisher sees."""

MARGIN = 24
"""The margin around the pictures of a sheet in pixels."""


class Shot(NamedTuple):
    """A page to take: its service, its place, and the person who is signed in (an e-mail address or user name, or
    empty)."""

    service: str
    place: Place
    person: str

    @property
    def name(self) -> str:
        """The prefix of the names of its pictures."""
        return f"{self.service}-{self.place.name}"


def all_pages() -> list[Shot]:
    """Return every page, with the person who sees most of it."""
    store = [
        Shot("store", place, PUBLISHER if place.name.startswith(PUBLISHERS) and "-page" not in place.name else PLAYER)
        for place in STORE
    ]
    forms = [Shot("store", place, "") for place in FORMS]
    of_root = ("users", "roles", "data-map")
    work = [Shot("work", place, "root" if place.name.startswith(of_root) else "alice") for place in WORK]
    return [*store, *forms, *(shot._replace(person="") if shot.place.name == "sign-in" else shot for shot in work)]


def record_ids(desk: Desk) -> dict[str, str]:
    """Return the id of a record for each model that pages show: the first one, or a lead with many events."""
    root = desk.caller("root")
    models = ("party", "invoice", "audit_entry", "dashboard")
    ids = {model: str(root.run(f"{model}.list", limit=1)[0]["id"]) for model in models}
    return {**ids, "lead": _lead_in_list(desk.caller("alice"))}


def _lead_in_list(caller: ApiCaller) -> str:
    """Return the id of the lead with the newest comment, with its position in the first view of the list as a query."""
    view = next(model for model in caller.meta()["models"] if model["name"] == "lead")["views"][0]
    on_leads, newest_order = {"field": "model", "op": "eq", "value": "lead"}, {"field": "written_at", "dir": "desc"}
    lead = caller.run("comment.list", filter=[on_leads], order=[newest_order], limit=1)[0]
    ids = [lead["id"] for lead in caller.run("lead.list", filter=view["filter"], order=view["order"])]
    order = ",".join(("-" if key["dir"] == "desc" else "") + key["field"] for key in view["order"])
    list_query = {"view": view["name"], "filter": json.dumps(view["filter"]), "order": order}
    if lead["record"] in ids:
        list_query["at"] = str(ids.index(lead["record"]) + 1)
    return f"{lead['record']}?{urlencode(list_query)}"


async def sign_in_page(browser: Browser, desk: Desk, shot: Shot) -> Page:
    """Open a page in a new browser context in which the person is signed in."""
    url = desk.url if shot.service == "work" else desk.running.url
    context = await browser.new_context(base_url=url, locale="en-GB", reduced_motion="reduce")
    page = await context.new_page()
    if shot.person and shot.service == "work":
        await desk.sign_in(page, shot.person)
    elif shot.person:
        await sign_in(page, shot.person, "/redeem")
    return page


HAS_COUNTS = """() => (innerWidth < 900
  || [...document.querySelectorAll('.side-nav a[href^="/models/"]:not([href*="?"])')]
    .every(each => each.querySelector('.side-count')))
  && [...document.querySelectorAll('.list-page .views > a')].every(each => each.querySelector('.count-of'))"""
"""A JavaScript condition: the sidebar and the tabs of views show the numbers of records, which appear later."""


def reference_heights(references: Path | None) -> dict[str, int]:
    """Map the names of our pictures to the heights of their reference pictures."""
    heights: dict[str, int] = {}
    for reference in references.glob("*.png") if references else ():
        name, width, scheme = reference.stem.rsplit("-", 2)
        with Image.open(reference) as picture:
            heights[f"{REFERENCES.get(name, name)}-{width}-{scheme}"] = picture.height
    return heights


async def take(page: Page, shot: Shot, ids: dict[str, str], folder: Path, heights: Mapping[str, int]) -> None:
    """Write the pictures of one page, one for each view. A picture is as high as its reference picture, so that
    elements at the bottom of the window are in the same position. Without a reference picture, it is as high as the
    page."""
    path = shot.place.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    for view, (width, height) in VIEWS.items():
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme="dark" if view.endswith("dark") else "light", reduced_motion="reduce")
        await page.goto(path)
        await page.wait_for_selector("h1", state="attached")
        await wait_until_loaded(page, Visitor(""))
        for selector in shot.place.presses:
            if await page.locator(selector).count() and await page.locator(selector).first.is_visible():
                await page.locator(selector).first.click()
        await wait_until_loaded(page, Visitor(""))
        await page.wait_for_function(HAS_COUNTS)
        await load_pictures(page)
        page_height = await page.evaluate("document.documentElement.scrollHeight")
        default_height = max(height, min(page_height, MAX_HEIGHT))
        await page.set_viewport_size({"width": width, "height": heights.get(f"{shot.name}-{view}", default_height)})
        await page.wait_for_timeout(300)
        await page.screenshot(path=folder / f"{shot.name}-{view}.png")


async def load_pictures(page: Page) -> None:
    """Scroll through the page and back, so that it loads the pictures below the window."""
    await page.evaluate(
        """async () => {
          const limit = Math.min(document.documentElement.scrollHeight, 3200);
          for (let y = 0; y < limit; y += 600) { scrollTo(0, y); await new Promise(done => setTimeout(done, 60)); }
          scrollTo(0, 0);
          const images = [...document.images].filter(each => each.getBoundingClientRect().top < 3200);
          const late = new Promise(done => setTimeout(done, 4000));
          const loaded = images.map(each => each.complete || new Promise(done => each.onload = each.onerror = done));
          await Promise.race([Promise.all(loaded), late]);
        }"""
    )


def write_sheet(own_path: Path, reference: Path, sheet: Path) -> None:
    """Write one picture that contains both pictures in their original sizes, with ours on the left."""
    with Image.open(own_path) as own_image, Image.open(reference) as right:
        size = (own_image.width + right.width + 3 * MARGIN, max(own_image.height, right.height) + 2 * MARGIN)
        with Image.new("RGB", size, "#808080") as combined:
            combined.paste(own_image.convert("RGB"), (MARGIN, MARGIN))
            combined.paste(right.convert("RGB"), (own_image.width + 2 * MARGIN, MARGIN))
            combined.save(sheet)


def write_sheets(folder: Path, references: Path) -> list[Path]:
    """Write a sheet for every reference picture whose page has been taken, and return the paths."""
    sheets: list[Path] = []
    for reference in sorted(references.glob("*.png")):
        name, width, scheme = reference.stem.rsplit("-", 2)
        own_path = folder / f"{REFERENCES.get(name, name)}-{width}-{scheme}.png"
        if own_path.exists():
            sheet = folder / f"sheet-{reference.stem}.png"
            write_sheet(own_path, reference, sheet)
            sheets.append(sheet)
    return sheets


async def take_all(
    services: Running, pages: Sequence[Shot], program: str, folder: Path, heights: Mapping[str, int]
) -> None:
    """Take every page, with one browser context for each service and person. Print the pages that cannot be taken."""
    desk = Desk(services)
    ids = record_ids(desk)
    async with launch_chromium(program) as browser:
        page_by_person: dict[tuple[str, str], Page] = {}
        for shot in pages:
            key = (shot.service, shot.person)
            if key not in page_by_person:
                page_by_person[key] = await sign_in_page(browser, desk, shot)
            try:
                await take(page_by_person[key], shot, ids, folder, heights)
            except WaitTimeout as timeout:
                print(f"{shot.name}: not taken, {str(timeout).splitlines()[0]}")


async def main() -> None:
    """Serve the demonstration data with its activity, take the pictures, and write the sheets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reference", type=Path, help="a folder with pictures to compare with")
    parser.add_argument("--only", default="", help="names of pages or of references, with commas between")
    parser.add_argument("--to", type=Path, default=Path("build/shots"), help="where the pictures go")
    options = parser.parse_args()
    program = next((program_path for name in PROGRAMS if (program_path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("Chromium is not installed (Debian: apt install chromium)")
    names = {REFERENCES.get(name, name) for name in options.only.split(",") if name}
    pages = [shots for shots in all_pages() if not names or shots.name in names]
    options.to.mkdir(parents=True, exist_ok=True)
    settings = {"COUNTERSIGN_DEMO_ACTIVITY": "true", "COUNTERSIGN_JOB_WORKERS": "1"}
    with TemporaryDirectory() as folder:
        data = Path(folder, "data")
        with served(data, "--demo", service="both", settings=settings, copies_demonstration=False) as services:
            await take_all(services, pages, program, options.to, reference_heights(options.reference))
    sheets = write_sheets(options.to, options.reference) if options.reference else []
    print(f"{len(pages)} pages in {len(VIEWS)} views and {len(sheets)} sheets are in {options.to}")


if __name__ == "__main__":
    asyncio.run(main())
