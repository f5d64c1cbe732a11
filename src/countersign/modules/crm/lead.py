"""A possible sale."""

from countersign.declare import (
    CALLER,
    Date,
    LongText,
    Model,
    Money,
    Move,
    Ref,
    Select,
    Text,
    Work,
    Workflow,
    where,
)


async def to_party(work: Work) -> None:
    """Link the lead to its contact's party: the one that has the e-mail, or a new one."""
    email, name = work.record["contact_email"], work.record["contact_name"]
    party = await work.find("party", email=email) if email else None
    if party is None:
        values = {"name": name, "kind": "person", "email": email, "phone": work.record["contact_phone"]}
        party = await work.create("party", **values)
    await work.change(party=party)


WON = where("stage", eq="won")
"""A booked sale: what it is worth, whose it is and who made it are changed by a person."""


class Lead(Model):
    """A possible sale, from the first contact to won or lost."""

    title = Text(required=True, index=True)
    stage = Select("new", "qualified", "proposed", "won", "lost", index=True)
    expected_revenue_minor = Money(min_value=0, index=True, needs_approval=WON)
    contact_name = Text(personal="PERSON")
    contact_email = Text(personal="EMAIL", format="email")
    contact_phone = Text(personal="PHONE", format="phone")
    party = Ref("party", on_delete="clear", needs_approval=WON)
    owner = Ref("user", on_delete="clear", default=CALLER, needs_approval=WON)
    source = Select("web", "fair", "phone", "referral", "other")
    expected_close = Date(index=True)
    lost_reason = Text()
    notes = LongText(personal="NOTES")

    workflow = Workflow(
        "stage",
        qualify=Move("new", to="qualified", help="Marks the lead as qualified."),
        propose=Move(
            "qualified",
            to="proposed",
            inputs=("expected_revenue_minor",),
            help="Marks the lead as proposed: an offer was sent.",
        ),
        win=Move(
            "qualified",
            "proposed",
            to="won",
            guards=(where("party", is_null=False),),
            needs_approval="default",
            help="Marks the lead as won.",
        ),
        lose=Move("new", "qualified", "proposed", to="lost", inputs=("lost_reason",), help="Marks the lead as lost."),
        reopen=Move(
            "won",
            "lost",
            to="qualified",
            clears=("lost_reason",),
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
            help="Links the lead to the party with the contact's e-mail address; creates that party if it is missing.",
        ),
    )
