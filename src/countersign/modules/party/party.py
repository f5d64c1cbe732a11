"""A person or a company."""

from countersign.declare import Bool, Date, LongText, Measure, Model, Option, Select, Text


class Party(
    Model,
    comments=True,
    plural="Parties",
    label_de="Kontakt",
    plural_de="Kontakte",
    icon="building-2",
    subtitle_fields=("kind", "email"),
    measures=(Measure(date="customer_since", en="New customers", de="Neue Kunden"),),
):
    """A person or a company we deal with."""

    name = Text(required=True, personal="PERSON", needs_approval=True)
    kind = Select(
        Option("company", de="Firma", tone="info"),
        Option("person", de="Person"),
        default="company",
        index=True,
        label_de="Art",
    )
    email = Text(personal="EMAIL", format="email", needs_approval=True, label_de="E-Mail")
    phone = Text(personal="PHONE", format="phone", needs_approval=True, label_de="Telefon")
    tax_id = Text(
        personal="TAXID",
        unique=True,
        restricted=("accountant", "administrator"),
        label="Tax number",
        label_de="Steuernummer",
        format="tax_id",
        needs_approval=True,
    )
    website = Text(format="url", needs_approval=True, label_de="Website")
    customer_since = Date(index=True, label_de="Kunde seit")
    is_active = Bool(default=True, label="Active", label_de="Aktiv", needs_approval=True)
    notes = LongText(personal="NOTES", label_de="Notizen")
