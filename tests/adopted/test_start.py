"""A start with tables that differ from their models: only the models of these tables are left out."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from countersign.declare import Grant, where
from countersign.kernel.errors import Unavailable
from tests.adopted.shop import REGISTRY, Shop, open_shop


@asynccontextmanager
async def started_again(shop: Shop, folder: Path) -> AsyncGenerator[tuple[Shop, dict[str, Any]]]:
    """Start another service over the same database, and return it with the errors in its log by model."""
    folder = folder / "again"
    folder.mkdir()
    with capture_logs() as logs:
        async with open_shop(shop.url, folder, REGISTRY) as again:
            yield again, {str(each["model"]): each for each in logs if each["log_level"] == "error" and "model" in each}


@pytest.mark.parametrize(
    ("change", "mend", "model", "problem"),
    [
        (
            "ALTER TABLE customer RENAME COLUMN visits TO calls",
            "ALTER TABLE customer RENAME COLUMN calls TO visits",
            "customer",
            "customer.visits: the table customer has no column visits that may be read",
        ),
        (
            "ALTER TABLE line RENAME TO rows",
            "ALTER TABLE rows RENAME TO line",
            "line",
            "line: the connected database has no table line that may be read",
        ),
        (
            "ALTER TABLE line RENAME COLUMN number TO no",
            "ALTER TABLE line RENAME COLUMN no TO number",
            "line",
            "line.number: the table line has no column number that may be read",
        ),
    ],
    ids=["column", "table", "key"],
)
async def test_a_start_leaves_out_only_the_model_whose_table_is_not_as_declared(
    shop: Shop, tmp_path: Path, change: str, mend: str, model: str, problem: str
) -> None:
    shop.change(change)

    async with started_again(shop, tmp_path) as (again, errors):
        headers = {"Authorization": f"Bearer {await again.token_of(await again.inside.member())}"}
        assert list(errors) == [model]
        assert problem in errors[model]["problem"]
        assert (await again.http.post(f"/api/{model}/list", json={}, headers=headers)).status_code == 404
        order = (await again.http.post("/api/order/list", json={}, headers=headers)).json()["value"][0]
        assert ("customer" in order) is (model != "customer")

        shop.change(mend)
        await again.suspensions.check()

        listed = await again.http.post(f"/api/{model}/list", json={}, headers=headers)
        assert (listed.status_code, len(listed.json()["value"])) == (200, 3)


async def test_a_model_whose_columns_may_no_longer_be_read_is_left_out_until_they_may(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        pytest.skip("a SQLite file has no privileges")
    role = shop.url.partition("//")[2].partition("@")[0]
    shop.change(f"REVOKE SELECT ON line FROM {role}")

    await shop.suspensions.check()
    assert shop.suspensions.models == {"line"}
    shop.change(f"GRANT SELECT ON line TO {role}")
    await shop.suspensions.check()

    assert shop.suspensions.models == frozenset()
    assert len(await shop.inside.value(shop.inside.administrator(), "line", "list")) == 3


async def test_a_column_that_no_model_declares_may_be_dropped(shop: Shop) -> None:
    root = shop.inside.administrator()
    shop.change("ALTER TABLE country ADD COLUMN spare text")
    await shop.suspensions.check()
    assert len(await shop.inside.value(root, "country", "list")) == 2

    shop.change("ALTER TABLE country DROP COLUMN spare")

    assert len(await shop.inside.value(root, "country", "list")) == 2


async def test_a_row_rule_about_a_table_that_is_missing_since_the_start_makes_its_model_unavailable(
    shop: Shop, tmp_path: Path
) -> None:
    shop.change("ALTER TABLE customer RENAME TO people")

    async with started_again(shop, tmp_path) as (again, _):
        person = await again.inside.person(Grant(model="order", rows=(where("customer", eq="0" * 24),)))
        with pytest.raises(Unavailable, match="changed since its review"):
            await again.inside.value(person, "order", "list")
