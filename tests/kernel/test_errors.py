"""Refusals: the guarantees of their classes for every caller."""

from countersign.kernel.errors import Unavailable


def test_an_error_that_allows_a_retry_has_a_retry_time() -> None:
    assert int(Unavailable("busy").headers["Retry-After"]) > 0
    assert Unavailable("busy", headers={"Retry-After": "9"}).headers["Retry-After"] == "9"
