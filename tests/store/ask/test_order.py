"""The first products by title are the same for any number of products that are read to find them."""

import pytest
from msgspec.structs import replace

from countersign.store.catalog import filter_queries
from countersign.store.catalog.filter import Filter, Values, Where
from countersign.store.context import Store

_FILTERS = (
    Filter(),
    Filter(where=Where(kind=Values(any=("tool",)))),
    Filter(where=Where(platform=Values(none=("linux",)), access=Values(any=("free",)))),
    Filter(where=Where(tag=Values(any=("boats",)))),
    Filter(where=Where(tag=Values(all=("boats", "maps")))),
    Filter(where=Where(tag=Values(any=("boats", "puzzle")))),
    Filter(where=Where(tag=Values(any=("Boats",)), kind=Values(any=("app",)))),
    Filter(where=Where(tag=Values(none=("boats",)), license=Values(any=("MIT",)))),
    Filter(where=Where(kind=Values(any=("game",))), channel=Values(any=("beta",), none=("stable",))),
)


@pytest.mark.parametrize("walked", [1, 3, 1_000])
async def test_products_are_the_same_for_any_number_of_rows_read_from_the_catalog(
    shelf: Store, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    limited = [replace(each, limit=limit) for each in _FILTERS for limit in (1, 2, None)]
    monkeypatch.setattr(filter_queries, "MAX_WALKED", walked)
    product_lists = [await filter_queries.products(shelf.database, each) for each in limited]
    monkeypatch.setattr(filter_queries, "_WALKED_SLOTS", frozenset[str]())

    assert product_lists == [await filter_queries.products(shelf.database, each) for each in limited]
    assert sum(map(len, product_lists)) > 50
