"""The one-time set-up link for the first administrator of an installation without demonstration data."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from countersign.kernel import clock
from countersign.records import app
from countersign.records.access import invitations
from tests.records.office import ROOT_URL, Office, settings

GIVEN = {"username": "ada", "password": "a long password"}


@pytest.fixture
async def empty(database_url: str, tmp_path: Path) -> AsyncIterator[Office]:
    """A service without accounts."""
    async with app.open_records(settings(str(tmp_path / "data"), database_url), ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield Office(client, {}, service)


async def _link(office: Office) -> str:
    link = await invitations.new_first_link(office.service.records)
    assert link is not None
    return link


async def test_the_link_makes_the_first_administrator_once(empty: Office) -> None:
    link = await _link(empty)
    page = await empty.http.get(link)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert 'name="username"' in page.text
    form = {**GIVEN, "token": link.partition("token=")[2]}

    assert (await empty.http.post("/setup", data=form)).status_code == 200

    signed_in = await empty.http.post("/api/auth/login", json=GIVEN)
    empty.tokens["ada"] = signed_in.json()["token"]
    assert await empty.value("ada", "role.list")
    assert (await empty.value("ada", "user.create", username="bea"))["username"] == "bea"
    assert (await empty.http.post("/setup", data={**form, "username": "eve"})).status_code == 404
    assert (await empty.http.get(link)).status_code == 404
    assert await invitations.new_first_link(empty.service.records) is None
    assert [audit_entry["command"] for audit_entry in await empty.all("audit_entry", "ada")].count("user.create") == 2


async def test_a_person_with_a_password_is_redirected_to_the_sign_in_page_if_the_page_exists(empty: Office) -> None:
    form = {**GIVEN, "token": (await _link(empty)).partition("token=")[2]}
    transport = httpx.ASGITransport(app.create(empty.service, sign_in="/signin"))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        ready_page = (await client.post("/setup", data=form)).text
        used_link = await client.get("/setup", params={"token": form["token"]})
        reused = await client.post("/setup", data=form)
    assert "Sign in as ada." in ready_page
    assert '<a href="/signin">Sign in</a>' in ready_page
    assert "POST" not in ready_page
    assert used_link.status_code == reused.status_code == 404
    for page in (used_link.text, reused.text):
        assert "If you have set your password with it, sign in." in page
        assert '<a href="/signin">Sign in</a>' in page

    ada = await empty.first_record("user", await _is_signed_in(empty), username="ada")
    second_link_token = (await empty.value("ada", "user.invite", id=ada["id"]))["link"].partition("token=")[2]
    apiless_page = (
        await empty.http.post("/setup", data={"token": second_link_token, "password": "another password"})
    ).text
    assert (f"POST {ROOT_URL}/api/auth/login" in apiless_page, "<a " in apiless_page) == (True, False)


async def test_a_form_of_megabytes_is_refused_before_it_is_decoded(empty: Office) -> None:
    link = await _link(empty)
    form = {**GIVEN, "token": link.partition("token=")[2]}

    answer = await empty.http.post("/setup", data={**form, "password": "ä" * 20_000})

    assert (answer.status_code, answer.json()) == (413, {"error": "the body may have 65536 bytes at most"})
    assert (await empty.http.post("/setup", data={**form, "password": "ä" * 200})).status_code != 413


async def _is_signed_in(office: Office) -> str:
    answer = await office.http.post("/api/auth/login", json=GIVEN)
    office.tokens["ada"] = answer.json()["token"]
    return "ada"


@pytest.mark.parametrize("change", [{"password": "short"}, {"username": ""}, {"username": "\t"}, {"password": ""}])
async def test_a_refused_form_is_shown_again_and_the_invitation_link_stays_valid(
    empty: Office, change: dict[str, str]
) -> None:
    token = (await _link(empty)).partition("token=")[2]

    refused_response = await empty.http.post("/setup", data={**GIVEN, "token": token, **change})

    assert refused_response.status_code == 400
    assert 'role="alert"' in refused_response.text
    assert (await empty.http.post("/setup", data={**GIVEN, "token": token})).status_code == 200


async def test_a_link_is_valid_for_a_day_or_until_a_newer_link_is_created(empty: Office) -> None:
    old, new = await _link(empty), await _link(empty)

    assert (await empty.http.get(old)).status_code == 404
    assert (await empty.http.get(new)).status_code == 200
    with clock.fixed(clock.later(clock.now(), seconds=86401)):
        assert (await empty.http.get(new)).status_code == 404


async def test_a_page_loads_nothing_and_cannot_be_framed(empty: Office) -> None:
    page = await empty.http.get(await _link(empty))

    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] in ("same-origin", "no-referrer")


async def test_an_invitation_ends_the_sessions_of_before(office: Office) -> None:
    bob = await office.first_record("user", username="bob")
    link = (await office.value("root", "user.invite", id=bob["id"]))["link"]
    assert (await office.call("bob", "lead.list", {"limit": 1})).status_code == 200

    response = await office.http.post(
        "/setup", data={"token": link.partition("token=")[2], "password": "another password"}
    )

    assert response.status_code == 200
    assert (await office.call("bob", "lead.list", {"limit": 1})).status_code == 401
    for password, status in (("countersign-demo", 401), ("another password", 200)):
        answer = await office.http.post("/api/auth/login", json={"username": "bob", "password": password})
        assert answer.status_code == status


async def test_a_new_password_leaves_the_agents_of_the_person_at_work(office: Office) -> None:
    agent = await office.agent("bob", "lead.list")
    bob = await office.first_record("user", username="bob")
    link = (await office.value("root", "user.invite", id=bob["id"]))["link"]
    form = {"token": link.partition("token=")[2], "password": "another password"}
    assert (await office.http.post("/setup", data=form)).status_code == 200

    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 200
    await office.value("root", "user.update", id=bob["id"], is_active=False)
    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 401
