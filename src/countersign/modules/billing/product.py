"""What is sold."""

from countersign.declare import Model, Money, Number, Text


class Product(
    Model,
    label_de="Produkt",
    plural_de="Produkte",
    icon="package",
    title_field="name",
    subtitle_fields=("sku", "unit_price_minor"),
    needs_approval=("create",),
):
    """A thing or a service with its price."""

    sku = Text(required=True, unique=True, max_length=40, label="SKU", label_de="Artikelnummer")
    name = Text(required=True, index=True, label_de="Name")
    unit_price_minor = Money(required=True, min_value=0, needs_approval=True, label_de="Einzelpreis")
    tax_bp = Number(
        required=True,
        default=1900,
        min_value=0,
        max_value=10_000,
        label="Tax, in hundredths of a percent",
        label_de="Steuer in Hundertstelprozent",
        needs_approval=True,
    )
