"""The main journeys in Firefox, by keyboard, with one start of the browser and of the services for all of them."""

from pathlib import Path

import pytest

from countersign.web.assets import Assets
from tests.browser.work.conftest import PASSWORD, Desk
from tests.servers.countersign import served
from tests.servers.firefox import Page, launch_firefox


async def a_customer_signs_in_and_searches(page: Page, desk: Desk) -> None:
    store = desk.running.url
    await page.goto(f"{store}/auth/signin?return_to=/")
    await page.wait_focus("#email")
    await page.type("player@example.com")
    await page.press("Tab")
    await page.type("not the password")
    await page.press("Enter")
    await page.wait("document.querySelector('[role=alert]')")
    await page.wait("document.querySelector('#email')?.value === 'player@example.com'")
    await page.wait_focus("#password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.wait("document.querySelector('header .avatar')")
    await page.wait("document.querySelector('#q') && document.querySelectorAll('.card').length > 1")
    await page.press("/")
    await page.wait_focus("#q")
    await page.type("auror")
    await page.wait("document.querySelectorAll('[role=option]').length > 1")
    await page.press("Enter")
    await page.wait("document.querySelectorAll('.card').length === 1")


async def a_record_is_made_by_keyboard(page: Page, desk: Desk) -> None:
    await page.goto(f"{desk.url}/models/lead")
    await page.wait_focus("#username")
    await page.type("alice")
    await page.press("Tab")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.wait("document.querySelector('#cell-0-0 a')")
    await page.press("c")
    await page.wait_text("h1", "New lead")
    await page.wait_focus(".record form :is(input, select, textarea)")
    await page.evaluate("document.querySelector('#title').focus()")
    await page.type("Made in Firefox")
    await page.press("Enter")
    await page.wait_text("h1", "Made in Firefox")


async def proposals_are_gone_through_and_signed_by_keyboard(page: Page, desk: Desk) -> None:
    alice = desk.caller("alice")
    agent = alice.agent("vixen", "lead.*", "plan.propose")
    ids = [str(alice.run("lead.create", title=f"Hunted {number}")["id"]) for number in range(2)]
    plans = [
        agent.run("plan.propose", steps=[{"command": "lead.qualify", "input": {"id": id_}}], why=f"Reason {id_}")
        for id_ in ids
    ]
    await page.goto(f"{desk.url}/approvals?agent=vixen&plan={plans[1]['plan_id']}")
    await page.wait_text(".plan[aria-current=true] .about", "Hunted 1")
    await page.press("j")
    await page.wait_focus(".plan[aria-current=true]")
    await page.wait_text(".plan[aria-current=true] .about", "Hunted 0")
    await page.press("k")
    await page.wait_text(".plan[aria-current=true] .about", "Hunted 1")
    await page.wait_focus(".plan[aria-current=true]")
    await page.press("j")
    await page.wait_text(".plan[aria-current=true] .about", "Hunted 0")
    await page.press("a")
    await page.wait_text(".toast", "Done")
    assert [alice.run("lead.get", id=id_)["stage"] for id_ in ids] == ["qualified", "new"]


async def test_the_main_journeys_work_in_firefox(firefox: Path, tmp_path: Path) -> None:
    if Assets.of_package().entry_assets("work") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
    with served(tmp_path / "data", "--demo", service="both") as running:
        desk = Desk(running)
        async with launch_firefox(firefox, tmp_path / "profile") as page:
            await a_customer_signs_in_and_searches(page, desk)
            await a_record_is_made_by_keyboard(page, desk)
            await proposals_are_gone_through_and_signed_by_keyboard(page, desk)
            # Firefox requests an icon for the plain pages, which load nothing.
            assert not [error for error in page.errors if "favicon.ico" not in error]
