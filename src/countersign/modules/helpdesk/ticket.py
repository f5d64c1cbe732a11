"""Tickets."""

from datetime import date, timedelta

from countersign.declare import TODAY, Date, LongText, Measure, Model, Move, Option, Ref, Select, Text, Workflow

RESPOND_DAYS = {"low": 5, "normal": 3, "high": 1, "urgent": 0}
SOLVE_DAYS = {"low": 30, "normal": 14, "high": 5, "urgent": 1}


def respond_by(opened: str, priority: str) -> str:
    """The day by which we answer."""
    return (date.fromisoformat(opened) + timedelta(days=RESPOND_DAYS[priority])).isoformat()


def solve_by(opened: str, priority: str) -> str:
    """The day by which it is solved."""
    return (date.fromisoformat(opened) + timedelta(days=SOLVE_DAYS[priority])).isoformat()


class Ticket(
    Model,
    comments=True,
    label_de="Ticket",
    plural_de="Tickets",
    icon="ticket",
    shown_as="subject",
    subtitle_fields=("requester_name", "priority"),
    measures=(
        Measure(better="down", date="opened", en="Tickets opened", de="Neue Tickets"),
        Measure(better="down", date="solve_by", en="Tickets to solve", de="Zu lösende Tickets"),
    ),
):
    """A reported question or fault."""

    subject = Text(required=True, index=True, label_de="Betreff")
    party = Ref("party", on_delete="clear", label_de="Kontakt")
    requester_name = Text(personal="PERSON", label_de="Name des Anfragenden")
    requester_email = Text(personal="EMAIL", format="email", label_de="E-Mail des Anfragenden")
    state = Select(
        Option("new", de="Neu"),
        Option("open", de="Offen"),
        Option("waiting", de="Wartet"),
        Option("solved", de="Gelöst"),
        Option("closed", de="Geschlossen", tone="grey"),
        index=True,
        label_de="Status",
    )
    priority = Select(
        Option("low", de="Niedrig"),
        Option("normal", de="Normal", tone="info"),
        Option("high", de="Hoch", tone="warn"),
        Option("urgent", de="Dringend", tone="bad"),
        required=True,
        default="normal",
        index=True,
        label_de="Priorität",
    )
    opened = Date(readonly=True, default=TODAY, index=True, label_de="Eröffnet")
    respond_by = Date(computed=respond_by, index=True, label="Answer by", label_de="Antwort bis")
    solve_by = Date(computed=solve_by, index=True, label_de="Lösung bis")
    assignee = Ref("user", on_delete="clear", label_de="Zuständig")
    resolution = Text(label_de="Lösung")
    description = LongText(personal="NOTES", label_de="Beschreibung")

    workflow = Workflow(
        "state",
        start=Move(
            "new",
            "waiting",
            to="open",
            label_de="Beginnen",
            reversible=True,
            risk="low",
            help="Marks the ticket as being worked on.",
        ),
        wait=Move(
            "open",
            to="waiting",
            label_de="Auf Rückmeldung warten",
            risk="low",
            help="Marks the ticket as waiting for the requester.",
        ),
        solve=Move(
            "new",
            "open",
            "waiting",
            to="solved",
            inputs=("resolution",),
            label_de="Lösen",
            reversible=True,
            help="Marks the ticket as solved.",
        ),
        close=Move(
            "solved", to="closed", label_de="Schließen", reversible=True, risk="low", help="Closes a solved ticket."
        ),
        reopen=Move(
            "solved",
            "closed",
            to="open",
            clears=("resolution",),
            label_de="Wieder öffnen",
            help="Reopens a solved or closed ticket, and empties resolution.",
        ),
    )
