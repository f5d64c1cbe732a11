"""Only someone who reads the e-mails of an address can open an account with it, and open it again after the password is
lost."""

from dataclasses import replace

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.mail import queue
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import accounts as email_verification
from tests.store.auth.accounts.conftest import OWN_PAGE, PASSWORD, AccountVisitor

ANN = "ann@example.com"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def test_a_person_is_made_by_choosing_a_password_behind_the_link_and_not_before(visitor: AccountVisitor) -> None:
    signup_answer = await visitor.ask("signup", " Ann@Example.com ", "/library")

    assert signup_answer.status_code == 200
    assert await visitor.find_person(ANN) is None
    (letter,) = visitor.letters()
    assert letter["To"] == ANN
    answer = await visitor.choose(visitor.token())
    assert (answer.status_code, answer.headers["location"]) == (303, "/library")
    assert await visitor.is_signed_in()
    assert await visitor.find_person(ANN) is not None
    assert (await visitor.sign_in(ANN)).status_code == 303


async def test_a_lost_password_is_replaced_and_every_old_session_ends(visitor: AccountVisitor) -> None:
    await visitor.open_account(ANN, "the first password")
    old = visitor.http.cookies["countersign"]
    visitor.http.cookies.clear()
    bearer = await visitor.http.post(
        "/auth/session/token", json={}, headers={**OWN_PAGE, "Cookie": f"countersign={old}"}
    )
    headers = {"Authorization": f"Bearer {bearer.json()['access_token']}"}
    assert (await visitor.http.get("/api/v1/auth/me", headers=headers)).status_code == 200

    await visitor.ask("reset", ANN, "/library?x=1")
    answer = await visitor.choose(visitor.token(), "the second password")

    assert (answer.status_code, answer.headers["location"]) == (303, "/library?x=1")
    assert await visitor.is_signed_in()
    assert not await visitor.is_signed_in(old)
    assert (await visitor.http.get("/api/v1/auth/me", headers=headers)).status_code == 401
    assert (await visitor.sign_in(ANN, "the first password")).status_code == 401
    assert (await visitor.sign_in(ANN, "the second password")).status_code == 303


async def test_an_invited_person_opens_the_account_and_keeps_the_role(visitor: AccountVisitor) -> None:
    person_id = await visitor.person(ANN)

    await visitor.open_account(ANN)

    person = await visitor.find_person(ANN)
    assert person is not None
    assert person.id == person_id
    assert person.password_hash is not None


async def test_a_person_with_an_account_is_informed_by_email_and_gets_no_link(visitor: AccountVisitor) -> None:
    await visitor.person(ANN, PASSWORD)

    await visitor.ask("signup", ANN, "/library")

    (letter,) = visitor.letters()
    assert "/auth/prove" not in letter.get_content()
    assert "http://127.0.0.1:8480/auth/signin?return_to=/library" in letter.get_content()


async def test_a_reset_for_an_unknown_address_sends_nothing(visitor: AccountVisitor) -> None:
    assert (await visitor.ask("reset", ANN)).status_code == 200

    assert visitor.letters() == []


async def test_a_link_works_once_and_ends_the_other_links_of_its_address(visitor: AccountVisitor) -> None:
    await visitor.ask("signup", ANN)
    first_token = visitor.token()
    await visitor.ask("signup", ANN)
    second_token = visitor.token()
    await visitor.ask("signup", "eve@example.com")
    third_token = visitor.token()

    assert (await visitor.choose(second_token)).status_code == 303
    for spent in (first_token, second_token):
        assert (await visitor.choose(spent, "another password")).status_code == 404
        page = await visitor.http.get("/auth/prove", params={"token": spent})
        assert (page.status_code, "This link does not work" in page.text) == (404, True)
    assert (await visitor.choose(third_token)).status_code == 303


async def test_a_link_ends_after_its_time_and_is_forgotten(visitor: AccountVisitor) -> None:
    store = visitor.store
    await visitor.ask("signup", ANN)
    token = visitor.token()

    with clock.fixed(clock.later(clock.now(), seconds=store.settings.mail_link_ttl_s + 1)):
        assert (await visitor.choose(token)).status_code == 404
        assert (await visitor.http.get("/auth/prove", params={"token": token})).status_code == 404
        async with store.database.transaction() as transaction:
            assert await email_verification.forget_old_links(transaction) == 1
    assert await visitor.find_person(ANN) is None


async def test_only_the_hash_of_a_link_is_kept(visitor: AccountVisitor) -> None:
    await visitor.ask("signup", ANN)
    token = visitor.token()

    ((token_hash,),) = await visitor.store.database.fetch("SELECT token_hash FROM email_proof")

    assert len(token_hash) == 32
    assert token.encode() not in bytes(token_hash)


async def test_a_weak_password_keeps_the_link_valid(visitor: AccountVisitor) -> None:
    await visitor.ask("signup", ANN)
    token = visitor.token()

    answer = await visitor.choose(token, "short")

    assert answer.status_code == 400
    assert "at least 10" in answer.text
    assert token in answer.text
    assert (await visitor.choose(token)).status_code == 303


@pytest.mark.parametrize("page", ["signup", "reset"])
@pytest.mark.parametrize("email", ["", "ann", "ann@", "a b@example.com", "ann@example.com, eve@example.com"])
async def test_an_invalid_address_is_reported_on_the_page(visitor: AccountVisitor, page: str, email: str) -> None:
    answer = await visitor.ask(page, email, "/library")

    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert 'value="/library"' in answer.text
    assert visitor.letters() == []


@pytest.mark.parametrize("page", ["signup", "reset"])
async def test_an_address_gets_five_emails_an_hour(visitor: AccountVisitor, page: str) -> None:
    await visitor.person(ANN, PASSWORD)
    other_page = "reset" if page == "signup" else "signup"
    for number in range(email_verification.MAX_EMAILS_TO_ADDRESS):
        assert (await visitor.ask(page if number % 2 else other_page, "Ann@example.com")).status_code == 200

    answer = await visitor.ask(page, ANN)

    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    assert answer.headers["content-type"].startswith("text/html")
    assert len(visitor.letters()) == email_verification.MAX_EMAILS_TO_ADDRESS
    assert (await visitor.ask(page, "eve@example.com")).status_code == 200


async def test_a_client_can_request_twenty_emails_an_hour(visitor: AccountVisitor) -> None:
    for number in range(email_verification.MAX_EMAILS_FOR_CLIENT):
        answer = await visitor.ask("signup" if number % 2 else "reset", f"somebody{number}@example.com")
        assert answer.status_code == 200

    assert (await visitor.ask("signup", ANN)).status_code == 429
    assert (await visitor.ask("reset", ANN)).status_code == 429


@pytest.mark.parametrize("path", ["/auth/signup", "/auth/reset", "/auth/prove"])
async def test_a_page_of_another_site_cannot_send_the_forms(visitor: AccountVisitor, path: str) -> None:
    await visitor.ask("signup", ANN)
    form = {"token": visitor.token(), "password": PASSWORD} if path == "/auth/prove" else {"email": ANN}

    for headers in ({"Origin": "https://evil.example"}, {}, {"Origin": "null"}):
        assert (await visitor.http.post(path, data=form, headers=headers)).status_code == 403

    await visitor.store.mail.drain()
    assert len(visitor.letters()) == 1
    assert await visitor.find_person(ANN) is None


@pytest.mark.parametrize("path", ["/auth/signin", "/auth/signup", "/auth/reset", "/auth/prove?token=none"])
async def test_the_pages_cannot_be_cached_or_framed_and_run_no_script(visitor: AccountVisitor, path: str) -> None:
    page = await visitor.http.get(path)

    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["x-frame-options"] == "DENY"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "<script" not in page.text


async def test_without_https_the_pages_are_served_only_on_this_machine(settings: Settings) -> None:
    async with distribution.open_store(settings, "http://store.example", is_loopback=False) as store:
        transport = httpx.ASGITransport(distribution.create(store))
        async with httpx.AsyncClient(transport=transport, base_url="http://store.example") as http:
            for path in ("/auth/signup", "/auth/reset", "/auth/prove"):
                assert (await http.get(path)).status_code == 403
                assert (await http.post(path, data={}, headers=FORM)).status_code == 403


async def test_a_mail_server_that_is_away_does_not_show_in_the_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAUSES_S", (0.0,))
    unreachable_mail = replace(settings, smtp_url="smtp://127.0.0.1:1")
    async with distribution.open_store(unreachable_mail, "http://127.0.0.1:8480", is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8480") as http:
            answer = await http.post("/auth/signup", data={"email": ANN}, headers=OWN_PAGE)

    assert answer.status_code == 200
    assert "countersign mail" not in answer.text


async def test_passwords_are_typed_hidden_and_may_be_filled_in(visitor: AccountVisitor) -> None:
    sign_in = await visitor.http.get("/auth/signin")
    choose = await visitor.http.get("/auth/prove", params={"token": await visitor.link(ANN)})

    for page, kind in ((sign_in, "current-password"), (choose, "new-password")):
        assert f'name="password" type="password" autocomplete="{kind}"' in page.text
        assert "onpaste" not in page.text


async def test_a_password_that_was_set_long_ago_still_signs_in(visitor: AccountVisitor) -> None:
    await visitor.open_account(ANN)

    with clock.fixed(clock.later(clock.now(), seconds=10 * 365 * 86400)):
        assert (await visitor.sign_in(ANN)).status_code == 303
