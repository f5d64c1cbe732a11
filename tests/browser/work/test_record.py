"""A record of any model: created, changed, moved, deleted; no typed text is lost, and no hidden value is shown as
empty."""

import re
from datetime import datetime, timedelta

import httpx
import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.rules import evaluate, settle
from tests.browser.waiting import box, eventually, press, until_equal
from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import ApiCaller, Desk


async def test_a_record_is_made_by_keyboard_and_its_faults_lead_to_their_fields(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead")
        await page.wait_for_selector("#cell-0-0 a")
        await press(page, "c")
        await page.wait_for_selector("h1:text-is('New lead')")
        await expect(page.locator(".record form :is(input, select, textarea)").first).to_be_focused()
        await page.fill("#expected_revenue_minor", "1,234.5")
        await page.press("#expected_revenue_minor", "Enter")
        await page.wait_for_selector("[role=alert]:focus")
        await expect(page.locator("#title")).to_have_attribute("aria-invalid", "true")
        await expect(page.locator("#title-fault")).to_contain_text("required")
        await page.fill("#title", f"A <i>tilted</i> lead {mark}")
        await page.click("#party")
        await page.press("#party", "ArrowDown")
        await page.wait_for_selector("#party-list-0[aria-selected=true]")
        party = await page.inner_text("#party-list-0")
        await page.press("#party", "Enter")
        await expect(page.locator("#party")).to_have_value(party)
        await page.press("#title", "Enter")
        await page.wait_for_selector(f"h1:text-is('A <i>tilted</i> lead {mark}')")

        leads = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": f"A <i>tilted</i> lead {mark}"}])
        assert leads[0]["expected_revenue_minor"] == 123450
        assert leads[0]["stage"] == "new"
        assert alice.run("party.get", id=leads[0]["party"])["name"] == party
        await page.wait_for_selector(".timeline >> text=created this lead")


async def test_an_action_without_inputs_asks_for_confirmation(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Not by a slip")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.click("[data-action='lead.qualify']")
        await expect(page.locator("dialog[open]")).to_contain_text("Stage: New → Qualified")
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        assert alice.run("lead.get", id=lead["id"])["stage"] == "new"
        await page.click("[data-action='lead.qualify']")
        await page.click("dialog[open] .button.strong")
        await page.wait_for_selector(".toast:has-text('Done')")

        assert alice.run("lead.get", id=lead["id"])["stage"] == "qualified"


@pytest.mark.full
async def test_a_record_is_moved_by_an_action_with_inputs_and_its_history_shows_the_move(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="To be lost")
    alice.run("lead.qualify", id=lead["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.wait_for_selector("[data-action='lead.lose']")
        await page.wait_for_selector(".timeline >> text=changed stage")
        await expect(page.locator("[data-action='lead.reopen']")).to_have_count(0)
        await page.get_by_label("Why are some actions unavailable?").press("Enter")
        await expect(page.locator("li:has(strong:text-is('Reopen'))")).to_contain_text("Only when Stage is")
        await page.click("[data-action='lead.lose']")
        await page.click("dialog[open] .button.strong")
        await page.wait_for_selector("dialog[open] [role=alert]")
        await page.fill("dialog[open] #lost_reason", "Too dear")
        await page.click("dialog[open] .button.strong")
        await page.wait_for_selector("[data-action='lead.reopen']")
        await page.wait_for_selector(".timeline >> text=ran “Mark as lost”")

        assert alice.run("lead.get", id=lead["id"])["lost_reason"] == "Too dear"
        await page.click(".timeline summary >> nth=0")
        await expect(page.locator(".timeline")).to_contain_text("Too dear", use_inner_text=True)


@pytest.mark.full
async def test_a_referenced_record_is_created_in_place_previewed_and_remembered(
    browser: Browser, desk: Desk, axe: str, alice: ApiCaller
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/models/lead/new")
        await page.fill("#title", "With a new party")
        await page.focus("#party")
        await page.keyboard.type("Brand New & Sons")
        await page.wait_for_selector("#party-list-make:has-text('“Brand New & Sons”')")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog[open] #made-name")).to_have_value("Brand New & Sons")
        await assert_accessible(page, axe)
        await page.fill("dialog[open] #made-email", "office@brand-new.example")
        await page.select_option("dialog[open] #made-kind", "company")
        await page.press("dialog[open] #made-email", "Enter")
        await page.wait_for_selector("dialog[open]", state="detached")
        await expect(page.locator("#party")).to_have_value("Brand New & Sons")
        await page.wait_for_selector("#party:focus")
        await expect(page.locator("#title")).to_have_value("With a new party")
        await page.fill("#party", "")
        await page.keyboard.press("ArrowDown")
        await page.wait_for_selector("#party-list-0:has-text('Recent')[aria-selected=true]")
        await expect(page.locator("#party-list-card")).to_contain_text("Company")
        await expect(page.locator("#party")).to_have_attribute("aria-describedby", re.compile("party-list-card"))
        await assert_accessible(page, axe)
        # Checking moves the focus, which closes the list: Enter would create the lead.
        await page.fill("#party", "")
        await page.keyboard.press("ArrowDown")
        await page.wait_for_selector("#party-list-0:has-text('Recent')[aria-selected=true]")
        await page.keyboard.press("Enter")
        await expect(page.locator("#party")).to_have_value("Brand New & Sons")
        await page.press("#title", "Enter")
        await page.wait_for_selector("h1:text-is('With a new party')")

        lead = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": "With a new party"}])[0]
        assert alice.run("party.get", id=lead["party"])["name"] == "Brand New & Sons"
        await until_equal(page, "JSON.stringify(sessionStorage).includes('Brand New')", expected=False)


@pytest.mark.full
async def test_typed_input_survives_a_reload_and_an_ended_session(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Long text")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.click("[aria-label='Edit: Notes']")
        await expect(page.locator("#notes")).to_be_focused()
        await page.fill("#notes", "Two hours of writing")
        await until_equal(page, "JSON.stringify(sessionStorage).includes('Two hours of writing')", expected=True)
        await page.reload()
        await expect(page.locator("#notes")).to_have_value("Two hours of writing")
        await page.context.clear_cookies()
        await page.locator("main button:text-is('Save')").press("Enter")
        await page.wait_for_selector("[role=alert]:has-text('Your session has ended')")
        await expect(page.locator("#session-username")).to_have_value("alice")
        await page.press("#session-password", "Escape")
        await expect(page.locator("#notes")).to_have_value("Two hours of writing")
        await page.fill("#notes", "Two hours of writing, and more")
        await page.locator("button:text-is('Sign in')").press("Enter")
        await page.fill("#session-password", "not this")
        await page.press("#session-password", "Enter")
        await page.wait_for_selector("dialog[open] [role=alert]:focus")
        await page.fill("#session-password", "countersign-demo")
        await page.press("#session-password", "Enter")
        await page.wait_for_selector(".ended", state="detached")
        await expect(page.locator("#notes")).to_have_value("Two hours of writing, and more")
        await page.click("main button:text-is('Save')")
        await page.wait_for_selector(".toast:has-text('Saved')")

        assert alice.run("lead.get", id=lead["id"])["notes"] == "Two hours of writing, and more"
        await page.reload()
        await page.wait_for_selector(".prop:has-text('Two hours of writing, and more')")
        await settle(page)
        await expect(page.locator("main")).not_to_contain_text("unsaved changes")


@pytest.mark.full
async def test_typed_text_is_gone_for_the_next_person_who_signs_in(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Private words")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.wait_for_selector("h1:text-is('Private words')")
        await page.wait_for_selector("[aria-label='Edit: Notes']")
        await press(page, "e")
        await page.fill("#notes", "For alice alone")
        await until_equal(page, "JSON.stringify(sessionStorage).includes('For alice alone')", expected=True)
        await page.context.clear_cookies()
        await page.click("main button:text-is('Save')")
        await page.fill("#session-username", "root")
        await page.fill("#session-password", "countersign-demo")
        await page.press("#session-password", "Enter")
        await page.wait_for_selector("text=Signed in as root")
        await page.wait_for_selector("[aria-label='Edit: Notes']")

        assert "For alice alone" not in await evaluate(page, "JSON.stringify([sessionStorage, localStorage])")
        await expect(page.locator("main")).not_to_contain_text("For alice alone")


@pytest.mark.full
async def test_signing_in_again_ends_the_session_before(browser: Browser, desk: Desk) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob")
        (cookie_before,) = await page.context.cookies()
        await desk.sign_in(page, "bob")

        answer = httpx.get(
            f"{desk.url}/api/meta", headers={"Authorization": f"Bearer {cookie_before['value']}"}, timeout=60
        )
        assert answer.status_code == 401


@pytest.mark.full
async def test_a_page_does_nothing_for_another_person_who_signed_in_in_a_second_tab(
    browser: Browser, desk: Desk
) -> None:
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", "/models/party")
        await page.wait_for_selector("#cell-0-0")
        second_page = await page.context.new_page()
        await desk.sign_in(second_page, "root")
        await page.bring_to_front()
        await page.click("nav >> text=Approvals")

        await page.wait_for_selector("[role=alert]:has-text('Your session has ended')")
        await expect(page.locator(".plan-page")).to_have_count(0)


@pytest.mark.full
async def test_two_concurrent_changes_of_a_record_are_both_kept(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead = alice.run("lead.create", title="As it was", source="web")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.wait_for_selector("h1:text-is('As it was')")
        await page.wait_for_selector("[aria-label='Edit: Notes']")
        await press(page, "e")
        await expect(page.locator("#title")).to_be_focused()
        await page.fill("#title", "Mine")
        alice.run("lead.update", id=lead["id"], source="fair")
        await page.click("main button:text-is('Save')")
        await page.wait_for_selector("dialog[open] >> text=Source")
        await page.click("dialog[open] button:text-is('Save')")
        await page.wait_for_selector("h1:text-is('Mine')")

        now = alice.run("lead.get", id=lead["id"])
        assert (now["title"], now["source"]) == ("Mine", "fair")


@pytest.mark.full
async def test_a_placeholder_is_not_editable_text_and_a_hidden_field_is_not_shown_as_empty(
    browser: Browser, desk: Desk
) -> None:
    bob = desk.caller("bob")
    party = bob.run("party.list", limit=1, filter=[{"field": "kind", "op": "eq", "value": "person"}])[0]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "bob", f"/models/party/records/{party['id']}")
        await page.wait_for_selector("main .masked")
        await expect(page.locator("main")).to_contain_text(party["name"])
        hidden_fact = page.locator(".fact:has-text('tax id')")
        await expect(hidden_fact).to_contain_text("You don’t have access")
        input_values = await page.eval_on_selector_all(
            "main input, main textarea", "all => all.map(each => each.value)"
        )
        assert party["name"] not in input_values


@pytest.mark.full
async def test_a_record_is_deleted_after_a_question(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead = alice.run("lead.create", title="To be deleted")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await page.click("main [aria-label='More']")
        await page.click("[role=menuitem]:has-text('Delete')")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector("h1:text-is('Leads')")

        assert not alice.run("lead.list", filter=[{"field": "id", "op": "eq", "value": lead["id"]}])


@pytest.mark.full
async def test_a_deletion_shows_the_dependent_records_and_asks_for_confirmation(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    party = alice.run("party.create", name="Gone")
    alice.run("address.create", party=party["id"], label="main", street="1 Way", city="Ribe", country="DK")
    lead = alice.run("lead.create", title="Stays", party=party["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/party/records/{party['id']}")
        await page.click("main [aria-label='More']")
        await page.click("[role=menuitem]:has-text('Delete')")
        dependents = page.locator("dialog[open] .dependents li")
        await expect(dependents).to_have_text(["1 address will be deleted too", "1 lead: Party will be cleared"])
        await expect(page.locator("dialog[open] .risky")).to_have_attribute("aria-disabled", "true")
        await page.check("dialog[open] input[type=checkbox]")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector("h1:text-is('Parties')")

        assert alice.run("lead.get", id=lead["id"])["party"] is None


@pytest.mark.full
async def test_a_deletion_prevented_by_a_hidden_record_shows_the_reason(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    party = alice.run("party.create", name="Needed")
    desk.caller("root").run("invoice.create", party=party["id"])
    async with desk.page(browser, expected=("400",)) as page:
        await desk.sign_in(page, "alice", f"/models/party/records/{party['id']}")
        await page.click("main [aria-label='More']")
        await page.click("[role=menuitem]:has-text('Delete')")
        await page.click("dialog[open] .risky")
        await expect(page.locator("dialog[open] .notice")).to_contain_text("Records you can’t see also use it")
        await page.check("dialog[open] input[type=checkbox]")
        await page.click("dialog[open] .risky")
        await expect(page.locator(".toast")).to_contain_text("another record refers to this one")

        assert alice.run("party.get", id=party["id"])["id"] == party["id"]


async def test_a_comment_is_written_changed_and_deleted_in_the_timeline(
    browser: Browser, desk: Desk, alice: ApiCaller, axe: str
) -> None:
    lead = str(alice.run("lead.create", title="Talked about")["id"])
    desk.caller("bob").run("comment.create", model="lead", record=lead, text="Bob knows them.")

    async def is_said(*expected: str) -> None:
        async def is_so() -> None:
            condition = {"field": "record", "op": "eq", "value": lead}
            assert sorted(comment["text"] for comment in alice.run("comment.list", filter=[condition])) == [*expected]

        await eventually(is_so)

    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead}")
        bobs_comment = page.locator(".timeline li", has_text="Bob knows them.")
        await expect(bobs_comment).to_contain_text("bob commented")
        await page.fill("#new-comment", "Ask @b")
        await expect(page.locator("#new-comment-people [role=option]")).to_have_text(["bob"])
        await page.keyboard.press("Enter")
        await expect(page.locator("#new-comment")).to_have_value("Ask @bob ")
        await expect(page.locator("#new-comment-people [role=option]")).to_have_count(0)
        await page.fill("#new-comment", "Ask @b")
        await expect(page.locator("#new-comment-people [role=option]")).to_have_text(["bob"])
        await assert_accessible(page, axe)
        await page.fill("#new-comment", "Call back\non Monday.")
        await page.reload()
        await expect(page.locator("#new-comment")).to_have_value("Call back\non Monday.")
        await page.focus("#new-comment")
        await page.keyboard.press("Control+Enter")
        own_comment = page.locator(".timeline li", has_text="alice commented")
        await expect(own_comment.locator(".comment-text")).to_have_text("Call back\non Monday.", use_inner_text=True)
        await expect(page.locator("#new-comment")).to_have_value("")
        await expect(page.locator("#new-comment")).to_be_focused()
        await is_said("Bob knows them.", "Call back\non Monday.")
        # Another person's comment has no actions.
        await expect(bobs_comment.locator(".menu")).to_have_count(0)
        await assert_accessible(page, axe)

        await own_comment.locator(".menu > button").click()
        await page.click("[role=menuitem]:text-is('Edit comment')")
        await expect(own_comment.locator("textarea")).to_be_focused()
        await own_comment.locator("textarea").fill("Call back on Tuesday.")
        await page.keyboard.press("Control+Enter")
        await expect(own_comment.locator(".comment-text")).to_have_text("Call back on Tuesday.")
        await expect(own_comment.locator(".menu > button")).to_be_focused()
        await is_said("Bob knows them.", "Call back on Tuesday.")

        await page.click("button:text-is('Comments')")
        await expect(page.locator(".timeline li")).to_have_count(2)
        await own_comment.locator(".menu > button").click()
        await page.click("[role=menuitem]:text-is('Delete comment')")
        await page.click("dialog[open] .button.risky")
        await expect(page.locator(".timeline li")).to_have_count(1)
        await expect(page.locator("#new-comment")).to_be_focused()

        await is_said("Bob knows them.")


async def test_a_record_says_when_it_was_created_and_changed_and_why_actions_are_unavailable(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Created and changed")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        await expect(page.locator(".record-meta")).to_contain_text("by alice")
        await expect(page.locator(".record-meta")).not_to_contain_text("updated")
        alice.run("lead.update", id=lead["id"], title="Created and changed again")
        await page.reload()
        await expect(page.locator(".record-meta")).to_contain_text("updated")
        explanation = page.locator(".missing li:has(strong:text-is('Reopen'))")
        await expect(explanation).to_be_hidden()
        await page.get_by_label("Why are some actions unavailable?").press("Enter")
        await expect(explanation).to_contain_text("Only when Stage is")
        await page.keyboard.press("Escape")
        await expect(explanation).to_be_hidden()


async def test_on_a_phone_a_comment_takes_one_line_and_a_value_is_beside_its_label(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="On a phone", contact_name="Noor Iyer", contact_email="noor@mail.example")
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        comment = page.locator("#new-comment")

        async def is_low() -> None:
            assert (await box(comment))["height"] < 50

        async def is_high() -> None:
            assert (await box(comment))["height"] > 50

        async def is_beside_its_label() -> None:
            name = await box(page.locator(".prop-name:has-text('Contact email')"))
            value = await box(page.locator(".prop:has-text('Contact email') > .prop-value"))
            assert value["x"] >= name["x"] + name["width"]
            assert value["y"] < name["y"] + name["height"]

        await comment.wait_for()
        await eventually(is_low)
        await comment.fill("One\nTwo\nThree\nFour")
        await eventually(is_high)
        await eventually(is_beside_its_label)


@pytest.mark.parametrize("width", [390, 1440])
async def test_an_email_address_and_a_phone_number_are_links_on_one_line(
    browser: Browser, desk: Desk, alice: ApiCaller, width: int
) -> None:
    email = "noor.sahin@baltic-timber.example"
    lead = alice.run("lead.create", title="Reachable", contact_email=email, contact_phone="+53464923550")
    async with desk.page(browser, width=width) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        link = page.locator(f".prop a:text-is('{email}')")
        await expect(link).to_have_attribute("href", f"mailto:{email}")
        await expect(page.locator(".prop a[href='tel:+53464923550']")).to_have_text("+53464923550")

        async def is_on_one_line() -> None:
            assert (await box(link))["height"] < 30
            assert await link.evaluate("it => it.scrollWidth <= it.clientWidth")

        await eventually(is_on_one_line)


async def test_on_a_phone_the_dates_of_related_records_do_not_wrap(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="With an activity")["id"]
    alice.run("activity.create", subject="Call the purchasing department", kind="call", due="2031-12-02", lead=lead)
    async with desk.page(browser, width=390) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead}")
        day = page.locator(".related tbody .day")
        await expect(day).to_have_text("2 Dec 2031")

        await until_equal(page, "document.querySelector('.related tbody .day').getClientRects().length", 1)


async def test_the_actions_are_beside_the_title_and_on_a_phone_above_the_bar_of_pages(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="A lead whose title is long enough for more than one line")["id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead}")
        action = page.locator("[data-action='lead.qualify']")

        async def is_beside_the_title() -> None:
            action_box, title = await box(action), await box(page.locator("h1"))
            assert action_box["x"] >= title["x"] + title["width"]
            assert action_box["y"] < title["y"] + title["height"]

        async def is_above_the_bar() -> None:
            above, bar = await box(action), await box(page.locator(".bottom-bar"))
            assert 0 < bar["y"] - (above["y"] + above["height"]) < 16
            assert above["height"] >= 44

        await action.wait_for()
        await eventually(is_beside_the_title)
        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(page.get_by_label("More actions")).to_be_visible()
        await eventually(is_above_the_bar)
        await page.get_by_label("More actions").click()
        await page.click("[role=menuitem]:text-is('Convert to party')")
        await expect(page.locator("dialog[open]")).to_contain_text("Convert to party")
        # What is last on the page is not under the actions.
        await page.keyboard.press("Escape")
        last_entry = page.locator(".timeline li").last
        await last_entry.scroll_into_view_if_needed()

        async def is_not_under_the_actions() -> None:
            await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            end, above = await box(last_entry), await box(action)
            assert end["y"] + end["height"] <= above["y"]

        await eventually(is_not_under_the_actions)


async def test_comments_have_a_tab_with_their_count(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead = str(alice.run("lead.create", title="Commented twice")["id"])
    for text in ("First words.", "Second words."):
        alice.run("comment.create", model="lead", record=lead, text=text)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead}")
        await expect(page.locator(".timeline li")).to_have_count(3)
        tab = page.get_by_role("tab", name="Comments")
        await expect(tab.locator(".count")).to_have_text("2")
        await tab.click()
        await expect(page.locator(".timeline li")).to_have_count(2)
        await expect(page.locator(".timeline")).not_to_contain_text("created this lead")
        await page.fill("#new-comment", "Third words.")
        await page.keyboard.press("Control+Enter")

        await expect(tab.locator(".count")).to_have_text("3")


async def test_a_record_shows_the_records_of_its_party_with_their_number(
    browser: Browser, desk: Desk, alice: ApiCaller, axe: str, mark: str
) -> None:
    party = alice.run("party.create", name="Shared by three")["id"]
    lead = alice.run("lead.create", title="Beside another", party=party)["id"]
    alice.run("lead.create", title="Sister of it", party=party)
    alice.run("ticket.create", subject="Asked by the party", party=party)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead}")
        tabs = page.locator(".related [role=tab]")
        await expect(tabs).to_have_text(["Activities0", "Tickets1", "Other leads of this party1"])
        await tabs.nth(2).click()
        await expect(page.locator(".related tbody th")).to_have_text(["Sister of it"])
        await page.click(".related button:has-text('New lead')")
        await page.fill(".related .panel-box [id$='title']", f"Third of it {mark}")
        await page.press(".related .panel-box [id$='title']", "Enter")
        await expect(tabs.nth(2)).to_have_text("Other leads of this party2")
        await assert_accessible(page, axe)
        await page.click(".related a:text-is('Open all')")
        await expect(page.locator(".count")).to_have_text("2 records")

    created_leads = alice.run("lead.list", filter=[{"field": "title", "op": "eq", "value": f"Third of it {mark}"}])
    assert [lead["party"] for lead in created_leads] == [party]


async def test_a_proposal_that_waits_is_in_the_timeline_and_leads_to_its_approval(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Waits in the timeline")
    other_lead = alice.run("lead.create", title="Another that waits")
    agent = alice.agent("timeline-bot", "lead.*", "plan.*")
    plan = agent.run("lead.delete", id=lead["id"])["plan_id"]
    agent.run("lead.delete", id=other_lead["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        waiting_entry = page.locator(".timeline li:has(.chip:text-is('Waiting for approval'))")
        await expect(waiting_entry).to_have_count(1)
        await expect(waiting_entry).to_contain_text("timeline-bot for alice proposed “Delete lead”")
        await page.click(".timeline-filter button:text-is('People')")
        await expect(waiting_entry).to_have_count(0)
        await page.click(".timeline-filter button:text-is('Agents')")
        await waiting_entry.get_by_text("Review").click()
        await page.wait_for_url(f"**/approvals?plan={plan}")

        alice.run("plan.reject", id=plan, reason="Not this one")
        await page.goto(f"/models/lead/records/{lead['id']}")
        await page.wait_for_selector(".timeline li")
        await expect(waiting_entry).to_have_count(0)


async def test_comments_and_history_are_shown_without_proposals_and_a_comment_does_not_load_them_again(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Has no list of proposals")
    loaded: list[str] = []

    async def refuse(route: Route) -> None:
        loaded.append(route.request.url)
        body = '{"title": "Refused", "status": 400}'
        await route.fulfill(status=400, content_type="application/problem+json", body=body)

    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice")
        await page.route("**/api/plan/list", refuse)
        async with page.expect_response("**/api/plan/list"):
            await page.goto(f"/models/lead/records/{lead['id']}")
        await page.wait_for_selector(".timeline li:has-text('created this lead')")
        count = len(loaded)
        await page.fill("#new-comment", "Without proposals")
        await page.click(".new-comment button[type=submit]")
        await page.wait_for_selector(".timeline li:has-text('Without proposals')")

    assert len(loaded) == count


async def test_a_related_record_is_marked_as_due_or_overdue(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title="Has activities that are due")
    now = datetime.now().astimezone().date()
    days = {"Yesterday": -1, "Today": 0, "Tomorrow": 1, "Done": -2}
    for subject, offset in days.items():
        due = (now + timedelta(days=offset)).isoformat()
        created_activity = alice.run(
            "activity.create", lead=lead["id"], kind="call", subject=f"{subject} it is", due=due
        )
        if subject == "Done":
            alice.run("activity.finish", id=created_activity["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/models/lead/records/{lead['id']}")
        chips = {"Yesterday": "Overdue", "Today": "Due today", "Tomorrow": "Planned", "Done": "Done"}
        for subject, chip in chips.items():
            row = page.locator(f".related tr:has(th:has-text('{subject} it is'))")
            await expect(row.locator(".chip")).to_have_text(chip)
