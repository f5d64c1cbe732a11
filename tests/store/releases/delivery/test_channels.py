"""The statement of a channel names its current build. Its number only increases, and it is renewed before it
expires."""

import asyncio
import base64
import json
from typing import Any

from countersign.kernel import clock
from tests.store.releases.processing.works import JobRunner, tar


async def channel_statement(works: JobRunner, channel: str = "stable") -> dict[str, Any]:
    state = await works.get(f"/channels/{channel}")
    return json.loads(base64.b64decode(state["statement"]["payload"]))


async def publish_built(works: JobRunner, version: str) -> None:
    await works.upload_and_process(tar({"version": version.encode()}), version)
    await works.publish(version)


async def test_an_unchanged_channel_keeps_its_statement(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")

    assert await channel_statement(works) == await channel_statement(works)


async def test_every_change_has_a_higher_number(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")
    first_statement = await channel_statement(works)
    await publish_built(works, "1.2.0")
    second_statement = await channel_statement(works)
    path = f"/products/{works.shop.product_id}/releases/1.2.0/yank"
    await works.shop.world.call("POST", path, works.shop.token, json={"reason": "broken"})
    third_statement = await channel_statement(works)

    assert [statement["version"] for statement in (first_statement, second_statement, third_statement)] == [
        "1.1.0",
        "1.2.0",
        "1.1.0",
    ]
    assert first_statement["counter"] < second_statement["counter"] < third_statement["counter"]


async def test_a_release_without_a_build_moves_no_channel(works: JobRunner) -> None:
    path = f"/products/{works.shop.product_id}/channels/stable"
    answer = await works.shop.world.call("GET", path)

    assert (answer.status_code, answer.json()["code"]) == (404, "nothing_built")
    await publish_built(works, "0.9.0")
    assert (await channel_statement(works))["version"] == "0.9.0"


async def test_a_promoted_release_moves_both_channels(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")
    await publish_built(works, "1.2.0")
    await channel_statement(works)
    path = f"/products/{works.shop.product_id}/releases/1.2.0/promote"

    await works.shop.world.call("POST", path, works.shop.token, json={"channel": "beta"})

    assert (await channel_statement(works, "beta"))["version"] == "1.2.0"
    assert (await channel_statement(works))["version"] == "1.1.0"


async def test_a_statement_is_renewed_when_half_of_its_life_is_over(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")
    first_statement = await channel_statement(works)
    ttl_s = works.store.settings.statement_ttl_s

    with clock.fixed(clock.later(clock.now(), seconds=ttl_s * 0.4)):
        assert await channel_statement(works) == first_statement
    with clock.fixed(clock.later(clock.now(), seconds=ttl_s * 0.6)):
        renewed = await channel_statement(works)

    assert renewed["counter"] > first_statement["counter"]
    assert renewed["expires_at"] > first_statement["expires_at"]


async def test_a_rotated_key_signs_the_next_statement(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")
    channel_before = await works.get("/channels/stable")
    owner = await works.shop.world.person("olga@north.example", north="owner")

    fresh_key = (await works.shop.world.call("POST", "/org/signing-keys", owner)).json()

    channel_after = await works.get("/channels/stable")
    assert channel_after["statement"]["signatures"][0]["keyid"] == fresh_key["keyid"]
    assert channel_after["root"] == channel_before["root"]
    assert len(channel_after["rotations"]) == 1


async def test_concurrent_callers_get_the_same_answers(works: JobRunner) -> None:
    await publish_built(works, "1.1.0")

    results = await asyncio.gather(*(channel_statement(works) for _ in range(8)))

    by_number: dict[int, str] = {}
    for statement in results:
        statement_text = json.dumps(statement, sort_keys=True)
        assert by_number.setdefault(statement["counter"], statement_text) == statement_text, "one number, one statement"
