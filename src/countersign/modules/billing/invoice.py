"""Invoices and their lines: totals in minor units, numbers without gaps, locked once posted."""

from countersign.declare import Date, LongText, Model, Money, Move, Number, Ref, Select, Text, Work, Workflow, where

DRAFT = where("state", eq="draft")
NOT_DRAFT = where("state", ne="draft")


async def number_and_date(work: Work) -> None:
    """Give the invoice its number: the next of its year, so that there is neither gap nor double."""
    if not await work.count("invoice_line", invoice=work.record["id"]):
        work.refuse("invoice.post needs at least one line: create an invoice_line first")
    year = work.today[:4]
    number = await work.next_number(f"invoice-{year}")
    await work.change(number=f"{year}-{number:06d}", issued=work.today)


def tax_of(net_minor: int, tax_bp: int) -> int:
    """The tax on a net amount, a half rounded away from zero."""
    half_up = (abs(net_minor) * tax_bp * 2 + 10_000) // 20_000
    return half_up if net_minor >= 0 else -half_up


def total(net_minor: int, tax_minor: int) -> int:
    """What the party is asked for."""
    return net_minor + tax_minor


def still_open(total_minor: int, paid_minor: int) -> int:
    """What is left to pay; negative when too much was paid."""
    return total_minor - paid_minor


def net_of(quantity: int, unit_price_minor: int) -> int:
    """A line's amount before tax."""
    return quantity * unit_price_minor


class Invoice(Model, shown_as="number", locked=(NOT_DRAFT,)):
    """What a party owes us, line by line."""

    number = Text(readonly=True, unique=True, longest=20)
    party = Ref("party", required=True)
    state = Select("draft", "posted", "paid", "cancelled", index=True)
    issued = Date(readonly=True, index=True)
    due = Date(index=True)
    net_minor = Money(sum_of="invoice_line.net_minor")
    tax_minor = Money(sum_of="invoice_line.tax_minor")
    total_minor = Money(computed=total)
    paid_minor = Money(sum_of="payment.amount_minor")
    open_minor = Money(computed=still_open)
    notes = LongText()

    workflow = Workflow(
        "state",
        post=Move(
            "draft",
            to="posted",
            needs_approval=True,
            effect=number_and_date,
            help="Gives the invoice its number and date, and locks it.",
        ),
        settle=Move("posted", to="paid", guards=(where("open_minor", lte=0),), help="Marks the invoice as paid."),
        cancel=Move(
            "draft",
            "posted",
            to="cancelled",
            needs_approval=True,
            guards=(where("paid_minor", eq=0),),
            help="Cancels the invoice.",
        ),
    )


class InvoiceLine(Model, shown_as="description", locked_with="invoice"):
    """One line of an invoice."""

    invoice = Ref("invoice", required=True, on_delete="cascade")
    product = Ref("product")
    description = Text(required=True)
    quantity = Number(required=True, default=1, least=-1_000_000, most=1_000_000)
    unit_price_minor = Money(required=True, least=-1_000_000_000, most=1_000_000_000)
    tax_bp = Number(required=True, default=1900, least=0, most=10_000, label="Tax, in hundredths of a percent")
    net_minor = Money(computed=net_of)
    tax_minor = Money(computed=tax_of)
