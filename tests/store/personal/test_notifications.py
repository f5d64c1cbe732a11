"""Notifications: which events they report to whom, once and in order, and which are marked as seen."""

from typing import Any

from countersign.kernel import clock
from tests.store.personal.test_follows import publish
from tests.store.world import World


async def notifications_of(world: World, token: str, query: str = "") -> dict[str, Any]:
    """Return the notifications of a caller."""
    answer = await world.call("GET", f"/me/notifications?{query}", token)
    assert answer.is_success, answer.text
    return answer.json()


def notification_keys(page: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """Return the type, the product and the version of each notification."""
    return [
        (item["type"], item["product"]["slug"], item["release"] and item["release"]["version"])
        for item in page["items"]
    ]


async def set_publication_time(world: World, version: str, at: clock.Instant) -> None:
    """Change the publication time of the releases of a version."""
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE release SET published_at = $2 WHERE version = $1", version, at)


async def test_releases_updates_and_codes_are_reported_newest_first(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    for slug in ("followed", "owned", "other"):
        await world.product("north", slug)
    await publish(world, owner, "followed", "0.1")
    body = {"kind": "license", "products": ["owned"], "count": 1}
    (code,) = (await world.call("POST", "/codes", owner, json=body)).json()["codes"]
    assert (await world.call("POST", "/redeem", ann, json={"code": code})).is_success
    for slug in ("followed", "owned"):
        assert (await world.call("PUT", f"/me/follows/product/{slug}", ann)).is_success
    await publish(world, owner, "followed", "1.0", notes="x" * 400)
    await publish(world, owner, "owned", "1.0")
    await publish(world, owner, "other", "1.0")

    notifications = await notifications_of(world, ann)

    assert notification_keys(notifications) == [
        ("update", "owned", "1.0"),
        ("release", "followed", "1.0"),
        ("redeemed", "owned", None),
    ]
    assert notifications["items"][1]["release"] == {"version": "1.0", "channel": "stable", "notes": "x" * 300}
    assert (notifications["unseen"], notifications["next_cursor"]) == (3, None)
    assert not any(item["seen"] for item in notifications["items"])
    assert await notifications_of(world, bob) == {"items": [], "unseen": 0, "next_cursor": None}


async def test_anyone_who_follows_an_organisation_hears_of_all_its_public_products(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann = await world.person("ann@example.com")
    await world.product("north", "one")
    for path in ("org/north", "product/one"):
        assert (await world.call("PUT", f"/me/follows/{path}", ann)).is_success
    await world.product("north", "two")
    await publish(world, owner, "one", "1.0")
    await publish(world, owner, "two", "1.0")
    change = {"slug": "two", "title": "Two", "kind": "app", "platforms": ["web"], "status": "draft"}

    keys_before = notification_keys(await notifications_of(world, ann))
    assert (await world.call("PUT", "/products/two", owner, json=change)).is_success

    assert keys_before == [("release", "two", "1.0"), ("release", "one", "1.0")]
    notifications = await notifications_of(world, ann)
    assert (notification_keys(notifications), notifications["unseen"]) == ([("release", "one", "1.0")], 1)
    assert (await world.call("POST", "/products/one/releases/1.0/yank", owner, json={"reason": "bad"})).is_success
    assert await notifications_of(world, ann) == {"items": [], "unseen": 0, "next_cursor": None}


async def test_pages_hold_everything_once_and_belong_to_their_caller(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    await world.product("north", "one")
    assert (await world.call("PUT", "/me/follows/product/one", ann)).is_success
    for number in range(5):
        await publish(world, owner, "one", f"1.{number}")

    versions: list[str | None] = []
    query = "limit=2"
    while query:
        page = await notifications_of(world, ann, query)
        versions += [version for _, _, version in notification_keys(page)]
        assert page["unseen"] == 5
        query = f"limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""

    assert versions == ["1.4", "1.3", "1.2", "1.1", "1.0"]
    first_page = await notifications_of(world, ann, "limit=2")
    foreign_response = await world.call("GET", f"/me/notifications?cursor={first_page['next_cursor']}", bob)
    assert (foreign_response.status_code, foreign_response.json()["code"]) == (400, "invalid_cursor")


async def test_a_seen_notification_stays_seen(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann = await world.person("ann@example.com")
    await world.product("north", "one")
    now = clock.now()
    assert (await world.call("PUT", "/me/follows/product/one", ann)).is_success
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE follow SET since = $1", clock.later(now, seconds=-100))
    for number in (3, 2, 1):
        await publish(world, owner, "one", f"1.{number}")
        await set_publication_time(world, f"1.{number}", clock.later(now, seconds=-10 * number))

    async def mark(**body: str) -> int:
        return (await world.call("POST", "/me/notifications/seen", ann, json=body)).status_code

    assert await mark(until=clock.rfc3339(clock.later(now, seconds=-15))) == 204
    assert [item["seen"] for item in (await notifications_of(world, ann))["items"]] == [False, True, True]
    assert await mark(until=clock.rfc3339(clock.later(now, seconds=-50))) == 204
    assert (await notifications_of(world, ann))["unseen"] == 1
    assert await mark() == 204
    assert (await notifications_of(world, ann))["unseen"] == 0
    assert await mark(until="2999-01-01T00:00:00Z") == 204
    await publish(world, owner, "one", "2.0")
    assert (await notifications_of(world, ann))["unseen"] == 1
    assert await mark(until="2026-02-31T00:00:00Z") == 400
    assert await mark(until="yesterday") == 400
    assert await mark(since="2026-02-01T00:00:00Z") == 400


async def test_notifications_older_than_ninety_days_are_not_listed(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann = await world.person("ann@example.com")
    await world.product("north", "one")
    with clock.fixed(clock.later(clock.now(), seconds=-100 * 86_400)):
        await world.grant("ann@example.com", await world.product("north", "two"))
    await publish(world, owner, "two", "1.0")
    await set_publication_time(world, "1.0", clock.later(clock.now(), seconds=-91 * 86_400))
    await publish(world, owner, "two", "1.1")

    assert notification_keys(await notifications_of(world, ann)) == [("update", "two", "1.1")]
