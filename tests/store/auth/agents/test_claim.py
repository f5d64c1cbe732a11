"""The claim ceremony on both pages, and attacks on it (agent-auth 6, T24 to T34)."""

import asyncio
from dataclasses import replace
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.database.port import Dialect, Transaction
from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth import people, queries
from countersign.store.auth.agents import registrations
from tests.contract.scenes import all_rows
from tests.figures import Figures
from tests.store.auth.agents.people import RegisteredAgent, Visitor, csrf_of, digits_of
from tests.store.conftest import ROOT_URL
from tests.store.lock_waits import LockWaits
from tests.store.world import World

PAT = "pat@example.com"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without waits between polls, and with many registrations from one address."""
    return replace(
        settings,
        poll_interval_s=0,
        register_named_all=1_000_000,
        register_anonymous_all=1_000_000,
        rate_register=1_000_000,
    )


@pytest.fixture
async def pat(world: World) -> Visitor:
    """A person with an account who is signed in."""
    return await Visitor.signed_in(world, PAT)


async def test_the_person_types_the_agents_code(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    poll_before = await agent.poll()

    decision_page = await pat.decide(agent.link, user_code=agent.code.lower().replace("-", " "))
    poll_after = await agent.poll()

    assert (poll_before.status_code, poll_before.json()["status"], poll_before.json()["error"]) == (
        200,
        "pending",
        "authorization_pending",
    )
    assert decision_page.status_code == 200
    assert poll_after.json()["status"] == "claimed"
    assert poll_after.json()["scopes"] == ["read:products", "read:releases", "read:library"]


async def test_the_agent_sends_the_code_that_the_page_shows(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    early_response = await agent.complete("123456")

    code_page = await pat.decide(agent.other_link)
    pending_response = await agent.poll()
    completed_response = await agent.complete(digits_of(code_page))

    assert (early_response.status_code, early_response.json()["code"]) == (409, "claim_not_confirmed")
    assert pending_response.json()["status"] == "pending"
    assert (completed_response.status_code, completed_response.json()["status"]) == (200, "claimed")
    assert (await agent.complete(digits_of(code_page))).json()["code"] == "already_claimed"


async def test_an_anonymous_agent_is_claimed_by_naming_its_person(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.anonymous(world)

    attempt_response = await agent.attempt_again(PAT)
    await pat.decide(agent.link, user_code=agent.code)

    assert (attempt_response.status_code, attempt_response.json()["status"]) == (200, "initiated")
    assert (await agent.poll()).json()["status"] == "claimed"


async def test_a_claim_token_is_accepted_in_the_authorization_header_but_not_in_the_address(world: World) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)

    header_response = await world.call("GET", "/auth/me", agent.claim_token)
    query_response = await world.http.get(f"/api/v1/auth/me?claim_token={agent.claim_token}")

    assert header_response.json()["status"] == "pending"
    assert query_response.status_code == 400
    assert agent.claim_token not in query_response.text


async def test_t24_another_account_can_neither_see_nor_take_the_claim(world: World, pat: Visitor) -> None:
    attacker = await Visitor.signed_in(world, "thief@example.com")
    agent = await RegisteredAgent.by_email(world, PAT)
    rows_before = await all_rows(world.store)

    page_response = await attacker.get(agent.link)
    csrf = csrf_of(await attacker.get((await RegisteredAgent.by_email(world, "thief@example.com")).link))
    rows_before = await all_rows(world.store)
    confirm_response = await attacker.send(agent.link, csrf=csrf, confirm="yes", user_code=agent.code)
    decline_response = await attacker.send(agent.other_link, csrf=csrf, decline="yes")

    assert [response.status_code for response in (page_response, confirm_response, decline_response)] == [403, 403, 403]
    assert "mailbot" not in page_response.text
    assert PAT not in page_response.text
    assert await all_rows(world.store) == rows_before


async def test_t25_the_page_says_who_asks_for_what_and_declining_ends_it(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT, "read:library write:releases")

    page = await pat.get(agent.link)
    async with world.store.database.transaction() as transaction:
        north = await queries.organisation_with_slug(transaction, "north")
        assert north is not None
        await people.set_role(transaction, north.id, PAT, "publisher")
    as_publisher = await pat.get(agent.link)
    decline_response = await pat.decide(agent.link, "decline")
    poll_response = await agent.poll()

    warning = "Allow it only if you started this yourself"
    for expected_text in (PAT, "mailbot/2.1", "127.0.0.1", warning, "This is the first agent for this account"):
        assert expected_text in page.text
    assert "You cannot allow it" in page.text
    assert "upload files" in page.text.partition("You cannot allow it")[2]
    assert "You cannot allow it" not in as_publisher.text
    assert "upload files" in as_publisher.text
    assert page.text.count("<button") == as_publisher.text.count("<button") == 2
    assert decline_response.status_code == 200
    assert (poll_response.status_code, poll_response.json()["code"], poll_response.json()["claim_status"]) == (
        403,
        "access_denied",
        "denied",
    )
    assert (await pat.decide(agent.link, user_code=agent.code)).status_code == 410


@pytest.mark.parametrize("page", ["typed", "shown"])
@pytest.mark.parametrize("wanted_scope", ["write:products", "read:library write:releases"])
async def test_scopes_that_the_person_does_not_hold_are_refused_to_person_and_agent(
    world: World, pat: Visitor, page: str, wanted_scope: str
) -> None:
    agent = await RegisteredAgent.by_email(world, PAT, wanted_scope)
    link = agent.link if page == "typed" else agent.other_link
    poll_before = await agent.poll()
    select_registrations = "SELECT id, status, person_id, scopes, claimed_at FROM registration ORDER BY id"
    rows_before = await world.store.database.fetch(select_registrations)

    refused_decision = await pat.decide(link, user_code=agent.code)
    poll_after = await agent.poll()
    grant = {"grant_type": world.store.settings.claim_grant, "claim_token": agent.claim_token}
    token = await world.http.post("/api/v1/auth/token", data=grant)

    missing_scope = wanted_scope.split()[-1]
    assert (poll_before.status_code, poll_before.json()["status"]) == (200, "pending")
    assert refused_decision.status_code == 400
    assert "does not have the permissions that the agent asked for" in refused_decision.text
    for answer in (poll_after, token):
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_scope")
        assert missing_scope in answer.text
    assert await world.store.database.fetch(select_registrations) == rows_before


async def test_a_role_given_meanwhile_allows_the_person_to_approve_the_agent(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT, "write:products")
    await pat.decide(agent.link, user_code=agent.code)
    async with world.store.database.transaction() as transaction:
        north = await queries.organisation_with_slug(transaction, "north")
        assert north is not None
        await people.set_role(transaction, north.id, PAT, "publisher")

    allowed_decision = await pat.decide(agent.link, user_code=agent.code)

    assert allowed_decision.status_code == 200
    assert (await agent.poll()).json()["scopes"] == ["write:products"]


@pytest.mark.parametrize(
    ("granted_scope", "scope", "given_scope"),
    [
        ("read:library write:releases", "write:releases", None),
        ("read:library write:releases", "read:library write:releases", None),
        ("read:library write:releases", "read:products", None),
        ("read:library write:releases", "", "read:library"),
        ("read:library write:releases", "read:library", "read:library"),
        ("write:products write:releases", "", None),
    ],
)
async def test_a_scope_that_the_person_has_lost_since_is_refused_at_the_token_endpoint(
    world: World, granted_scope: str, scope: str, given_scope: str | None
) -> None:
    ann = await Visitor.signed_in(world, "ann@north.example", north="publisher")
    agent = await RegisteredAgent.by_email(world, ann.email, granted_scope)
    assert (await ann.decide(agent.link, user_code=agent.code)).status_code == 200
    assertion = (await agent.poll()).json()["identity_assertion"]
    async with world.store.database.transaction() as transaction:
        north = await queries.organisation_with_slug(transaction, "north")
        assert north is not None
        await people.set_role(transaction, north.id, ann.email, "viewer")
    grant = {"grant_type": world.store.settings.claim_grant, "claim_token": agent.claim_token}

    exchange_response = await agent.exchange(assertion, scope)
    poll_response = await world.http.post("/api/v1/auth/token", data={**grant, **({"scope": scope} if scope else {})})

    for answer in (exchange_response, poll_response):
        if given_scope is None:
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
        else:
            assert answer.json()["scope"] == given_scope


@pytest.mark.parametrize("by", ["typed", "shown"])
async def test_t25_the_person_is_informed_by_mail_of_an_agent_that_acts_for_them(
    world: World, pat: Visitor, by: str, settings: Settings
) -> None:
    agent = await RegisteredAgent.by_email(world, PAT, "read:library")

    if by == "typed":
        await pat.decide(agent.link, user_code=agent.code)
    else:
        await agent.complete(digits_of(await pat.decide(agent.other_link)))
    await world.store.mail.drain()

    (email_file,) = (Path(settings.data) / "mail").glob("*.eml")
    text = message_from_bytes(email_file.read_bytes(), policy=default)
    body = text.get_content()
    assert text["to"] == PAT
    assert "mailbot/2.1" in body
    assert "see your library" in body
    assert f"{ROOT_URL}/auth/agents" in body
    assert not [secret for secret in (agent.claim_token, agent.code, "cat_") if secret in body]


async def test_t26_five_wrong_codes_kill_the_attempt(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)

    statuses = [(await pat.decide(agent.link, user_code="BBBB-BBBB")).status_code for _ in range(6)]

    assert statuses == [400] * 5 + [410]
    assert (await pat.decide(agent.link, user_code=agent.code)).status_code == 410
    assert (await agent.poll()).json()["code"] == "user_code_expired"


async def test_t26_five_wrong_digits_kill_the_attempt(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    right_digits = digits_of(await pat.decide(agent.other_link))
    wrong_digits = "000000" if right_digits != "000000" else "111111"

    responses = [(await agent.complete(wrong_digits)) for _ in range(6)]

    assert [response.status_code for response in responses] == [401] * 5 + [410]
    assert [response.json()["attempts_remaining"] for response in responses[:5]] == [4, 3, 2, 1, 0]
    assert (await agent.complete(right_digits)).status_code == 410


async def test_t26_concurrent_guesses_do_not_exceed_the_limit(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    csrf = csrf_of(await pat.get(agent.link))

    responses = await asyncio.gather(
        *(pat.send(agent.link, csrf=csrf, confirm="yes", user_code="BBBB-BBBB") for _ in range(12))
    )

    assert sorted(response.status_code for response in responses) == [400] * 5 + [410] * 7


async def test_t26_new_attempts_give_no_new_guesses(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    statuses: list[int] = []
    for _ in range(5):
        statuses += [(await pat.decide(agent.link, user_code="BBBB-BBBB")).status_code for _ in range(5)]
        await agent.attempt_again(PAT)

    assert statuses == [400] * 20 + [429] * 5


async def test_t27_a_new_attempt_invalidates_links_and_codes_of_the_previous_attempt(
    world: World, pat: Visitor
) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    links, code = (agent.link, agent.other_link), agent.code

    await agent.attempt_again(PAT)

    assert [(await pat.get(link)).status_code for link in links] == [410, 410]
    assert agent.code != code
    assert (await pat.decide(agent.link, user_code=code)).status_code == 400
    assert (await pat.decide(agent.link, user_code=agent.code)).status_code == 200


async def test_t27_only_hashes_of_tokens_and_codes_are_stored(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    shown_digits = digits_of(await pat.decide(agent.other_link))

    stored_rows = repr(await all_rows(world.store))

    secrets = [agent.claim_token, agent.code, agent.code.replace("-", ""), shown_digits]
    secrets += [link.partition("=")[2] for link in (agent.link, agent.other_link)]
    assert not [secret for secret in secrets if secret in stored_rows]


async def test_t27_a_registration_for_one_person_cannot_name_another_person(world: World) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)

    response = await agent.attempt_again("other@example.com")

    assert (response.status_code, response.json()["code"]) == (400, "invalid_login_hint")


async def test_t28_looking_at_the_page_changes_nothing(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    rows_before = await all_rows(world.store)

    for link in (agent.link, agent.other_link):
        assert (await pat.get(link)).status_code == 200
        assert (await world.http.get(link)).status_code == 303
        assert (await world.http.head(link)).status_code == 303

    assert await all_rows(world.store) == rows_before


@pytest.mark.parametrize("csrf", ["", "AAAAAAAAAAAAAAAAAAAAAA", "not base64!"])
async def test_t29_a_form_without_its_token_is_refused(world: World, pat: Visitor, csrf: str) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)

    response = await pat.send(agent.link, csrf=csrf, confirm="yes", user_code=agent.code)

    assert response.status_code == 403
    assert (await agent.poll()).json()["status"] == "pending"


async def test_t29_a_form_of_another_site_or_another_session_is_refused(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    csrf = csrf_of(await pat.get(agent.link))
    cookie = "; ".join(f"{name}={value}" for name, value in pat.cookies.items())
    form = {"csrf": csrf, "confirm": "yes", "user_code": agent.code}

    foreign_response = await world.http.post(
        agent.link, data=form, headers={"Cookie": cookie, "Origin": "http://evil.example"}
    )
    await pat.sign_in()
    other_response = await pat.send(agent.link, **form)

    assert (foreign_response.status_code, other_response.status_code) == (403, 403)


async def test_t29_the_page_can_be_neither_framed_nor_cached(world: World, pat: Visitor) -> None:
    page = await pat.get((await RegisteredAgent.by_email(world, PAT)).link)

    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"


async def test_t30_exactly_one_of_concurrent_confirm_and_decline_takes_effect(
    world: World, pat: Visitor, is_full: bool, figures: Figures
) -> None:
    races, claimed_count, began = 1000 if is_full else 72, 0, clock.now()
    csrf = csrf_of(await pat.get((await RegisteredAgent.by_email(world, PAT)).link))
    for number in range(races):
        # Guesses are limited per hour, so the test runs eight races in each hour.
        with clock.fixed(clock.later(began, seconds=(number // 8) * 3_601)):
            agent = await RegisteredAgent.by_email(world, PAT)
            answers = await asyncio.gather(
                pat.send(agent.link, csrf=csrf, confirm="yes", user_code=agent.code),
                pat.send(agent.other_link, csrf=csrf, decline="yes"),
                pat.send(agent.link, csrf=csrf, confirm="yes", user_code=agent.code),
            )
            poll_response = await agent.poll()

        assert [answer.status_code for answer in answers].count(200) == 1, [answer.text for answer in answers]
        assert poll_response.status_code == (403 if answers[1].status_code == 200 else 200)
        claimed_count += poll_response.status_code == 200
    figures.update(races=races, claimed=claimed_count, declined=races - claimed_count)


async def test_t30_an_attempt_that_has_expired_is_neither_confirmed_nor_declined(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    csrf = csrf_of(await pat.get(agent.link))

    with clock.fixed(clock.later(clock.now(), seconds=601)):
        late_responses = [
            await pat.send(agent.link, csrf=csrf, confirm="yes", user_code=agent.code),
            await pat.send(agent.link, csrf=csrf, decline="yes"),
            await pat.send(agent.other_link, csrf=csrf, confirm="yes"),
        ]

        assert [response.status_code for response in late_responses] == [410, 410, 410]
        assert (await agent.poll()).json()["code"] == "user_code_expired"
        assert (await agent.attempt_again(PAT)).status_code == 200
        assert (await agent.poll()).json()["status"] == "pending"


async def test_t31_a_claim_token_returns_the_answer_for_ten_minutes_and_then_ends(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    await pat.decide(agent.link, user_code=agent.code)
    first_poll, second_poll = await agent.poll(), await agent.poll()

    with clock.fixed(clock.later(clock.now(), seconds=601)):
        late_poll = await agent.poll()

    assert first_poll.json()["status"] == second_poll.json()["status"] == "claimed"
    assert first_poll.json()["identity_assertion"] != second_poll.json()["identity_assertion"]
    assert (late_poll.status_code, late_poll.json()["code"]) == (401, "invalid_claim_token")


async def test_t31_a_late_claim_gets_its_reason_for_a_week_only(world: World) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    day_s = 86_400

    with clock.fixed(clock.later(clock.now(), seconds=day_s + 1)):
        late_poll = await agent.poll()
        unknown_agent = RegisteredAgent(world.http, {"claim_token": "clm_" + "0" * 49})
        unknown_poll = await unknown_agent.poll()
    with clock.fixed(clock.later(clock.now(), seconds=8 * day_s + 1)):
        await app.run_maintenance(world.store)
        poll_after_a_week = await agent.poll()

    assert (late_poll.status_code, late_poll.json()["code"]) == (410, "claim_expired")
    assert (unknown_poll.status_code, unknown_poll.json()["code"]) == (401, "invalid_claim_token")
    assert poll_after_a_week.status_code == unknown_poll.status_code
    assert poll_after_a_week.json() | {"instance": ""} == unknown_poll.json() | {"instance": ""}


async def test_t32_a_claim_ends_the_tokens_of_the_anonymous_agent(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.anonymous(world)
    first_assertion = agent.answer["identity_assertion"]
    token = (await agent.exchange(first_assertion)).json()["access_token"]
    assert (await world.call("GET", "/products", token)).status_code == 200
    assert (await agent.library(token)).status_code == 403

    await agent.attempt_again(PAT)
    await pat.decide(agent.link, user_code=agent.code)
    second_assertion = (await agent.poll()).json()["identity_assertion"]

    assert (await world.call("GET", "/products", token)).status_code == 401
    assert (await agent.exchange(first_assertion)).json()["error"] == "invalid_grant"
    assert (await agent.library((await agent.exchange(second_assertion)).json()["access_token"])).status_code == 200


async def test_t33_an_agent_that_was_disconnected_before_its_next_poll_is_denied(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    await pat.decide(agent.link, user_code=agent.code)
    assertion = (await agent.poll()).json()["identity_assertion"]

    async with world.store.database.transaction() as transaction:
        assert await registrations.revoke(transaction, agent.answer["id"])

    assert (await agent.poll()).json()["code"] == "access_denied"
    assert (await agent.exchange(assertion)).json()["error"] == "invalid_grant"


async def test_t27_only_one_of_several_concurrent_attempts_stays_open(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    body = {"type": "login_hint", "claim_token": agent.claim_token, "login_hint": PAT}

    responses = await asyncio.gather(*(world.http.post("/api/v1/auth/me", json=body) for _ in range(5)))
    pages = [await pat.get(response.json()["claim_attempt"]["verification_uri"]) for response in responses]

    assert sorted(page.status_code for page in pages) == [200, 410, 410, 410, 410]


async def lock(transaction: Transaction, dialect: Dialect, registration_id: str) -> None:
    """Lock the registration. An UPDATE would not work, because PostgreSQL does not keep the order of transactions that
    wait for a new version of a row."""
    rows = " FOR UPDATE" if dialect == "postgres" else ""
    await transaction.fetch(f"SELECT 1 FROM registration WHERE id = $1{rows}", registration_id)


@pytest.mark.parametrize(("first_step", "statuses"), [("complete", (200, 409)), ("begin", (410, 200))])
async def test_t30_an_attempt_begun_while_the_agent_is_claimed_is_either_dead_or_refused(
    world: World, pat: Visitor, lock_waits: LockWaits, first_step: str, statuses: tuple[int, int]
) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    digits = digits_of(await pat.decide(agent.other_link))
    calls = {"complete": lambda: agent.complete(digits), "begin": lambda: agent.attempt_again(PAT)}
    second_step = "begin" if first_step == "complete" else "complete"
    tasks: dict[str, asyncio.Task[httpx.Response]] = {}

    async with world.store.database.transaction() as transaction:
        await lock(transaction, world.store.database.dialect, agent.answer["id"])
        # Both transactions have read the registration as unclaimed before one of them changes it.
        for waiting_count, name in enumerate((first_step, second_step), 1):
            tasks[name] = asyncio.create_task(calls[name]())
            await lock_waits.reach(waiting_count)
    complete_response, begin_response = await tasks["complete"], await tasks["begin"]
    status = (await agent.poll()).json()["status"]

    assert (complete_response.status_code, begin_response.status_code) == statuses
    assert status == ("claimed" if first_step == "complete" else "pending")


async def test_an_agent_whose_last_token_has_expired_is_no_longer_shown(world: World, pat: Visitor) -> None:
    agent = await RegisteredAgent.by_email(world, PAT)
    await pat.decide(agent.link, user_code=agent.code)

    shown_response = await pat.get("/auth/agents")
    with clock.fixed(clock.later(clock.now(), seconds=2 * 86_400)):
        later_response = await pat.get("/auth/agents")
    with clock.fixed(clock.later(clock.now(), seconds=9 * 86_400)):
        await app.run_maintenance(world.store)
        registration = await registrations.with_id(world.store.database, agent.answer["id"])

    assert "mailbot/2.1" in shown_response.text
    assert "mailbot/2.1" not in later_response.text
    assert registration is None
