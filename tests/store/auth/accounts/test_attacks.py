"""Attacks on sign-up, password reset and the link in the e-mail, with their numbers in the list of the protocol."""

import asyncio

import pytest

from countersign.kernel.database.port import Transaction
from countersign.kernel.mail import queue
from countersign.kernel.security import passwords
from countersign.store.auth import accounts as email_verification
from countersign.store.auth import sign_in_pages
from countersign.store.auth.accounts import EmailLinkSpent, OpenedSession
from tests.figures import Figures
from tests.store.auth.accounts.conftest import OWN_PAGE, PASSWORD, AccountVisitor

HASHES = ("one hash", "another hash")
ANN, EVE = "ann@example.com", "eve@example.com"
ELSEWHERE = [
    "//evil.example",
    "/\\evil.example",
    "\\/evil.example",
    "https:evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "evil.example",
    "/\t/evil.example",
    "/ /evil.example",
    "/a\r\nLocation: https://evil.example",
    "/\u2028x",
    "//[x",
    "///evil.example",
    "",
]


class AddressProof:
    """A proof of an address that records for whom it was called, and can fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.people: list[str] = []
        self._fails = fails

    async def __call__(self, transaction: Transaction, person_id: str) -> None:
        assert await transaction.fetch_one("SELECT id FROM person WHERE id = $1", person_id) is not None
        self.people.append(person_id)
        if self._fails:
            raise LookupError("what is bound cannot be ended")


async def test_t28_looking_at_a_link_changes_nothing(visitor: AccountVisitor) -> None:
    await visitor.ask("signup", ANN)
    token = visitor.token()
    proofs_before = await visitor.store.database.fetch("SELECT token_hash, used_at FROM email_proof")

    for _ in range(3):
        page = await visitor.http.get("/auth/prove", params={"token": token})
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
        assert (await visitor.http.head("/auth/prove", params={"token": token})).status_code == 200

    assert await visitor.store.database.fetch("SELECT token_hash, used_at FROM email_proof") == proofs_before
    assert await visitor.find_person(ANN) is None
    assert (await visitor.choose(token)).status_code == 303


async def test_t29_the_session_after_a_proof_is_new(visitor: AccountVisitor) -> None:
    await visitor.open_account(EVE)
    planted_cookie = visitor.http.cookies["countersign"]
    await visitor.ask("signup", ANN)

    answer = await visitor.choose(visitor.token())

    new_cookie = visitor.http.cookies["countersign"]
    assert answer.headers["set-cookie"].startswith(f"countersign={new_cookie};")
    assert new_cookie != planted_cookie
    assert await visitor.is_signed_in(new_cookie)
    assert not await visitor.is_signed_in(planted_cookie), "whoever planted it reads along otherwise"


@pytest.mark.parametrize("count", [20])
async def test_t30_only_one_of_many_uses_of_one_link_succeeds(visitor: AccountVisitor, count: int) -> None:
    await visitor.ask("signup", ANN)
    token = visitor.token()
    hashes = [f"hash {number}" for number in range(count)]
    bound = AddressProof()

    results = await asyncio.gather(
        *(email_verification.redeem_link(visitor.store, token, hash_, bound) for hash_ in hashes),
        return_exceptions=True,
    )

    won = [number for number, result in enumerate(results) if isinstance(result, OpenedSession)]
    assert len(won) == 1
    assert sum(isinstance(result, EmailLinkSpent) for result in results) == count - 1
    person = await visitor.find_person(ANN)
    assert person is not None
    assert person.password_hash == hashes[won[0]]
    assert bound.people == [person.id]
    assert len(await visitor.store.database.fetch("SELECT person_id FROM session")) == 1


async def test_t30_only_one_of_several_links_of_one_address_used_at_once_succeeds(visitor: AccountVisitor) -> None:
    tokens: list[str] = []
    for _ in range(5):
        await visitor.ask("signup", ANN)
        tokens.append(visitor.token())

    results = await asyncio.gather(
        *(email_verification.redeem_link(visitor.store, token, "hash", AddressProof()) for token in tokens * 3),
        return_exceptions=True,
    )

    assert sum(isinstance(result, OpenedSession) for result in results) == 1
    assert sum(isinstance(result, EmailLinkSpent) for result in results) == 14


async def test_t30_exactly_one_of_two_uses_of_one_link_succeeds_every_time(
    visitor: AccountVisitor, is_full: bool, figures: Figures
) -> None:
    races = 1000 if is_full else 200
    for number in range(races):
        email = f"race-{number}@example.com"
        token = await visitor.link(email)

        results = await asyncio.gather(
            *(email_verification.redeem_link(visitor.store, token, hash_, AddressProof()) for hash_ in HASHES),
            return_exceptions=True,
        )

        won = [item for item, outcome in zip(HASHES, results, strict=True) if isinstance(outcome, OpenedSession)]
        assert len(won) == 1, results
        assert sum(isinstance(result, EmailLinkSpent) for result in results) == 1
        person = await visitor.find_person(email)
        assert person is not None
        assert person.password_hash == won[0]
    assert len(await visitor.store.database.fetch("SELECT person_id FROM session")) == races
    figures.update(races=races, uses_each=2, winners_each=1)


async def test_t34_only_the_first_proof_removes_earlier_bindings(visitor: AccountVisitor) -> None:
    person_id = await visitor.person(ANN)
    hashed, bound = await passwords.hash_password(PASSWORD), AddressProof()
    for page in ("signup", "reset"):
        await visitor.ask(page, ANN)
        await email_verification.redeem_link(visitor.store, visitor.token(), hashed, bound)

    assert bound.people == [person_id]


async def test_t34_a_person_the_operator_vouched_for_loses_nothing(visitor: AccountVisitor) -> None:
    await visitor.person(ANN, PASSWORD)
    bound = AddressProof()

    await visitor.ask("reset", ANN)
    await email_verification.redeem_link(visitor.store, visitor.token(), "hash", bound)

    assert bound.people == []


async def test_t34_a_proof_fails_if_earlier_bindings_cannot_be_removed(visitor: AccountVisitor) -> None:
    await visitor.person(ANN)
    await visitor.ask("signup", ANN)
    token = visitor.token()

    with pytest.raises(LookupError):
        await email_verification.redeem_link(visitor.store, token, "hash", AddressProof(fails=True))

    person = await visitor.find_person(ANN)
    assert person is not None
    assert person.password_hash is None
    assert await visitor.store.database.fetch("SELECT person_id FROM session") == []
    assert (await visitor.choose(token)).status_code == 303


async def test_t34_signing_up_with_a_foreign_address_leaves_nothing_behind(visitor: AccountVisitor) -> None:
    await visitor.ask("signup", ANN)

    assert (await visitor.sign_in(ANN)).status_code == 401
    assert await visitor.find_person(ANN) is None
    assert not await visitor.is_signed_in()


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_t40_a_return_path_outside_this_service_leads_to_the_root(elsewhere: str) -> None:
    assert sign_in_pages.local_path(elsewhere) == "/"


@pytest.mark.parametrize("elsewhere", ELSEWHERE[:3])
async def test_t40_no_page_leads_to_another_site(visitor: AccountVisitor, elsewhere: str) -> None:
    await visitor.person(EVE, PASSWORD)

    for page in ("signin", "signup", "reset"):
        shown_response = await visitor.http.get(f"/auth/{page}", params={"return_to": elsewhere})
        assert shown_response.status_code == 200
        assert "evil" not in shown_response.text
    await visitor.ask("signup", ANN, elsewhere)
    assert (await visitor.choose(visitor.token())).headers["location"] == "/"
    form = {"email": EVE, "password": PASSWORD, "return_to": elsewhere}
    assert (await visitor.http.post("/auth/signin", data=form, headers=OWN_PAGE)).headers["location"] == "/"


@pytest.mark.parametrize("path", ["/", "/library", "/auth/claim?claim_attempt_token=cat_x&a=b#c", "/a//b", "/%2F"])
def test_t40_a_path_of_this_service_is_kept(path: str) -> None:
    assert sign_in_pages.local_path(path) == path


@pytest.mark.parametrize("page", ["signup", "reset"])
async def test_t43_known_and_unknown_addresses_are_answered_alike(visitor: AccountVisitor, page: str) -> None:
    await visitor.person("known@example.com", PASSWORD)
    await visitor.person("asked@example.com")

    answers = [await visitor.ask(page, f"{name}@example.com") for name in ("known", "asked", "never")]

    shown_answers = {
        (answer.status_code, answer.text.replace(name, "NAME"))
        for answer, name in zip(answers, ("known", "asked", "never"), strict=True)
    }
    assert len(shown_answers) == 1
    assert len({frozenset(answer.headers) for answer in answers}) == 1


@pytest.mark.parametrize("page", ["signup", "reset"])
async def test_t43_the_email_is_written_after_the_response_is_sent(
    visitor: AccountVisitor, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAUSES_S", (0.5,))
    await visitor.person(ANN)

    answer = await visitor.http.post(f"/auth/{page}", data={"email": ANN}, headers=OWN_PAGE)

    assert answer.status_code == 200
    assert await visitor.store.database.fetch("SELECT email FROM email_proof") == []
    await visitor.store.mail.drain()
    assert len(await visitor.store.database.fetch("SELECT email FROM email_proof")) == 1


async def test_t43_the_limit_reveals_nothing_about_who_is_known(visitor: AccountVisitor) -> None:
    await visitor.person(ANN, PASSWORD)

    statuses = {email: [(await visitor.ask("reset", email)).status_code for _ in range(7)] for email in (ANN, EVE)}

    assert statuses[ANN] == statuses[EVE] == [200] * 5 + [429] * 2


async def test_t44_no_address_and_no_token_is_in_the_log(
    visitor: AccountVisitor, capsys: pytest.CaptureFixture[str]
) -> None:
    await visitor.ask("signup", ANN)
    token = visitor.token()
    await visitor.http.get("/auth/prove", params={"token": token})
    await visitor.choose(token)
    await visitor.choose(token)

    log_text = "".join(capsys.readouterr())
    assert token not in log_text
    assert ANN not in log_text


async def test_t48_a_forged_host_does_not_appear_in_an_email(visitor: AccountVisitor) -> None:
    form = {"email": ANN}
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Origin": "http://127.0.0.1:8480"}
    await visitor.http.post("/auth/signup", data=form, headers=headers)
    await visitor.store.mail.drain()

    text = visitor.letters()[0].get_content()
    assert "http://127.0.0.1:8480/auth/prove?token=cep_" in text
    assert "evil" not in text
