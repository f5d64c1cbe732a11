"""GET /me/export: everything that the store keeps about a person, without secrets and without data of others."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign import store
from countersign.kernel.security import secrets
from countersign.store.auth import accounts, queries
from countersign.store.personal import export
from tests.store.personal.test_collections import create
from tests.store.world import World

ABOUT_ORGANISATIONS = {"webhook", "webhook_event"}
EXPORTED_BY_OTHERS = {"session", "notification_state"}
"""Tables that the export reads with the functions of other modules."""
EXPORTED = {
    *("person", "membership", "session", "entitlement", "library_item", "redemption", "follow", "product_collection"),
    *("notification_state", "registration", "consent", "delegation", "email_proof"),
}
ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
async def ann(world: World) -> str:
    """Return a session token of a person with something of everything."""
    await fill(world, ANN)
    await fill(world, BOB)
    return await world.session_token(ANN)


async def fill(world: World, email: str) -> None:
    """Create a person about whom the store keeps something in each table."""
    name = email.partition("@")[0]
    await world.org(f"of-{name}")
    await world.person(email, **{f"of_{name}": "owner"})
    token = await world.session_token(email)
    slug = f"{name}-product"
    await world.product(f"of-{name}", slug)
    issued = await world.call("POST", "/codes", token, json={"kind": "license", "products": [slug], "count": 1})
    code = issued.json()["codes"][0]
    assert (await world.call("POST", "/redeem", token, json={"code": code})).is_success
    collection = await create(world, token, f"collection of {name}")
    for method, path, body in (
        ("PUT", f"/me/collections/{collection}/items/{slug}", None),
        ("PUT", f"/me/follows/product/{slug}", None),
        ("PATCH", f"/library/{slug}", {"note": f"note of {name}"}),
        ("POST", "/me/notifications/seen", {}),
    ):
        assert (await world.call(method, path, token, json=body)).is_success, path
    person = await queries.person_with_email(world.store.database, email)
    assert person is not None
    async with world.store.database.transaction() as transaction:
        await accounts.add_link(transaction, secrets.digest(email), accounts.EmailLink(email, "/"), 60)
        await transaction.run(
            "INSERT INTO registration (id, kind, status, generation, person_id, scopes, agent, address, interval_s,"
            " created_at) VALUES ($1, 'service_auth', 'claimed', 2, $2, 'read:library', $3, '192.0.2.1', 5, 1)",
            f"reg_{name}",
            person.id,
            f"agent of {name}",
        )
        await transaction.run(
            "INSERT INTO consent (id, person_id, client_id, scopes, generation, created_at, sites)"
            " VALUES ($1, $2, $3, 'read:library', 1, 1, '[\"https://app.example\"]')",
            f"con_{name}",
            person.id,
            f"client of {name}",
        )
        await transaction.run(
            "INSERT INTO delegation (issuer, subject, person_id, created_at) VALUES ('https://id.example', $1, $2, 1)",
            f"subject of {name}",
            person.id,
        )


async def exported(world: World, token: str) -> dict[str, Any]:
    """Return the document of the caller."""
    answer = await world.call("GET", "/me/export", token)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def test_the_document_has_everything_of_the_person(world: World, ann: str) -> None:
    document = await exported(world, ann)

    assert (document["person"]["email"], document["person"]["has_password"]) == (ANN, False)
    assert [(role["org"], role["role"]) for role in document["roles"]] == [("of-ann", "owner")]
    (item,) = document["library"]
    assert (item["product"], item["note"]) == ("ann-product", "note of ann")
    assert [f"batch:{each['batch_id']}" for each in document["redeemed_codes"]] == [item["source"]]
    assert len(document["email_links"]) == 1
    assert [(follow["type"], follow["slug"]) for follow in document["follows"]] == [("product", "ann-product")]
    (collection,) = document["collections"]
    assert (collection["name"], [each["product"] for each in collection["items"]]) == (
        "collection of ann",
        ["ann-product"],
    )
    assert [(each["id"], each["name"], each["scopes"]) for each in document["agents"]] == [
        ("reg_ann", "agent of ann", ["read:library"])
    ]
    assert [(each["client_id"], each["sites"]) for each in document["consents"]] == [
        ("client of ann", ["https://app.example"])
    ]
    assert [each["subject"] for each in document["identities"]] == ["subject of ann"]
    assert [each["is_current"] for each in document["sessions"]] == [True, False]
    assert document["notifications_seen_until"] is not None


async def test_the_document_has_no_secret_and_nothing_of_another_person(world: World, ann: str) -> None:
    answer = await world.call("GET", "/me/export", ann)

    assert "bob" not in answer.text
    for table, column in (("session", "token_hash"), ("redemption", "code_hash"), ("email_proof", "token_hash")):
        for (value,) in await world.store.database.fetch(f"SELECT {column} FROM {table}"):
            assert bytes(value).hex() not in answer.text
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["content-disposition"] == 'attachment; filename="countersign-account.json"'


async def test_a_long_library_is_complete(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE_ROWS", 2)
    await world.person(ANN)
    slugs = [f"p-{number}" for number in range(5)]
    await world.grant(ANN, *[await world.product("north", slug) for slug in slugs])
    token = await world.session_token(ANN)
    collection = await create(world, token, "All")
    for slug in slugs:
        await world.call("PUT", f"/me/collections/{collection}/items/{slug}", token)
    await create(world, token, "Empty")

    document = await exported(world, token)

    assert sorted(item["product"] for item in document["library"]) == slugs
    by_name = {each["name"]: each["items"] for each in document["collections"]}
    assert sorted(item["product"] for item in by_name["All"]) == slugs
    assert by_name["Empty"] == []


async def test_a_person_without_anything_gets_empty_lists(world: World) -> None:
    await world.person(ANN)

    document = await exported(world, await world.session_token(ANN))

    lists = {name: len(value) for name, value in document.items() if isinstance(value, list)}
    assert {name for name, length in lists.items() if length} == {"sessions"}
    assert document["notifications_seen_until"] is None


async def test_only_a_whole_session_may_export(world: World) -> None:
    token = await world.person(ANN)
    key = (await world.http.get("/api/keys")).json()["api_key"]

    answers: list[httpx.Response] = [
        await world.call("GET", "/me/export", each) for each in (token, await world.client_token("north"))
    ]
    with_key = await world.http.get("/api/v1/me/export", headers={"X-API-Key": key})

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "session_required")] * 2
    assert with_key.status_code == 403
    assert (await world.call("GET", "/me/export")).status_code == 401


def test_each_table_about_a_person_is_exported_or_not_about_people() -> None:
    """A new table that refers to a person fails here until the export has it."""
    schema = (Path(store.__file__).parent / "schema.sql").read_text()
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\);", schema, re.DOTALL)
    about_people = {name for name, columns in tables if re.search(r"\b(person_id|owner|email) TEXT", columns)}
    source = Path(export.__file__).read_text()

    assert about_people - ABOUT_ORGANISATIONS == EXPORTED
    assert all(re.search(rf"\b{name}\b", source) or name in EXPORTED_BY_OTHERS for name in EXPORTED)
