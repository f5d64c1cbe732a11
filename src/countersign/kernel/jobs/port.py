"""The port between those who ask for work and those who do it."""

from typing import Protocol

from countersign.kernel.database.port import Transaction


class Engine(Protocol):
    """Brings each job to one worker, and to another one when that one dies."""

    async def defer(self, transaction: Transaction, job_id: str) -> None:
        """Have the job worked on once the transaction is durable; never when it is rolled back."""
        ...
