"""Money that came in."""

from countersign.declare import TODAY, Date, Model, Money, Ref, Select, Text


class Payment(Model, shown_as="reference"):
    """A payment towards an invoice."""

    invoice = Ref("invoice", required=True)
    amount_minor = Money(required=True)
    paid_on = Date(required=True, default=TODAY, index=True)
    method = Select("transfer", "card", "cash", "other", required=True, default="transfer")
    reference = Text(personal="REFERENCE")
