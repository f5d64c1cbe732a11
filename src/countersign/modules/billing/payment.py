"""Money that came in."""

from countersign.declare import TODAY, Date, FieldOf, Model, Money, Ref, Select, Text, where


class Payment(
    Model,
    shown_as="reference",
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
    """A payment towards an invoice; a negative amount is paid back. A reference is on an invoice once, and on several
    invoices only of one party, as of one transfer."""

    invoice = Ref("invoice", required=True)
    amount_minor = Money(required=True)
    paid_on = Date(required=True, default=TODAY, index=True)
    method = Select("transfer", "card", "cash", "other", required=True, default="transfer")
    reference = Text(personal="REFERENCE", format="reference", unique_with="invoice", shared_by="party")
