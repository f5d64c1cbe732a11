"""Invoices are computed exactly: halves are rounded away from zero, and no value is a float."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.modules.billing.invoice import net_of, still_open, tax_of, total

NET = st.integers(-(10**15), 10**15)


@pytest.mark.parametrize(
    ("net_minor", "tax_bp", "tax_minor"),
    [
        *((10_000, 1900, 1900), (1, 1900, 0), (2, 1900, 0), (3, 1900, 1), (0, 1900, 0), (100, 0, 0)),
        # Halves: 0.5, 1.5 and 2.5 of a minor unit.
        *((1, 5000, 1), (3, 5000, 2), (5, 5000, 3), (-1, 5000, -1), (-3, 5000, -2), (-5, 5000, -3)),
        *((50, 700, 4), (49, 700, 3), (-49, 700, -3), (99_999_999_999_999, 1900, 19_000_000_000_000)),
    ],
)
def test_the_tax_is_rounded_to_the_next_minor_unit_and_a_half_away_from_zero(
    net_minor: int, tax_bp: int, tax_minor: int
) -> None:
    assert tax_of(net_minor, tax_bp) == tax_minor


@given(NET, st.integers(0, 10_000))
def test_rounded_tax_differs_from_the_exact_tax_by_at_most_half_a_unit(net_minor: int, tax_bp: int) -> None:
    assert abs(tax_of(net_minor, tax_bp) * 10_000 - net_minor * tax_bp) * 2 <= 10_000


@given(NET, st.integers(0, 10_000))
def test_a_credit_has_the_tax_of_its_charge(net_minor: int, tax_bp: int) -> None:
    assert tax_of(-net_minor, tax_bp) == -tax_of(net_minor, tax_bp)


def test_the_open_amount_is_the_total_less_the_payments() -> None:
    assert net_of(-3, 250) == -750
    assert total(10_000, 1900) == 11_900
    assert [still_open(11_900, paid_minor, "posted") for paid_minor in (11_900, 12_000)] == [0, -100]


def test_nothing_is_open_of_a_cancelled_invoice() -> None:
    assert still_open(11_900, 0, "cancelled") == 0
