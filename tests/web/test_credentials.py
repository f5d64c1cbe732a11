"""Only our own pages can act for a signed-in person: each test is an attempt from elsewhere."""

import pytest

from countersign.web.origin import PublicAddress
from tests.web.conftest import BEARER, HERE, PUBLIC, SESSION, EchoService, browsing, store_entry, work_entry

OURS = {"Sec-Fetch-Site": "same-origin"}


def with_session(**headers: str) -> dict[str, str]:
    request_headers = {name.replace("_", "-"): header for name, header in headers.items()}
    return {"Cookie": f"other=1; countersign={SESSION}", **request_headers}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "same-origin"},
        {"Origin": "http://127.0.0.1:8480"},
        {"Origin": "http://localhost:8480"},
        {"Sec_Fetch_Site": "same-origin", "Origin": "http://127.0.0.1:8480"},
    ],
)
async def test_a_page_of_ours_acts_for_the_signed_in(echo: EchoService, method: str, headers: dict[str, str]) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.request(method, "/api/v1/library", headers=with_session(**headers))

    assert answer.json()["headers"]["authorization"] == f"Bearer {BEARER}"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": ""},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://127.0.0.1:8480"},
        {"Sec_Fetch_Site": "same-origin", "Origin": "http://evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:8080"},
        {"Origin": "https://127.0.0.1:8480"},
        {"Origin": "http://127.0.0.1:8480.evil.example"},
        {"Origin": "http://127.0.0.1:99999"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Referer": "http://127.0.0.1:8480/"},
    ],
)
async def test_a_request_from_elsewhere_continues_without_credentials(
    echo: EchoService, method: str, headers: dict[str, str]
) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.request(method, "/api/v1/library", headers=with_session(**headers))

    assert "authorization" not in answer.json()["headers"]
    assert echo.asked == [f"{method} /api/v1/library"], "the session was not even looked at"


async def test_localhost_is_another_origin_for_a_service_that_other_machines_reach(echo: EchoService) -> None:
    home = PublicAddress("http://127.0.0.1:8480", is_loopback=False)
    async with browsing(echo, store_entry(home), home) as http:
        answer = await http.get("/api/v1/library", headers=with_session(Origin="http://localhost:8480"))

    assert "authorization" not in answer.json()["headers"]


async def test_names_of_this_machine_are_not_origins_of_a_public_service(echo: EchoService) -> None:
    headers = {"Cookie": f"__Host-countersign={SESSION}", "Origin": "https://localhost"}
    async with browsing(echo, store_entry(PUBLIC), PUBLIC) as http:
        answer = await http.get("/api/v1/library", headers=headers)
        own_response = await http.get("/api/v1/library", headers={**headers, "Origin": "https://store.example"})

    assert "authorization" not in answer.json()["headers"]
    assert own_response.json()["headers"]["authorization"] == f"Bearer {BEARER}"


async def test_sent_credentials_are_not_replaced(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get("/api/v1/library", headers={**with_session(**OURS), "Authorization": "Bearer mine"})

    assert answer.json()["headers"]["authorization"] == "Bearer mine"


async def test_a_key_that_was_sent_is_not_joined_by_a_bearer(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get("/api/v1/products", headers={**with_session(**OURS), "X-API-Key": "csk_mine"})

    assert "authorization" not in answer.json()["headers"]
    assert answer.json()["headers"]["x-api-key"] == "csk_mine"


@pytest.mark.parametrize("path", [f"/api/v1/auth/{name}" for name in ("token", "login", "register", "me")])
async def test_a_repeated_sign_in_starts_without_credentials(echo: EchoService, path: str) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.post(path, headers=with_session(Sec_Fetch_Site="same-origin"))

    assert "authorization" not in answer.json()["headers"]


async def test_a_bearer_is_kept_until_the_session_changes(echo: EchoService) -> None:
    headers = with_session(Sec_Fetch_Site="same-origin")
    async with browsing(echo, store_entry(HERE)) as http:
        for _ in range(3):
            await http.get("/api/v1/library", headers=headers)
        assert echo.asked.count("POST /auth/session/token") == 1

        await http.post("/auth/signout", headers=headers)
        await http.get("/api/v1/library", headers=headers)

    assert echo.asked.count("POST /auth/session/token") == 2


async def test_a_bearer_that_is_about_to_end_is_not_used_again(echo: EchoService) -> None:
    echo.exchange = (200, {"access_token": BEARER, "expires_in": 59})
    async with browsing(echo, store_entry(HERE)) as http:
        for _ in range(2):
            await http.get("/api/v1/library", headers=with_session(Sec_Fetch_Site="same-origin"))

    assert echo.asked.count("POST /auth/session/token") == 2


async def test_a_refused_bearer_is_requested_again(echo: EchoService) -> None:
    echo.api_status = 401
    async with browsing(echo, store_entry(HERE)) as http:
        for _ in range(2):
            await http.get("/api/v1/library", headers=with_session(Sec_Fetch_Site="same-origin"))

    assert echo.asked.count("POST /auth/session/token") == 2


async def test_an_ended_session_reads_public_data_and_is_checked_once(echo: EchoService) -> None:
    echo.exchange = (401, {})
    async with browsing(echo, store_entry(HERE)) as http:
        for _ in range(2):
            answer = await http.get("/api/v1/library", headers=with_session(Sec_Fetch_Site="same-origin"))
            assert "authorization" not in answer.json()["headers"]

    assert echo.asked.count("POST /auth/session/token") == 1


async def test_an_exchange_that_failed_for_a_while_is_tried_again(echo: EchoService) -> None:
    echo.exchange = (503, {})
    async with browsing(echo, store_entry(HERE)) as http:
        for _ in range(2):
            await http.get("/api/v1/library", headers=with_session(Sec_Fetch_Site="same-origin"))

    assert echo.asked.count("POST /auth/session/token") == 2


@pytest.mark.parametrize("value", ["short", "a" * 20 + '"', "a" * 20 + ",x", "ä" * 20])
async def test_a_cookie_that_is_not_a_session_is_not_forwarded(echo: EchoService, value: str) -> None:
    cookie = {"Cookie": f"countersign={value}".encode(), "Sec-Fetch-Site": b"same-origin"}
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get("/api/v1/library", headers=[(name.encode(), value) for name, value in cookie.items()])

    assert "authorization" not in answer.json()["headers"]
    assert echo.asked == ["GET /api/v1/library"]


async def test_only_own_pages_learn_whether_a_person_is_signed_in(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        own_response = await http.get("/session", headers=with_session(Sec_Fetch_Site="same-origin"))
        foreign_response = await http.get("/session", headers=with_session(Sec_Fetch_Site="cross-site"))

    assert set(own_response.json()) == {"signed_in", "mark"}
    assert (own_response.json()["signed_in"], foreign_response.json()["signed_in"]) == (True, False)
    assert own_response.headers["cache-control"] == "no-store"
    assert BEARER not in own_response.text


@pytest.mark.parametrize("home", [HERE, PUBLIC])
async def test_the_session_of_the_work_app_is_a_cookie_no_script_reads(echo: EchoService, home: PublicAddress) -> None:
    sign_in_body = {"username": "alice", "password": "right"}
    async with browsing(echo, work_entry(home), home) as http:
        answer = await http.post("/signin", json=sign_in_body, headers=OURS)
        cookie = answer.headers["set-cookie"]
        name, _, value = cookie.partition(";")[0].partition("=")
        meta_answer = await http.get("/api/meta", headers={"Cookie": f"{name}={value}", **OURS})
        foreign_response = await http.get(
            "/api/meta", headers={"Cookie": f"{name}={value}", "Sec-Fetch-Site": "same-site"}
        )

    assert answer.status_code == 204
    assert not answer.content
    assert name == ("__Host-countersign-work" if home.is_secure else "countersign-work")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert ("Secure" in cookie.split("; ")) == home.is_secure
    assert meta_answer.json()["headers"]["authorization"] == f"Bearer {value}"
    assert "authorization" not in foreign_response.json()["headers"]


async def test_a_request_from_another_persons_page_is_anonymous(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        body = (await http.get("/session", headers=with_session(**OURS))).json()
        anonymous_session = (await http.get("/session", headers=OURS)).json()
        marks = {"own": body["mark"], "another's": "0" * 32, "nobody's": anonymous_session["mark"], "none": ""}
        answers = {
            name: await http.get("/api/v1/library", headers=with_session(**OURS, X_Session_Mark=mark))
            for name, mark in marks.items()
        }

    assert SESSION not in body["mark"]
    assert body["mark"] != anonymous_session["mark"]
    acted = {name: "authorization" in answer.json()["headers"] for name, answer in answers.items()}
    assert acted == {"own": True, "another's": False, "nobody's": False, "none": True}
