"""Where a party is found."""

from countersign.declare import Model, Option, Ref, Select, Text


class Address(
    Model,
    plural="Addresses",
    label_de="Adresse",
    plural_de="Adressen",
    icon="map-pin",
    shown_as="city",
    subtitle_fields=("street", "country"),
    needs_approval=("create", "update"),
):
    """One postal address of a party."""

    party = Ref("party", required=True, on_delete="cascade", label_de="Kontakt")
    label = Select(
        Option("main", de="Hauptadresse"),
        Option("invoice", de="Rechnungsadresse"),
        Option("delivery", de="Lieferadresse"),
        default="main",
        label_de="Art",
    )
    street = Text(required=True, personal="STREET", label_de="Straße")
    postcode = Text(personal="POSTCODE", max_length=20, label_de="Postleitzahl")
    city = Text(required=True, label_de="Ort")
    country = Text(
        required=True, max_length=2, format="country", help="Two letters, as in ISO 3166-1: FR, JP", label_de="Land"
    )
