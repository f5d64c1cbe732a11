"""A possible sale."""

from countersign.declare import (
    CALLER,
    NEXT_QUARTER,
    Date,
    ListView,
    LongText,
    Measure,
    Model,
    Money,
    Move,
    Option,
    Ref,
    Select,
    Text,
    Work,
    Workflow,
    where,
)


async def to_party(work: Work) -> None:
    """Link the lead to the party that has the contact's e-mail address, or to a new party."""
    email, name = work.record["contact_email"], work.record["contact_name"]
    party = await work.find("party", email=email) if email else None
    if party is None:
        values = {"name": name, "kind": "person", "email": email, "phone": work.record["contact_phone"]}
        party = await work.create("party", **values)
    await work.change(party=party)


WON = where("stage", eq="won")
"""The lead is a booked sale. Agents only propose changes of its amount, its party and its owner."""
OPEN = where("stage", in_=["new", "qualified", "proposed"])
DECIDED = where("stage", in_=["won", "lost"])


class Lead(
    Model,
    comments=True,
    plural_de="Leads",
    icon="briefcase",
    subtitle_fields=("contact_name", "stage"),
    measures=(
        Measure(
            "sum", "expected_revenue_minor", date="expected_close", when=WON, en="Revenue won", de="Gewonnener Umsatz"
        ),
        Measure("share", date="expected_close", when=WON, among=DECIDED, en="Win rate", de="Abschlussquote"),
        Measure(
            "sum",
            "expected_revenue_minor",
            date="expected_close",
            when=OPEN,
            ahead=True,
            en="Open pipeline",
            de="Offene Pipeline",
        ),
        Measure(
            "avg", "expected_revenue_minor", date="expected_close", when=WON, en="Average deal", de="Mittlerer Auftrag"
        ),
        Measure(date="expected_close", en="Leads to close", de="Leads zum Abschluss"),
        Measure(
            "sum", "expected_revenue_minor", date="expected_close", en="Expected revenue", de="Erwarteter Umsatz"
        ),
    ),
    views=(
        ListView(
            "closing",
            en="Closing this quarter",
            de="Abschluss im Quartal",
            filter=(where("expected_close", lt=NEXT_QUARTER), OPEN),
            order=("expected_close",),
        ),
        ListView("mine", en="Mine", de="Meine", filter=(where("owner", eq=CALLER), OPEN), order=("expected_close",)),
    ),
):
    """A possible sale, from the first contact to won or lost."""

    title = Text(required=True, index=True, label_de="Titel")
    stage = Select(
        Option("new", de="Neu"),
        Option("qualified", de="Qualifiziert"),
        Option("proposed", de="Angeboten"),
        Option("won", de="Gewonnen"),
        Option("lost", de="Verloren"),
        index=True,
        label_de="Phase",
    )
    expected_revenue_minor = Money(min_value=0, index=True, needs_approval=WON, label_de="Erwarteter Umsatz")
    contact_name = Text(personal="PERSON", label_de="Ansprechpartner")
    contact_email = Text(personal="EMAIL", format="email", label_de="E-Mail")
    contact_phone = Text(personal="PHONE", format="phone", label_de="Telefon")
    party = Ref("party", on_delete="clear", needs_approval=WON, label_de="Kontakt")
    owner = Ref("user", on_delete="clear", default=CALLER, needs_approval=WON, label_de="Zuständig")
    source = Select(
        Option("web", de="Web"),
        Option("fair", de="Messe"),
        Option("phone", de="Telefon"),
        Option("referral", de="Empfehlung"),
        Option("other", de="Sonstiges"),
        label_de="Quelle",
    )
    expected_close = Date(index=True, label_de="Erwarteter Abschluss")
    lost_reason = Text(label_de="Grund des Verlusts")
    notes = LongText(personal="NOTES", label_de="Notizen")

    workflow = Workflow(
        "stage",
        qualify=Move("new", to="qualified", label_de="Qualifizieren", help="Marks the lead as qualified."),
        propose=Move(
            "qualified",
            to="proposed",
            inputs=("expected_revenue_minor",),
            label_de="Anbieten",
            help="Marks the lead as proposed: an offer was sent.",
        ),
        win=Move(
            "qualified",
            "proposed",
            to="won",
            guards=(where("party", is_null=False),),
            needs_approval="default",
            label="Mark as won",
            label_de="Als gewonnen markieren",
            reversible=True,
            help="Marks the lead as won.",
        ),
        lose=Move(
            "new",
            "qualified",
            "proposed",
            to="lost",
            inputs=("lost_reason",),
            label="Mark as lost",
            label_de="Als verloren markieren",
            reversible=True,
            help="Marks the lead as lost.",
        ),
        reopen=Move(
            "won",
            "lost",
            to="qualified",
            clears=("lost_reason",),
            label_de="Wieder öffnen",
            needs_approval="default",
            help="Reopens a lead that was won or lost, and empties lost_reason.",
        ),
        # An agent would learn from the outcome whether a party with this e-mail exists.
        convert=Move(
            "new",
            "qualified",
            "proposed",
            guards=(where("contact_name", is_null=False), where("party", is_null=True)),
            needs_approval=True,
            effect=to_party,
            label="Convert to party",
            label_de="In Kontakt umwandeln",
            help="Links the lead to the party with the contact's e-mail address; creates that party if it is missing.",
        ),
    )
