"""Money that came in."""

from countersign.declare import TODAY, Date, FieldOf, Measure, Model, Money, Option, Ref, Risk, Select, Text, where


class Payment(
    Model,
    label_de="Zahlung",
    plural_de="Zahlungen",
    icon="credit-card",
    shown_as="reference",
    subtitle_fields=("amount_minor", "paid_on"),
    measures=(Measure("sum", "amount_minor", date="paid_on", en="Payments received", de="Eingegangene Zahlungen"),),
    risks=(Risk("high", "money_out", when=where("amount_minor", lt=0)),),
    locked_with="invoice",
    locked_while=(where("state", in_=["paid", "cancelled"]),),
    rules=(
        where("invoice.state", eq="posted"),
        where("amount_minor", ne=0),
        where("paid_on", lte=TODAY),
        where("paid_on", gte=FieldOf("invoice.issued")),
    ),
    needs_approval=("create", "update"),
):
    """A payment towards an invoice; a negative amount is a refund. A reference is on an invoice once, and on several
    invoices only of one party, as of one transfer."""

    invoice = Ref("invoice", required=True, label_de="Rechnung")
    amount_minor = Money(required=True, label_de="Betrag")
    paid_on = Date(required=True, default=TODAY, index=True, label_de="Bezahlt am")
    method = Select(
        Option("transfer", de="Überweisung"),
        Option("card", de="Karte"),
        Option("cash", de="Bar"),
        Option("other", de="Sonstiges"),
        required=True,
        default="transfer",
        label_de="Zahlungsart",
    )
    reference = Text(
        personal="REFERENCE", format="reference", unique_with="invoice", shared_by="party", label_de="Verwendungszweck"
    )
