"""Every page of the work app, for every visitor."""

import json

import pytest
from playwright.async_api import Browser

from tests.browser.visits import (
    Visitor,
    check_pages,
    choose_places,
    record_figures,
    spoil,
    unvisited_addresses,
    visiting,
)
from tests.browser.work.conftest import Desk
from tests.browser.work.places import WORK, WORK_VISITORS
from tests.figures import Figures


@pytest.fixture(scope="session")
def busy_desk(desk: Desk) -> Desk:
    """The work app with proposals of an agent: some pending, one decided."""
    alice = desk.caller("alice")
    agent = alice.agent("harbour-pilot", "lead.*")
    leads = [alice.run("lead.create", title=f"Piloted {number}") for number in range(4)]
    for lead in leads[:2]:
        agent.run("lead.delete", id=lead["id"])
    agent.run("lead.update", id=leads[2]["id"], title="Piloted and renamed", revision=leads[2]["revision"])
    decided_plan = agent.run("lead.delete", id=leads[3]["id"])["plan_id"]
    alice.run("plan.reject", id=decided_plan, reason="We still need this one.")
    tiles = [{"kind": "kpi", "model": "lead"}, {"kind": "bar", "model": "lead", "by": "stage", "w": 6}]
    alice.run("dashboard.create", name="Of the visits", tiles=json.dumps(tiles))
    return desk


@pytest.fixture(scope="session")
def ids(busy_desk: Desk) -> dict[str, str]:
    """A record of each model that pages show."""
    root = busy_desk.caller("root")
    models = ("lead", "party", "invoice", "audit_entry", "dashboard")
    return {model: str(root.run(f"{model}.list", limit=1)[0]["id"]) for model in models}


@pytest.mark.parametrize("visitor", WORK_VISITORS, ids=lambda visitor: visitor.name)
async def test_the_pages_of_the_work_app(
    browser: Browser,
    busy_desk: Desk,
    ids: dict[str, str],
    axe: str,
    visitor: Visitor,
    figures: Figures,
    *,
    is_full: bool,
) -> None:
    async with visiting(browser, busy_desk.url, visitor) as page:
        if visitor.signs:
            await busy_desk.sign_in(page, visitor.signs)
        await spoil(page, visitor, but="/api/meta")
        cells, violations = await check_pages(
            page, axe, visitor, choose_places(WORK, WORK_VISITORS, visitor, is_full=is_full), ids, is_full=is_full
        )
    record_figures(figures, cells, violations, is_full=is_full)


def test_every_page_has_its_place() -> None:
    assert unvisited_addresses("work", WORK) == []
