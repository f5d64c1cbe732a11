"""The validators accept what they should. Each is called like the function that it is."""

import pytest
from countersign_fleet import Trip, Vehicle

from countersign.records import modules


def test_the_module_can_be_switched_on() -> None:
    registry = modules.found(["fleet"])

    assert registry.models["trip"] is Trip.declared


@pytest.mark.parametrize(("plate", "reason"), [("W-12345X", None), ("12345", "must be like W-12345X")])
def test_a_plate_begins_with_its_district(plate: str, reason: str | None) -> None:
    assert Vehicle.plate_has_a_district(plate=plate) == reason


def test_a_trip_does_not_end_before_it_begins() -> None:
    assert Trip.days_are_in_order(first_day="2026-12-02", last_day="2026-12-01") == "must be in this order"
