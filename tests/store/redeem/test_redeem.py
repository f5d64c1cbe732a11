"""Codes: issued once, redeemed exactly as often as permitted, and returned again only for the same idempotency key."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.store.redeem import codes, routes
from countersign.store.redeem.redeem import find_code
from tests.contract.scenes import all_rows
from tests.store.world import World


@pytest.fixture
async def owner(world: World) -> str:
    """A token of the owner of north, who has two products."""
    for slug in ("one", "two"):
        await world.product("north", slug)
    return await world.person("owner@north.example", north="owner")


async def issue(world: World, owner: str, **members: Any) -> list[str]:
    """Issue codes for product one with these members."""
    body = {"kind": "license", "products": ["one"], "count": 1, **members}
    answer = await world.call("POST", "/codes", owner, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["codes"]


async def redeem(world: World, token: str, code: str, **headers: str) -> Any:
    """Redeem a code and return the response."""
    return await world.call("POST", "/redeem", token, json={"code": code}, headers=headers)


async def test_a_licence_is_redeemed_by_only_one_person(world: World, owner: str) -> None:
    (code,) = await issue(world, owner)
    first_person, second_person = await world.person("a@example.com"), await world.person("b@example.com")

    answer = await redeem(world, first_person, code)
    repeated_answer = await redeem(world, first_person, code)
    other_answer = await redeem(world, second_person, code)

    assert answer.status_code == 200
    assert answer.json() == repeated_answer.json()
    assert [response.headers.get("already-redeemed") for response in (answer, repeated_answer, other_answer)] == [
        None,
        "true",
        None,
    ]
    assert answer.json()["success"] is True
    assert (other_answer.status_code, other_answer.json()["code"]) == (409, "code_already_redeemed")
    assert [item["slug"] for item in (await world.call("GET", "/library", first_person)).json()] == ["one"]
    assert (await world.call("GET", "/library", second_person)).json() == []


async def test_a_code_is_accepted_in_every_spelling(world: World, owner: str) -> None:
    (code,) = await issue(world, owner, kind="promo", max_uses=50)
    spellings = [code.lower(), code.replace("-", ""), code.replace("-", " "), f"  {code}  "]
    spellings += [code.replace("0", "o").replace("1", letter) for letter in "iIlL"]

    for number, spelling in enumerate(spellings):
        assert (await redeem(world, await world.person(f"p{number}@example.com"), spelling)).is_success, spelling


async def test_a_window_that_is_not_open_is_410(world: World, owner: str) -> None:
    now = datetime.now(UTC)
    (early_code,) = await issue(world, owner, valid_from=(now + timedelta(days=1)).isoformat())
    (late_code,) = await issue(world, owner, expires_at=(now + timedelta(days=1)).isoformat())
    person = await world.person("a@example.com")

    early_answer = await redeem(world, person, early_code)
    with clock.fixed(clock.later(clock.now(), seconds=2 * 86_400)):
        token = await world.person_token("a@example.com", "read:library")
        late_answer = await redeem(world, token, late_code)

    assert (early_answer.status_code, early_answer.json()["code"]) == (410, "code_expired")
    assert (late_answer.status_code, late_answer.json()["code"]) == (410, "code_expired")
    assert early_answer.json()["resolution"].startswith("Redeem the code again from ")
    assert late_answer.json()["resolution"] == "Ask the person who gave you the code for another code."


async def test_a_revoked_batch_is_no_longer_redeemed_and_may_revoke_its_entitlements(world: World, owner: str) -> None:
    used_code, unused = await issue(world, owner, count=2)
    person, other_person = await world.person("a@example.com"), await world.person("b@example.com")
    await redeem(world, person, used_code)
    batch = (await world.call("GET", "/codes", owner)).json()[0]
    assert (batch["count"], batch["uses"], batch["status"]) == (2, 1, "active")

    kept_response = await world.call("POST", f"/codes/{batch['batch_id']}/revoke", owner)
    refused_answer = await redeem(world, other_person, unused)
    library_after = (await world.call("GET", "/library", person)).json()
    taken_response = await world.call("POST", f"/codes/{batch['batch_id']}/revoke", owner, json={"entitlements": True})

    assert kept_response.json()["revoked_entitlements"] == 0
    assert (refused_answer.status_code, refused_answer.json()["code"]) == (410, "code_revoked")
    assert len(library_after) == 1
    assert taken_response.json()["revoked_entitlements"] == 1
    assert (await world.call("GET", "/library", person)).json() == []


@pytest.mark.parametrize("change", ["code_revoked", "code_already_redeemed"])
async def test_a_code_changed_between_lookup_and_redemption_grants_nothing(
    world: World, owner: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = await issue(world, owner)
    person, other_person = await world.person("a@example.com"), await world.person("b@example.com")
    batch = (await world.call("GET", "/codes", owner)).json()[0]["batch_id"]

    async def find_and_change(*arguments: Any) -> Any:
        found_code = await find_code(*arguments)
        monkeypatch.setattr(routes, "find_code", find_code)
        if change == "code_revoked":
            assert (await world.call("POST", f"/codes/{batch}/revoke", owner)).is_success
        else:
            assert (await redeem(world, other_person, code)).is_success
        return found_code

    monkeypatch.setattr(routes, "find_code", find_and_change)
    late_answer = await redeem(world, person, code)

    assert late_answer.json()["code"] == change
    assert (await world.call("GET", "/library", person)).json() == []
    assert (await world.call("GET", "/codes", owner)).json()[0]["uses"] == (change == "code_already_redeemed")


async def test_a_code_for_several_products_grants_all_of_them_and_a_code_for_owned_products_stays_unused(
    world: World, owner: str
) -> None:
    (code_of_both,) = await issue(world, owner, products=["two", "one"])
    (spare,) = await issue(world, owner)
    person, other_person = await world.person("a@example.com"), await world.person("b@example.com")

    answer = (await redeem(world, person, code_of_both)).json()
    owned_body = (await redeem(world, person, spare)).json()

    assert len(answer["products"]) == 2
    assert answer["product_id"] == answer["products"][0]
    assert (answer["already_owned"], owned_body["already_owned"]) == (False, True)
    assert (await redeem(world, other_person, spare)).is_success


async def test_a_client_redeems_for_its_organisation(world: World, owner: str) -> None:
    (code,) = await issue(world, owner)
    first_token, second_token = await world.client_token("south"), await world.client_token("south")

    assert (await redeem(world, first_token, code)).is_success

    assert [item["slug"] for item in (await world.call("GET", "/library", second_token)).json()] == ["one"]


async def test_guesses_are_limited_for_each_person_and_only_wrong_codes_count(world: World, owner: str) -> None:
    (code,) = await issue(world, owner)
    guesser, honest = await world.person("a@example.com"), await world.person("b@example.com")

    wrong_answers = [await redeem(world, guesser, f"WRONG-{number}") for number in range(10)]
    limited_response = await redeem(world, guesser, "WRONG-AGAIN")

    assert {(answer.status_code, answer.json()["code"]) for answer in wrong_answers} == {(404, "code_not_found")}
    assert (limited_response.status_code, limited_response.json()["code"]) == (429, "rate_limit_exceeded")
    assert int(limited_response.headers["retry-after"]) > 0
    assert (await redeem(world, honest, code)).is_success


async def test_guessing_is_limited_for_each_address(world: World, owner: str) -> None:
    (code,) = await issue(world, owner)
    for number in range(5):
        token = await world.person(f"p{number}@example.com")
        for guess in range(10):
            assert (await redeem(world, token, f"WRONG-{guess}")).status_code == 404

    late_token = await world.person("late@example.com")
    limited_response = await redeem(world, late_token, "WRONG")
    assert (limited_response.status_code, limited_response.headers["ratelimit-limit"]) == (429, "50")
    assert (await redeem(world, late_token, code)).is_success


async def test_codes_are_stored_as_hashes_and_shown_again_only_for_their_idempotency_key(
    world: World, owner: str
) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"kind": "promo", "products": ["one"], "count": 3, "max_uses": 2}

    first_response = await world.call("POST", "/codes", owner, json=body, headers=key)
    second_response = await world.call("POST", "/codes", owner, json=body, headers=key)
    other_response = await world.call("POST", "/codes", owner, json={**body, "count": 4}, headers=key)
    rows = str(await all_rows(world.store)) + str(await world.store.database.fetch("SELECT body FROM idempotency"))

    assert first_response.status_code == second_response.status_code == 201
    assert first_response.json() == second_response.json()
    assert second_response.headers["idempotency-replayed"] == "true"
    assert (other_response.status_code, other_response.json()["code"]) == (422, "idempotency_key_reused")
    assert first_response.headers["cache-control"] == second_response.headers["cache-control"] == "no-store"
    assert len((await world.call("GET", "/codes", owner)).json()) == 1
    for code in first_response.json()["codes"]:
        assert code not in rows
        assert codes.normalize(code) not in rows


async def test_a_large_batch_is_downloaded_as_csv_and_every_code_works_once(world: World, owner: str) -> None:
    body = {"kind": "license", "products": ["one"], "count": 12_345}

    answer = await world.call("POST", "/codes", owner, json=body, headers={"Accept": "text/csv"})
    head, *lines = answer.text.splitlines()

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert head == "code"
    assert len(set(lines)) == 12_345
    assert (await redeem(world, await world.person("a@example.com"), lines[-1])).is_success
    assert (await world.call("GET", "/codes", owner)).json()[0]["uses"] == 1


@pytest.mark.full
async def test_a_million_codes_are_issued_in_one_call(world: World, owner: str) -> None:
    body = {"kind": "license", "products": ["one"], "count": 1_000_000}

    answer = await world.call("POST", "/codes", owner, json=body, headers={"Accept": "text/csv"})

    assert len(set(answer.text.splitlines())) == 1_000_001


async def test_sixty_four_clients_redeem_a_code_with_a_hundred_uses_exactly_a_hundred_times(
    world: World, owner: str, is_full: bool
) -> None:
    too_many = 200 if is_full else 64
    (code,) = await issue(world, owner, kind="promo", max_uses=100)
    tokens = [await world.person(f"p{number}@example.com") for number in range(100 + too_many)]
    waiting_tokens = iter(tokens)
    statuses: list[int] = []

    async def client() -> None:
        for token in waiting_tokens:
            answers = await asyncio.gather(redeem(world, token, code), redeem(world, token, code))
            statuses.extend({answer.status_code for answer in answers})

    await asyncio.gather(*(client() for _ in range(64)))

    entitlements = await world.store.database.fetch("SELECT owner FROM entitlement")
    uses = await world.store.database.fetch("SELECT uses FROM code")
    redemptions = await world.store.database.fetch("SELECT owner FROM redemption")
    assert sorted(statuses) == [200] * 100 + [409] * too_many
    assert len(entitlements) == len(redemptions) == 100
    assert uses == [(100,)]


async def test_an_archived_product_is_gone_for_strangers_and_kept_for_its_owners(world: World, owner: str) -> None:
    (code,) = await issue(world, owner)
    person = await world.person("a@example.com")
    assert (await world.call("DELETE", "/products/one", owner)).status_code == 204
    assert (await world.call("DELETE", "/products/one", owner)).status_code == 204

    assert (await world.call("GET", "/products/one", person)).status_code == 404
    assert (await redeem(world, person, code)).is_success

    assert (await world.call("GET", "/products/one", person)).is_success
    assert [item["slug"] for item in (await world.call("GET", "/library", person)).json()] == ["one"]
    owned_response = await world.call("DELETE", "/products/two", owner)
    assert owned_response.status_code == 204
