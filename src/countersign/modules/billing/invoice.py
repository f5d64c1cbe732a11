"""Invoices and their lines: totals in minor units, numbers without gaps, locked once posted."""

from collections.abc import Mapping

from countersign.declare import (
    TODAY,
    Date,
    FieldOf,
    LongText,
    Measure,
    Model,
    Money,
    Move,
    Number,
    Option,
    Ref,
    Risk,
    Select,
    Setting,
    Text,
    Work,
    Workflow,
    where,
)

DRAFT = where("state", eq="draft")
NOT_DRAFT = where("state", ne="draft")


NUMBERS = Setting(
    "billing.invoice_numbers",
    ("year", "party"),
    help="One series of invoice numbers a year, or one for each party and year",
)


async def number_and_date(work: Work) -> None:
    """Give the invoice the next number of its series, without gaps and duplicates. Each year has its own series, by the
    day of the invoice. Also copy the party's name, tax number and address to the invoice."""
    issue_date = str(work.record["issued"])
    series = issue_date[:4]
    party_id = str(work.record["party"])
    if await work.setting(NUMBERS.name) == "party":
        # The beginning of a random id reveals nothing; parties with the same beginning share one series.
        series = f"{series}-{party_id[:6]}"
    number = await work.next_number(f"invoice-{series}")
    previous_id = await work.find("invoice", number=_written_number(series, number - 1))
    # Read without a lock, because other transactions wait for the next number. The date of a posted invoice does not
    # change.
    previous_invoice = None if previous_id is None else await work.read("invoice", previous_id, locks=False)
    # Today is always allowed, so that a clock that was once ahead does not prevent posting.
    if previous_invoice is not None and issue_date < min(work.today, str(previous_invoice["issued"] or "")):
        work.refuse(
            f"invoice.issued must not be before the date of the previous invoice of the series {series}: give a later "
            "date, or omit it for today"
        )
    await work.change(number=_written_number(series, number), **await _party(work, party_id))


def _written_number(series: str, number: int) -> str:
    return f"{series}-{number:06d}"


async def _party(work: Work, party_id: str) -> dict[str, object]:
    """Name, tax number and address of the party as they are now."""
    party = await work.read("party", party_id)
    if party is None:
        return {}
    address_id = await work.find("address", party=party_id, label="invoice")
    address_id = address_id or await work.find("address", party=party_id, label="main")
    address = None if address_id is None else await work.read("address", address_id)
    return {"party_name": party["name"], "party_tax_id": party["tax_id"], "party_address": _written(address)}


def _written(address: Mapping[str, object] | None) -> str | None:
    """Format an address as lines of text."""
    if address is None:
        return None
    place_line = " ".join(str(part) for part in (address["postcode"], address["city"]) if part)
    return "\n".join(str(line) for line in (address["street"], place_line, address["country"]) if line)


def tax_of(net_minor: int, tax_bp: int) -> int:
    """The tax on a net amount, rounded half away from zero."""
    half_up = (abs(net_minor) * tax_bp * 2 + 10_000) // 20_000
    return half_up if net_minor >= 0 else -half_up


def total(net_minor: int, tax_minor: int) -> int:
    """The amount that the party owes."""
    return net_minor + tax_minor


def still_open(total_minor: int, paid_minor: int, state: str) -> int:
    """The amount left to pay. It is negative after an overpayment, and 0 for a cancelled invoice."""
    return 0 if state == "cancelled" else total_minor - paid_minor


def net_of(quantity: int, unit_price_minor: int) -> int:
    """A line's amount before tax."""
    return quantity * unit_price_minor


class Invoice(
    Model,
    comments=True,
    label_de="Rechnung",
    plural_de="Rechnungen",
    icon="receipt",
    shown_as="number",
    subtitle_fields=("party_name", "total_minor"),
    measures=(
        Measure("sum", "total_minor", date="issued", en="Invoiced", de="Fakturiert"),
        Measure("sum", "paid_minor", date="issued", en="Paid", de="Bezahlt"),
        Measure("sum", "open_minor", "down", date="due", en="Open", de="Offen"),
    ),
    risks=(Risk("high", "binding_document", commands=("post", "cancel")),),
    locked=(NOT_DRAFT,),
    rules=(where("due", gte=FieldOf("issued"), remedy="change due in the draft, or give an earlier issued"),),
):
    """What a party owes us, line by line."""

    number = Text(readonly=True, unique=True, max_length=20, label_de="Nummer")
    party = Ref("party", required=True, needs_approval=True, label_de="Kontakt")
    party_name = Text(
        readonly=True,
        personal="PERSON",
        linked=False,
        label_de="Name des Kontakts",
        help="As it was when the invoice was posted",
    )
    party_address = LongText(
        readonly=True,
        personal="ADDRESS",
        label_de="Adresse des Kontakts",
        help="As it was when the invoice was posted",
    )
    party_tax_id = Text(
        readonly=True,
        personal="TAXID",
        linked=False,
        restricted=("accountant", "administrator"),
        label="Party tax number",
        label_de="Steuernummer des Kontakts",
        help="As it was when the invoice was posted",
    )
    state = Select(
        Option("draft", de="Entwurf"),
        Option("posted", de="Gebucht", tone="info"),
        Option("paid", de="Bezahlt"),
        Option("cancelled", de="Storniert"),
        index=True,
        label_de="Status",
    )
    issued = Date(readonly=True, index=True, label_de="Rechnungsdatum")
    due = Date(index=True, label_de="Fällig")
    net_minor = Money(sum_of="invoice_line.net_minor", label_de="Netto")
    tax_minor = Money(sum_of="invoice_line.tax_minor", label_de="Steuer")
    total_minor = Money(computed=total, label_de="Gesamt")
    paid_minor = Money(sum_of="payment.amount_minor", label_de="Bezahlt")
    open_minor = Money(computed=still_open, label_de="Offen")
    notes = LongText(label_de="Notizen")

    workflow = Workflow(
        "state",
        post=Move(
            "draft",
            to="posted",
            needs_approval=True,
            needs_records=("invoice_line",),
            rules=(
                where("issued", lte=TODAY),
                where("total_minor", ne=0, remedy="add a line with a price, or cancel the invoice"),
                where("party.is_active", eq=True, remedy="activate the party first"),
            ),
            optional={"issued": TODAY},
            effect=number_and_date,
            label_de="Buchen",
            reversible=False,
            reads=("party", "address"),
            help="Gives the invoice its number and date, copies name, address and tax number of the party, and locks "
            "the invoice. issued is today or, for an invoice that is entered late, an earlier day that is not before "
            "the date of the previous invoice.",
        ),
        settle=Move(
            "posted",
            to="paid",
            label="Mark as paid",
            label_de="Als bezahlt markieren",
            guards=(where("open_minor", eq=0),),
            needs_approval="default",
            help="Marks the invoice as paid, and locks its payments. An overpaid invoice can be marked as paid when "
            "the excess is paid back.",
        ),
        reopen=Move(
            "paid",
            to="posted",
            label_de="Wieder öffnen",
            needs_approval="default",
            help="Marks a paid invoice as unpaid, so that its payments can be corrected.",
        ),
        cancel=Move(
            "draft",
            "posted",
            to="cancelled",
            label_de="Stornieren",
            reversible=False,
            needs_approval=True,
            guards=(where("paid_minor", eq=0),),
            help="Cancels the invoice.",
        ),
    )


class InvoiceLine(
    Model,
    label_de="Rechnungsposition",
    plural_de="Rechnungspositionen",
    icon="list",
    shown_as="description",
    subtitle_fields=("quantity", "net_minor"),
    locked_with="invoice",
):
    """One line of an invoice."""

    invoice = Ref("invoice", required=True, on_delete="cascade", label_de="Rechnung")
    product = Ref(
        "product",
        fills={"description": "name", "unit_price_minor": "unit_price_minor", "tax_bp": "tax_bp"},
        label_de="Produkt",
        help="Fills description, unit price and tax where these are left out",
    )
    description = Text(required=True, label_de="Beschreibung")
    quantity = Number(required=True, default=1, min_value=-1_000_000, max_value=1_000_000, label_de="Menge")
    unit_price_minor = Money(
        required=True, min_value=-1_000_000_000, max_value=1_000_000_000, label_de="Einzelpreis"
    )
    tax_bp = Number(
        required=True,
        default=1900,
        min_value=0,
        max_value=10_000,
        label="Tax, in hundredths of a percent",
        label_de="Steuer in Hundertstelprozent",
    )
    net_minor = Money(computed=net_of, label_de="Netto")
    tax_minor = Money(computed=tax_of, label_de="Steuer")
