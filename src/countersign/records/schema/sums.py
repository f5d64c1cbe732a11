"""Sums that overflow in neither database: SQLite refuses a sum beyond 64 bits, even one on the way to a small total."""

from decimal import Decimal

_HALF = 1 << 32


def sums(expression: str) -> tuple[str, str]:
    """The two columns that `summed` makes the total from."""
    return f"coalesce(sum({expression} / {_HALF}), 0)", f"coalesce(sum({expression} % {_HALF}), 0)"


def summed(high: int | Decimal, low: int | Decimal) -> int:
    """The total; PostgreSQL gives sums as decimals."""
    return int(high) * _HALF + int(low)
