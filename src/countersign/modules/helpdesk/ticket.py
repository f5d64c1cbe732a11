"""Tickets."""

from datetime import date, timedelta

from countersign.declare import TODAY, Date, LongText, Model, Move, Ref, Select, Text, Workflow

RESPOND_DAYS = {"low": 5, "normal": 3, "high": 1, "urgent": 0}
SOLVE_DAYS = {"low": 30, "normal": 14, "high": 5, "urgent": 1}


def respond_by(opened: str, priority: str) -> str:
    """The day by which we answer."""
    return (date.fromisoformat(opened) + timedelta(days=RESPOND_DAYS[priority])).isoformat()


def solve_by(opened: str, priority: str) -> str:
    """The day by which it is solved."""
    return (date.fromisoformat(opened) + timedelta(days=SOLVE_DAYS[priority])).isoformat()


class Ticket(Model, shown_as="subject"):
    """A reported question or fault."""

    subject = Text(required=True, index=True)
    party = Ref("party", on_delete="clear")
    requester_name = Text(personal="PERSON")
    requester_email = Text(personal="EMAIL", format="email")
    state = Select("new", "open", "waiting", "solved", "closed", index=True)
    priority = Select("low", "normal", "high", "urgent", required=True, default="normal", index=True)
    opened = Date(readonly=True, default=TODAY, index=True)
    respond_by = Date(computed=respond_by, index=True, label="Answer by")
    solve_by = Date(computed=solve_by, index=True)
    assignee = Ref("user", on_delete="clear")
    resolution = Text()
    description = LongText(personal="NOTES")

    workflow = Workflow(
        "state",
        start=Move("new", "waiting", to="open", help="Marks the ticket as being worked on."),
        wait=Move("open", to="waiting", help="Marks the ticket as waiting for the requester."),
        solve=Move("new", "open", "waiting", to="solved", inputs=("resolution",), help="Marks the ticket as solved."),
        close=Move("solved", to="closed", help="Closes a solved ticket."),
        reopen=Move(
            "solved",
            "closed",
            to="open",
            clears=("resolution",),
            help="Reopens a solved or closed ticket, and empties resolution.",
        ),
    )
