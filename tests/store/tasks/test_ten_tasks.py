"""Ten tasks for an agent that knows only the base address. Each takes few requests, without a dead end."""

import base64
import hashlib
import hmac
import re
import time
from dataclasses import replace
from typing import Any

import httpx

from countersign.kernel.webhooks.sender import Sender
from countersign.store import app as distribution
from countersign.store import demo, webhook_events
from countersign.store.context import Store
from tests.peers.receiver import ReceivedMessage, receiving
from tests.store.auth.agents.people import Visitor
from tests.store.conftest import ROOT_URL
from tests.store.tasks.agent import OverviewAgent
from tests.store.world import World

EMAIL = "pat@example.com"
FILE = b"#!/bin/sh\necho hello\n"


async def test_1_an_agent_finds_a_linux_tool_with_a_recent_beta(agent: OverviewAgent) -> None:
    await agent.begin()
    listing = (await agent.section("catalog")).operation("GET", "list products")
    parameters = {listing.parameter(value): value for value in ("linux", "tool", "beta")}
    listed_answer = await agent.run_operation(
        listing, params={**parameters, listing.parameter_of_form("date"): "2026-01-01"}
    )

    tool = listed_answer.json()["items"][0]
    assert (tool["kind"], "linux" in tool["platforms"]) == ("tool", True)
    assert len(agent.requests) <= 4
    releases = (await agent.http.get(f"/api/v1/products/{tool['slug']}/releases?channel=beta")).json()
    assert releases[0]["published_at"] >= "2026-01-01"


async def publish_file(agent: OverviewAgent) -> dict[str, Any]:
    """Publish a file in the sandbox, and return what the sandbox reports about it."""
    await agent.begin()
    agent.headers = await agent.key("sandbox")
    sandbox = re.search(r"S=(\S+?)/api", agent.recipe("sandbox"))
    assert sandbox is not None
    below = sandbox[1]
    publishing, builds, jobs = [await agent.section(name) for name in ("publishing", "builds", "jobs")]
    create = publishing.operation("POST", "create a product", below=below)
    draft = publishing.operation("POST", "draft a release", below=below)
    publish = publishing.operation("POST", "publish a draft", below=below)
    announce = builds.operation("POST", "announce a file", below=below)

    product = (await agent.run_operation(create, json={**create.example, "status": "draft"})).json()
    release = (await agent.run_operation(draft, product["id"], json=draft.example)).json()
    process = jobs.operation("POST", "in the background", below=below)
    follow = jobs.operation("GET", "follow a job", below=below)
    body = {**announce.example, "filename": "hello.sh", "size": len(FILE), "sha256": hashlib.sha256(FILE).hexdigest()}
    announced_body = (await agent.run_operation(announce, product["id"], release["version"], json=body)).json()
    uploaded_file = await agent.send("PUT", announced_body["upload_url"], content=FILE)
    kind = re.search(r'jobs [^\n]*"type": "([^"]+)"', agent.recipe("sandbox"))
    assert kind is not None
    job = await agent.run_operation(
        process, json={"type": kind[1], "payload": {"artifact_id": uploaded_file.json()["id"]}}
    )
    await agent.run_operation(follow, job.json()["job_id"])
    published_answer = await agent.run_operation(publish, product["id"], release["version"])

    assert published_answer.status_code == 200, published_answer.text
    assert published_answer.json()["published_at"]
    return {**uploaded_file.json(), "below": below, "slug": product["slug"]}


async def test_2_an_agent_creates_uploads_and_publishes_in_the_sandbox(agent: OverviewAgent, demo_world: World) -> None:
    artifact = await publish_file(agent)

    assert (artifact["size"], artifact["status"]) == (len(FILE), "ready")
    assert len(agent.requests) <= 13
    assert (await demo_world.call("GET", f"/products/{artifact['slug']}")).status_code == 404


async def test_3_an_agent_reads_five_things_in_one_batch(agent: OverviewAgent) -> None:
    await agent.begin()
    recipe = agent.recipe("in one request")
    section = await agent.section("batch")
    reads = [{"method": "GET", "path": path} for path in re.findall(r'"path": "([^"]+)"', recipe)]
    slugs = ("aurora-freight", "awl", "brightwater-rally")  # from the agent's person
    reads += [{"method": "GET", "path": f"/products/{slug}"} for slug in slugs]
    batch = section.operation("POST", "run several operations")
    answer = await agent.run_operation(batch, json={**batch.example, "operations": reads})

    assert [result["status"] for result in answer.json()["results"]] == [200] * 5
    assert len(agent.requests) <= 4


async def let_in(agent: OverviewAgent, pat: Visitor, refused_answer: httpx.Response) -> dict[str, str]:
    """Go from a 401 response to a token for the requested scopes. Return the identity assertion and the access token by
    their names."""
    link = re.fullmatch(r'<([^>]+)>; rel="service-doc"', refused_answer.headers["link"])
    scope = re.search(r'scope="([^"]+)"', refused_answer.headers["www-authenticate"])
    assert link is not None
    assert scope is not None
    skill = (await agent.send("GET", link[1])).text
    endpoint, body = re.findall(r"```http\nPOST (\S+)\n[^\n]*json\n\n(\{[^}]*service_auth[^}]*\})", skill)[0]
    body = body.replace("person@example.com", EMAIL)
    body = re.sub(r'"scope": "[^"]*"', f'"scope": "{scope[1]}"', body)
    registration = (
        await agent.send("POST", endpoint, content=body, headers={"Content-Type": "application/json"})
    ).json()

    claim = registration["claim"]
    decision_page = await pat.decide(claim["verification_uri"], user_code=claim["user_code"])
    assert decision_page.status_code == 200, decision_page.text

    endpoint, form = re.findall(r"```http\nPOST (\S+)\n[^\n]*urlencoded\n\n(\S+=<CLAIM_TOKEN>)", skill)[0]
    form = form.replace("<CLAIM_TOKEN>", claim["token"])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    token = await agent.send("POST", endpoint, content=form, headers=headers)
    assert token.status_code == 200, token.text
    agent.headers = {"Authorization": f"Bearer {token.json()['access_token']}"}
    return {**token.json(), "skill": skill}


async def test_4_an_agent_is_claimed_and_redeems_within_five_requests_of_a_bare_401(
    agent: OverviewAgent, demo_world: World
) -> None:
    pat = await Visitor.signed_in(demo_world, EMAIL)
    await agent.begin()
    redeem = (await agent.section("redeem")).operation("POST", "redeem a code")
    body = {**redeem.example, "code": demo.LICENCE_CODES[0]}
    refused_answer = await agent.run_operation(redeem, json=body)
    count_before = len(agent.requests)

    await let_in(agent, pat, refused_answer)
    redeemed = await agent.run_operation(redeem, json=body)

    assert refused_answer.status_code == 401
    assert (redeemed.status_code, redeemed.json()["success"]) == (200, True)
    assert len(agent.requests) - count_before <= 5
    assert len(agent.requests) <= 9


async def test_5_an_agent_downloads_and_checks_a_file(agent: OverviewAgent) -> None:
    await agent.begin()
    listing = re.search(r'curl -s "(\S+access=free\S*)"', agent.recipe("Download"))
    assert listing is not None
    product = (await agent.send("GET", listing[1])).json()["items"][0]
    releases = (await agent.section("catalog")).operation("GET", "list a product", "published releases")
    artifact = (await agent.run_operation(releases, product["slug"])).json()[0]["artifacts"][0]
    download = (await agent.section("builds")).operation("GET", "download a file")
    answer = await agent.run_operation(download, artifact["id"])

    digest = hashlib.sha256(answer.content)
    assert (digest.hexdigest(), len(answer.content)) == (artifact["sha256"], artifact["size"])
    assert answer.headers["repr-digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert len(agent.requests) <= 7


async def test_6_an_agent_watches_a_job(agent: OverviewAgent) -> None:
    artifact = await publish_file(agent)
    agent.requests.clear()

    section = await agent.section("jobs")
    start = section.operation("POST", "in the background", below=artifact["below"])
    follow = section.operation("GET", "follow a job", below=artifact["below"])
    body = {**start.example, "payload": {name: artifact["id"] for name in start.example["payload"]}}
    started_job = await agent.run_operation(start, json=body, headers={start.header("respond-async"): "respond-async"})
    events_seen = (await agent.run_operation(follow, started_job.json()["job_id"])).text
    ended_job = await agent.send("GET", started_job.headers["location"])

    assert started_job.status_code == 202
    assert re.findall(r"^event: (\w+)", events_seen, re.MULTILINE)[-1] == "done"
    assert (ended_job.json()["status"], ended_job.json()["result"]["ok"]) == ("completed", True)
    assert len(agent.requests) <= 4


def is_valid_signature(message: ReceivedMessage, secret: str, now_s: float) -> bool:
    """Return whether the message is signed as the description of webhooks requires."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed_bytes = b".".join(
        [message.headers["webhook-id"].encode(), message.headers["webhook-timestamp"].encode(), message.body]
    )
    expected = "v1," + base64.b64encode(hmac.digest(key, signed_bytes, hashlib.sha256)).decode()
    is_fresh = abs(now_s - int(message.headers["webhook-timestamp"])) <= 300
    return is_fresh and any(
        hmac.compare_digest(expected, given_signature)
        for given_signature in message.headers["webhook-signature"].split()
    )


async def test_7_an_agent_subscribes_a_webhook_and_verifies_a_delivery(agent: OverviewAgent, store: Store) -> None:
    async with receiving() as receiver:
        await agent.begin()
        section = await agent.section("webhooks")
        credentials = {"client_id": demo.CLIENT_ID, "client_secret": demo.CLIENT_SECRET}  # from its person
        form = {"grant_type": "client_credentials", **credentials}
        token = (await agent.send("POST", section.token_address, data=form)).json()
        agent.headers = {"Authorization": f"{token['token_type']} {token['access_token']}"}
        subscribe = section.operation("POST", "address that receives events")
        created_body = (await agent.run_operation(subscribe, json={**subscribe.example, "url": receiver.url})).json()
        pinged = await agent.run_operation(section.operation("POST", "to test the receiver"), created_body["id"])
        lanes = Sender(webhook_events.outbox_of(store))
        await lanes.open()
        await lanes.drain()

    (message,) = receiver.messages
    post = section.document["webhooks"][message.event["type"]]["post"]
    assert all(message.headers[parameter["name"]] for parameter in post["parameters"])
    members = post["requestBody"]["content"]["application/json"]["example"].keys()
    assert message.event.keys() == members
    assert message.event["id"] == pinged.json()["event_id"] == message.headers["webhook-id"]
    assert is_valid_signature(message, created_body["secret"], time.time())
    assert not is_valid_signature(message._replace(body=message.body + b" "), created_body["secret"], time.time())
    assert not is_valid_signature(message, created_body["secret"], time.time() + 600)
    assert len(agent.requests) <= 6


async def test_8_an_agent_explains_a_403(agent: OverviewAgent, demo_world: World) -> None:
    pat = await Visitor.signed_in(demo_world, EMAIL)
    await agent.begin()
    library_operation = (await agent.section("library")).operation("GET", "entitled")
    known_texts = await let_in(agent, pat, await agent.run_operation(library_operation))
    create = (await agent.section("publishing")).operation("POST", "create a product")
    agent.requests.clear()

    refused_answer = await agent.run_operation(create, json=create.example)
    problem = refused_answer.json()
    page = (await agent.send("GET", problem["type"])).json()

    assert refused_answer.status_code == 403
    missing_match = re.search(r'scope="([^"]+)"', refused_answer.headers["www-authenticate"])
    assert missing_match is not None
    # The response names the missing scope, what to do, and the purpose of the scope.
    assert missing_match[1] in problem["detail"]
    assert missing_match[1] in problem["resolution"]
    link = re.search(r"http\S+md", problem["resolution"])
    assert link is not None
    assert (await agent.http.get(link[0])).text == known_texts["skill"]
    assert (page["code"], bool(page["meaning"]), bool(page["resolution"])) == (problem["code"], True, True)
    assert f"- `{missing_match[1]}`: " in known_texts["skill"]
    assert create.described["security"][1] == {"OAuth2": [missing_match[1]]}
    assert len(agent.requests) <= 2


async def test_9_an_agent_recovers_from_a_429(demo_world: World) -> None:
    low = replace(demo_world.store, settings=replace(demo_world.store.settings, rate_anonymous=3))
    transport = httpx.ASGITransport(distribution.create(low), client=("198.51.100.9", 4321))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
        agent = OverviewAgent(http, ROOT_URL)
        await agent.begin()
        listing = (await agent.section("catalog")).operation("GET", "list products")
        answer = await agent.run_operation(listing)
        while answer.status_code == 200:
            answer = await agent.run_operation(listing)
        agent.requests.clear()

        resolution = re.search(r"GET (\S+), then send its (\w+) as ([\w-]+)", answer.json()["resolution"])
        assert resolution is not None
        # Requests for keys do not count against the quota that is used up.
        key = (await agent.send("GET", resolution[1])).json()[resolution[2]]
        keyed_answer = await agent.run_operation(listing, headers={resolution[3]: key})

    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert keyed_answer.status_code == 200
    assert int(keyed_answer.headers["ratelimit-limit"]) > int(answer.headers["ratelimit-limit"])
    assert len(agent.requests) <= 2


async def test_10_an_agent_revokes_itself(agent: OverviewAgent, demo_world: World) -> None:
    pat = await Visitor.signed_in(demo_world, EMAIL)
    await agent.begin()
    library_operation = (await agent.section("library")).operation("GET", "entitled")
    known_texts = await let_in(agent, pat, await agent.run_operation(library_operation))
    assert (await agent.run_operation(library_operation)).status_code == 200
    agent.requests.clear()

    endpoint, form = re.findall(r"```http\nPOST (\S+)\n[^\n]*urlencoded\n\n(token=\S+)", known_texts["skill"])[0]
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for token in (known_texts["access_token"], known_texts["identity_assertion"]):
        revocation = await agent.send("POST", endpoint, content=form.replace("<ACCESS_TOKEN>", token), headers=headers)
        assert (revocation.status_code, revocation.json()) == (200, {})
    refused_answer = await agent.run_operation(library_operation)

    assert (refused_answer.status_code, refused_answer.json()["code"]) == (401, "invalid_token")
    assert len(agent.requests) <= 3
    # The registration is gone too: its person no longer sees an agent.
    assert "pat" in (await pat.get("/auth/agents")).text
    assert known_texts["registration_id"] not in (await pat.get("/auth/agents")).text
