"""Sign-in, lockout, and sessions with their end."""

import asyncio
import json

import httpx
import pytest

from countersign.kernel import clock
from countersign.records import app
from countersign.records.access import people, sessions
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office

PASSWORD = "countersign-demo"


async def _sign_in(http: httpx.AsyncClient, username: str, password: str) -> httpx.Response:
    return await http.post("/api/auth/login", json={"username": username, "password": password})


async def test_a_session_is_valid_for_twelve_hours(office: Office) -> None:
    token = (await _sign_in(office.http, "alice", PASSWORD)).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    start_time = clock.now()

    with clock.fixed(clock.later(start_time, seconds=12 * 3600 - 5)):
        assert (await office.http.get("/api/commands", headers=headers)).status_code == 200
    with clock.fixed(clock.later(start_time, seconds=12 * 3600 + 5)):
        assert (await office.http.get("/api/commands", headers=headers)).status_code == 401


@pytest.mark.parametrize("username", ["ALICE", "Alice", "aLiCe"])
async def test_a_person_signs_in_with_the_user_name_in_any_case(office: Office, username: str) -> None:
    answer = await _sign_in(office.http, username, PASSWORD)

    assert answer.status_code == 200
    headers = {"Authorization": f"Bearer {answer.json()['token']}"}
    assert (await office.http.get("/api/meta", headers=headers)).json()["caller"]["name"] == "alice"
    assert (await _sign_in(office.http, username, "wrong")).status_code == 401


async def test_unknown_user_and_wrong_password_are_indistinguishable_also_under_lockout(office: Office) -> None:
    for username in ("alice", "nobody"):
        answers = [await _sign_in(office.http, username, "wrong") for _ in range(7)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
        office.tokens[username] = "\n".join(answer.text for answer in answers)
    assert office.tokens["alice"] == office.tokens["nobody"]


async def test_of_a_user_name_of_megabytes_only_the_beginning_is_folded(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[int] = []
    name_of = sessions.lockout_key

    def noted(secret: bytes, username: str) -> bytes:
        folded.append(len(username))
        return name_of(secret, username)

    monkeypatch.setattr(sessions, "lockout_key", noted)
    answer = await _sign_in(office.http, "a\u0300\u0316" * 500_000, PASSWORD)

    assert answer.status_code == 401
    assert folded == [sessions.MAX_USERNAME]


async def test_the_lockout_ends_after_a_minute(office: Office) -> None:
    for _ in range(5):
        await _sign_in(office.http, "alice", "wrong")
    assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 429

    with clock.fixed(clock.later(clock.now(), seconds=61)):
        assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 200


async def test_five_failures_over_more_than_a_minute_lock_no_account(office: Office) -> None:
    now = clock.now()
    for number in range(8):
        with clock.fixed(clock.later(now, seconds=20 * number)):
            assert (await _sign_in(office.http, "alice", "wrong")).status_code == 401


@pytest.mark.parametrize("back_s", [7200, 3 * 86_400])
async def test_a_clock_set_back_does_not_extend_a_lock(office: Office, back_s: int) -> None:
    for _ in range(5):
        await _sign_in(office.http, "alice", "wrong")
    assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 429

    with clock.fixed(clock.later(clock.now(), seconds=-back_s)):
        assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 200


@pytest.mark.parametrize("failure_count", [1, 4])
async def test_failures_before_the_clock_went_back_do_not_hide_later_failures(
    office: Office, failure_count: int
) -> None:
    for _ in range(failure_count):
        await _sign_in(office.http, "alice", "wrong")

    with clock.fixed(clock.later(clock.now(), seconds=-7200)):
        answers = [await _sign_in(office.http, "alice", "wrong") for _ in range(7)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2


async def test_failures_of_a_time_that_never_came_are_forgotten(office: Office) -> None:
    for _ in range(5):
        await _sign_in(office.http, "alice", "wrong")

    with clock.fixed(clock.later(clock.now(), seconds=-7200)):
        await app.run_periodic_tasks(office.service)
    assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 200


async def test_the_lockout_is_counted_across_workers_and_survives_a_restart(
    office: Office, office_settings: OfficeSettings
) -> None:
    for username in ("alice", "ALICE", "Alice"):
        await _sign_in(office.http, username, "wrong")
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as second_node:
        transport = httpx.ASGITransport(app.create(second_node))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            assert (await _sign_in(http, "alice", "wrong")).status_code == 401
            assert (await _sign_in(office.http, "alice", "wrong")).status_code == 401
            assert (await _sign_in(http, "alice", PASSWORD)).status_code == 429
    assert (await _sign_in(office.http, "alice", PASSWORD)).status_code == 429


async def test_of_many_wrong_attempts_at_once_five_at_most_get_that_answer(office: Office) -> None:
    answers = await asyncio.gather(*(_sign_in(office.http, "carol", f"guess {number}") for number in range(20)))

    assert sorted(answer.status_code for answer in answers) == [401] * 5 + [429] * 15


async def test_signing_out_ends_only_the_own_session(office: Office) -> None:
    token = (await _sign_in(office.http, "alice", PASSWORD)).json()["token"]
    office.tokens["alice elsewhere"] = token

    await office.value("alice elsewhere", "session.revoke")

    assert (await office.call("alice elsewhere", "lead.list", {"limit": 1})).status_code == 401
    assert (await office.call("alice", "lead.list", {"limit": 1})).status_code == 200


@pytest.mark.parametrize("office_settings", ["sqlite"], indirect=True)
async def test_a_person_is_found_by_an_index_in_any_case(office: Office) -> None:
    """Anyone may try to sign in, so an attempt must not read all people."""
    database = office.service.records.database
    steps = await database.scan(f"EXPLAIN QUERY PLAN {people.BY_USERNAME}", "alice", "Alice")

    assert any("SEARCH person USING INDEX" in str(step[-1]) for step in steps), steps


async def test_a_person_ends_only_their_own_other_sessions(office: Office) -> None:
    sessions = await office.all("session", "root")
    own_sessions = await office.all("session", "alice")
    assert len(own_sessions) == 1
    other_session = next(session["id"] for session in sessions if session["id"] != own_sessions[0]["id"])

    assert await office.refusal_of("alice", "session.revoke", id=other_session) == "no such record"
    await office.value("root", "session.revoke", id=own_sessions[0]["id"])
    assert (await office.call("alice", "lead.list", {"limit": 1})).status_code == 401


async def test_switching_a_person_off_ends_sessions_and_agents_for_good_on_every_worker(
    office: Office, office_settings: OfficeSettings
) -> None:
    agent = await office.agent("bob")
    bob = (await office.first_record("user", username="bob"))["id"]
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as second_node:
        transport = httpx.ASGITransport(app.create(second_node))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            second_office = Office(http, office.tokens, second_node)
            for who in ("bob", agent):
                assert (await second_office.call(who, "lead.list", {"limit": 1})).status_code == 200
            await office.value("root", "user.update", id=bob, is_active=False)
            for who in ("bob", agent):
                assert (await second_office.call(who, "lead.list", {"limit": 1})).status_code == 401
    assert (await _sign_in(office.http, "bob", PASSWORD)).status_code == 401

    await office.value("root", "user.update", id=bob, is_active=True)

    for who in ("bob", agent):
        assert (await office.call(who, "lead.list", {"limit": 1})).status_code == 401
    assert (await _sign_in(office.http, "bob", PASSWORD)).status_code == 200


async def test_tokens_are_stored_only_as_hashes(office: Office) -> None:
    await office.agent("alice")
    rows = await office.service.records.database.fetch("SELECT digest FROM credential")

    assert rows
    stored_hashes = {bytes(row[0]) for row in rows}
    assert not any(token.encode() in row for row in stored_hashes for token in office.tokens.values())


@pytest.mark.parametrize("username", ["\0", "\ud800", "x" * 5000, "ALICE", " alice"])
async def test_a_strange_user_name_gets_400_or_401(office: Office, username: str) -> None:
    answer = await office.http.post(
        "/api/auth/login",
        content=b'{"username":%s,"password":"x"}' % json.dumps(username).encode(),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code in (400, 401)
