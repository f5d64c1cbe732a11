"""The page of connected agents: its list, and what its buttons revoke."""

from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth.agents import registrations
from countersign.store.auth.agents.registrations import Applicant
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.auth.oauth.conftest import Browser, KnownClient, code_for, exchange, hidden_fields, new_person
from tests.store.conftest import ROOT_URL
from tests.store.world import World

PAGE = "/auth/agents"


async def agent_of(world: World, person_id: str, name: str = "Helpful agent") -> str:
    """Create an agent that acts for a person, and return its id."""
    applicant = Applicant(name, "192.0.2.1", frozenset({"read:library"}))
    async with world.store.database.transaction() as transaction:
        registration, _ = await registrations.add(
            transaction, "service_auth", applicant, person_id=person_id, claim_ttl_s=600, interval_s=5
        )
    return registration.id


async def test_the_page_lists_agents_and_clients_with_their_rights(
    world: World, browser: Browser, client: KnownClient, ann: str
) -> None:
    await agent_of(world, ann, "Helpful <b>agent</b>")
    await exchange(world, client, await code_for(browser, client))

    page = await browser.get(PAGE)

    for expected_text in (
        "Helpful &lt;b&gt;agent",
        "App",
        "A client of North",
        "see your library",
        "last used",
        "not used yet",
    ):
        assert expected_text in page.text
    assert "<b>" not in page.text
    assert page.text.count(">Disconnect</button>") == 2
    assert page.headers["cache-control"] == "no-store"


async def test_a_button_ends_a_client_which_has_to_ask_again(
    world: World, browser: Browser, client: KnownClient
) -> None:
    token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    unspent, kept_code = await code_for(browser, client), await code_for(browser, client)

    answer = await browser.post(PAGE, hidden_fields(await browser.get(PAGE)))

    assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    assert (await world.call("GET", "/library", token)).status_code == 401
    assert (await exchange(world, client, unspent)).status_code == 400
    assert "Disconnect" not in (await browser.get(PAGE)).text
    second_access_token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    assert (await world.call("GET", "/library", second_access_token)).status_code == 200
    assert (await world.call("GET", "/library", token)).status_code == 401, "an old token does not come back"
    assert (await exchange(world, client, kept_code)).status_code == 400, "nor does an old code"


async def test_a_button_ends_an_agent(world: World, browser: Browser, ann: str) -> None:
    registration_id = await agent_of(world, ann)

    await browser.post(PAGE, hidden_fields(await browser.get(PAGE)))

    ended_agent = await registrations.with_id(world.store.database, registration_id)
    assert ended_agent is not None
    assert ended_agent.status == "revoked"


async def test_no_caller_ends_agents_or_consents_of_another_person(
    world: World, browser: Browser, client: KnownClient, ann: str
) -> None:
    token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    agent = await agent_of(world, ann)
    consent = next(iter(await world.store.database.fetch("SELECT id FROM consent")))[0]
    await new_person(world, "eve@example.com")
    eve = Browser(world)
    await eve.sign_in("eve@example.com")
    await agent_of(world, (await new_person(world, "bob@example.com")))
    page = await eve.get(PAGE)
    csrf = hidden_fields(await browser.get(PAGE))["csrf"]

    assert "Disconnect" not in page.text
    for foreign_id in (agent, consent, "reg_unknown", ""):
        assert (await eve.post(PAGE, {"csrf": csrf, "id": foreign_id})).status_code == 403
    own_code = await code_for(eve, client)
    assert own_code
    csrf_of_eve = hidden_fields(await eve.get(PAGE))["csrf"]
    for foreign_id in (agent, consent, "reg_unknown", ""):
        assert (await eve.post(PAGE, {"csrf": csrf_of_eve, "id": foreign_id})).status_code == 303
    assert (await world.call("GET", "/library", token)).status_code == 200
    agent_after = await registrations.with_id(world.store.database, agent)
    assert agent_after is not None
    assert agent_after.status == "claimed"


async def test_t29_the_page_accepts_forms_only_from_itself(world: World, browser: Browser, ann: str) -> None:
    await agent_of(world, ann)
    fields = hidden_fields(await browser.get(PAGE))

    foreign_response = await world.http.post(
        PAGE, data=fields, headers={**browser.cookie, "Origin": "https://evil.example"}
    )
    without_token = await browser.post(PAGE, {"id": fields["id"]})

    assert foreign_response.status_code == without_token.status_code == 403
    assert "Disconnect" in (await browser.get(PAGE)).text


async def test_an_anonymous_caller_is_shown_nothing(world: World) -> None:
    answer = await Browser(world).get(PAGE)

    assert (answer.status_code, answer.headers["location"]) == (303, "/auth/signin?return_to=%2Fauth%2Fagents")


async def test_a_use_is_shown_at_once_and_kept_when_the_store_closes(world: World, settings: Settings) -> None:
    visitor = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.by_email(world, "pat@example.com")
    await visitor.decide(agent.link, user_code=agent.code)
    token = (await agent.exchange((await agent.poll()).json()["identity_assertion"])).json()["access_token"]
    before_response = await visitor.get("/auth/agents")

    await agent.library(token)
    after_response = await visitor.get("/auth/agents")
    async with app.open_store(settings, ROOT_URL, is_loopback=True) as second_store:
        second_store.uses.note(agent.answer["id"])
    registration = await registrations.with_id(world.store.database, agent.answer["id"])

    assert "not used yet" in before_response.text
    assert "not used yet" not in after_response.text
    assert registration is not None
    assert registration.used_at is not None
