"""Who may announce files of a release, and which files."""

import pytest

from tests.store.files import Shop, pattern, product, release

DATA = pattern(100)


async def test_an_announcement_gives_a_secret_address_and_when_it_expires(shop: Shop) -> None:
    answer = await shop.announce(100, platform="linux")

    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert set(body) == {"artifact_id", "upload_url", "expires_at"}
    assert body["upload_url"].startswith(f"{shop.store.base_url}/artifacts/uploads/cup_")


@pytest.mark.parametrize(
    ("members", "expected_pointer"),
    [
        ({"filename": "a/b"}, "/filename"),
        ({"filename": ""}, "/filename"),
        ({"filename": ".."}, "/filename"),
        ({"filename": "ü" * 200}, "/filename"),
        ({"size": 0}, "/size"),
        ({"size": -1}, "/size"),
        ({"size": 1.5}, "/size"),
        ({"size": (204800 << 20) + 1}, "/size"),
        ({"size": 1 << 70}, "/size"),
        ({"platform": "amiga"}, "/platform"),
        ({"sha256": "xyz"}, "/sha256"),
        ({"sha256": "0" * 63}, "/sha256"),
        ({"colour": "red"}, "/colour"),
    ],
)
async def test_a_bad_announcement_names_the_member(
    shop: Shop, members: dict[str, object], expected_pointer: str
) -> None:
    path = f"/products/{shop.product_id}/releases/1.0.0/artifacts"

    answer = await shop.world.call("POST", path, shop.token, json={"filename": "a", "size": 1, **members})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["errors"][0]["pointer"] == expected_pointer


async def test_a_ready_file_is_never_replaced(shop: Shop) -> None:
    await shop.upload(DATA)

    same_answer, other_file = await shop.announce(100), await shop.announce(100, "Game.zip")

    assert (same_answer.status_code, same_answer.json()["code"]) == (409, "filename_taken")
    assert other_file.status_code == 201


async def test_a_yanked_release_takes_no_more_files(shop: Shop) -> None:
    path = f"/products/{shop.product_id}/releases/1.0.0/yank"
    await shop.world.call("POST", path, shop.token, json={"reason": "broken"})

    answer = await shop.announce(100)

    assert (answer.status_code, answer.json()["code"]) == (409, "release_yanked")


async def test_strangers_learn_nothing_of_a_draft_and_are_turned_away_from_what_is_public(shop: Shop) -> None:
    world = shop.world
    stranger = await world.person("s@south.example", south="publisher")
    viewer = await world.person("v@north.example", north="viewer")
    hidden_product = await product(world, shop.token, "hidden")
    await release(world, shop.token, hidden_product, "1.0.0", publish=False)
    body = {"filename": "a", "size": 1}

    async def announce(token: str | None, product: str) -> tuple[int, str]:
        path = f"/products/{product}/releases/1.0.0/artifacts"
        answer = await world.call("POST", path, token, json=body)
        return answer.status_code, answer.json()["code"]

    assert await announce(None, shop.product_id) == (401, "invalid_token")
    assert await announce(stranger, shop.product_id) == (403, "insufficient_scope")
    assert await announce(viewer, shop.product_id) == (403, "insufficient_scope")
    assert await announce(stranger, hidden_product) == (404, "resource_not_found")
    missing_response = await world.call("POST", "/products/nothing/releases/1.0.0/artifacts", stranger, json=body)
    secret = await world.call("POST", "/products/hidden/releases/1.0.0/artifacts", stranger, json=body)
    assert missing_response.content.replace(b"nothing", b"hidden") == secret.content


async def test_an_announcement_repeated_with_its_key_is_the_same(shop: Shop) -> None:
    path = f"/products/{shop.product_id}/releases/1.0.0/artifacts"
    headers = {"Idempotency-Key": "0193b1de-0000-7000-8000-000000000001"}
    body = {"filename": "a", "size": 1}

    first_answer = await shop.world.call("POST", path, shop.token, json=body, headers=headers)
    second_answer = await shop.world.call("POST", path, shop.token, json=body, headers=headers)

    assert first_answer.json() == second_answer.json()
    assert second_answer.headers["Idempotency-Replayed"] == "true"


async def test_a_ready_file_appears_in_the_releases_at_once(shop: Shop) -> None:
    path = f"/products/{shop.product_id}/releases"
    releases_before = (await shop.world.call("GET", path)).json()

    artifact = await shop.upload(DATA)

    releases_after = (await shop.world.call("GET", path)).json()
    assert releases_before[0]["artifacts"] == []
    assert releases_after[0]["artifacts"] == [artifact]
