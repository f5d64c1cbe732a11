"""Refusals: the guarantees of their classes for every caller."""

from countersign.kernel.errors import Unavailable


def test_an_error_that_says_to_retry_says_when() -> None:
    assert int(Unavailable("busy").headers["Retry-After"]) > 0
    assert Unavailable("busy", headers={"Retry-After": "9"}).headers["Retry-After"] == "9"
