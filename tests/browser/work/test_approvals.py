"""The approvals inbox: it is live and works by keyboard, and a person approves only what they have seen."""

import re
import time

import pytest
from playwright.async_api import Browser, Page, expect

from countersign.kernel import clock
from tests.browser.waiting import eventually, press
from tests.browser.work.conftest import ApiCaller, Desk
from tests.figures import Figures

SHOWN_MS = 300


async def ask_for_approval(page: Page) -> None:
    """Open the confirmation of the shown proposal by key."""
    await press(page, "a")
    await page.locator("dialog[open] .button:focus:text-is('Cancel')").wait_for()


async def sign(page: Page) -> None:
    """Approve the shown proposal by key, and confirm this if records are lost."""
    await ask_for_approval(page)
    await page.press("dialog[open] .ink", "Enter")


def lead(alice: ApiCaller, title: str) -> str:
    """Return a new lead."""
    return str(alice.run("lead.create", title=title)["id"])


def count_waiting_plans(alice: ApiCaller) -> int:
    """Return the number of pending proposals that have not expired."""
    pending_plans = alice.run("plan.list", filter=[{"field": "state", "op": "eq", "value": "pending"}])
    return sum(plan["expires_at"] > clock.rfc3339(clock.now()) for plan in pending_plans)


async def test_a_proposal_appears_without_a_reload_and_is_approved_by_keyboard(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    scout = alice.agent(f"scout-{mark}", "lead.*")
    ids = [lead(alice, f"Old {number}") for number in range(2)]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=scout-{mark}")
        await page.wait_for_selector(".live[data-state=live]")
        scout.run("lead.delete", id=ids[0])
        await page.wait_for_selector(".plan:has-text('Delete lead')")
        await expect(page.locator("h2#plan-title")).to_have_text("Delete lead “Old 0”")
        await expect(page.locator(".plan-page .irreversible")).to_contain_text("This can’t be undone.")
        plan_page = page.locator(".plan-page")
        await expect(plan_page).to_contain_text(f"scout-{mark} on behalf of alice", use_inner_text=True)
        await expect(page.locator(".plan .about")).to_have_text("Old 0")
        count_before = count_waiting_plans(alice)
        badge = page.locator(".side-link:has-text('Approvals') .badge")
        await expect(badge).to_have_text(f"{count_before} waiting")
        await expect(page).to_have_title(f"({count_before}) Approvals · Countersign")
        sent_bodies: list[str] = []
        page.on(
            "request",
            lambda request: sent_bodies.append(request.post_data or "") if "/api/approve/" in request.url else None,
        )
        await sign(page)
        await page.wait_for_selector(".toast:has-text('Done')")

        await expect(page.locator(f".badge:text-is('{count_before} waiting')")).to_have_count(0)
        assert count_waiting_plans(alice) == count_before - 1
        assert '"digest":"sha256:' in sent_bodies[0]
        assert not alice.run("lead.list", filter=[{"field": "id", "op": "eq", "value": ids[0]}])
        assert alice.run("lead.get", id=ids[1])


async def test_further_effects_of_a_deletion_are_shown_as_the_api_states_them(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead_id = lead(alice, "With an activity")
    alice.run("activity.create", subject="Call back", lead=lead_id)
    plan = alice.agent("cutter", "lead.*").run("lead.delete", id=lead_id, cascade=True)["plan_id"]
    effects = alice.run("plan.get", id=plan)["effects"]
    assert effects == ["1 activity deleted"]
    async with desk.page(browser) as page:
        # On a computer whose clock is late, no proposal appears to be in the future.
        await page.clock.set_fixed_time(time.time() - 600)
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await expect(page.locator(".effects")).to_contain_text(effects[0])
        await expect(page.locator(".effects li")).to_contain_text(["Call back"])
        await expect(page.locator(".plan-page")).to_contain_text("Proposed now · Expires in")


async def test_a_deletion_shows_all_fields_or_the_most_important_if_not_all_fit(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    values = {
        "contact_name": "Ada Folded",
        "contact_email": "ada@folded.example",
        "contact_phone": "+49301234567",
        "expected_revenue_minor": 120_000,
        "expected_close": "2026-12-14",
        "source": "web",
        "notes": "Asked for a second offer",
    }
    lead_id = alice.run("lead.create", title="Has many fields", **values)["id"]
    plan = alice.agent("folder", "lead.*").run("lead.delete", id=lead_id)["plan_id"]
    async with desk.page(browser) as page:
        await page.set_viewport_size({"width": 1440, "height": 1400})
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        rows = page.locator(".plan-page table.changes tbody tr")
        changes_table = page.locator(".plan-page table.changes")
        await expect(changes_table).to_contain_text("Asked for a second offer")
        await expect(page.locator(".more-fields")).to_have_count(0)

        async def are_more() -> None:
            assert await rows.count() > 6

        await eventually(are_more)

        await page.set_viewport_size({"width": 1440, "height": 500})
        await expect(rows).to_have_count(6)
        for expected_text in ("Has many fields", "1,200.00", "14 Dec 2026", "Ada Folded"):
            await expect(changes_table).to_contain_text(expected_text)
        await expect(changes_table).not_to_contain_text("Asked for a second offer")
        await page.click(".more-fields")
        await expect(changes_table).to_contain_text("Asked for a second offer")
        await expect(changes_table).to_contain_text("ada@folded.example")
        await expect(page.locator(".more-fields")).to_have_text("Show fewer fields")

        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(changes_table.locator("tfoot")).to_be_visible()
        await expect(changes_table.locator("tfoot")).to_contain_text("Nothing remains")


async def test_an_overtaken_plan_is_marked_on_its_page(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lead_id = lead(alice, "Overtaken")
    plan = alice.agent("slow", "lead.*").run("lead.delete", id=lead_id)["plan_id"]
    async with desk.page(browser, expected=("409", "400", "404")) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await expect(page.locator(".plan-page")).to_contain_text("Expires")
        # Once the page knows of the change, it no longer opens the confirmation.
        await ask_for_approval(page)
        alice.run("lead.update", id=lead_id, title="Changed meanwhile")
        await page.press("dialog[open] .ink", "Enter")

        await page.wait_for_selector(".plan-page .notice:has-text('has changed since this was proposed')")
        await expect(page.locator("#approve")).to_have_count(0)
        await expect(page.locator(".plan-page")).not_to_contain_text("Expires", use_inner_text=True)
        page_text = await page.inner_text(".plan-page")
        assert lead_id not in page_text.split("Exact command")[0]
        assert alice.run("lead.get", id=lead_id)["title"] == "Changed meanwhile"


async def test_other_proposals_for_a_deleted_record_are_marked_at_once_and_cannot_be_approved(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    lead_id = lead(alice, "Sold and gone")
    agent = alice.agent(f"both ways {mark}", "lead.*", "plan.propose")
    renaming = [{"command": "lead.update", "input": {"id": lead_id, "title": "Sold"}}]
    agent.run("plan.propose", steps=renaming)
    steps = [{"command": "lead.qualify", "input": {"id": lead_id}}]
    moving = agent.run("plan.propose", steps=steps)["plan_id"]
    deleting = agent.run("lead.delete", id=lead_id)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=both ways {mark}&plan={moving}")
        await page.wait_for_selector("#plan-title:has-text('Qualify: “Sold and gone”')")
        await press(page, "k")
        await expect(page.locator(".plan[data-command='lead.delete']")).to_be_focused()
        await press(page, "j")
        await expect(page.locator(".plan[data-command='lead.qualify']")).to_be_focused()
        await page.click(".plan[data-command='lead.delete']")
        await page.wait_for_selector("#plan-title:has-text('Delete lead')")
        await sign(page)
        await page.wait_for_selector(".toast:has-text('Done')")

        await page.wait_for_selector(".plan[data-command='lead.qualify'] .chip:has-text('Out of date')")
        # This one was not viewed before, and is not viewed now.
        await page.wait_for_selector(".plan[data-command='lead.update'] .chip:has-text('Out of date')")
        await page.wait_for_selector("#plan-title:has-text('Qualify')")
        await page.wait_for_selector(".plan-page .notice:has-text('has changed since this was proposed')")
        await expect(page.locator("#plan-title")).to_contain_text("Sold and gone")
        await expect(page.locator(".plan-page")).not_to_contain_text("Expires", use_inner_text=True)
        await expect(page.locator("#approve")).to_have_count(0)
        await expect(page.locator("#reject")).to_be_visible()
        await expect(page.locator("#reject")).to_be_enabled()
        assert [alice.run("plan.get", id=plan)["state"] for plan in (deleting, moving)] == ["executed", "pending"]

        # Now only the plan that deleted it has its name.
        await page.reload()
        await expect(page.locator("#plan-title")).to_contain_text("“Sold and gone”")


@pytest.mark.full
async def test_new_proposals_are_shown_as_they_arrive(
    browser: Browser, desk: Desk, alice: ApiCaller, figures: Figures
) -> None:
    """The measured delay is recorded beside the required delay."""
    runner = alice.agent("runner", "lead.*")
    ids = [lead(alice, f"Timed {number}") for number in range(20)]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/approvals?agent=runner")
        await page.wait_for_selector(".live[data-state=live]")
        await page.wait_for_timeout(1000)
        times: list[float] = []
        for number, item in enumerate(ids, 1):
            runner.run("lead.delete", id=item)
            answered_at = time.monotonic()
            # The first one is open, so it remains alone.
            identical_plans = f".plan:has-text('{number - 1} identical')"
            plan_selector = f".plans li:nth-child({number}) .plan" if number < 3 else identical_plans
            await page.wait_for_selector(plan_selector)
            times.append((time.monotonic() - answered_at) * 1000)

    in_order = sorted(round(seconds) for seconds in times)
    figures |= {"proposals": len(times), "p50_ms": in_order[len(times) // 2], "p95_ms": in_order[-2]}
    figures["wanted_ms"] = SHOWN_MS


@pytest.mark.full
async def test_a_rejection_needs_a_reason_which_the_agent_reads(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    clerk = alice.agent("careless", "lead.*")
    plan = clerk.run("lead.delete", id=lead(alice, "Kept"))["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await page.wait_for_selector(".plan-page:has-text('Kept')")
        await press(page, "r")
        await page.click("dialog[open] .risky")
        await expect(page.locator("#reject-reason")).to_have_attribute("aria-invalid", "true")
        await page.fill("#reject-reason", "Still needed")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector(".toast:has-text('Rejected')")

        rejected_plan = clerk.run("plan.get", id=plan)
        assert (rejected_plan["state"], rejected_plan["reason"]) == ("rejected", "Still needed")


@pytest.mark.full
async def test_a_person_who_approves_in_haste_is_shown_the_plan_again_with_a_warning(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    hasty = alice.agent("hasty", "lead.*", "plan.propose")
    ids = [lead(alice, f"Hurried {number}") for number in range(4)]
    for id_ in ids:
        hasty.run("plan.propose", steps=[{"command": "lead.update", "input": {"id": id_, "title": f"Now {id_}"}}])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/approvals?agent=hasty")
        await expect(page.locator(".plan")).to_have_count(4)
        for remaining_count in (3, 2):
            await page.wait_for_selector("[data-seconds='0'] #approve:not(.is-busy)")
            await page.keyboard.press("a")
            await expect(page.locator(".plan")).to_have_count(remaining_count)
        await page.wait_for_selector(".notice:has-text('You approved 2 of 2 in under 4 seconds.')")
        await page.wait_for_selector("[data-seconds='0'] #approve:not(.is-busy)")
        await page.keyboard.press("a")
        await page.wait_for_selector("dialog[open] .changes")
        await expect(page.locator("dialog[open] .changes .before")).to_contain_text("Hurried")
        await page.keyboard.press("Escape")
        await expect(page.locator(".plan")).to_have_count(2)
        await page.wait_for_selector("[data-seconds='4']")
        await page.keyboard.press("a")

        await expect(page.locator(".plan")).to_have_count(1)
        await page.wait_for_selector(".notice:has-text('You approved 2 of 3 in under 4 seconds.')")


@pytest.mark.full
async def test_the_person_does_a_proposed_change_in_another_way(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    eager = alice.agent("eager", "lead.*", "plan.propose")
    lead_id = lead(alice, "As it was")
    steps = [{"command": "lead.update", "input": {"id": lead_id, "title": "Too loud", "source": "fair"}}]
    plan = eager.run("plan.propose", steps=steps)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await page.wait_for_selector("#redo")
        await press(page, "e")
        await expect(page.locator("#reject-reason")).to_have_value("A person made this change differently.")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector("h1:text-is('As it was')")
        await expect(page.locator("#title")).to_have_value("Too loud")
        await page.fill("#title", "Just right")
        await page.press("#title", "Enter")
        await page.wait_for_selector("h1:text-is('Just right')")

        now = alice.run("lead.get", id=lead_id)
        assert (now["title"], now["source"]) == ("Just right", "fair")
        assert eager.run("plan.get", id=plan)["state"] == "rejected"


@pytest.mark.full
async def test_proposals_are_filtered_by_agent_model_and_age(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    first_agent, second_agent = alice.agent("first hand", "lead.*"), alice.agent("second hand", "ticket.*")
    first_agent.run("lead.delete", id=lead(alice, "Filtered"))
    second_agent.run("ticket.delete", id=alice.run("ticket.create", subject="Filtered")["id"])
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/approvals")
        await page.click("#panel-filter")
        await page.select_option("#agent", "first hand")
        await expect(page.locator(".plan")).to_have_count(1)
        await page.select_option("#model", "ticket")
        await page.wait_for_selector("h2:text-is('You’re all caught up')")
        await page.select_option("#agent", "second hand")
        await expect(page.locator(".plan strong")).to_have_text(["Delete ticket"])
        await page.select_option("#age", "hour")
        await page.wait_for_selector("h2:text-is('You’re all caught up')")
        await expect(page).to_have_url(re.compile("age=hour"))
        await page.select_option("#age", "")

        await expect(page.locator(".plan")).to_have_count(1)


@pytest.mark.full
async def test_where_two_people_must_approve_the_first_is_informed(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    root = desk.caller("root")
    rule = root.run("setting.create", title="approval:address.delete", value='{"n": 2}')
    party = alice.run("party.create", name="Signed twice")["id"]
    address = alice.run("address.create", party=party, label="main", street="1 Way", city="Ribe", country="DK")["id"]
    plan = alice.agent("double", "address.*").run("address.delete", id=address)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=double&plan={plan}")
        await page.wait_for_selector("text=0 of 2 approvals")
        await sign(page)
        await page.wait_for_selector(".toast:has-text('1 more approval needed')")
        await page.wait_for_selector("text=1 of 2 approvals")
        assert root.run("address.get", id=address)
        await desk.sign_in(page, "root", f"/approvals?plan={plan}")
        await page.wait_for_selector("#approve")
        await sign(page)
        await page.wait_for_selector(".toast:has-text('Done')")

        root.run("setting.delete", id=rule["id"])
        assert not root.run("address.list", filter=[{"field": "id", "op": "eq", "value": address}])


@pytest.mark.full
async def test_markup_in_the_text_of_an_agent_is_shown_as_text_and_the_text_is_marked(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    writer = alice.agent("writer", "lead.*", "plan.propose")
    hostile_title = "<img src=x onerror=alert(1)> <b>urgent</b>"
    steps = [{"command": "lead.update", "input": {"id": lead(alice, "Before"), "title": hostile_title}}]
    plan = writer.run("plan.propose", steps=steps, why=hostile_title)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await expect(page.locator(".untrusted").first).to_contain_text(hostile_title)
        await expect(page.locator(".changes .after").first).to_contain_text(hostile_title)
        await expect(page.locator(".changes .before").first).to_contain_text("Before")
        await expect(page.locator(".plan-page img, .plan-page b")).to_have_count(0)


@pytest.mark.full
async def test_plans_that_are_alike_are_decided_together(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    sweeper = alice.agent("sweeper", "lead.*")
    ids = [lead(alice, f"Swept {number}") for number in range(3)]
    for id_ in ids:
        sweeper.run("lead.delete", id=id_)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/approvals?agent=sweeper")
        await page.wait_for_selector(".plan:has-text('3 identical proposals')")
        await expect(page.locator("h2#plan-title")).to_have_text("Delete 3 leads")
        await page.click("#approve:has-text('Approve all 3')")
        await page.click("dialog[open] button:text-is('Delete 3 leads')")
        await page.wait_for_selector(".toast:has-text('Done')")
        await page.wait_for_selector("h2:text-is('You’re all caught up')")

        assert not alice.run("lead.list", filter=[{"field": "id", "op": "in", "value": ids}])


@pytest.mark.full
async def test_plans_that_arrive_meanwhile_are_not_approved_with_the_picked_plans(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    racer = alice.agent("racer", "lead.*")
    ids = [lead(alice, f"Raced {number}") for number in range(2)]
    async with desk.page(browser) as page:
        racer.run("lead.delete", id=ids[0])
        await desk.sign_in(page, "alice", "/approvals?agent=racer")
        await page.wait_for_selector(".plan-page:has-text('Raced 0')")
        racer.run("lead.delete", id=ids[1])
        await expect(page.locator(".plan")).to_have_count(2)
        await sign(page)
        await page.wait_for_selector(".toast:has-text('Done')")

        remaining_leads = alice.run("lead.list", filter=[{"field": "id", "op": "in", "value": ids}])
        assert [plan["id"] for plan in remaining_leads] == ids[1:]


@pytest.mark.full
async def test_one_window_waits_at_the_api_for_all_windows(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    twin = alice.agent("twin", "lead.*")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", "/approvals")
        await page.wait_for_selector(".live[data-state=live]")
        other_page = await page.context.new_page()
        waits: list[str] = []
        other_page.on(
            "request", lambda request: waits.append(request.url) if request.url.endswith("/plan/watch") else None
        )
        await other_page.goto(f"{desk.url}/approvals?agent=twin")
        await other_page.wait_for_selector("h1:text-is('Approvals')")
        twin.run("lead.delete", id=lead(alice, "Seen twice"))
        await other_page.wait_for_selector(".plan:has-text('twin')")
        assert not waits
        await page.goto("about:blank")
        twin.run("lead.delete", id=lead(alice, "Seen by the other"))
        await expect(other_page.locator(".plan:has-text('twin')")).to_have_count(2)

        assert waits


@pytest.mark.full
async def test_a_lost_connection_is_reported_and_restored(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    late_agent = alice.agent("late", "lead.*")
    async with desk.page(browser, expected=("ERR_INTERNET_DISCONNECTED", "400", "404")) as page:
        await desk.sign_in(page, "alice", "/approvals")
        await page.wait_for_selector(".live[data-state=live]")
        await page.context.set_offline(True)
        await page.wait_for_selector(".live[data-state=reconnecting]")
        late_agent.run("lead.delete", id=lead(alice, "Missed"))
        await page.context.set_offline(False)

        await page.wait_for_selector(".plan:has-text('late')")


def draft(alice: ApiCaller, party_name: str, *prices_minor: int) -> str:
    """Create a draft of an invoice with these lines, and return its id."""
    party = alice.run("party.create", name=party_name)["id"]
    invoice = str(alice.run("invoice.create", party=party)["id"])
    for number, price_minor in enumerate(prices_minor, 1):
        line = {"description": f"Line {number}", "quantity": 1, "unit_price_minor": price_minor, "tax_bp": 0}
        alice.run("invoice_line.create", invoice=invoice, **line)
    return invoice


async def test_who_approves_the_posting_of_an_invoice_sees_the_invoice_and_its_lines(
    browser: Browser, desk: Desk, mark: str
) -> None:
    carol = desk.caller("root")
    invoice = draft(carol, "Posted blind", *range(100, 2200, 100), 990_000_000)
    plan = carol.agent(f"poster-{mark}", "invoice.*", "invoice_line.*").run("invoice.post", id=invoice)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/approvals?agent=poster-{mark}&plan={plan}")
        subject = page.locator(".plan-page .subject")
        await expect(subject.locator("caption").first).to_contain_text("Invoice lines (22)")
        facts = subject.locator("dl.facts")
        await expect(facts).to_contain_text("Posted blind")
        await expect(facts).to_contain_text("9,900,231.00")
        await expect(subject.locator("table").first.locator("tbody tr")).to_have_count(20)
        await expect(subject).to_contain_text("Showing the first 20 of 22.")
        await expect(subject).to_contain_text("Payments: none")
        await expect(page.locator(".plan-page")).to_contain_text("If this record or a record it affects changes")

        async def is_above() -> None:
            above = await page.locator(".plan-page").inner_text()
            assert above.find("Posted blind") in range(above.find("What changes"))

        await eventually(is_above)

        carol.run("invoice_line.create", invoice=invoice, description="Later", unit_price_minor=1, tax_bp=0)
        await sign(page)
        await page.wait_for_selector(".plan-page .notice:has-text('has changed since this was proposed')")
        assert carol.run("invoice.get", id=invoice)["state"] == "draft"


async def test_the_approver_of_a_payment_sees_the_paid_invoice(browser: Browser, desk: Desk, mark: str) -> None:
    root = desk.caller("root")
    invoice = draft(root, "Pays in parts", 120_000)
    root.run("invoice.post", id=invoice)
    root.run("payment.create", invoice=invoice, amount_minor=20_000)
    payer = root.agent(f"payer-{mark}", "payment.*", "invoice.get")
    plan = payer.run("payment.create", invoice=invoice, amount_minor=50_000)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "root", f"/approvals?agent=payer-{mark}&plan={plan}")
        number = root.run("invoice.get", id=invoice)["number"]
        plan_summary = page.locator(f".plan[aria-current=true]:has-text('{number}') .about")
        await expect(plan_summary).to_have_text(f"New: Payment of 500.00 for Invoice {number}")
        facts = page.locator(".plan-page .subject dl.facts")
        for expected_text in ("Pays in parts", "1,200.00", "200.00", "1,000.00"):
            await expect(facts).to_contain_text(expected_text)


async def test_the_list_names_the_fields_that_an_update_changes(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    steps = [{"command": "lead.update", "input": {"id": lead(alice, "Told apart"), "title": "Told again"}}]
    plan = alice.agent(f"renamer-{mark}", "lead.*", "plan.propose").run("plan.propose", steps=steps)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=renamer-{mark}&plan={plan}")
        await expect(page.locator(".plan .about")).to_have_text("Told apart: Title")


async def test_the_list_shows_the_most_important_change_with_old_and_proposed_value(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    party = alice.run("party.create", name="Buys much", kind="company")["id"]
    values = {"title": "Grows smaller", "party": party, "expected_revenue_minor": 1_200_000}
    lead_id = alice.run("lead.create", **values)["id"]
    alice.run("lead.qualify", id=lead_id)
    agent = alice.agent(f"estimator-{mark}", "lead.*", "plan.propose")
    changes = {"id": lead_id, "title": "Grown smaller", "expected_revenue_minor": 900_000}
    agent.run("plan.propose", steps=[{"command": "lead.update", "input": changes}])
    agent.run("lead.win", id=lead_id)
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=estimator-{mark}")
        update = page.locator(".plan[data-command='lead.update'], .plan[data-command='plan.propose']")
        await expect(update.locator(".about-change")).to_contain_text(re.compile("· €?12,000 → €?9,000 and 1 more$"))
        await expect(page.locator(".plan[data-command='lead.win'] .about-change")).to_have_text("· Qualified → Won")


async def test_a_person_who_rejects_a_deletion_is_led_to_the_record(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    lead_id = lead(alice, "To be kept open")
    plan = alice.agent(f"remover-{mark}", "lead.*").run("lead.delete", id=lead_id)["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?agent=remover-{mark}&plan={plan}")
        await page.click("#redo")
        await page.click("dialog[open] .risky")
        await page.wait_for_selector("h1:text-is('To be kept open')")

        await expect(page).to_have_url(re.compile(lead_id))
        assert alice.run("plan.get", id=plan)["state"] == "rejected"
        assert alice.run("lead.get", id=lead_id)["title"] == "To be kept open"


async def test_only_proposals_of_own_agents_are_listed(
    browser: Browser, desk: Desk, alice: ApiCaller, mark: str
) -> None:
    own_lead, other_lead = lead(alice, "Of her agent"), lead(alice, "Of his agent")
    own_plan = alice.agent(f"hers-{mark}", "lead.*").run("lead.delete", id=own_lead)["plan_id"]
    bob = desk.caller("bob").agent(f"his-{mark}", "lead.*", "plan.*")
    steps = [{"command": "lead.update", "input": {"id": other_lead, "source": "fair"}}]
    their_plan = bob.run("plan.propose", steps=steps)["plan_id"]
    alice.run("plan.reject", id=own_plan, reason="Not now")
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={their_plan}")
        await expect(page.locator(f".plan .plan-by:has-text('his-{mark}')")).to_have_count(1)
        await page.click(".views a:has-text('Proposed by my agents')")
        await expect(page.locator(f".plan .plan-by:has-text('hers-{mark}')")).to_have_count(1)
        await expect(page.locator(".plan .plan-by", has=page.get_by_text(f"his-{mark}", exact=True))).to_have_count(0)


@pytest.mark.parametrize("locale", ["en-US", "de-DE"])
async def test_no_dialog_of_an_action_has_two_buttons_with_the_same_name(
    browser: Browser, desk: Desk, locale: str
) -> None:
    root = desk.caller("root")
    async with desk.page(browser, locale=locale) as page:
        await desk.sign_in(page, "root")
        for model in root.meta()["models"]:
            has_pages = model["actions"] and model["module"] != "base"
            rows = root.run(f"{model['name']}.list", limit=50) if has_pages else []
            states_seen: set[str] = set()
            for row in rows:
                # The field that the actions change has a different name in each model.
                state = str(row.get("state") or row.get("stage") or row.get("status"))
                if state in states_seen:
                    continue
                states_seen.add(state)
                await page.goto(f"/models/{model['name']}/records/{row['id']}")
                await page.wait_for_selector("main h1")
                # The page has all its actions when it has its history.
                await page.locator(".timeline li").first.wait_for()
                for element in await page.locator("[data-action]").all():
                    await element.click()
                    buttons = page.locator("dialog[open] > .row button")
                    await expect(buttons).to_have_count(2)
                    names = await buttons.all_inner_texts()
                    assert names[0] != names[1]
                    assert not {"Cancel", "Abbrechen"} >= set(names)
                    await page.keyboard.press("Escape")
                    await expect(page.locator("dialog[open]")).to_have_count(0)


async def test_a_proposal_of_several_deletions_is_titled_with_their_names_and_asks_once(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    agent = alice.agent("tidy", "lead.*", "activity.*", "plan.*")
    leads = [alice.run("lead.create", title=f"Twice proposed {number}") for number in (1, 2)]
    alice.run("activity.create", lead=leads[0]["id"], kind="call", subject="Call them back", due="2026-12-02")
    steps = [{"command": "lead.delete", "input": {"id": lead["id"], "cascade": True}} for lead in leads]
    plan = agent.run("plan.propose", steps=steps, why="Both are done.")["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await expect(page.locator("#plan-title")).to_have_text("Delete 2 leads")
        await expect(page.locator(".plan-context")).to_contain_text("Affects personal data")
        await expect(page.locator(".effect-list li:has-text('Call them back')")).to_contain_text("Activity, 2 Dec 2026")
        await page.click("#approve")
        dialog = page.locator("dialog[open]")
        await expect(dialog.locator("h2")).to_have_text("Delete 2 leads?")
        await expect(dialog.locator("li").first).to_contain_text("Twice proposed 1")
        await expect(dialog.locator("li").first).not_to_contain_text("Delete")
