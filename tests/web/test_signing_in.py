"""Sign-in and sign-out of the work app: allowed callers and the answers."""

import pytest

from tests.web.conftest import HERE, OPEN, EchoService, browsing, work_entry

OURS = {"Sec-Fetch-Site": "same-origin"}
ALICE = {"username": "alice", "password": "right"}


async def test_a_wrong_password_is_reported_with_the_message_of_the_api(echo: EchoService) -> None:
    async with browsing(echo, work_entry(HERE)) as http:
        answer = await http.post("/signin", json={**ALICE, "password": "wrong"}, headers=OURS)

    assert answer.status_code == 401
    assert answer.json() == {"error": "wrong"}
    assert answer.headers["retry-after"] == "7"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}])
@pytest.mark.parametrize("path", ["/signin", "/signout"])
async def test_another_site_signs_no_user_in_or_out(echo: EchoService, path: str, headers: dict[str, str]) -> None:
    cookie = {"Cookie": "countersign-work=cst_" + "b" * 40}
    async with browsing(echo, work_entry(HERE)) as http:
        answer = await http.post(path, json=ALICE, headers={**headers, **cookie})

    assert answer.status_code == 403
    assert not echo.asked
    assert "set-cookie" not in answer.headers


async def test_over_http_from_other_machines_no_user_signs_in(echo: EchoService) -> None:
    async with browsing(echo, work_entry(OPEN), OPEN) as http:
        answer = await http.post("/signin", json=ALICE, headers=OURS)

    assert answer.status_code == 403
    assert "COUNTERSIGN_RECORDS_URL" in answer.json()["error"]
    assert not echo.asked


async def test_signing_out_ends_the_session_and_its_cookie(echo: EchoService) -> None:
    cookie = {"Cookie": "countersign-work=cst_" + "b" * 40}
    async with browsing(echo, work_entry(HERE)) as http:
        answer = await http.post("/signout", headers={**OURS, **cookie})
        second_response = await http.post("/signout", headers=OURS)

    assert answer.status_code == second_response.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert echo.asked == ["POST /api/session/revoke"]


async def test_signing_in_again_ends_the_session_before_it(echo: EchoService) -> None:
    cookie = {"Cookie": "countersign-work=cst_" + "b" * 40}
    async with browsing(echo, work_entry(HERE)) as http:
        wrong_answer = await http.post("/signin", json={**ALICE, "password": "wrong"}, headers={**OURS, **cookie})
        assert "POST /api/session/revoke" not in echo.asked
        right = await http.post("/signin", json=ALICE, headers={**OURS, **cookie})

    assert (wrong_answer.status_code, right.status_code) == (401, 204)
    assert echo.asked[-2:] == ["POST /api/auth/login", "POST /api/session/revoke"]
    assert "Max-Age=0" not in right.headers["set-cookie"]


async def test_a_body_without_end_is_refused(echo: EchoService) -> None:
    async with browsing(echo, work_entry(HERE)) as http:
        answer = await http.post("/signin", content=b"x" * 20_000, headers=OURS)

    assert (answer.status_code, answer.json()) == (413, {"error": "the body may have 16384 bytes at most"})
    assert answer.headers["cache-control"] == "no-store"
    assert not echo.asked
