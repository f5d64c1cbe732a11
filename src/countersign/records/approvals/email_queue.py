"""Queues of e-mails to users, at most one for each person. The content is computed when the e-mail is sent.

If a node dies before it records the delivery of an e-mail, the e-mail is sent again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused
from countersign.kernel.mail.message import BadAddress
from countersign.kernel.mail.transports import Mail

LEASE_S = 120.0
TRIES = 5
RETRY_DELAY_S = 300.0


class EmailLease(NamedTuple):
    """An e-mail that this node may write while its lease is valid."""

    user_id: str
    since: Instant
    tries: int
    lease: str


class Letter(NamedTuple):
    """An e-mail to one address."""

    address: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class EmailQueue:
    """A queue in a table, with its statements: `lease` leases the next e-mail, `delete` ends one, and `postpone` gives
    its lease back until later."""

    lease: str
    delete: str
    postpone: str

    async def take(self, database: Database) -> EmailLease | None:
        """Lease the next e-mail that is due, or return None."""
        now, lease = clock.now(), ids.new_record_id()
        async with database.transaction() as transaction:
            row = await transaction.fetch_one(self.lease, lease, clock.later(now, seconds=LEASE_S), now)
        return None if row is None else EmailLease(str(row[0]), row[1], int(row[2]), lease)

    async def send(
        self, database: Database, mail: Mail, email_lease: EmailLease, letter: Callable[[], Awaitable[Letter | None]]
    ) -> None:
        """Send the e-mail that `letter` returns, unless it returns None. If the mail server refuses it, try again
        later."""
        log = telemetry.logger("letters")
        try:
            message = await letter()
            if message is not None:
                await mail.send(*message)
        except BadAddress:
            log.warning("invalid e-mail address", user_id=email_lease.user_id)
        except Refused as refused:
            # Do not log the address, because those who read the log need not know the recipients.
            log.warning("letter not sent", why=refused.detail, attempt=email_lease.tries, of=TRIES)
            if email_lease.tries < TRIES:
                retry_at = clock.later(clock.now(), seconds=RETRY_DELAY_S * email_lease.tries)
                async with database.transaction() as transaction:
                    await transaction.run(self.postpone, email_lease.user_id, email_lease.lease, retry_at)
                return
        async with database.transaction() as transaction:
            await transaction.run(self.delete, email_lease.user_id, email_lease.lease)
