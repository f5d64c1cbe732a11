"""Tables of others that change, and errors of their database."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from countersign.kernel.errors import InvalidRequest, Unavailable
from tests.adopted.shop import MARK, Shop


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


async def test_days_and_instants_outside_of_the_calendar_are_empty(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        shop.change("UPDATE customer SET born = 'soon', seen = 'later'")
    else:
        shop.change("UPDATE customer SET born = 'infinity', seen = '-infinity'")

    customers = await shop.inside.value(shop.inside.administrator(), "customer", "list")

    assert {(each["born"], each["seen"]) for each in customers} == {(None, None)}


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
async def test_a_list_that_cannot_be_read_is_refused_before_any_part_of_it_is_sent(shop: Shop, accept: str) -> None:
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}", "Accept": accept}
    shop.change("ALTER TABLE line RENAME TO rows")
    command = "list" if accept == "application/json" else "export"

    refused = await shop.http.post(f"/api/line/{command}", json={}, headers=headers)

    assert (refused.status_code, refused.json()) == (
        503, {"error": "A table of the connected database has changed, or can no longer be read."}
    )


def replace_file(shop: Shop, statement: str) -> None:
    """Put a copy of the SQLite file in its place, as a restored backup is, after the statement has changed the copy."""
    path = Path(shop.url.removeprefix("sqlite:///"))
    copy = path.with_suffix(".new")
    shutil.copyfile(path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(statement)
    copy.replace(path)


async def test_a_sqlite_file_that_is_replaced_is_read_anew(shop: Shop) -> None:
    if not shop.url.startswith("sqlite"):
        pytest.skip("only a file can be replaced")
    root = shop.inside.administrator()
    assert len(await shop.inside.value(root, "line", "list")) == 3
    replace_file(shop, "DELETE FROM line WHERE number = 2")

    with pytest.raises(Unavailable, match="has changed"):
        await shop.inside.value(root, "line", "list")

    assert len(await shop.inside.value(root, "line", "list")) == 2
    assert shop.suspensions.models == frozenset()


async def test_a_sqlite_file_that_is_replaced_by_one_with_other_columns_shows_none_of_them(shop: Shop) -> None:
    if not shop.url.startswith("sqlite"):
        pytest.skip("only a file can be replaced")
    root = shop.inside.administrator()
    replace_file(shop, "ALTER TABLE line RENAME COLUMN title TO secret")

    await shop.suspensions.check()

    assert shop.suspensions.models == {"line"}
    with pytest.raises(Unavailable, match="changed since its review"):
        await shop.inside.value(root, "line", "list")


async def test_a_sqlite_file_that_is_deleted_is_unavailable(shop: Shop) -> None:
    if not shop.url.startswith("sqlite"):
        pytest.skip("only a file can be deleted")
    Path(shop.url.removeprefix("sqlite:///")).unlink()

    with pytest.raises(Unavailable, match="cannot be reached"):
        await shop.inside.value(shop.inside.administrator(), "line", "list")
