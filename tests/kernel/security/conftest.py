"""Shared fixtures of tests of tokens."""

from collections.abc import Callable

import pytest

from countersign.kernel import clock
from tests.kernel.security.forgery import NOW_S


@pytest.fixture
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A clock that shows NOW_S until it is called with other seconds since 1970."""

    def set_to(seconds: int) -> None:
        monkeypatch.setattr(clock, "now", lambda: clock.Instant(seconds * clock.SECOND))

    set_to(NOW_S)
    return set_to
