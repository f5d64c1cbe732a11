"""Dates: real days of the calendar in one format."""

import pytest

from countersign.declare import BadValue, Date


@pytest.mark.parametrize("day", ["2026-11-21", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"])
def test_an_existing_day_is_stored_as_written(day: str) -> None:
    assert Date().read(day) == day


@pytest.mark.parametrize(
    "value",
    [
        *("2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "0000-01-01"),
        *("2026-1-1", "20260101", "2026-W01-1", "2026-01-01T00:00:00Z", " 2026-01-01", "2026-01-01\n", "", "today"),
        *("٢٠٢٦-٠١-٠١", "+2026-01-01", "12026-01-01", 20260101, None, True, ["2026-01-01"]),
    ],
)
def test_a_date_that_is_invalid_or_in_another_format_is_refused(value: object) -> None:
    with pytest.raises(BadValue, match="must be a real calendar date, YYYY-MM-DD"):
        Date().read(value)
