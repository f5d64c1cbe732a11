"""/me/sessions: where a person is signed in, and the end of a session on every worker."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.security import passwords, secrets
from countersign.store import app as distribution
from countersign.store.auth import people, queries
from countersign.store.auth.user_agent import Device, device_of
from countersign.store.context import LastUses, Store
from tests.store.world import World

ROOT = "http://127.0.0.1:8480"
OWN_PAGE = {"Origin": ROOT}
PASSWORD = "a long password"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 "
    "Mobile/15E148 Safari/604.1"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
    "Safari/537.36 Edg/140.0.0.0"
)
CHROME = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36"
)


@pytest.fixture(autouse=True)
async def two_people(world: World) -> None:
    """Two people with a password."""
    for email in ("ann@example.com", "bob@example.com"):
        password_hash = await passwords.hash_password(PASSWORD, email)
        async with world.store.database.transaction() as transaction:
            await people.add_person(transaction, email, password_hash)


async def sign_in(world: World, email: str = "ann@example.com", user_agent: str = FIREFOX) -> str:
    """Sign in like a browser, and return the cookie of the session."""
    form = {"email": email, "password": PASSWORD}
    world.http.cookies.clear()
    answer = await world.http.post("/auth/signin", data=form, headers={**OWN_PAGE, "User-Agent": user_agent})
    world.http.cookies.clear()
    return answer.headers["set-cookie"].partition(";")[0].partition("=")[2]


async def exchange(world: World, cookie: str, **body: str) -> httpx.Response:
    """Exchange the cookie for a token, like the pages."""
    headers = {**OWN_PAGE, "Cookie": f"countersign={cookie}"}
    return await world.http.post("/auth/session/token", json=body, headers=headers)


async def token_of(world: World, cookie: str, **body: str) -> str:
    """Return a token of the session."""
    token: str = (await exchange(world, cookie, **body)).json()["access_token"]
    return token


async def listed(world: World, token: str) -> list[dict[str, Any]]:
    """Return the sessions of the caller."""
    answer = await world.call("GET", "/me/sessions", token)
    assert answer.headers["cache-control"] == "private, no-store"
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_a_person_sees_where_they_are_signed_in(world: World) -> None:
    first_cookie, _ = await sign_in(world), await sign_in(world, user_agent=SAFARI)
    await sign_in(world, "bob@example.com", EDGE)

    items = await listed(world, await token_of(world, first_cookie))

    assert [(each["browser"], each["system"], each["is_current"]) for each in items] == [
        ("Firefox", "Linux", True),
        ("Safari", "iPhone", False),
    ]
    assert all(each["last_seen_at"] >= each["created_at"] for each in items)
    assert all(each["expires_at"] > each["created_at"] for each in items)
    assert first_cookie not in str(items)


async def test_an_ended_session_and_its_tokens_are_refused_at_once_on_every_worker(store: Store, world: World) -> None:
    cookie, other_cookie = await sign_in(world), await sign_in(world, user_agent=SAFARI)
    token, other_token = await token_of(world, cookie), await token_of(world, other_cookie)
    narrow_token = await token_of(world, other_cookie, scope="read:library")
    (other,) = [each for each in await listed(world, token) if not each["is_current"]]
    other_worker = httpx.AsyncClient(transport=httpx.ASGITransport(distribution.create(store)), base_url=ROOT)
    headers = [{"Authorization": f"Bearer {each}"} for each in (other_token, narrow_token)]
    for header in headers:
        assert (await other_worker.get("/api/v1/library", headers=header)).status_code == 200

    ended = await world.call("DELETE", f"/me/sessions/{other['id']}", token)

    assert ended.status_code == 204
    for header in headers:
        assert (await other_worker.get("/api/v1/library", headers=header)).status_code == 401
        assert (await world.http.get("/api/v1/library", headers=header)).status_code == 401
    assert (await exchange(world, other_cookie)).status_code == 401
    assert [each["is_current"] for each in await listed(world, token)] == [True]
    assert (await world.call("DELETE", f"/me/sessions/{other['id']}", token)).status_code == 404
    await other_worker.aclose()


async def test_a_person_ends_the_session_of_the_request_too(world: World) -> None:
    token = await token_of(world, await sign_in(world))
    (current,) = await listed(world, token)

    assert (await world.call("DELETE", f"/me/sessions/{current['id']}", token)).status_code == 204
    assert (await world.call("GET", "/me/sessions", token)).status_code == 401


async def test_a_session_of_another_person_is_not_found(world: World) -> None:
    token, other_cookie = await token_of(world, await sign_in(world)), await sign_in(world, "bob@example.com")
    (other,) = await listed(world, await token_of(world, other_cookie))

    foreign = await world.call("DELETE", f"/me/sessions/{other['id']}", token)
    missing = await world.call("DELETE", f"/me/sessions/{'0' * 8}-0000-0000-0000-{'0' * 12}", token)
    malformed = await world.call("DELETE", "/me/sessions/none", token)

    for answer in (foreign, missing, malformed):
        assert (answer.status_code, answer.json()["code"]) == (404, missing.json()["code"])
        assert answer.json()["detail"] == "you have no session with this id"
    assert (await exchange(world, other_cookie)).status_code == 200


async def test_all_other_sessions_end_together(world: World) -> None:
    cookies = [await sign_in(world) for _ in range(3)]
    token, other_token = await token_of(world, cookies[0]), await token_of(world, cookies[1])
    other_person_cookie = await sign_in(world, "bob@example.com")
    assert (await world.call("GET", "/library", other_token)).status_code == 200

    answer = await world.call("DELETE", "/me/sessions", token)

    assert answer.status_code == 204
    assert (await world.call("GET", "/library", other_token)).status_code == 401
    assert [(await exchange(world, cookie)).status_code for cookie in cookies] == [200, 401, 401]
    assert (await exchange(world, other_person_cookie)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_only_a_whole_session_of_a_person_may_call_this(world: World, method: str) -> None:
    cookie = await sign_in(world)
    programs = {
        "limited token": await token_of(world, cookie, scope="read:library"),
        "token without a session": await world.person_token("ann@example.com", "read:library"),
        "client": await world.client_token("north"),
    }
    key = (await world.http.get("/api/keys")).json()["api_key"]

    answers = {name: await world.call(method, "/me/sessions", token) for name, token in programs.items()}
    with_key = await world.http.request(method, "/api/v1/me/sessions", headers={"X-API-Key": key})

    for name, answer in answers.items():
        assert (answer.status_code, answer.json()["code"]) == (403, "session_required"), name
        assert "/auth/signin" in answer.json()["resolution"], name
    assert (with_key.status_code, with_key.json()["code"]) == (403, "insufficient_scope")
    assert (await world.call(method, "/me/sessions")).status_code == 401
    assert (await exchange(world, cookie)).status_code == 200


async def test_the_last_use_is_written_once_an_hour_at_most(world: World) -> None:
    start = clock.now()
    with clock.fixed(start):
        cookie = await sign_in(world)
        token = await token_of(world, cookie)
    stored_values: list[int] = []

    for minutes in (1, 59, 61, 100):
        with clock.fixed(clock.later(start, seconds=60 * minutes)):
            await world.call("GET", "/library", token)
            await distribution.run_maintenance(world.store)
        row = await world.store.database.fetch_one(
            "SELECT seen_at FROM session WHERE token_hash = $1", secrets.digest(cookie)
        )
        assert row is not None
        stored_values.append((row[0] - start) // (60 * clock.SECOND))

    assert stored_values == [0, 0, 61, 61]


async def test_each_worker_records_the_uses_that_it_has_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "COLLECT_EVERY_S", 0.01)
    token = await token_of(world, await sign_in(world))
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE session SET seen_at = 0")
    await world.call("GET", "/library", token)

    async with distribution.periodic_use_recording(world.store), asyncio.timeout(10):
        while await world.store.database.fetch_one("SELECT 1 FROM session WHERE seen_at = 0") is not None:
            await asyncio.sleep(0.01)


async def test_workers_record_uses_of_the_same_sessions_at_the_same_time(world: World) -> None:
    person = await queries.person_with_email(world.store.database, "ann@example.com")
    assert person is not None
    now = clock.now()
    hashes = [secrets.digest(str(number)) for number in range(300)]
    rows = [(token_hash, person.id, now, clock.later(now, seconds=60), None, None) for token_hash in hashes]
    async with world.store.database.transaction() as transaction:
        await transaction.run_many(queries.INSERT_SESSION, rows)
        await transaction.run("UPDATE session SET seen_at = 0")
    other_worker = replace(world.store, uses=LastUses())
    for store, token_hashes in ((world.store, hashes), (other_worker, reversed(hashes))):
        for token_hash in token_hashes:
            store.uses.note(queries.SESSION_PREFIX + token_hash.hex())

    await asyncio.gather(*map(distribution.record_uses, (world.store, other_worker)))

    assert await world.store.database.fetch("SELECT 1 FROM session WHERE seen_at = 0") == []


async def test_a_session_of_an_earlier_version_has_no_device(world: World) -> None:
    token = await token_of(world, await sign_in(world))
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE session SET browser = NULL, system = NULL, seen_at = NULL")
    world.store.uses.take()
    person = await queries.person_with_email(world.store.database, "ann@example.com")
    assert person is not None

    (item,) = await listed(world, token)

    assert (item["browser"], item["system"]) == (None, None)


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (FIREFOX, Device("Firefox", "Linux")),
        (SAFARI, Device("Safari", "iPhone")),
        (EDGE, Device("Edge", "Windows")),
        (CHROME, Device("Chrome", "Android")),
        ("curl/8.5.0", Device("curl", None)),
        ("<script>alert(1)</script>", Device(None, None)),
        (None, Device(None, None)),
    ],
)
def test_a_user_agent_becomes_two_names(user_agent: str | None, device: Device) -> None:
    assert device_of(user_agent) == device
