"""If a table differs from its model when the service starts, the service suspends this model and serves the others."""

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
async def restarted(shop: Shop, folder: Path) -> AsyncGenerator[tuple[Shop, dict[str, Any]]]:
    """Start another service over the same database, and return it with the errors in its log by model."""
    folder = folder / "restarted"
    folder.mkdir()
    with capture_logs() as logs:
        async with open_shop(shop.url, folder, REGISTRY) as new_shop:
            errors = [entry for entry in logs if entry["log_level"] == "error" and "model" in entry]
            yield new_shop, {str(entry["model"]): entry for entry in errors}


@pytest.mark.parametrize(
    ("change", "revert", "model", "problem"),
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
async def test_a_start_suspends_only_the_model_whose_table_differs(
    shop: Shop, tmp_path: Path, change: str, revert: str, model: str, problem: str
) -> None:
    shop.change(change)

    async with restarted(shop, tmp_path) as (new_shop, errors):
        headers = {"Authorization": f"Bearer {await new_shop.token_of(await new_shop.inside.member())}"}
        assert list(errors) == [model]
        assert problem in errors[model]["problem"]
        assert (await new_shop.http.post(f"/api/{model}/list", json={}, headers=headers)).status_code == 404
        order = (await new_shop.http.post("/api/order/list", json={}, headers=headers)).json()["value"][0]
        assert ("customer" in order) is (model != "customer")

        shop.change(revert)
        await new_shop.suspensions.check()

        response = await new_shop.http.post(f"/api/{model}/list", json={}, headers=headers)
        assert (response.status_code, len(response.json()["value"])) == (200, 3)


async def test_a_model_is_suspended_while_the_role_may_not_read_its_columns(shop: Shop) -> None:
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


async def test_dropping_a_column_that_no_model_declares_changes_nothing(shop: Shop) -> None:
    root = shop.inside.administrator()
    shop.change("ALTER TABLE country ADD COLUMN spare text")
    await shop.suspensions.check()
    assert len(await shop.inside.value(root, "country", "list")) == 2

    shop.change("ALTER TABLE country DROP COLUMN spare")

    assert len(await shop.inside.value(root, "country", "list")) == 2


async def test_a_model_is_unavailable_if_a_row_condition_refers_to_a_missing_table(
    shop: Shop, tmp_path: Path
) -> None:
    shop.change("ALTER TABLE customer RENAME TO people")

    async with restarted(shop, tmp_path) as (new_shop, _):
        person = await new_shop.inside.person(Grant(model="order", rows=(where("customer", eq="0" * 24),)))
        with pytest.raises(Unavailable, match="changed since its review"):
            await new_shop.inside.value(person, "order", "list")
