"""The sandbox: the whole API on a temporary data set of the caller."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from countersign.kernel import clock
from countersign.store import app as distribution
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.store.sandbox.data import PRODUCT, SandboxCaller, files
from tests.store.world import World

OWN = ("/sandbox", "/api/v1/sandbox")
TOLD = {"sandbox": True, "status": "ok", "environment": "sandbox", "free_tier": True, "self_serve_keys": True}


@pytest.mark.parametrize("root", OWN)
async def test_the_sandbox_describes_itself_at_its_root_and_in_its_api(world: World, root: str) -> None:
    answer = await world.http.get(root)

    assert (answer.status_code, answer.json()) == (200, TOLD)
    assert (await world.http.get(f"{root}?format=text")).headers["content-type"] == "text/plain; charset=utf-8"
    assert (await world.http.get(f"{root}?format=yaml")).headers["content-type"] == "application/yaml"
    assert "<dt>environment</dt>" in (await world.http.get(f"{root}?format=html")).text
    assert "True" not in (await world.http.get(f"{root}?format=html")).text
    assert (await world.http.get(f"{root}?format=other")).json() == TOLD
    for path, extra_members in (("/health", {"environment": "sandbox"}), ("/telemetry", {"active_agents": 0})):
        assert (await world.http.get(f"{root}/api/v1{path}")).json() == {"status": "ok", **extra_members}


@pytest.mark.parametrize("tier", ["community", "sandbox", "agent"])
async def test_any_key_may_read_the_description_of_the_sandbox(world: World, front: SandboxRouter, tier: str) -> None:
    caller = await SandboxCaller.create(world, front, tier)

    for root in OWN:
        for path in ("", "/api/v1/health", "/api/v1/telemetry"):
            answer = await world.http.get(f"{root}{path}", headers={"X-API-Key": caller.key})
            assert answer.status_code == 200, answer.text


async def test_active_agents_are_the_callers_of_the_last_quarter_of_an_hour(world: World, front: SandboxRouter) -> None:
    async def active() -> int:
        return (await world.http.get("/sandbox/api/v1/telemetry")).json()["active_agents"]

    first_caller, second_caller = (
        await SandboxCaller.create(world, front),
        await SandboxCaller.create(world, front, "agent"),
    )
    for _ in range(3):
        await first_caller.call("GET", "/products")
    await second_caller.call("GET", "/products")
    await world.http.get("/sandbox/api/v1/products")

    assert await active() == 3
    with clock.fixed(clock.later(clock.now(), seconds=901)):
        assert await active() == 0


@pytest.mark.parametrize("tier", ["sandbox", "agent"])
async def test_a_key_is_the_owner_of_an_organisation_among_the_demonstration(
    world: World, front: SandboxRouter, tier: str
) -> None:
    caller = await SandboxCaller.create(world, front, tier)

    created_response = await caller.call("POST", "/products", json=PRODUCT)
    me = await caller.call("GET", "/auth/me", headers={})

    assert created_response.status_code == 201, created_response.text
    assert created_response.json()["org"] == "sandbox"
    assert me.json()["email"] == "owner@sandbox.example"
    assert len(me.json()["scope"].split()) == 6
    assert {"aurora-freight", "made"} <= await caller.slugs()
    bearer = {"Authorization": f"Bearer {caller.key}"}
    assert (await world.http.get("/sandbox/api/v1/products/made", headers=bearer)).status_code == 200


async def test_a_write_without_a_key_is_refused_with_the_address_for_keys(world: World) -> None:
    read_response = await world.http.get("/sandbox/api/v1/products")
    refused_response = await world.http.post("/sandbox/api/v1/products", json=PRODUCT)

    assert len(read_response.json()["items"]) == 20
    assert (refused_response.status_code, refused_response.json()["code"]) == (401, "invalid_token")
    assert "http://127.0.0.1:8480/api/keys?tier=sandbox" in refused_response.json()["resolution"]


async def test_links_lead_into_the_sandbox_and_problems_to_the_service(sandbox: SandboxCaller) -> None:
    created_response = await sandbox.call("POST", "/products", json=PRODUCT)
    missing_response = await sandbox.call("GET", "/products/none?x=1")
    listed_answer = await sandbox.call("GET", "/products/made/releases", params={"limit": "1"})
    for number in range(2):
        body = {"version": f"1.0.{number}", "channel": "beta", "notes_only": True}
        await sandbox.call("POST", "/products/made/releases", json=body)
        await sandbox.call("POST", f"/products/made/releases/1.0.{number}/publish")
    listed_answer = await sandbox.call("GET", "/products/made/releases", params={"limit": "1"})
    image = await sandbox.call(
        "POST", "/products/made/media", json={"kind": "icon", "filename": "i.png", "size": 3, "alt": "x"}
    )
    unknown_response = await sandbox.world.http.get("/sandbox/api/v1/nowhere")
    bodies = ({**PRODUCT, "slug": "another"}, {})
    operations = [{"method": "POST", "path": "/api/v1/products", "body": body} for body in bodies]
    batch = await sandbox.call("POST", "/batch", json={"operations": operations, "mode": "atomic"})

    assert created_response.headers["location"] == "http://127.0.0.1:8480/sandbox/api/v1/products/made"
    assert missing_response.json()["type"].startswith("http://127.0.0.1:8480/problems/")
    assert missing_response.json()["instance"] == "http://127.0.0.1:8480/sandbox/api/v1/products/none?x=1"
    assert listed_answer.headers["link"].startswith("<http://127.0.0.1:8480/sandbox/api/v1/products/")
    assert "/api/v1/media/uploads/" in image.json()["upload_url"].removeprefix("http://127.0.0.1:8480/sandbox/")
    assert unknown_response.json()["code"] == "route_not_found"
    types = [result["body"]["type"] for result in batch.json()["results"]]
    assert types == [f"http://127.0.0.1:8480/problems/{name}" for name in ("batch-rolled-back", "invalid-request")]


async def test_the_sandbox_describes_itself_with_its_own_addresses(sandbox: SandboxCaller) -> None:
    http = sandbox.world.http
    described_response = await http.get("/sandbox/openapi.json")
    refused_response = await sandbox.world.http.get("/sandbox/api/v1/library")
    metadata = refused_response.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]

    assert described_response.json()["servers"] == [{"url": "http://127.0.0.1:8480/sandbox"}]
    assert metadata == "http://127.0.0.1:8480/sandbox/.well-known/oauth-protected-resource"
    assert (await http.get(metadata)).json()["resource"].startswith("http://127.0.0.1:8480/sandbox")


async def test_two_keys_and_an_address_see_nothing_of_each_other(world: World, front: SandboxRouter) -> None:
    first_caller, second_caller = (
        await SandboxCaller.create(world, front),
        await SandboxCaller.create(world, front, "agent"),
    )

    await first_caller.call("POST", "/products", json={**PRODUCT, "slug": "of-first", "status": "public"})
    await second_caller.call("POST", "/products", json={**PRODUCT, "slug": "of-second", "status": "public"})

    assert "of-first" in await first_caller.slugs()
    assert "of-second" in await second_caller.slugs()
    assert "of-first" not in await second_caller.slugs()
    assert "of-second" not in await first_caller.slugs()
    for slug in ("of-first", "of-second"):
        assert (await world.http.get(f"/sandbox/api/v1/products/{slug}")).status_code == 404
        assert (await world.http.get(f"/api/v1/products/{slug}")).status_code == 404


async def test_addresses_without_a_key_have_a_data_set_each(world: World, front: SandboxRouter) -> None:
    import httpx

    async def register(address: str) -> httpx.Response:
        transport = httpx.ASGITransport(front, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8480") as client:
            return await client.get("/sandbox/api/v1/products", params={"limit": "1"})

    answers = [await register(address) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1")]

    assert {answer.status_code for answer in answers} == {200}
    names = [folder.name for folder in folders_of(world) if folder.name.startswith("a")]
    assert len(names) == 2


def folders_of(world: World) -> list[Path]:
    """Return the data sets on disk."""
    parent = Path(world.store.settings.data) / folders.FOLDER
    return [path for path in parent.iterdir() if path.name[0] in "ak"]


async def test_a_token_issued_in_the_sandbox_works_only_in_the_sandbox(sandbox: SandboxCaller) -> None:
    http = sandbox.world.http
    client = (await sandbox.call("POST", "/org/clients", json={"name": "ci", "scopes": ["write:products"]})).json()
    form = {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
    }
    token = (await sandbox.call("POST", "/auth/token", data=form)).json()["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}

    created_response = await sandbox.call("POST", "/products", headers=bearer, json=PRODUCT)
    too_much = await sandbox.call("GET", "/library", headers=bearer)
    single_response = await http.get("/sandbox/api/v1/products", headers=bearer)
    service_answer = await http.get("/api/v1/products", headers=bearer)

    assert created_response.status_code == 201
    assert too_much.status_code == 403
    assert [single_response.status_code, service_answer.status_code] == [401, 401]


async def test_a_token_of_an_anonymous_data_set_works_without_a_key(world: World) -> None:
    form = {"grant_type": "client_credentials"}
    basic = ("demo-publisher", "demo-publisher-secret")
    token = (await world.http.post("/sandbox/api/v1/auth/token", data=form, auth=basic)).json()["access_token"]

    created_response = await world.http.post(
        "/sandbox/api/v1/products", headers={"Authorization": f"Bearer {token}"}, json=PRODUCT
    )

    assert created_response.status_code == 201, created_response.text


async def test_credentials_of_the_service_are_not_valid_in_the_sandbox(world: World, front: SandboxRouter) -> None:
    token = await world.person("owner@north.example", north="owner")
    community = await SandboxCaller.create(world, front, "community")

    person = await world.http.get("/sandbox/api/v1/products", headers={"Authorization": f"Bearer {token}"})
    key = await community.call("GET", "/products")

    assert (person.status_code, person.json()["code"]) == (401, "invalid_token")
    assert (key.status_code, key.json()["code"]) == (403, "insufficient_scope")
    assert "tier=sandbox" in key.json()["resolution"]
    assert not community.folder.exists()


async def test_a_key_issued_in_the_sandbox_is_invalid_outside(sandbox: SandboxCaller) -> None:
    inside_api_key = (await sandbox.call("GET", "/api/keys", params={"tier": "agent"})).json()["api_key"]
    headers = {"X-API-Key": inside_api_key}

    for path in ("/api/v1/products", "/sandbox/api/v1/products", "/sandbox"):
        assert (await sandbox.world.http.get(path, headers=headers)).status_code == 401, path


async def test_emails_written_in_the_sandbox_are_not_sent(sandbox: SandboxCaller) -> None:
    await sandbox.call("POST", "/org/members", json={"email": "somebody@example.com", "role": "viewer"})
    registration = await sandbox.call(
        "POST", "/auth/register", json={"method": "service_auth", "email": "somebody@example.com"}
    )
    async with sandbox.front.data_sets.opened(sandbox.name) as data_set:
        await data_set.store.mail.drain()

    assert registration.status_code < 300, registration.text
    assert not [name for name in files(Path(sandbox.world.store.settings.data)) if name.endswith(".eml")]


async def test_many_at_once_open_each_data_set_once(world: World, front: SandboxRouter) -> None:
    owners = [await SandboxCaller.create(world, front) for _ in range(6)]

    answers = await asyncio.gather(
        *(owner.call("POST", "/products", json={**PRODUCT, "slug": f"s{n}"}) for n in range(10) for owner in owners)
    )

    assert {answer.status_code for answer in answers} == {201}
    assert len(folders_of(world)) == 6
    for owner in owners:
        own_products = await owner.call("GET", "/products", params={"org": "sandbox"})
        assert own_products.status_code == 200
        assert {f"s{n}" for n in range(10)} <= await owner.slugs()


async def test_more_sandboxes_than_a_process_keeps_open_are_served(world: World, front: SandboxRouter) -> None:
    owners = [await SandboxCaller.create(world, front) for _ in range(20)]
    for number, owner in enumerate(owners):
        assert (await owner.call("POST", "/products", json={**PRODUCT, "slug": f"s{number}"})).status_code == 201

    sees_product = [f"s{number}" in await owner.slugs() for number, owner in enumerate(owners)]

    assert all(sees_product)


async def test_an_idempotent_call_is_replayed_inside(sandbox: SandboxCaller) -> None:
    headers = {"Idempotency-Key": "6f1b3f0e-2c55-4d7a-9c70-6b0d8c2f5a11"}

    answers = [await sandbox.call("POST", "/products", headers=headers, json=PRODUCT) for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert json.loads(answers[0].content)["slug"] == "made"


async def announce_artifact(sandbox: SandboxCaller, size: int) -> str:
    """Announce an artifact of a draft release and return the upload address."""
    await sandbox.call("POST", "/products", json=PRODUCT)
    await sandbox.call("POST", "/products/made/releases", json={"version": "1.0.0", "channel": "stable"})
    file_body = {"filename": "made.zip", "size": size, "platform": "linux"}
    answer = await sandbox.call("POST", "/products/made/releases/1.0.0/artifacts", json=file_body)
    address: str = answer.json()["upload_url"]
    return address


@pytest.mark.parametrize("has_key", [False, True], ids=["address-alone", "with-key"])
async def test_an_upload_address_works_with_and_without_the_key(sandbox: SandboxCaller, has_key: bool) -> None:
    address = await announce_artifact(sandbox, 6)
    headers = {"X-API-Key": sandbox.key} if has_key else {}

    first_response = await sandbox.world.http.put(
        address, content=b"abc", headers={**headers, "Content-Range": "bytes 0-2/6"}
    )
    shown_response = await sandbox.world.http.get(address, headers=headers)
    second_response = await sandbox.world.http.put(
        address, content=b"def", headers={**headers, "Content-Range": "bytes 3-5/6"}
    )

    assert (first_response.status_code, second_response.status_code) == (204, 201), second_response.text
    assert shown_response.json() == {"received": [[0, 2]], "size": 6}
    artifact = await sandbox.call("GET", second_response.headers["location"].removeprefix("/sandbox/api/v1"))
    assert artifact.status_code == 200, artifact.text


async def test_another_workers_upload_address_reaches_the_data_set(sandbox: SandboxCaller, world: World) -> None:
    address = await announce_artifact(sandbox, 3)
    other_worker = distribution.create(world.store)
    transport = httpx.ASGITransport(other_worker, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport) as client:
        response = await client.put(address, content=b"abc")
    await other_worker.close()

    assert response.status_code == 201, response.text


@pytest.mark.parametrize("path", ["/products", "/auth/me", "/artifacts/uploads", "/media/none", "/jobs"])
async def test_an_upload_address_is_valid_only_for_uploads(sandbox: SandboxCaller, path: str) -> None:
    address = await announce_artifact(sandbox, 3)
    root = address.partition("/api/v1/")[0]

    for headers in ({}, {"X-API-Key": sandbox.key}):
        answer = await sandbox.world.http.get(f"{root}/api/v1{path}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found")


async def test_an_altered_upload_address_reaches_no_data_set(
    sandbox: SandboxCaller, world: World, front: SandboxRouter
) -> None:
    address = await announce_artifact(sandbox, 3)
    root, _, upload_path = address.removeprefix("http://127.0.0.1:8480/sandbox/").partition("/")
    name, _, signature = root.partition(".")
    other_caller = await SandboxCaller.create(world, front)
    for altered in (
        f"{other_caller.name}.{signature}",
        f"{name}.{'0' * 32}",
        f"{name}.",
        name,
        f"{name}.{signature[:-2]}",
    ):
        sent_response = await world.http.put(f"/sandbox/{altered}/{upload_path}", content=b"abc")
        assert sent_response.status_code == 404, altered

    assert not other_caller.folder.exists()
