"""Something done, or to be done, about a lead."""

from countersign.declare import Date, LongText, Measure, Model, Move, Option, Ref, Select, Text, Workflow


class Activity(
    Model,
    comments=True,
    plural="Activities",
    label_de="Aktivität",
    plural_de="Aktivitäten",
    icon="calendar",
    shown_as="subject",
    subtitle_fields=("kind", "due"),
    measures=(Measure(date="due", en="Activities due", de="Fällige Aktivitäten"),),
):
    """A call, a mail, a meeting or a task about a lead."""

    lead = Ref("lead", required=True, on_delete="cascade")
    kind = Select(
        Option("call", de="Anruf", tone="info"),
        Option("mail", de="E-Mail", tone="cyan"),
        Option("meeting", de="Termin", tone="violet"),
        Option("task", de="Aufgabe"),
        required=True,
        default="task",
        label_de="Art",
    )
    subject = Text(required=True, label_de="Betreff")
    due = Date(index=True, label_de="Fällig")
    state = Select(Option("planned", de="Geplant"), Option("done", de="Erledigt"), label_de="Status")
    notes = LongText(personal="NOTES", label_de="Notizen")

    workflow = Workflow(
        "state",
        finish=Move(
            "planned",
            to="done",
            label="Mark as done",
            label_de="Erledigen",
            risk="low",
            help="Marks the activity as done.",
        ),
        reopen=Move(
            "done",
            to="planned",
            label_de="Wieder öffnen",
            risk="low",
            help="Marks a finished activity as planned again.",
        ),
    )
