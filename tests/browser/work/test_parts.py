"""The parts of a record on its page: an invoice is written, posted and paid without leaving the page."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.watched import assert_accessible
from tests.browser.work.conftest import Desk


async def act(page: Page, action: str) -> None:
    """Run the record's action, and wait until it is finished."""
    await page.click(f"[data-action='{action}']")
    # The message of an earlier action may still be there.
    async with page.expect_response(f"**/api/{action.replace('.', '/')}"):
        await page.click("dialog[open] .button.strong")
    await page.wait_for_selector(".toast:has-text('Done')")


async def add(page: Page, part_name: str, **fields: str) -> None:
    """Add a part by keyboard in the open form."""
    for name, value in fields.items():
        await page.fill(f"#part-{part_name}-invoice-{name}", value)
    await page.press(f"#part-{part_name}-invoice-{[*fields][-1]}", "Enter")


async def test_a_bookkeeper_writes_posts_and_pays_an_invoice_on_its_page(
    browser: Browser, desk: Desk, axe: str
) -> None:
    carol = desk.caller("carol")
    party = desk.caller("alice").run("party.create", name="Invoiced Ltd")["id"]
    invoice = carol.run("invoice.create", party=party)["id"]
    async with desk.page(browser) as page:
        await desk.sign_in(page, "carol", f"/models/invoice/records/{invoice}")
        lines = payments = page.locator(".related")
        await lines.get_by_text("New invoice line").click()
        await expect(lines.locator("form :is(input, select, textarea)").first).to_be_focused()
        await expect(page.locator("#part-invoice_line-invoice-invoice")).to_have_count(0)
        for number, price in (("1", "10.00"), ("2", "4.50")):
            await add(page, "invoice_line", description=f"Line {number}", unit_price_minor=price, quantity="2")
            # A message stays as long as the pointer is on it.
            await page.hover(".toast")
            await expect(lines.locator("tbody tr")).to_have_count(int(number))
            # The form for the next line opens at once.
            await expect(page.locator("#part-invoice_line-invoice-description")).to_have_value("")
            await expect(lines.locator("form :is(input, select, textarea)").first).to_be_focused()
        await expect(lines.locator("tbody tr:has-text('Line 2')")).to_contain_text("9.00")
        # The message about the second line replaces the one about the first.
        await expect(page.locator(".toast")).to_have_count(1)
        await assert_accessible(page, axe)
        await expect(page.locator(".prop:has(.prop-name .cut:text-is('Total'))")).to_contain_text("34.51")
        await act(page, "invoice.post")
        await page.click("[role=tab]:has-text('Payments')")
        await payments.get_by_text("New payment").click()
        await add(page, "payment", amount_minor="34.51")
        await expect(payments.locator("tbody tr")).to_have_count(1)
        await expect(page.locator(".prop:has(.prop-name .cut:text-is('Open'))")).to_contain_text("0.00")
        await act(page, "invoice.settle")

    assert carol.run("invoice.get", id=invoice)["state"] == "paid"


@pytest.fixture
def numbers_by_party(desk: Desk) -> Iterator[None]:
    """A number series for each party, so that other tests' later invoices do not forbid an earlier day."""
    root = desk.caller("root")
    setting = root.run("setting.create", title="billing.invoice_numbers", value='"party"')
    yield
    root.run("setting.update", id=setting["id"], value='"year"')
    root.run("setting.delete", id=setting["id"])


@pytest.mark.usefixtures("numbers_by_party")
async def test_a_bookkeeper_enters_an_invoice_of_yesterday_from_a_product(
    browser: Browser, desk: Desk, mark: str
) -> None:
    carol = desk.caller("carol")
    party = desk.caller("alice").run("party.create", name="Invoiced Ltd")["id"]
    invoice = carol.run("invoice.create", party=party)["id"]
    product = carol.run("product.create", sku=f"OAK-{mark}", name="Oak table", unit_price_minor=1_000)["id"]
    yesterday = (datetime.now(UTC).date() - timedelta(days=1)).isoformat()
    async with desk.page(browser) as page:
        await desk.sign_in(page, "carol", f"/models/invoice/records/{invoice}")
        lines = page.locator(".related")
        await lines.get_by_text("New invoice line").click()
        description = page.locator("#part-invoice_line-invoice-description")
        await expect(description).to_be_visible()
        await expect(description).not_to_have_attribute("aria-required", re.compile(""))
        carol.run("invoice_line.create", invoice=invoice, product=product)
        await page.reload()
        await page.click("[data-action='invoice.post']")
        await page.fill("dialog[open] #issued", yesterday)
        await page.click("dialog[open] .button.strong")
        await page.wait_for_selector(".toast:has-text('Done')")

    posted_invoice = carol.run("invoice.get", id=invoice)
    assert (posted_invoice["state"], posted_invoice["issued"], posted_invoice["net_minor"]) == (
        "posted",
        yesterday,
        1_000,
    )


async def test_a_german_page_marks_an_english_refusal_as_text_of_the_server(browser: Browser, desk: Desk) -> None:
    party = desk.caller("alice").run("party.create", name="Invoiced Ltd")["id"]
    invoice = desk.caller("carol").run("invoice.create", party=party)["id"]
    desk.caller("carol").run("invoice_line.create", invoice=invoice, description="Gift", unit_price_minor=0)
    async with desk.page(browser, locale="de-DE") as page:
        await page.goto("/signin")
        await page.fill("#username", "carol")
        await page.fill("#password", "countersign-demo")
        await page.press("#password", "Enter")
        await page.wait_for_selector(".side-person:has-text('Angemeldet als')")
        await page.goto(f"/models/invoice/records/{invoice}")
        await page.click("[data-action='invoice.post']")
        await page.click("dialog[open] .button.strong")

        alert_text = page.locator("dialog[open] [role=alert] p").first
        await expect(alert_text).to_contain_text(
            "Der Server hat abgelehnt: invoice.post is refused: it requires that total"
        )


async def test_meta_marks_only_declared_refs_as_parts(desk: Desk) -> None:
    models = desk.caller("root").meta()["models"]
    parts = {(model["name"], field["name"]) for model in models for field in model["fields"] if field["is_part"]}

    assert {
        ("invoice_line", "invoice"),
        ("payment", "invoice"),
        ("address", "party"),
        ("activity", "lead"),
    } <= parts
    assert not parts & {("lead", "party"), ("invoice", "party"), ("ticket", "assignee")}
