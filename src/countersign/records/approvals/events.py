"""What webhooks tell of plans: that one waits, and what became of it; of the plan itself nothing but its id."""

from typing import Literal, TypeAlias, get_args

from countersign.kernel.database.port import Transaction
from countersign.kernel.webhooks import outbox
from countersign.kernel.webhooks.outbox import Outbox
from countersign.records.context import PREFIX, Records

EventType: TypeAlias = Literal[
    "plan.waiting", "plan.executed", "plan.failed", "plan.rejected", "plan.expired", "plan.withdrawn", "plan.stale"
]
TYPES: tuple[str, ...] = get_args(EventType)
OWNER = ""
"""The service has one set of receivers."""


def outbox_of(records: Records) -> Outbox:
    """The service's outbox."""
    settings = records.settings
    source = records.root_url + PREFIX
    return Outbox(records.database, records.master, source, settings.private_webhooks, settings.webhook_days)


async def tell(transaction: Transaction, plan_id: str, state: str) -> None:
    """Have it told that a plan waits, or that it came to this end."""
    kind = "plan.waiting" if state == "pending" else f"plan.{state}"
    await outbox.emit(transaction, OWNER, kind, f"plan/{plan_id}")
