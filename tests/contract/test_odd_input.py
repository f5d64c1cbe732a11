"""Odd input that parsers accept is refused, and never causes a 500."""

from typing import Any

import pytest

from countersign.kernel.http import cursor
from countersign.kernel.http.cursor import Position
from tests.contract.scenes import PRODUCT, all_rows
from tests.store.world import World

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def owner(world: World) -> str:
    """A token of north's owner, whose product `one` is public."""
    await world.product("north", "one")
    return await world.person("owner@north.example", north="owner")


def assert_problem(answer: Any, status: int, code: str, **expected_places: str) -> None:
    """Require the documented refusal, which names the parameter or the pointer."""
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "message", "resolution", "instance"} <= set(problem)
    for kind, expected_place in expected_places.items():
        assert [error[kind] for error in problem["errors"]] == [expected_place], problem


UNSTORABLE = (
    b'{"slug":"odd","title":"a\x00b","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a\\u0000b","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a\\ud800b","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a\\udc00\\ud800b","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a\xed\xa0\x80b","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a\xffb","kind":"tool","platforms":["linux"]}',
    b'{"slug":"odd","title":"a","kind":"tool","platforms":["linux"],"license":"\\u0000"}',
)


@pytest.mark.parametrize("content", UNSTORABLE)
async def test_text_that_no_database_keeps_is_refused(world: World, owner: str, content: bytes) -> None:
    rows_before = await all_rows(world.store)

    answer = await world.call("POST", "/products", owner, content=content, headers=JSON)

    assert_problem(answer, 400, "invalid_request")
    assert answer.json()["errors"]
    assert await all_rows(world.store) == rows_before


async def test_text_of_every_unicode_plane_is_stored_unchanged(world: World, owner: str) -> None:
    title = "a\u0301\u200b\u202e\U0001f642\uffff\U0010ffff\x01\x7f"

    created_response = await world.call("POST", "/products", owner, json={**PRODUCT, "title": title})

    assert created_response.status_code == 201
    assert (await world.call("GET", "/products/written", owner)).json()["title"] == title


NUMBERS = ("1e1", "5.0", "5.5", "1" * 400, "-1", "0x10", "1_0", "٥", "true", "null", "Null", "NaN", " 5", "")


@pytest.mark.parametrize("path", ["/products", "/library", "/products/one/releases", "/catalog", "/codes"])
async def test_a_limit_is_a_plain_number_in_its_range(world: World, owner: str, path: str) -> None:
    for text in NUMBERS:
        answer = await world.call("GET", path, owner, params={"limit": text})
        assert answer.status_code == 400, (text, answer.text)
        assert_problem(answer, 400, "invalid_request", parameter="limit")


@pytest.mark.parametrize(
    "members",
    [
        {"count": 10**30},
        {"count": 1.5},
        {"count": True},
        {"kind": "promo", "max_uses": 10**30},
        {"valid_from": "2026-11-20"},
        {"valid_from": "2026-11-20T22:13:00"},
        {"valid_from": 5},
        {"expires_at": "never"},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"valid_from": "2030-01-02T00:00:00Z", "expires_at": "2030-01-02T00:00:00Z"},
        {"products": ["one", "one"]},
        {"products": ["missing"]},
        {"products": ["\u0000"]},
    ],
)
async def test_a_batch_that_makes_no_sense_is_refused_by_its_member(
    world: World, owner: str, members: dict[str, Any]
) -> None:
    rows_before = await all_rows(world.store)
    body = {"kind": "license", "products": ["one"], "count": 1, **members}

    answer = await world.call("POST", "/codes", owner, json=body)

    assert_problem(answer, 400, "invalid_request")
    assert answer.json()["errors"], answer.text
    assert await all_rows(world.store) == rows_before


@pytest.mark.parametrize(
    ("valid_from", "expires_at"),
    [
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        ("1969-12-31T23:59:59.999999Z", "2999-12-31T23:59:59.999999Z"),
    ],
)
async def test_a_window_may_be_as_wide_as_time_is_written(
    world: World, owner: str, valid_from: str, expires_at: str
) -> None:
    body = {"kind": "license", "products": ["one"], "count": 1, "valid_from": valid_from, "expires_at": expires_at}

    issued_response = await world.call("POST", "/codes", owner, json=body)
    listed_response = await world.call("GET", "/codes", owner)

    assert issued_response.status_code in (201, 400), issued_response.text
    assert listed_response.status_code == 200, listed_response.text
    if issued_response.status_code == 201:
        answer = await world.call("POST", "/redeem", owner, json={"code": issued_response.json()["codes"][0]})
        assert answer.status_code == 200, answer.text


PERSON = "SELECT id FROM person"
STALE = (
    Position("", [], []),
    Position("", [], ["a"]),
    Position("", ["x"], ["a", "b", "c", "d"]),
    Position("", ["", "", "", "", "", "nonsense"], ["a", "b"]),
    Position("", ["robot", "", "", "", "", ""], ["a", "b"]),
    Position("", ["", "", "", "", "", ""], []),
    Position("", ["", "", "", "", "", ""], [1, 2, 3]),
)


@pytest.mark.parametrize("kind", ["products", "catalog", "releases", "library", "codes"])
async def test_a_cursor_of_an_older_form_is_refused(world: World, owner: str, kind: str) -> None:
    (org,), (product,), (person,) = [
        (await world.store.database.fetch(statement))[0]
        for statement in ("SELECT id FROM organisation WHERE slug = 'north'", "SELECT id FROM product", PERSON)
    ]
    path, own_filter = {
        "products": ("/products", ["", "", "", "", "", "-published_at"]),
        "catalog": ("/catalog", []),
        "releases": ("/products/one/releases", [product, ""]),
        "library": ("/library", [f"person:{person}"]),
        "codes": ("/codes", [org]),
    }[kind]
    for stale_cursor in STALE:
        for made_for in (stale_cursor.filter, own_filter):
            text = cursor.write(world.store.cursors, Position(kind, made_for, stale_cursor.after))
            answer = await world.call("GET", path, owner, params={"cursor": text, "limit": "3"})
            assert answer.status_code in (200, 400), (stale_cursor, answer.text)
            if answer.status_code == 400:
                assert_problem(answer, 400, "invalid_cursor", parameter="cursor")


async def test_a_credential_that_is_sent_twice_is_refused(world: World, owner: str) -> None:
    south = await world.person("owner@south.example", south="owner")
    for values in ((owner, south), (owner, owner)):
        pairs = [("Authorization", f"Bearer {value}") for value in values]
        answer = await world.http.get("/api/v1/library", headers=pairs)
        assert_problem(answer, 400, "invalid_request")
        assert answer.json()["errors"]


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "Basic YTpi", "bearer", "Token x", "Bearer a b", "Bearer a,b", "Bearer \xe9", "x" * 9000],
)
async def test_a_credential_of_another_make_is_challenged(world: World, value: str) -> None:
    for path in ("/api/v1/products", "/api/v1/library"):
        answer = await world.http.get(path, headers=[(b"Authorization", value.encode("latin-1"))])
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="invalid_token", error_description="')
        assert "resource_metadata=" in challenge


@pytest.mark.parametrize("name", ["%00", "%ff", "a%2Fb", "'", "x" * 5000, "%F0%9F%99%82", "\u00e9"])
async def test_a_name_that_nothing_has_is_not_found(world: World, owner: str, name: str) -> None:
    for method, path in (
        ("GET", f"/products/{name}"),
        ("GET", f"/products/{name}/releases"),
        ("DELETE", f"/products/{name}"),
        ("POST", f"/products/one/releases/{name}/publish"),
        ("DELETE", f"/products/one/media/{name}"),
        ("GET", f"/artifacts/{name}"),
        ("GET", f"/media/{name}"),
        ("POST", f"/codes/{name}/revoke"),
    ):
        answer = await world.call(method, path, owner)
        assert answer.status_code in (404, 405), (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query", ["limit=5;limit=6", "a" * 20_000, "&".join(f"p{n}=1" for n in range(80)), "%", "=", "q=%ff", "q=%00"]
)
async def test_an_invalid_query_is_refused(world: World, query: str) -> None:
    answer = await world.http.get(f"/api/v1/products?{query}")

    assert_problem(answer, 400, "invalid_request")
    assert answer.json()["errors"], answer.text


async def test_a_cursor_for_releases_without_a_limit_is_refused_with_the_reason(world: World, owner: str) -> None:
    for number in range(3):
        body = {"version": f"1.{number}", "channel": "beta", "notes_only": True}
        await world.call("POST", "/products/one/releases", owner, json=body)
        await world.call("POST", f"/products/one/releases/1.{number}/publish", owner)
    page = await world.call("GET", "/products/one/releases", owner, params={"limit": "1"})
    text = page.links["next"]["url"].partition("cursor=")[2].partition("&")[0]

    answer = await world.call("GET", "/products/one/releases", owner, params={"cursor": text})

    assert_problem(answer, 400, "invalid_request", parameter="limit")


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/products", "kind"),
        ("/products", "platform"),
        ("/products", "sort"),
        ("/products/one/releases", "channel"),
        ("/library", "limit"),
    ],
)
async def test_the_text_null_is_accepted_like_any_other_text(
    world: World, owner: str, path: str, parameter: str
) -> None:
    for text in ("null", "NULL"):
        answer = await world.call("GET", path, owner, params={parameter: text})
        assert_problem(answer, 400, "invalid_request", parameter=parameter)


async def test_null_may_be_searched_for(world: World) -> None:
    await world.product("north", "one")
    await world.product("north", "two", title="Null and void", tags=["null"])

    for parameters in ({"q": "null"}, {"tag": "null"}):
        items = (await world.call("GET", "/products", params=parameters)).json()["items"]
        assert [item["slug"] for item in items] == ["two"]
