"""GET /publishers: which publishers are listed, and that the counts are those of the public products after any
change."""

import random
from pathlib import Path
from typing import Any

import pytest

from countersign.store import app as distribution
from countersign.store.context import Store
from tests.store.ask.shelf import stock_store
from tests.store.world import World

COUNTS = """
    SELECT o.slug, sum(CASE WHEN p.status = 'public' THEN 1 ELSE 0 END),
           (SELECT count(*) FROM release r JOIN product q ON q.id = r.product_id
            WHERE q.org_id = o.id AND q.status = 'public' AND r.status = 'published'),
           (SELECT max(r.published_at) FROM release r JOIN product q ON q.id = r.product_id
            WHERE q.org_id = o.id AND q.status = 'public' AND r.status = 'published')
    FROM organisation o
    JOIN product p ON p.org_id = o.id
    GROUP BY o.id, o.slug
    ORDER BY o.slug
"""
KEPT = "SELECT slug, product_count, release_count, last_release_at FROM catalog_publisher ORDER BY slug"


async def test_the_migration_writes_the_same_rows_as_publishing(store: Store) -> None:
    await stock_store(store)
    published_rows = await store.database.fetch(KEPT)
    (file,) = (Path(distribution.__file__).parent / "migrations").glob("*_publishers.sql")
    text = file.read_text()
    insert = text[text.index("INSERT INTO catalog_publisher") : text.index("-- Words of titles")]
    update = text[text.index("UPDATE catalog_index") : text.index("-- Counts of the public")]
    async with store.database.transaction() as transaction:
        await transaction.run("DELETE FROM catalog_publisher")
        await transaction.run("UPDATE catalog_index SET releases = 0")
        await transaction.run(update.rstrip().rstrip(";"))
        await transaction.run(insert.rstrip().rstrip(";"))

    assert [tuple(row) for row in await store.database.fetch(KEPT)] == [tuple(row) for row in published_rows]
    assert [tuple(row) for row in published_rows] == [tuple(row) for row in await store.database.fetch(COUNTS)]


async def change(world: World, token: str, slug: str, rng: random.Random) -> None:
    """Change a product in a random way. A refused change must have no effect."""
    version = f"1.0.{rng.randrange(4)}"
    status = rng.choice(("public", "draft"))
    body = {"slug": slug, "title": slug, "kind": "app", "platforms": ["web"], "status": status}
    drafted = {"version": version, "channel": "stable", "notes_only": True}
    await world.call("POST", f"/products/{slug}/releases", token, json=drafted)
    method, path, change_body = rng.choice(
        (
            ("POST", f"/releases/{version}/publish", None),
            ("POST", f"/releases/{version}/publish", None),
            ("POST", f"/releases/{version}/yank", {"reason": "broken"}),
            ("PUT", "", body),
            ("DELETE", "", None),
        )
    )
    await world.call(method, f"/products/{slug}{path}", token, json=change_body)


async def test_the_counts_are_true_after_any_changes(world: World) -> None:
    rng = random.Random(3)
    token = await world.person("p@north.example", north="publisher", south="publisher")
    for number in range(20):
        await world.product(rng.choice(("north", "south")), f"p-{number}", status=rng.choice(("public", "draft")))
    for _ in range(80):
        await change(world, token, f"p-{rng.randrange(20)}", rng)

    counted_rows = [tuple(row) for row in await world.store.database.fetch(COUNTS)]
    assert [tuple(row) for row in await world.store.database.fetch(KEPT)] == counted_rows
    assert all(row[2] > 2 for row in counted_rows)
    items = (await world.call("GET", "/publishers")).json()["items"]
    shown_counts = [(item["slug"], item["product_count"], item["release_count"]) for item in items]
    assert shown_counts == [tuple(row[:3]) for row in counted_rows if row[1]]


async def all_pages(world: World, limit: int) -> list[dict[str, Any]]:
    """Return all pages."""
    all_items: list[dict[str, Any]] = []
    cursor_parameter = ""
    while True:
        page = await world.call("GET", f"/publishers?limit={limit}{cursor_parameter}")
        assert page.is_success, page.text
        all_items += page.json()["items"]
        if page.json()["next_cursor"] is None:
            return all_items
        cursor_parameter = f"&cursor={page.json()['next_cursor']}"


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_publishers_are_listed_by_name_page_by_page(world: World, limit: int) -> None:
    for slug in ("b", "a", "c"):
        await world.org(slug)
        await world.product(slug, f"of-{slug}")
    await world.product("north", "draft", status="draft")

    assert [page["slug"] for page in await all_pages(world, limit)] == ["a", "b", "c"]


async def test_an_organisation_without_public_products_is_not_listed(world: World) -> None:
    token = await world.person("o@north.example", north="owner")
    await world.product("north", "draft", status="draft")

    hidden_response = await world.call("GET", "/publishers/north")
    missing_response = await world.call("GET", "/publishers/nowhere")
    own_response = await world.call("GET", "/publishers/north", token)

    assert (hidden_response.status_code, missing_response.status_code, own_response.status_code) == (404, 404, 404)
    assert hidden_response.json()["detail"] == missing_response.json()["detail"]


async def test_a_publisher_has_the_text_that_its_organisation_wrote(world: World) -> None:
    token = await world.person("o@north.example", north="owner")
    await world.product("north", "one")
    publisher_before = (await world.call("GET", "/publishers/north")).json()
    profile = {"name": "North & Sons", "text": "We make small games.", "website": "https://north.example"}

    profile_answer = await world.call("PUT", "/org", token, json=profile)
    shown_body = (await world.call("GET", "/publishers/north")).json()
    renamed_response = await world.call("PUT", "/org", token, json={"name": "North"})
    cleared_response = await world.call("PUT", "/org", token, json={"name": "North", "text": None, "website": None})

    assert profile_answer.is_success, profile_answer.text
    assert (
        publisher_before["name"],
        publisher_before["text"],
        publisher_before["website"],
        publisher_before["verified"],
    ) == ("North", None, None, False)
    assert shown_body == {**publisher_before, **profile}
    assert {name: profile_answer.json()[name] for name in profile} == profile
    assert (renamed_response.json()["text"], renamed_response.json()["website"]) == (
        profile["text"],
        profile["website"],
    )
    assert (cleared_response.json()["text"], cleared_response.json()["website"]) == (None, None)
    assert (await world.call("GET", "/org", token)).json() == cleared_response.json()


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("text", "x" * 2_001),
        ("text", "a\0b"),
        ("text", "a\u202eb"),
        ("website", "javascript:alert(1)"),
        ("website", "https://a.example/ b"),
        ("website", "https://" + "a" * 2_000),
        ("website", "ftp://a.example"),
    ],
)
async def test_a_profile_with_a_value_that_cannot_be_shown_is_refused(world: World, member: str, value: str) -> None:
    token = await world.person("o@north.example", north="owner")

    answer = await world.call("PUT", "/org", token, json={"name": "North", member: value})

    assert answer.status_code == 400, answer.text
    assert (await world.call("GET", "/org", token)).json()[member] is None
