"""Where a party is found."""

from countersign.declare import Model, Ref, Select, Text


class Address(Model, plural="Addresses", shown_as="city", needs_approval=("create", "update")):
    """One postal address of a party."""

    party = Ref("party", required=True, on_delete="cascade")
    label = Select("main", "invoice", "delivery", default="main")
    street = Text(required=True, personal="STREET")
    postcode = Text(personal="POSTCODE", max_length=20)
    city = Text(required=True)
    country = Text(required=True, max_length=2, format="country", help="Two letters, as in ISO 3166-1: FR, JP")
