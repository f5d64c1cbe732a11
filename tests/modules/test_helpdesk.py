"""A ticket's days follow from its priority, across the ends of months and years."""

import pytest

from countersign.declare import Select
from countersign.modules.helpdesk.ticket import RESPOND_DAYS, SOLVE_DAYS, Ticket, respond_by, solve_by


@pytest.mark.parametrize(
    ("opened_on", "priority", "respond", "solve"),
    [
        ("2026-11-21", "urgent", "2026-11-21", "2026-11-22"),
        ("2026-11-21", "high", "2026-11-22", "2026-11-26"),
        ("2026-11-28", "normal", "2026-12-01", "2026-12-12"),
        ("2026-12-30", "low", "2027-01-04", "2027-01-29"),
        ("2028-02-28", "high", "2028-02-29", "2028-03-04"),
        ("2026-02-28", "high", "2026-03-01", "2026-03-05"),
    ],
)
def test_days_are_counted_on_the_calendar(opened_on: str, priority: str, respond: str, solve: str) -> None:
    assert (respond_by(opened_on, priority), solve_by(opened_on, priority)) == (respond, solve)


def test_every_priority_has_its_days() -> None:
    priority = Ticket.declared.fields["priority"]

    assert isinstance(priority, Select)
    assert set(priority.options) == RESPOND_DAYS.keys() == SOLVE_DAYS.keys()
