"""A year of random commands by people and agents: the invoices always match their payments."""

import random
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from countersign.kernel import clock
from countersign.kernel.clock import DAY, Instant
from tests.figures import Figures
from tests.records.office import Office

INVOICES, INVOICES_IN_FULL = 20, 500
STEPS = 9
"""The number of steps for each invoice."""


@dataclass
class InvoiceState:
    """The expected state of an invoice."""

    id: str
    total: int
    issued: str
    state: str = "posted"
    number: str = ""
    changes: int = 0
    payments: dict[str, tuple[int, str | None]] = field(default_factory=dict[str, tuple[int, str | None]])

    @property
    def paid_minor(self) -> int:
        """Return the sum of the payments."""
        return sum(amount for amount, _ in self.payments.values())

    def takes(self, amount: int, day: str, today: str, reference: str | None) -> bool:
        """Return whether the invoice must accept this payment."""
        taken_references = [reference.lower() for _, reference in self.payments.values() if reference]
        is_new = reference is None or reference.lower() not in taken_references
        return self.state == "posted" and amount != 0 and self.issued <= day <= today and is_new

    def allows(self, action: str) -> bool:
        """Return whether the invoice must accept this action."""
        return {
            "settle": self.state == "posted" and self.total == self.paid_minor,
            "reopen": self.state == "paid",
            "cancel": self.state == "posted" and self.paid_minor == 0,
        }[action]

    def act(self, action: str) -> None:
        """Apply the action to the expected state."""
        self.changes += 1
        self.state = {"settle": "paid", "reopen": "posted", "cancel": "cancelled"}[action]


@dataclass
class PendingPlan:
    """A pending plan, and the command that it would run."""

    plan: str
    book: InvoiceState
    command: str
    body: dict[str, Any]
    changes: int


class RandomYear:
    """Runs random commands on the invoices of an office, and tracks the expected state."""

    def __init__(self, office: Office, seed: int) -> None:
        self.office = office
        self.rng = random.Random(seed)
        self.now = Instant(clock.now() - 365 * DAY)
        self.books: list[InvoiceState] = []
        self.waiting: list[PendingPlan] = []
        self.party = ""
        self.agent = ""
        self.refused = 0
        self._numbers = count(1)

    @property
    def today(self) -> str:
        """Return the current date of the simulation."""
        return clock.rfc3339(self.now)[:10]

    async def begin(self) -> None:
        """Create a party, and an agent that proposes commands."""
        self.party = (await self.office.value("root", "party.create", name="Ada"))["id"]
        self.agent = await self.office.agent("root", "*")

    async def invoice(self) -> None:
        """Create and post an invoice."""
        invoice = (await self.office.value("carol", "invoice.create", party=self.party))["id"]
        total = 0
        for _ in range(self.rng.randint(1, 3)):
            quantity, price = self.rng.randint(1, 9), self.rng.randint(1, 500)
            line = {"description": "Work", "quantity": quantity, "unit_price_minor": price, "tax_bp": 0}
            await self.office.value("carol", "invoice_line.create", invoice=invoice, **line)
            total += quantity * price
        issue_day = self.today
        if self.books and self.rng.random() < 0.3:
            issue_day = self.rng.choice([self.books[-1].issued, self.today])
        posted_invoice = await self.office.value("carol", "invoice.post", id=invoice, issued=issue_day)
        assert (posted_invoice["issued"], posted_invoice["number"][:4]) == (issue_day, issue_day[:4])
        self.books.append(InvoiceState(invoice, total, issue_day, number=posted_invoice["number"]))

    async def step(self) -> None:
        """Run a random command, or decide on a pending plan."""
        self.now = Instant(min(self.now + self.rng.randint(0, 20) * DAY // 24, clock.now()))
        book = self.rng.choice(self.books[-6:])
        with clock.fixed(self.now):
            if self.waiting and self.rng.random() < 0.2:
                book = await self.decide(self.waiting.pop(self.rng.randrange(len(self.waiting))))
            elif book.payments and self.rng.random() < 0.3:
                await self.change(book)
            elif self.rng.random() < 0.4:
                action = self.rng.choice(["settle", "settle", "reopen", "cancel"])
                await self.run_command(book, f"invoice.{action}", {"id": book.id})
            else:
                await self.run_command(book, "payment.create", self.payment(book))
            await self.check(book)

    def payment(self, book: InvoiceState) -> dict[str, Any]:
        """Return a random payment, which the invoice usually must accept."""
        open_minor = book.total - book.paid_minor
        body: dict[str, Any] = {
            "invoice": book.id,
            "amount_minor": self.rng.choice([open_minor, open_minor, open_minor // 2, -5, 0, 7]),
        }
        if self.rng.random() < 0.3:
            body["reference"] = f"{self.rng.choice('Rr')}{self.rng.randrange(4)}"
        if self.rng.random() < 0.3:
            body["paid_on"] = self.rng.choice([self.today, book.issued, "2001-01-01", "2999-12-31"])
        return body

    async def change(self, book: InvoiceState) -> None:
        """Change a payment, move it to another invoice, or delete it."""
        payment = self.rng.choice(list(book.payments))
        which = self.rng.random()
        if which < 0.4:
            await self.run_command(book, "payment.delete", {"id": payment})
        elif which < 0.8:
            await self.run_command(
                book, "payment.update", {"id": payment, "amount_minor": self.rng.choice([0, 3, -3, 400])}
            )
        else:
            other_book = self.rng.choice(self.books)
            await self.run_command(
                book, "payment.update", {"id": payment, "invoice": other_book.id, "paid_on": self.today}
            )
            await self.check(other_book)

    async def run_command(self, book: InvoiceState, command: str, body: dict[str, Any]) -> None:
        """Let a person or the agent run the command, and require the expected result."""
        if self.rng.random() < 0.4:
            return await self.propose(book, command, body)
        answer = await self.office.call("carol", command, body)
        assert answer.status_code == (200 if self.is_right(book, command, body) else 400), (command, body, answer.text)
        if answer.status_code == 200:
            self.note(book, command, body, answer.json()["value"]["id"])
        else:
            self.refused += 1

    async def propose(self, book: InvoiceState, command: str, body: dict[str, Any]) -> None:
        """Let the agent run the command. It must become a plan, or be refused if the agent can see the error."""
        answer = await self.office.call(self.agent, command, body)
        if answer.status_code == 202:
            plan = answer.json()["plan_id"]
            if plan not in [entry.plan for entry in self.waiting]:
                self.waiting.append(PendingPlan(plan, book, command, body, book.changes))
            return
        assert answer.status_code == 400, (command, body, answer.text)
        assert not self.is_right(book, command, body), (command, body, answer.text)
        self.refused += 1

    async def decide(self, pending: PendingPlan) -> InvoiceState:
        """Approve or reject a plan. An approved plan is executed if the command is valid at that moment, and has no
        effect otherwise."""
        is_right = self.is_right(pending.book, pending.command, pending.body)
        if self.rng.random() < 0.2:
            await self.office.value("root", "plan.reject", id=pending.plan, reason="no")
            return pending.book
        answer = await self.office.approve("root", pending.plan)
        if answer.status_code == 200:
            assert is_right, pending
            assert pending.changes == pending.book.changes, "the invoice was changed since the plan was proposed"
            record_id = answer.json()["value"]["result"]["id"]
            self.note(pending.book, pending.command, pending.body, record_id)
        else:
            assert answer.json()["state"] in ("stale", "failed", "expired"), answer.text
            # A new payment belongs to the proposed invoice, and no other change makes its plan stale.
            is_bound = pending.changes == pending.book.changes and pending.command == "payment.create"
            assert not is_right or not is_bound or "expired" in answer.text, answer.text
        return pending.book

    def is_right(self, book: InvoiceState, command: str, body: dict[str, Any]) -> bool:
        """Return whether the command is valid in the expected state."""
        model, _, name = command.partition(".")
        if model == "invoice":
            return book.allows(name)
        if name == "create":
            day = body.get("paid_on", self.today)
            return book.takes(body["amount_minor"], day, self.today, body.get("reference"))
        if body["id"] not in book.payments or book.state != "posted":
            return False
        if name == "delete":
            return True
        amount, reference = book.payments[body["id"]]
        target_book = next((target for target in self.books if target.id == body.get("invoice", book.id)), book)
        if target_book is book:
            return body.get("amount_minor", amount) != 0 and book.issued <= body.get("paid_on", self.today)
        return target_book.takes(body.get("amount_minor", amount), body["paid_on"], self.today, reference)

    def note(self, book: InvoiceState, command: str, body: dict[str, Any], record_id: str) -> None:
        """Record the command in the expected state."""
        model, _, name = command.partition(".")
        if model == "invoice":
            book.act(name)
        elif name == "create":
            book.changes += 1
            book.payments[record_id] = (body["amount_minor"], body.get("reference"))
        else:
            paid_before = book.paid_minor
            amount, reference = book.payments.pop(body["id"])
            if name == "update":
                target_book = next((target for target in self.books if target.id == body.get("invoice", book.id)), book)
                target_book.payments[body["id"]] = (body.get("amount_minor", amount), reference)
                target_book.changes += target_book is not book
            book.changes += book.paid_minor != paid_before

    async def check(self, book: InvoiceState) -> None:
        """Require that the invoice matches its expected payments."""
        invoice = await self.office.value("carol", "invoice.get", id=book.id)
        invoice_filter = [{"field": "invoice", "op": "eq", "value": book.id}]
        payments = await self.office.value("carol", "payment.list", filter=invoice_filter)
        assert {payment["id"]: payment["amount_minor"] for payment in payments} == {
            name: amount for name, (amount, _) in book.payments.items()
        }
        assert invoice["state"] == book.state
        assert (invoice["total_minor"], invoice["paid_minor"]) == (book.total, book.paid_minor)
        assert invoice["open_minor"] == (0 if book.state == "cancelled" else book.total - book.paid_minor)
        assert book.state != "paid" or invoice["open_minor"] == 0
        assert book.state != "cancelled" or invoice["paid_minor"] == 0


async def test_state_paid_and_open_agree_with_the_payments_after_every_step_of_a_year(
    office: Office, is_full: bool, figures: Figures
) -> None:
    year = RandomYear(office, seed=18)
    await year.begin()
    invoices = INVOICES_IN_FULL if is_full else INVOICES
    for number in range(invoices):
        year.now = Instant(max(year.now, clock.now() - 365 * DAY + number * 360 * DAY // invoices))
        with clock.fixed(year.now):
            await year.invoice()
        for _ in range(STEPS):
            await year.step()
    for book in year.books:
        await year.check(book)
    assert {book.state for book in year.books} == {"posted", "paid", "cancelled"}
    assert year.refused > invoices
    await without_gaps(office)
    figures.update(invoices=len(year.books), steps=invoices * STEPS, refused=year.refused)


async def without_gaps(office: Office) -> None:
    """Require that the invoice numbers of each year have no gaps and no duplicates."""
    numbers = [invoice["number"] for invoice in await office.all("invoice", who="carol") if invoice["number"]]
    for series in {number[:4] for number in numbers}:
        of_it = sorted(int(number[5:]) for number in numbers if number.startswith(series))
        assert of_it == list(range(1, len(of_it) + 1))
