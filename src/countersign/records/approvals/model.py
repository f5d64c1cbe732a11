"""Plans: commands an agent proposed, waiting for a person's decision or decided."""

from countersign.declare import LongText, Model, Moment, Number, Ref, Select, Structure, Text

STATES = ("pending", "executed", "failed", "rejected", "expired", "withdrawn", "stale")


class Plan(Model, shown_as="command", commands=("get", "list", "search")):
    """A proposed command with what it would change, and what became of it."""

    state = Select(*STATES, readonly=True, index=True)
    command = Text(readonly=True, index=True)
    target = Structure(readonly=True, help="The record it is about")
    input = Structure(readonly=True, help="The command's input, as you may see it")
    diff = Structure(readonly=True, help="Before and after of every field it changes, as you may see them")
    effects = Structure(readonly=True, help="What else happens")
    digest = Text(readonly=True, help="Send it with the approval, so that you approve what you saw")
    why = LongText(readonly=True, help="The proposer's reason")
    person = Ref("user", readonly=True, on_delete="clear", help="On whose behalf it was proposed")
    agent = Text(readonly=True, help="The label of the proposing agent")
    agent_token = Ref("agent_token", readonly=True, on_delete="clear")
    proposed_by = Structure(readonly=True)
    proposed_at = Moment(readonly=True, index=True)
    expires_at = Moment(readonly=True, index=True)
    needs = Number(readonly=True, help="How many people must approve")
    approvals = Structure(readonly=True)
    decided_by = Ref("user", readonly=True, on_delete="clear")
    decided_at = Moment(readonly=True)
    reason = LongText(readonly=True)
    result = Structure(readonly=True)
    error = Text(readonly=True, help="Why it was not done; `stale` while it waits: what it is about has changed")


PLAN = Plan.declared
