"""The module keeps the rules of declarations, and taking back empties the loan."""

import asyncio
from typing import cast

from countersign_equipment import Equipment, nobody_has_it

from countersign.declare import Work
from countersign.records import modules


class Hands:
    """As much of `Work` as the effect uses."""

    def __init__(self) -> None:
        self.changes: dict[str, object] = {}

    async def change(self, **values: object) -> None:
        """Note the values."""
        self.changes |= values


def test_the_module_can_be_switched_on() -> None:
    found = modules.found(["party", "equipment"])

    assert found.models["equipment"] is Equipment.declared


def test_taking_back_empties_the_loan() -> None:
    hands = Hands()

    asyncio.run(nobody_has_it(cast("Work", hands)))

    assert hands.changes == {"borrower": None, "contact": None, "due": None}
