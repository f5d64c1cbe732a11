"""A person or a company."""

from countersign.declare import Bool, Date, LongText, Model, Select, Text


class Party(Model, plural="Parties"):
    """A person or a company we deal with."""

    name = Text(required=True, personal="PERSON", needs_approval=True)
    kind = Select("company", "person", default="company", index=True)
    email = Text(personal="EMAIL", format="email", needs_approval=True)
    phone = Text(personal="PHONE", format="phone", needs_approval=True)
    tax_id = Text(
        personal="TAXID",
        unique=True,
        restricted=("accountant", "administrator"),
        label="Tax number",
        format="tax_id",
        needs_approval=True,
    )
    website = Text(format="url", needs_approval=True)
    customer_since = Date(index=True)
    is_active = Bool(default=True, label="Active", needs_approval=True)
    notes = LongText(personal="NOTES")
