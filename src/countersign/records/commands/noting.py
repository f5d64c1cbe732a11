"""Writes down in the audit what access tells of itself: signing in, tokens, set-up links."""

import msgspec

from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.records.access.audited import Happening, Note
from countersign.records.audit.chain import Chain, Entry


def noted(chain: Chain, request_id: str) -> Note:
    """What access calls in its transactions: the happening becomes an entry, its values, none of them personal, what
    they were set to."""

    async def note(transaction: Transaction, happening: Happening) -> None:
        changes = {name: [None, value] for name, value in happening.values.items() if value is not None}
        entry = Entry(
            at=clock.now(),
            user_id=happening.user_id,
            agent_token=None,
            agent=None,
            command=happening.command,
            model=happening.model,
            record_id=happening.record_id,
            fields=",".join(changes),
            changes=msgspec.json.encode(changes).decode(),
            plan_id=None,
            request_id=request_id,
        )
        await chain.append(transaction, entry)

    return note
