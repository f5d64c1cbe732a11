"""Something done, or to be done, about a lead."""

from countersign.declare import Date, LongText, Model, Move, Ref, Select, Text, Workflow


class Activity(Model, plural="Activities", shown_as="subject"):
    """A call, a mail, a meeting or a task about a lead."""

    lead = Ref("lead", required=True, on_delete="cascade")
    kind = Select("call", "mail", "meeting", "task", required=True, default="task")
    subject = Text(required=True)
    due = Date(index=True)
    state = Select("planned", "done")
    notes = LongText(personal="NOTES")

    workflow = Workflow(
        "state",
        finish=Move("planned", to="done", help="Marks the activity as done."),
        reopen=Move("done", to="planned", help="Marks a finished activity as planned again."),
    )
