"""The audit as a model, so that those allowed read it like any records."""

from countersign.declare import LongText, Model, Moment, Number, Structure, Text


class AuditEntry(Model, shown_as="command", commands=("get", "list", "search", "export")):
    """One thing that was done: who, what, to which record, before and after. Never changed, never deleted."""

    at = Moment(readonly=True, index=True)
    lane = Number(readonly=True)
    number = Number(readonly=True, help="Position in its lane")
    user_id = Text(readonly=True, index=True, help="The person who did it, or on whose behalf")
    agent_token = Text(readonly=True)
    agent = Text(readonly=True, help="The label of the agent that did it")
    command = Text(readonly=True)
    model = Text(readonly=True)
    record_id = Text(readonly=True, index=True)
    fields = LongText(readonly=True, help="Names of the changed fields you may see")
    changes = Structure(readonly=True, help="Before and after of them, as you may see them")
    plan_id = Text(readonly=True)
    request_id = Text(readonly=True)
