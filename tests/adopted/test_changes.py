"""Tables of others that change, and errors of their database."""

import pytest
from structlog.testing import capture_logs

from countersign.declare import DeclarationError
from countersign.kernel.errors import InvalidRequest, Unavailable
from countersign.records.adopted import store
from tests.adopted.shop import MARK, REGISTRY, Shop


async def test_a_column_that_is_gone_makes_its_model_unavailable_and_no_other(shop: Shop) -> None:
    root = shop.inside.administrator()
    shop.change(f'ALTER TABLE customer RENAME COLUMN note TO "note {MARK}"')

    with capture_logs() as logs, pytest.raises(Unavailable) as caught:
        await shop.inside.value(root, "customer", "list")

    assert MARK not in f"{caught.value} {logs}"
    assert len(await shop.inside.value(root, "country", "list")) == 2


async def test_a_value_that_the_database_cannot_convert_is_not_in_the_answer(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        pytest.skip("SQLite converts every value")
    shop.change("ALTER TABLE customer ALTER COLUMN activebool DROP DEFAULT")
    shop.change("ALTER TABLE customer ALTER COLUMN activebool TYPE text USING first_name")

    with capture_logs() as logs, pytest.raises(InvalidRequest, match="refused this") as caught:
        await shop.inside.value(shop.inside.administrator(), "customer", "list")

    assert MARK not in f"{caught.value} {logs}"


async def test_a_start_names_the_column_that_is_missing(shop: Shop) -> None:
    shop.change("ALTER TABLE customer RENAME COLUMN visits TO calls")
    existing = await store.open_adopted(REGISTRY, shop.url, 5.0)
    try:
        with pytest.raises(DeclarationError, match=r"customer\.visits: the table customer has no column visits"):
            await store.stores(REGISTRY, existing, b"x" * 32)
    finally:
        await existing.close()


async def test_a_start_names_the_table_that_is_missing(shop: Shop) -> None:
    shop.change("ALTER TABLE line RENAME TO rows")
    existing = await store.open_adopted(REGISTRY, shop.url, 5.0)
    try:
        with pytest.raises(DeclarationError, match="the connected database has no table line that may be read"):
            await store.stores(REGISTRY, existing, b"x" * 32)
    finally:
        await existing.close()


async def test_days_and_instants_outside_of_the_calendar_are_empty(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        shop.change("UPDATE customer SET born = 'soon', seen = 'later'")
    else:
        shop.change("UPDATE customer SET born = 'infinity', seen = '-infinity'")

    found = await shop.inside.value(shop.inside.administrator(), "customer", "list")

    assert {(each["born"], each["seen"]) for each in found} == {(None, None)}


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
async def test_a_list_that_cannot_be_read_is_refused_before_any_part_of_it_is_sent(shop: Shop, accept: str) -> None:
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}", "Accept": accept}
    shop.change("ALTER TABLE line RENAME TO rows")
    command = "list" if accept == "application/json" else "export"

    refused = await shop.http.post(f"/api/line/{command}", json={}, headers=headers)

    assert (refused.status_code, refused.json()) == (
        503, {"error": "A table of the connected database has changed, or can no longer be read."}
    )
