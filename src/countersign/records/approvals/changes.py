"""Records changes of plans, and queues their webhook events. A lock ensures that changes commit in the order of their
numbers."""

from typing import Literal, TypeAlias, get_args

from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.webhooks import outbox
from countersign.kernel.webhooks.outbox import Outbox
from countersign.records.context import PREFIX, Records

EventType: TypeAlias = Literal[
    "plan.waiting", "plan.executed", "plan.failed", "plan.rejected", "plan.expired", "plan.withdrawn", "plan.stale"
]
TYPES: tuple[str, ...] = get_args(EventType)
OWNER = ""
"""The owner of the webhook receivers. It is empty, because the service has only one set of receivers."""


def outbox_of(records: Records) -> Outbox:
    """Return the outbox of the service, the queue of its webhook events."""
    settings = records.settings
    source = records.root_url + PREFIX
    return Outbox(records.database, records.master, source, settings.private_webhooks, settings.webhook_days)


async def emit(transaction: Transaction, plan_id: str, state: str) -> None:
    """Queue the webhook event of a plan that is pending or has reached the final state `state`."""
    kind = "plan.waiting" if state == "pending" else f"plan.{state}"
    await outbox.emit(transaction, OWNER, kind, f"plan/{plan_id}")


VERSION = "plan"
MAX_ROWS = 500

_RECORD = """
INSERT INTO plan_change (plan_id, number) VALUES ($1, $2)
ON CONFLICT (plan_id) DO UPDATE SET number = excluded.number
"""
_BETWEEN = f"""
SELECT plan_id, number
FROM plan_change
WHERE number > $1 AND number <= $2
ORDER BY number
LIMIT {MAX_ROWS}
"""
_NEWEST = f"""
SELECT plan_id, number
FROM plan_change
WHERE number <= $1
ORDER BY number DESC
LIMIT {MAX_ROWS}
"""


async def record_change(transaction: Transaction, plan_id: str) -> None:
    """Record that the plan changed. Call this function last in a transaction, because it blocks changes of other plans
    until the transaction ends."""
    await transaction.run(_RECORD, plan_id, await versions.bump(transaction, VERSION))


async def changes_between(reader: Reader, after_number: int, up_to: int) -> dict[str, int]:
    """Map plans to the number of their last change, for numbers above `after_number` and up to `up_to`. Only the first
    `MAX_ROWS` plans are returned."""
    return dict(await reader.fetch(_BETWEEN, after_number, up_to))


async def newest_changes(reader: Reader, up_to: int) -> dict[str, int]:
    """Map plans to the number of their last change, for the last `MAX_ROWS` changes up to the number `up_to`."""
    return dict(await reader.fetch(_NEWEST, up_to))
