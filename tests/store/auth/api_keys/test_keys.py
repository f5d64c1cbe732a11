"""Self-serve keys: anyone can create one, it gives access to public data, it belongs to no person, and it expires if it
is not used."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.database.open import open_database
from countersign.kernel.errors import Unavailable
from countersign.kernel.security import secrets
from countersign.store import app as distribution
from countersign.store.auth import api_keys
from tests.store.world import World

PLACES = ("/api/v1/api/keys", "/api/keys")
DAY_S = 86_400


async def key_of(world: World, tier: str = "community") -> str:
    """Create a key."""
    answer = await world.http.get("/api/keys", params={"tier": tier})
    assert answer.status_code == 200, answer.text
    key: str = answer.json()["api_key"]
    return key


async def stored_keys(world: World) -> list[Any]:
    """Return what the database contains about keys."""
    return await world.store.database.fetch("SELECT key_hash, tier, used_at FROM api_key ORDER BY created_at")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("endpoint", PLACES)
async def test_a_key_is_provisioned_at_both_places_by_both_methods(world: World, method: str, endpoint: str) -> None:
    answer = await world.http.request(method, endpoint)

    assert answer.status_code == 200
    assert answer.json() | {"api_key": ""} == {
        "status": "provisioned",
        "api_key": "",
        "self_serve": True,
        "free_tier": True,
    }
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["api_key"].startswith("csk_community_")


@pytest.mark.parametrize("tier", ["community", "sandbox", "agent"])
async def test_a_key_shows_its_tier_and_is_stored_only_as_a_hash(world: World, tier: str) -> None:
    key = await key_of(world, tier)

    rows = await stored_keys(world)

    assert key.startswith(f"csk_{tier}_")
    assert secrets.looks_like_secret(key)
    assert [(bytes(row[0]), row[1]) for row in rows] == [(secrets.digest(key), tier)]


async def test_an_unknown_key_gets_the_address_for_a_new_key(world: World) -> None:
    answer = await world.http.get("/api/v1/products", headers={"X-API-Key": secrets.new_secret("csk_agent")})

    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
    assert "/api/keys?tier=agent" in answer.json()["resolution"]


@pytest.mark.parametrize("tier", ["", "gold", "Community", "community,agent"])
async def test_an_unknown_tier_is_refused_by_name(world: World, tier: str) -> None:
    answer = await world.http.get("/api/keys", params={"tier": tier})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["errors"][0]["parameter"] == "tier"
    assert await stored_keys(world) == []


async def test_an_address_gets_five_keys_in_an_hour_over_all_endpoints(world: World) -> None:
    for number in range(5):
        assert (await world.http.get(PLACES[number % 2])).status_code == 200

    sixth = await world.http.get("/api/keys")
    posted_response = await world.http.post("/api/v1/api/keys")

    assert [response.status_code for response in (sixth, posted_response)] == [429, 429]
    assert sixth.json()["code"] == "rate_limit_exceeded"
    assert 3500 < int(sixth.headers["retry-after"]) <= 3600
    assert len(await stored_keys(world)) == 5
    other_transport = httpx.ASGITransport(distribution.create(world.store), client=("10.9.8.7", 1))
    async with httpx.AsyncClient(transport=other_transport, base_url="http://127.0.0.1:8480") as other_client:
        assert (await other_client.get("/api/keys")).status_code == 200
    with clock.fixed(clock.later(clock.now(), seconds=3601)):
        assert (await world.http.get("/api/keys")).status_code == 200


@pytest.mark.parametrize(("tier", "quota"), [("community", 600), ("agent", 1200)])
async def test_a_key_reads_public_data_with_the_quota_of_its_tier(world: World, tier: str, quota: int) -> None:
    await world.product("north", "river")
    await world.product("north", "secret", status="draft")
    key = await key_of(world, tier)
    anonymous = await world.http.get("/api/v1/products")

    for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
        answer = await world.http.get("/api/v1/products", headers=headers)
        assert answer.status_code == 200
        assert answer.content == anonymous.content
        assert answer.headers["etag"] == anonymous.headers["etag"]
        assert "private" in answer.headers["cache-control"]
        assert answer.headers["ratelimit-limit"] == str(quota)


async def test_every_key_has_a_quota_of_its_own(world: World) -> None:
    first_key, second_key = await key_of(world), await key_of(world)

    remaining = [
        int((await world.http.get("/api/v1/info", headers={"X-API-Key": key})).headers["ratelimit-remaining"])
        for key in (first_key, first_key, second_key)
    ]

    assert remaining == [599, 598, 599]


@pytest.mark.parametrize("tier", ["community", "agent"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/library", None),
        ("POST", "/redeem", {"code": "AAAA-BBBB"}),
        ("POST", "/products", {"slug": "a", "title": "A", "kind": "game", "platforms": ["linux"]}),
        ("GET", "/jobs", None),
        ("POST", "/jobs", {"type": "artifact.verify", "payload": {"artifact_id": "x"}}),
        ("GET", "/org", None),
        ("GET", "/auth/me", None),
    ],
)
async def test_a_key_is_anonymous_and_never_reaches_a_persons_data(
    world: World, tier: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    key = await key_of(world, tier)

    answer = await world.call(method, path, headers={"X-API-Key": key}, json=body)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope"), answer.text
    assert "token" in answer.json()["resolution"]


async def test_a_sandbox_key_is_led_from_the_service_to_the_sandbox(world: World) -> None:
    key = await key_of(world, "sandbox")

    for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
        for path in ("/api/v1/products", "/api/v1/library"):
            answer = await world.http.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "sandbox_only")
            assert "http://127.0.0.1:8480/sandbox/api/v1" in answer.json()["resolution"]


@pytest.mark.parametrize("tier", ["community", "agent", "sandbox"])
async def test_documents_problem_pages_and_new_keys_are_available_with_any_key(world: World, tier: str) -> None:
    """An agent that sends its key with every request can read the documents, even with a refused sandbox key."""
    key = await key_of(world, tier)

    for path in (
        "/openapi.json",
        "/openapi/catalog",
        "/wiki.json",
        "/llms.txt",
        "/auth.md",
        "/api/v1",
        "/problems/sandbox-only",
        "/.well-known/oauth-protected-resource",
        "/api/keys?tier=agent",
    ):
        answer = await world.http.get(path, headers={"X-API-Key": key})
        assert answer.status_code == 200, path
    refused_response = await world.http.get("/openapi.json", headers={"X-API-Key": key[:-1] + "!"})
    assert (refused_response.status_code, refused_response.json()["code"]) == (401, "invalid_token")


async def test_an_unknown_key_is_401_like_a_bad_token(world: World) -> None:
    unknown = secrets.new_secret("csk_agent")
    known_key = await key_of(world)
    mistyped = known_key[:-1] + ("A" if known_key[-1] != "A" else "B")

    for bad_key in (unknown, mistyped, "csk_community_", "csk_agent_short", "csk_gold_" + known_key[14:], "x", "é"):
        for headers in ({"X-API-Key": bad_key.encode()}, {"Authorization": f"Bearer {bad_key}".encode()}):
            answer = await world.http.get("/api/v1/products", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token"), bad_key
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]


async def test_a_mistyped_key_is_reported_without_the_database(world: World, tmp_path: Path) -> None:
    known_key = await key_of(world)
    closed_database = await open_database(f"sqlite:///{tmp_path}/away.sqlite", schema="distribution", reserve_bytes=0)
    await closed_database.close()
    store = replace(world.store, database=closed_database)

    assert await api_keys.find_key(store, known_key[:-1] + "!") is None
    with pytest.raises(Unavailable):
        await api_keys.find_key(store, known_key)


async def test_an_unused_key_expires_and_a_used_key_stays_valid(world: World) -> None:
    used_key, unused = await key_of(world), await key_of(world)
    later_time = clock.later(clock.now(), seconds=29 * DAY_S)
    with clock.fixed(later_time):
        assert (await world.http.get("/api/v1/info", headers={"X-API-Key": used_key})).status_code == 200
        await distribution.run_maintenance(world.store)
    with clock.fixed(clock.later(later_time, seconds=2 * DAY_S)):
        before_tending = await world.http.get("/api/v1/info", headers={"X-API-Key": unused})
        await distribution.run_maintenance(world.store)
        answers = [await world.http.get("/api/v1/info", headers={"X-API-Key": key}) for key in (used_key, unused)]

    assert before_tending.status_code == 401
    assert [answer.status_code for answer in answers] == [200, 401]
    assert [bytes(row[0]) for row in await stored_keys(world)] == [secrets.digest(used_key)]


async def test_a_use_that_is_not_written_down_yet_saves_a_key_from_tending(world: World) -> None:
    key = await key_of(world)
    with clock.fixed(clock.later(clock.now(), seconds=29 * DAY_S)):
        await world.http.get("/api/v1/info", headers={"X-API-Key": key})
    with clock.fixed(clock.later(clock.now(), seconds=31 * DAY_S)):
        await distribution.run_maintenance(world.store)
        assert (await world.http.get("/api/v1/info", headers={"X-API-Key": key})).status_code == 200


async def test_guessing_keys_counts_against_the_address(world: World) -> None:
    quota = world.store.settings.rate_anonymous

    answer = await world.http.get("/api/v1/info", headers={"X-API-Key": secrets.new_secret("csk_agent")})

    assert answer.headers["ratelimit-limit"] == str(quota)
    assert int(answer.headers["ratelimit-remaining"]) == quota - 1
