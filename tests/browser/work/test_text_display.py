"""Texts from other authors: invisible characters are marked, and a long text shows what has changed."""

from playwright.async_api import Browser, expect

from tests.browser.waiting import eventually
from tests.browser.work.conftest import ApiCaller, Desk

OVERRIDE = "\u202e"
TAG = "\U000e0041"


async def test_characters_that_are_not_seen_are_marked_where_a_plan_is_approved(
    browser: Browser, desk: Desk, alice: ApiCaller
) -> None:
    lead = alice.run("lead.create", title=f"Pay {OVERRIDE}001 now")["id"]
    agent = alice.agent(f"scribe{OVERRIDE}", "lead.*", "plan.propose")
    notes = f"a\u200bb{TAG} \u05d0\u05d1 \u2066x\u2069 👩\u200d🚀 می\u200cخواهم"
    step = {"command": "lead.update", "input": {"id": lead, "title": f"Pay {OVERRIDE}002 now", "source": "web"}}
    create_step = {"command": "lead.create", "input": {"title": notes}}
    plan = agent.run("plan.propose", steps=[step, create_step], why=f"so{OVERRIDE}!")["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        await page.wait_for_selector(".plan-page table.changes")
        await page.click("text=Exact command")

        async def are_marked() -> None:
            page_text = await page.locator(".plan-page").inner_text()
            shown_text = await page.locator("main").inner_text()
            assert "Pay U+202E002 now" in page_text
            assert "Pay ⟨U+202E⟩001 now" in page_text
            assert "aU+200BbU+E0041" in page_text
            assert "soU+202E!" in page_text
            assert "scribeU+202E" in page_text
            assert "👩\u200d🚀 می\u200cخواهم" in page_text
            for character in (OVERRIDE, TAG, "\u200b", "\u2066", "\u2069"):
                assert character not in shown_text

        await eventually(are_marked)
        # A text direction ends with its text.
        await expect(page.locator("table.changes td bdi").nth(2)).to_be_attached()


async def test_only_the_changed_part_of_a_long_text_is_shown(browser: Browser, desk: Desk, alice: ApiCaller) -> None:
    lines = [f"Line {number} of a long note." for number in range(300)]
    lead = alice.run("lead.create", title="Long", notes="\n".join(lines))["id"]
    changed_lines = [*lines[:20], "Line 20: pay twice.", *lines[21:270], f"Line 270{TAG}", *lines[271:]]
    agent = alice.agent("changer", "lead.*", "plan.propose")
    step = {"command": "lead.update", "input": {"id": lead, "notes": "\n".join(changed_lines)}}
    plan = agent.run("plan.propose", steps=[step])["plan_id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "alice", f"/approvals?plan={plan}")
        value_after = page.locator(".plan-page table.changes .after")
        await expect(value_after).to_contain_text("Line 20: pay twice.")
        await expect(value_after).to_contain_text("Line 270U+E0041")
        await expect(page.locator(".plan-page table.changes .before mark.changed").first).to_contain_text(
            " of a long note."
        )

        async def is_short() -> None:
            shown_text = await value_after.inner_text()
            assert "Line 100 of" not in shown_text
            assert len(shown_text) < 1500

        await eventually(is_short)
        await value_after.locator("button:has-text('more characters')").nth(1).click()

        await expect(value_after).to_contain_text("Line 100 of")
