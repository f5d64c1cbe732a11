"""Limits in the text of statements: PostgreSQL plans a page once, and returns the same rows."""

import pytest

from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Value
from countersign.kernel.database.postgres_limits import MAX_LITERAL, with_literal_limit


def test_the_last_limit_becomes_a_number() -> None:
    assert with_literal_limit("SELECT a FROM b WHERE a > $1 LIMIT $2\n ", ["x", 21]) == (
        "SELECT a FROM b WHERE a > $1 LIMIT 21",
        ["x"],
    )
    assert with_literal_limit("SELECT a FROM b LIMIT $1", [0]) == ("SELECT a FROM b LIMIT 0", [])


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("SELECT a FROM b", []),
        ("SELECT a FROM b WHERE a = $1", ["x"]),
        ("SELECT a FROM b LIMIT $1", [MAX_LITERAL + 1]),
        ("SELECT a FROM b LIMIT $1", [-1]),
        ("SELECT a FROM b LIMIT $1", [True]),
        ("SELECT a FROM b LIMIT $1", [None]),
        ("SELECT a FROM b LIMIT $1 OFFSET $2", [5, 6]),
        ("SELECT a FROM b WHERE c = $2 LIMIT $1", [5, "x"]),
        ("SELECT a, $1 FROM b LIMIT $1", [5]),
        ("SELECT a FROM (SELECT a FROM b LIMIT $1) AS c", [5]),
        ("SELECT a FROM b LIMIT $1" + " " * 20_000, [5]),
    ],
)
def test_other_statements_are_unchanged(statement: str, values: list[Value]) -> None:
    assert with_literal_limit(statement, values) == (statement, values)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_postgresql_plans_a_page_with_a_limit_once(database_url: str) -> None:
    database = await open_database(database_url, schema="shop", pool=1)
    try:
        async with database.transaction() as transaction:
            await transaction.run("CREATE TABLE product (title TEXT PRIMARY KEY)")
            await transaction.run("INSERT INTO product SELECT to_char(n, '000000') FROM generate_series(1, 5000) n")
        page = "SELECT title FROM product WHERE title > $1 ORDER BY title LIMIT $2"

        pages = [await database.fetch(page, f" {start:06}", 20) for start in range(0, 1000, 50)]
        plan_counts = await database.fetch(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE 'SELECT title%'"
        )
    finally:
        await database.close()

    assert [rows[0][0] for rows in pages] == [f" {start + 1:06}" for start in range(0, 1000, 50)]
    assert {len(rows) for rows in pages} == {20}
    assert plan_counts == [(15, 5)]
