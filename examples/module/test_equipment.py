"""The module is declared correctly, and the action `take_back` clears the fields of the loan."""

import asyncio
from typing import cast

from countersign_equipment import Equipment, clear_loan

from countersign.declare import Work
from countersign.records import modules


class RecordedChanges:
    """The part of `Work` that the effect uses. It records the changes."""

    def __init__(self) -> None:
        self.changes: dict[str, object] = {}

    async def change(self, **values: object) -> None:
        """Record the values."""
        self.changes |= values


def test_the_module_can_be_switched_on() -> None:
    registry = modules.found(["party", "equipment"])

    assert registry.models["equipment"] is Equipment.declared


def test_taking_back_clears_the_fields_of_the_loan() -> None:
    work = RecordedChanges()

    asyncio.run(clear_loan(cast("Work", work)))

    assert work.changes == {"borrower": None, "contact": None, "due": None}
