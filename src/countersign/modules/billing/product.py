"""What is sold."""

from countersign.declare import Model, Money, Number, Text


class Product(Model, needs_approval=("create",)):
    """A thing or a service with its price."""

    sku = Text(required=True, unique=True, max_length=40, label="SKU")
    name = Text(required=True, index=True)
    unit_price_minor = Money(required=True, min_value=0, needs_approval=True)
    tax_bp = Number(
        required=True,
        default=1900,
        min_value=0,
        max_value=10_000,
        label="Tax, in hundredths of a percent",
        needs_approval=True,
    )
