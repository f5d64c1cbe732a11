"""Authorization codes: each is valid once, for one client, one redirect address and one verifier."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.store.auth.oauth import consents
from tests.figures import Figures
from tests.store.auth.oauth.conftest import (
    VERIFIER,
    Browser,
    KnownClient,
    code_for,
    exchange,
    new_client,
    oauth_refusal,
)
from tests.store.world import World

GONE = (400, "invalid_grant")


async def works(world: World, token: str) -> bool:
    """Return whether a token is accepted."""
    return (await world.call("GET", "/library", token)).status_code == 200


async def test_t36_a_used_code_is_refused_and_its_tokens_are_revoked(
    world: World, browser: Browser, client: KnownClient
) -> None:
    code = await code_for(browser, client)
    token = (await exchange(world, client, code)).json()["access_token"]
    other_access_token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    assert await works(world, token)

    assert oauth_refusal(await exchange(world, client, code)) == GONE

    assert not await works(world, token)
    assert await works(world, other_access_token), "what another code gave is not touched"


async def test_t36_only_one_of_several_concurrent_exchanges_succeeds(
    world: World, browser: Browser, client: KnownClient, is_full: bool, figures: Figures
) -> None:
    races = 1000 if is_full else 60
    for _ in range(races):
        code = await code_for(browser, client)

        answers = await asyncio.gather(*(exchange(world, client, code) for _ in range(3)))

        assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
        winner = next(answer.json()["access_token"] for answer in answers if answer.status_code == 200)
        assert not await works(world, winner), "somebody else has had the code: what it gave has ended"
    figures.update(races=races, exchanges_each=3, winners_each=1)


async def test_t36_a_code_is_of_no_use_to_another_client_and_burns_in_its_hands(
    world: World, browser: Browser, client: KnownClient
) -> None:
    thief = await new_client(world, name="Thief")
    code = await code_for(browser, client)

    assert oauth_refusal(await exchange(world, thief, code)) == GONE
    assert oauth_refusal(await exchange(world, client, code)) == GONE


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": ""},
        {"code_verifier": "w" * 43},
        {"code_verifier": VERIFIER + "v"},
        {"code_verifier": "short"},
        {"code_verifier": ""},
    ],
)
async def test_t36_a_wrong_address_or_verifier_burns_the_code(
    world: World, browser: Browser, client: KnownClient, changes: dict[str, str]
) -> None:
    code = await code_for(browser, client)

    assert oauth_refusal(await exchange(world, client, code, **changes)) == GONE
    assert oauth_refusal(await exchange(world, client, code)) == GONE


async def test_t36_unknown_and_missing_codes_are_refused(world: World, client: KnownClient) -> None:
    assert oauth_refusal(await exchange(world, client, "cac_unknown")) == GONE
    assert oauth_refusal(await exchange(world, client, "")) == (400, "invalid_request")


async def test_t36_a_code_lives_for_a_minute(
    world: World, browser: Browser, client: KnownClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = await code_for(browser, client)
    later_time = clock.later(clock.now(), seconds=consents.CODE_VALID_S)
    monkeypatch.setattr(clock, "now", lambda: later_time)

    assert oauth_refusal(await exchange(world, client, code)) == GONE


async def test_t37_a_verifier_of_a_plain_challenge_proves_nothing(
    world: World, browser: Browser, client: KnownClient
) -> None:
    code = await code_for(browser, client, code_challenge=VERIFIER)

    assert oauth_refusal(await exchange(world, client, code)) == GONE


async def test_t39_a_code_needs_its_clients_secret(world: World, browser: Browser, client: KnownClient) -> None:
    code = await code_for(browser, client)
    form = {"grant_type": "authorization_code", "code": code, "client_id": client.id, "code_verifier": VERIFIER}

    secretless = await world.http.post("/api/v1/auth/token", data=form)

    assert oauth_refusal(secretless) == (401, "invalid_client")
    assert (await exchange(world, client, code)).status_code == 200, "who is nobody burns nothing"


async def test_only_the_hash_of_a_code_is_stored_and_old_codes_are_deleted(
    world: World, browser: Browser, client: KnownClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = await code_for(browser, client)
    [(code_hash,)] = await world.store.database.fetch("SELECT code_hash FROM authorization_code")
    assert code.encode() not in bytes(code_hash)

    async def forgotten() -> int:
        async with world.store.database.transaction() as transaction:
            return await consents.forget_old_codes(transaction)

    assert await forgotten() == 0
    much_later = clock.later(clock.now(), seconds=86_400 + 61)
    monkeypatch.setattr(clock, "now", lambda: much_later)
    assert await forgotten() == 1


async def test_a_clients_tokens_for_people_end_with_the_client(
    world: World, browser: Browser, client: KnownClient
) -> None:
    token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    owner = await world.person("owner@north.example", north="owner")

    await world.call("DELETE", f"/org/clients?client_id={client.id}", owner)

    assert not await works(world, token)


async def test_tokens_carry_when_the_person_signed_in(world: World, browser: Browser, client: KnownClient) -> None:
    token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]

    claims = world.store.tokens.verify(token)

    now_s = clock.now() // clock.SECOND
    assert claims.auth_time is not None
    assert now_s - 60 <= claims.auth_time <= now_s
