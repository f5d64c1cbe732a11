"""Refusals: the guarantees of their classes for every caller."""

from countersign.kernel.errors import Unavailable


def test_who_is_told_to_come_back_is_told_when() -> None:
    assert int(Unavailable("busy").headers["Retry-After"]) > 0
    assert Unavailable("busy", headers={"Retry-After": "9"}).headers["Retry-After"] == "9"
