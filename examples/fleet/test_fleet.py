"""The code of the module does what it should. Validators and hooks are called like the functions that they are."""

import asyncio
from typing import cast

import pytest
from countersign_fleet import Trip, Vehicle, module

from countersign.declare import Work
from countersign.declare.registry import Registry
from countersign.records import base_models


class RecordedWork:
    """The parts of `Work` that the hook uses. It records the changes."""

    def __init__(self, **now: object) -> None:
        self.now = now
        self.changes: dict[str, object] = {}

    async def change(self, **values: object) -> None:
        """Record the values."""
        self.changes |= values


def test_the_module_can_be_switched_on() -> None:
    registry = Registry([base_models.MODULE, module])

    assert registry.models["trip"] is Trip.declared


@pytest.mark.parametrize(("plate", "reason"), [("W-12345X", None), ("12345", "must be like W-12345X")])
def test_a_plate_begins_with_its_district(plate: str, reason: str | None) -> None:
    assert Vehicle.plate_has_a_district(plate=plate) == reason


def test_a_trip_does_not_end_before_it_begins() -> None:
    assert Trip.days_are_in_order(first_day="2026-12-02", last_day="2026-12-01") == "must be in this order"


@pytest.mark.parametrize(("last_day", "changes"), [(None, {"last_day": "2026-12-01"}), ("2026-12-05", {})])
def test_a_trip_without_a_last_day_ends_on_its_first_day(last_day: str | None, changes: dict[str, object]) -> None:
    work = RecordedWork(first_day="2026-12-01", last_day=last_day)

    asyncio.run(Trip.trip_is_one_day(cast("Work", work)))

    assert work.changes == changes
