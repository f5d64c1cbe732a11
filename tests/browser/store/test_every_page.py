"""Every page of the store, for every visitor."""

import re

import pytest
from playwright.async_api import Browser

from countersign.store.app import ROUTES
from tests.browser import shop
from tests.browser.store.people import PASSWORD, sign_in
from tests.browser.store.places import FORM_VISITORS, FORMS, READABLE, STORE, STORE_VISITORS
from tests.browser.visits import (
    SCHEMES,
    Place,
    Visitor,
    check_pages,
    choose_places,
    record_figures,
    spoil,
    unvisited_addresses,
    visiting,
)
from tests.figures import Figures
from tests.servers.countersign import Running


@pytest.fixture(scope="session")
def peopled_store(demo_store: Running) -> Running:
    """The store with two additional people: one with read access only, and one whose organisation is empty."""
    shop.command(demo_store, "org", "create", "quiet-harbour", "--name", "Quiet Harbour")
    for name, org, role in (("viewer", "northwind-games", "viewer"), ("newcomer", "quiet-harbour", "owner")):
        person_arguments = ("person", "create", f"{name}@example.com", "--password-stdin", "--org", org, "--role", role)
        shop.command(demo_store, *person_arguments, stdin=PASSWORD)
    return demo_store


@pytest.mark.parametrize("visitor", STORE_VISITORS, ids=lambda visitor: visitor.name)
async def test_the_pages_of_the_store(
    browser: Browser, peopled_store: Running, axe: str, visitor: Visitor, figures: Figures, *, is_full: bool
) -> None:
    async with visiting(browser, peopled_store.url, visitor) as page:
        if visitor.signs:
            await sign_in(page, visitor.signs, "/redeem")
        await spoil(page, visitor, but="/auth/me")
        pages = choose_places(STORE, STORE_VISITORS, visitor, is_full=is_full)
        cells, violations = await check_pages(page, axe, visitor, pages, is_full=is_full)
    record_figures(figures, cells, violations, is_full=is_full)


@pytest.mark.parametrize("visitor", FORM_VISITORS, ids=lambda visitor: visitor.name)
async def test_the_forms_of_the_store(
    browser: Browser, peopled_store: Running, axe: str, visitor: Visitor, figures: Figures, *, is_full: bool
) -> None:
    async with visiting(browser, peopled_store.url, visitor) as page:
        if visitor.signs:
            await sign_in(page, visitor.signs, "/redeem")
        cells, violations = await check_pages(
            page, axe, visitor, choose_places(FORMS, FORM_VISITORS, visitor, is_full=is_full), is_full=is_full
        )
    record_figures(figures, cells, violations, is_full=is_full)


async def test_the_pages_of_the_store_before_a_script(
    browser: Browser, peopled_store: Running, axe: str, figures: Figures, *, is_full: bool
) -> None:
    visitor = Visitor("before-a-script", api="fails")
    async with visiting(browser, peopled_store.url, visitor) as page:
        await page.context.route("**/assets/*.js", lambda route: route.abort())
        pages = [(place, SCHEMES) for place in READABLE]
        cells, violations = await check_pages(page, axe, visitor, pages, is_full=is_full)
    record_figures(figures, cells, violations, is_full=is_full)


def test_every_page_has_its_place() -> None:
    assert unvisited_addresses("store", STORE) == []


def test_every_form_has_its_place() -> None:
    form_paths = {route.path for route in ROUTES if route.method == "GET" and "text/html" in route.produces}
    visited = [place.bare for place in (*FORMS, *READABLE)]

    patterns = {path: re.compile("(/api/v1)?" + re.sub(r"\{\w+\}", "[^/]+", path)) for path in form_paths}

    assert [path for path, pattern in patterns.items() if not any(pattern.fullmatch(path) for path in visited)] == []


@pytest.mark.parametrize(("places", "visitors"), [(STORE, STORE_VISITORS), (FORMS, FORM_VISITORS)])
def test_a_sample_has_every_page(places: tuple[Place, ...], visitors: tuple[Visitor, ...]) -> None:
    chosen_places = [
        place for visitor in visitors for place, _ in choose_places(places, visitors, visitor, is_full=False)
    ]

    assert sorted(place.name for place in chosen_places) == sorted(place.name for place in places)
