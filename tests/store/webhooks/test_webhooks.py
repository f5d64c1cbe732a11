"""An organisation is notified of events of its own products, and of no others."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from countersign.kernel import clock
from countersign.kernel.webhooks.sender import Sender
from countersign.settings import Settings
from countersign.store import webhook_events
from countersign.store.app import run_maintenance
from countersign.store.auth import queries
from countersign.store.auth.agents import claim, registrations
from countersign.store.auth.agents.registrations import Applicant
from countersign.store.context import Store
from tests.peers.receiver import Receiver, receiving
from tests.store.conftest import with_settings
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings in which webhook receivers may be on this machine."""
    return with_settings(settings, private_webhooks=True)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that responds with 200."""
    async with receiving() as webhook_receiver:
        yield webhook_receiver


async def owner(world: World, org: str = "north") -> str:
    """Return a token of an owner of the organisation."""
    return await world.person(f"owner@{org}.example", **{org: "owner"})


async def create_webhook(world: World, token: str, receiver: Receiver, *types: str) -> dict[str, Any]:
    """Create a webhook of the caller's organisation."""
    body = {"url": receiver.url, **({"types": types} if types else {})}
    answer = await world.call("POST", "/org/webhooks", token, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def deliver_messages(store: Store, receiver: Receiver) -> list[tuple[str, str]]:
    """Deliver the pending messages, and return the type and the subject of each."""
    count_before = len(receiver.messages)
    lanes = Sender(webhook_events.outbox_of(store))
    await lanes.open()
    await lanes.drain()
    return [(message.event["type"], message.event["subject"]) for message in receiver.messages[count_before:]]


async def publish_release(world: World, token: str, slug: str, version: str, notes: str = "") -> None:
    """Create and publish a release."""
    body = {"version": version, "channel": "stable", "notes": notes, "notes_only": True}
    assert (await world.call("POST", f"/products/{slug}/releases", token, json=body)).status_code == 201
    assert (await world.call("POST", f"/products/{slug}/releases/{version}/publish", token)).status_code == 200


async def test_the_publication_and_the_yank_of_a_release_are_each_reported_once(
    world: World, receiver: Receiver
) -> None:
    token = await owner(world)
    webhook = await create_webhook(world, token, receiver)
    product = await world.product("north", "game", status="draft")

    await publish_release(world, token, "game", "1.0.0+linux")
    path = "/products/game/releases/1.0.0+linux"
    await world.call("POST", f"{path}/publish", token)
    for _ in range(2):
        assert (await world.call("POST", f"{path}/yank", token, json={"reason": "broken"})).status_code == 200

    subject = f"products/{product}/releases/1.0.0%2Blinux"
    assert await deliver_messages(world.store, receiver) == [
        ("release.published", subject),
        ("release.yanked", subject),
    ]
    for message in receiver.messages:
        event = Webhook(webhook["secret"]).verify(message.body, message.headers)
        response = await world.http.get(f"{event['source']}/products/{product}")
        assert response.status_code == 200, "source and subject make an address"


async def test_ended_jobs_and_added_keys_are_reported(world: World, receiver: Receiver) -> None:
    token = await owner(world)
    await create_webhook(world, token, receiver)
    key = (await world.call("POST", "/org/signing-keys", token)).json()
    product = await world.product("north", "game")
    release = await world.call("POST", "/products/game/releases", token, json={"version": "1", "channel": "beta"})
    assert release.status_code == 201, product
    announcement = {"filename": "game.zip", "size": 5}
    file = (await world.call("POST", "/products/game/releases/1/artifacts", token, json=announcement)).json()
    await world.http.put(file["upload_url"], content=b"bytes")
    body = {"type": "artifact.verify", "payload": {"artifact_id": file["artifact_id"]}}
    job = await world.call("POST", "/jobs", token, json=body, headers={"Prefer": "respond-async"})
    assert job.status_code == 202, job.text
    await world.call("DELETE", f"/jobs/{job.json()['job_id']}", token)

    assert sorted(await deliver_messages(world.store, receiver)) == sorted(
        [("key.added", f"org/signing-keys/{key['keyid']}"), ("job.ended", f"jobs/{job.json()['job_id']}")]
    )


@pytest.mark.parametrize(("scopes", "is_told"), [("read:library", False), ("read:library write:releases", True)])
async def test_a_new_agent_is_reported_only_if_the_agent_may_publish(
    world: World, receiver: Receiver, scopes: str, is_told: bool
) -> None:
    token = await owner(world)
    await create_webhook(world, token, receiver)
    await world.person("pat@north.example", north="publisher")
    person = await queries.person_with_email(world.store.database, "pat@north.example")
    assert person is not None
    applicant = Applicant("PLANTED NAME", "192.0.2.7", frozenset(scopes.split()))
    async with world.store.database.transaction() as transaction:
        registration, _ = await registrations.add(
            transaction, "service_auth", applicant, email=person.email, claim_ttl_s=60, interval_s=5
        )
        await claim.bind(transaction, registration, person.id)

    assert await deliver_messages(world.store, receiver) == (
        [("agent.added", f"agents/{registration.id}")] if is_told else []
    )


async def test_another_organisation_sees_and_hears_nothing(world: World, receiver: Receiver) -> None:
    north, south = await owner(world), await owner(world, "south")
    webhook = await create_webhook(world, north, receiver)
    await world.product("north", "game")
    async with receiving() as their_receiver:
        await create_webhook(world, south, their_receiver)
        await publish_release(world, north, "game", "1.0.0")
        assert len(await deliver_messages(world.store, receiver)) == 1
        assert their_receiver.messages == []

    listed_body = (await world.call("GET", "/org/webhooks", south)).json()
    assert webhook["id"] not in json.dumps(listed_body)
    event = receiver.ids[0]
    missing = "0" * 8 + "-0000-4000-8000-" + "0" * 12
    for method, path, body in (
        ("GET", "/org/webhooks/{}/deliveries", None),
        ("POST", "/org/webhooks/{}/rotate", None),
        ("POST", "/org/webhooks/{}/ping", None),
        ("POST", "/org/webhooks/{}/replay", {"since": "2026-01-01T00:00:00Z"}),
        ("POST", f"/org/webhooks/{{}}/deliveries/{event}/replay", None),
        ("DELETE", "/org/webhooks/{}", None),
    ):
        answers = [
            await world.call(method, path.format(webhook_id), south, **({"json": body} if body else {}))
            for webhook_id in (webhook["id"], missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404], path
        bodies = [answer.json() | {"instance": ""} for answer in answers]
        assert bodies[0] == bodies[1]
    assert await deliver_messages(world.store, receiver) == []


async def test_personal_values_occur_in_no_message(world: World, receiver: Receiver) -> None:
    token = await world.person("planted.person@north.example", north="owner")
    await create_webhook(world, token, receiver)
    await world.product("north", "planted-slug", title="Planted title", description="planted words")
    await publish_release(world, token, "planted-slug", "1.0.0", notes="planted notes")
    body = {"reason": "planted reason"}
    await world.call("POST", "/products/planted-slug/releases/1.0.0/yank", token, json=body)

    assert len(await deliver_messages(world.store, receiver)) == 2
    for message in receiver.messages:
        assert "planted" not in (json.dumps(message.headers) + message.body.decode()).lower()


async def test_a_message_contains_only_the_id_of_a_product(world: World, receiver: Receiver) -> None:
    token = await owner(world)
    await create_webhook(world, token, receiver)
    for slug, title in (("a", "A"), ("another-product", "A much longer title")):
        await world.product("north", slug, title=title)
        await publish_release(world, token, slug, "1.0.0", notes=title)
    await deliver_messages(world.store, receiver)

    sizes = {len(message.body) for message in receiver.messages}
    assert len(receiver.messages) == 2
    assert len(sizes) == 1


async def test_a_secret_is_shown_only_when_created(world: World, receiver: Receiver) -> None:
    token = await owner(world)
    webhook = await create_webhook(world, token, receiver, "job.ended")

    listed_response = await world.call("GET", "/org/webhooks", token)
    rotated_webhook = await world.call("POST", f"/org/webhooks/{webhook['id']}/rotate", token)

    assert "secret" not in listed_response.json()[0]
    assert listed_response.json()[0]["types"] == ["job.ended"]
    assert rotated_webhook.json()["secret"] != webhook["secret"]
    assert rotated_webhook.headers["cache-control"] == "no-store"


async def test_deliveries_are_shown_paged_and_replayed(world: World, receiver: Receiver) -> None:
    token = await owner(world)
    webhook = await create_webhook(world, token, receiver)
    path = f"/org/webhooks/{webhook['id']}"
    pinged = [(await world.call("POST", f"{path}/ping", token)).json()["event_id"] for _ in range(3)]
    assert await deliver_messages(world.store, receiver) == [("webhook.ping", f"webhooks/{webhook['id']}")] * 3

    first_page = (await world.call("GET", f"{path}/deliveries", token, params={"limit": 2})).json()
    follow = {"limit": 2, "cursor": first_page["next_cursor"]}
    second_page = (await world.call("GET", f"{path}/deliveries", token, params=follow)).json()
    deliveries = first_page["items"] + second_page["items"]
    assert sorted(delivery["event_id"] for delivery in deliveries) == sorted(pinged)
    assert second_page["next_cursor"] is None
    assert {(delivery["state"], delivery["attempts"], delivery["answer"]) for delivery in deliveries} == {
        ("delivered", 1, 200)
    }
    none_response = await world.call("GET", f"{path}/deliveries", token, params={"state": "given_up"})
    assert none_response.json()["items"] == []

    second_response = await world.call("POST", f"{path}/deliveries/{pinged[0]}/replay", token)
    assert second_response.status_code == 202, second_response.text
    await deliver_messages(world.store, receiver)
    assert receiver.ids[3:] == [pinged[0]]


async def test_old_deliveries_are_deleted_by_day(world: World, receiver: Receiver) -> None:
    token = await owner(world)
    webhook = await create_webhook(world, token, receiver)
    await world.call("POST", f"/org/webhooks/{webhook['id']}/ping", token)
    await deliver_messages(world.store, receiver)

    with clock.fixed(clock.later(clock.now(), seconds=15 * 86_400)):
        await run_maintenance(world.store)

    assert await world.store.database.fetch("SELECT count(*) FROM webhook_delivery") == [(0,)]
    assert await world.store.database.fetch("SELECT count(*) FROM webhook_event") == [(0,)]


@pytest.mark.parametrize(
    "body", [{"url": "ftp://a.example/"}, {"url": "https://a.example/", "types": ["release.drafted"]}, {"url": ""}, {}]
)
async def test_an_event_type_that_can_never_occur_is_refused(world: World, body: dict[str, Any]) -> None:
    token = await owner(world)

    answer = await world.call("POST", "/org/webhooks", token, json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
