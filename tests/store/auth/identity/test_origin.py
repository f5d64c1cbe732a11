"""Requests with a session cookie are accepted only from the store's own pages."""

import pytest

from countersign.kernel.http.request import Headers
from countersign.store.auth.sessions import ForeignOrigin, require_same_origin
from countersign.store.context import Store


def headers(**values: str) -> Headers:
    return Headers([(name.replace("_", "-").encode(), value.encode()) for name, value in values.items()])


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8480", "http://localhost:8480", "http://[::1]:8480"])
async def test_every_name_of_this_machine_is_an_own_origin(store: Store, origin: str) -> None:
    require_same_origin(store, headers(origin=origin))


async def test_a_browser_that_hides_the_origin_may_say_that_it_is_the_same(store: Store) -> None:
    require_same_origin(store, headers(origin="null", sec_fetch_site="same-origin"))
    require_same_origin(store, headers(sec_fetch_site="same-origin"))


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:8481",
        "https://localhost:8480",
        "http://evil.example:8480",
        "http://127.0.0.1.evil.example:8480",
        "http://127.0.0.1:8480@evil.example",
        "null",
        "http://[bad",
        "http://localhost:99999999",
        "",
    ],
)
async def test_every_other_origin_is_foreign(store: Store, origin: str) -> None:
    with pytest.raises(ForeignOrigin):
        require_same_origin(store, headers(origin=origin))


async def test_no_origin_at_all_is_foreign(store: Store) -> None:
    with pytest.raises(ForeignOrigin):
        require_same_origin(store, headers())
    with pytest.raises(ForeignOrigin):
        require_same_origin(store, headers(sec_fetch_site="cross-site"))
