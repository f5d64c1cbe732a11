"""Products and releases from the first draft to the archive."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from countersign.kernel.database.port import Reader
from countersign.store.catalog.versions import sort_key
from countersign.store.releases import lifecycle
from tests.servers.transaction_waits import TransactionWaits
from tests.store.world import World

PRODUCT: dict[str, Any] = {"slug": "made", "title": "Made", "kind": "tool", "platforms": ["linux"]}


@pytest.fixture
async def owner(world: World) -> str:
    """A token of the owner of north, whose product `made` is a draft."""
    token = await world.person("owner@north.example", north="owner")
    assert (await world.call("POST", "/products", token, json=PRODUCT)).status_code == 201
    return token


async def release(world: World, owner: str, version: str, channel: str = "stable", *, published: bool = True) -> None:
    """Create a release of the product."""
    body = {"version": version, "channel": channel, "notes": f"notes of {version}", "notes_only": True}
    assert (await world.call("POST", "/products/made/releases", owner, json=body)).status_code == 201
    if published:
        assert (await world.call("POST", f"/products/made/releases/{version}/publish", owner)).status_code == 200


async def versions(world: World, token: str | None = None, **parameters: str) -> list[str]:
    """Return the product's releases as the caller sees them."""
    listed_response = await world.call("GET", "/products/made/releases", token, params=parameters)
    return [release["version"] for release in listed_response.json()]


async def test_the_first_published_release_makes_the_product_public(world: World, owner: str) -> None:
    assert (await world.call("GET", "/products/made")).status_code == 404
    await release(world, owner, "1.0.0", published=False)
    assert (await world.call("GET", "/products/made")).status_code == 404

    await world.call("POST", "/products/made/releases/1.0.0/publish", owner)

    shown_body = (await world.call("GET", "/products/made")).json()
    assert shown_body["status"] == "public"
    assert [(channel["channel"], channel["version"]) for channel in shown_body["channels"]] == [("stable", "1.0.0")]


async def test_put_replaces_every_writable_member(world: World, owner: str) -> None:
    full = {**PRODUCT, "description": "d", "tags": ["a"], "homepage": "https://x.example", "license": "MIT"}
    await world.call("PUT", "/products/made", owner, json={**full, "access": "free"})

    product_after = (await world.call("PUT", "/products/made", owner, json=PRODUCT)).json()

    assert "description" not in product_after
    assert (product_after["tags"], product_after["homepage"], product_after["license"]) == ([], None, None)
    assert (product_after["access"], product_after["status"]) == ("entitled", "draft")


async def test_a_change_on_an_old_state_is_412_and_changes_nothing(world: World, owner: str) -> None:
    old = (await world.call("GET", "/products/made", owner)).headers["etag"]
    fresh_answer = await world.call(
        "PUT", "/products/made", owner, json={**PRODUCT, "title": "B"}, headers={"If-Match": old}
    )

    late_response = await world.call(
        "PUT", "/products/made", owner, json={**PRODUCT, "title": "C"}, headers={"If-Match": old}
    )

    assert fresh_answer.status_code == 200
    assert fresh_answer.headers["etag"] != old
    assert (late_response.status_code, late_response.json()["code"]) == (412, "precondition_failed")
    assert (await world.call("GET", "/products/made", owner)).json()["title"] == "B"


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"platforms": ["linux", "linux"]}, "/platforms"),
        ({"tags": ["a", "a"]}, "/tags"),
        ({"slug": "6f1b3f0e-2c55-4d7a-9c70-6b0d8c2f5a11"}, "/slug"),
        ({"title": "   "}, "/title"),
        ({"slug": "Up"}, "/slug"),
        ({"slug": "a\n"}, "/slug"),
        ({"homepage": "javascript:alert(1)"}, "/homepage"),
    ],
)
async def test_a_value_that_only_code_can_reject_is_refused(
    world: World, owner: str, members: dict[str, Any], pointer: str
) -> None:
    body = {**PRODUCT, "slug": "second", **members}

    for method, path in (("POST", "/products"), ("PUT", "/products/made")):
        answer = await world.call(method, path, owner, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer), answer.text


async def test_a_slug_is_unique_in_the_whole_service(world: World, owner: str) -> None:
    south = await world.person("owner@south.example", south="owner")

    taken_response = await world.call("POST", "/products", south, json=PRODUCT)
    await world.call("POST", "/products", south, json={**PRODUCT, "slug": "souths"})
    renamed_response = await world.call("PUT", "/products/souths", south, json=PRODUCT)

    assert (taken_response.status_code, taken_response.json()["code"]) == (409, "slug_taken")
    assert (renamed_response.status_code, renamed_response.json()["code"]) == (409, "slug_taken")
    assert taken_response.json()["detail"] == renamed_response.json()["detail"] == "the slug is taken"


async def test_an_owned_product_is_not_archived(world: World, owner: str) -> None:
    product = (await world.call("GET", "/products/made", owner)).json()["id"]
    await world.person("a@example.com")
    await world.grant("a@example.com", product)

    deletion = await world.call("DELETE", "/products/made", owner)
    put_response = await world.call("PUT", "/products/made", owner, json={**PRODUCT, "status": "archived"})

    assert {deletion.json()["code"], put_response.json()["code"]} == {"product_entitled"}
    assert deletion.status_code == put_response.status_code == 409


async def test_yanked_releases_stay_for_the_entitled_with_their_reason(world: World, owner: str) -> None:
    await release(world, owner, "1.0.0")
    await release(world, owner, "2.0.0")
    entitled = await world.person("a@example.com")
    await world.grant("a@example.com", (await world.call("GET", "/products/made")).json()["id"])

    yanked_response = await world.call(
        "POST", "/products/made/releases/2.0.0/yank", owner, json={"reason": "eats files"}
    )

    assert (yanked_response.json()["status"], yanked_response.json()["yank_reason"]) == ("yanked", "eats files")
    assert await versions(world) == ["1.0.0"]
    assert await versions(world, entitled) == ["2.0.0", "1.0.0"]
    assert (await world.call("GET", "/products/made")).json()["channels"][0]["version"] == "1.0.0"
    second_response = await world.call("POST", "/products/made/releases/2.0.0/publish", owner)
    assert (second_response.status_code, second_response.json()["code"]) == (409, "release_yanked")


async def test_a_release_is_promoted_without_another_upload(world: World, owner: str) -> None:
    await release(world, owner, "1.0.0", "beta")
    await release(world, owner, "2.0.0", "beta", published=False)

    promoted_response = await world.call(
        "POST", "/products/made/releases/1.0.0/promote", owner, json={"channel": "stable"}
    )
    draft = await world.call("POST", "/products/made/releases/2.0.0/promote", owner, json={"channel": "stable"})

    assert promoted_response.json()["channel"] == "stable"
    assert await versions(world, channel="stable") == ["1.0.0"]
    assert await versions(world, channel="beta") == []
    assert (draft.status_code, draft.json()["code"]) == (409, "release_not_published")


async def test_a_version_is_used_once_and_only_its_notes_change(world: World, owner: str) -> None:
    await release(world, owner, "1.0.0")
    repeated_release = await world.call(
        "POST", "/products/made/releases", owner, json={"version": "1.0.0", "channel": "beta"}
    )
    changed_response = await world.call("PUT", "/products/made/releases/1.0.0", owner, json={"notes": None})

    assert (repeated_release.status_code, repeated_release.json()["code"]) == (409, "release_exists")
    assert changed_response.json().get("notes") is None
    assert changed_response.json()["channel"] == "stable"


async def test_a_published_release_does_not_change(world: World, owner: str) -> None:
    await release(world, owner, "1.0.0")
    path = "/products/made/releases/1.0.0"
    same_response = await world.call("PUT", path, owner, json={"notes": "b", "notes_only": True, "channel": "beta"})
    other_response = await world.call("PUT", path, owner, json={"notes": "c", "notes_only": False})
    await world.call("POST", f"{path}/yank", owner, json={"reason": "r"})
    moved_response = await world.call("PUT", path, owner, json={"channel": "stable"})
    noted_response = await world.call("PUT", path, owner, json={"notes": "d", "channel": "beta"})

    assert (same_response.status_code, same_response.json()["channel"], same_response.json()["notes"]) == (
        200,
        "beta",
        "b",
    )
    assert (other_response.status_code, other_response.json()["code"]) == (409, "release_published")
    assert (moved_response.status_code, moved_response.json()["code"]) == (409, "release_yanked")
    assert (noted_response.status_code, noted_response.json()["notes"], noted_response.json()["channel"]) == (
        200,
        "d",
        "beta",
    )


async def test_no_change_of_a_draft_is_applied_between_its_check_and_its_publication(
    world: World, owner: str, monkeypatch: pytest.MonkeyPatch, transaction_waits: TransactionWaits
) -> None:
    # The test itself has an open transaction while it waits for the change.
    transaction_waits.allow("releases/lifecycle.py:_require_builds")
    await release(world, owner, "1.0.0", published=False)
    changes: list[asyncio.Task[Any]] = []

    async def checked(reader: Reader, release_id: str) -> bool:
        notes_only = await is_notes_only(reader, release_id)
        change = world.call("PUT", "/products/made/releases/1.0.0", owner, json={"notes_only": False})
        changes.append(asyncio.ensure_future(change))
        await asyncio.wait(changes, timeout=0.3)
        return notes_only

    is_notes_only = lifecycle.is_notes_only
    monkeypatch.setattr(lifecycle, "is_notes_only", checked)
    published_response = await world.call("POST", "/products/made/releases/1.0.0/publish", owner)
    changed_answer = await changes[0]

    assert (published_response.status_code, published_response.json()["notes_only"]) == (200, True)
    assert (changed_answer.status_code, changed_answer.json()["code"]) == (409, "release_published")


async def test_releases_come_newest_first_in_pages_linked_to_each_other(world: World, owner: str) -> None:
    for number in range(7):
        await release(world, owner, f"1.{number}.0")
    listed_versions: list[str] = []
    path = "/products/made/releases?limit=3"
    while path:
        page = await world.call("GET", path)
        listed_versions += [listed_release["version"] for listed_release in page.json()]
        path = page.headers["link"].split(">")[0].removeprefix("<") if "link" in page.headers else ""

    assert listed_versions == [f"1.{number}.0" for number in reversed(range(7))] == await versions(world)


async def test_an_incomplete_upload_prevents_publishing(world: World, owner: str) -> None:
    await release(world, owner, "1.0.0", published=False)
    body = {"filename": "a.zip", "size": 10}
    await world.call("POST", "/products/made/releases/1.0.0/artifacts", owner, json=body)

    answer = await world.call("POST", "/products/made/releases/1.0.0/publish", owner)

    assert (answer.status_code, answer.json()["code"]) == (409, "upload_incomplete")


async def file_row(world: World, artifact_id: str) -> None:
    """Return the row of a processed file."""
    async with world.store.database.transaction() as transaction:
        await transaction.run(
            """
            INSERT INTO build (artifact_id, org_id, product_id, release_id, platform, manifest_sha256, envelope_sha256,
                               files, size, summary, block_size, blocks, created_at)
            SELECT a.id, p.org_id, p.id, r.id, COALESCE(a.platform, ''), 'm', 'e', 1, 1, '{}', 1, $2, 1
            FROM artifact a JOIN release r ON r.id = a.release_id JOIN product p ON p.id = r.product_id
            WHERE a.id = $1
            """,
            artifact_id,
            b"",
        )


async def test_a_release_is_published_once_each_platform_has_a_build(world: World, owner: str) -> None:
    drafted = {"version": "1.0.0", "channel": "stable"}
    await world.call("POST", "/products/made/releases", owner, json=drafted)
    path = "/products/made/releases/1.0.0"

    async def publish_release() -> tuple[int, str]:
        answer = await world.call("POST", f"{path}/publish", owner)
        return answer.status_code, answer.json().get("code", "") and answer.json()["detail"]

    async def uploaded(filename: str, platform: str | None) -> str:
        body = {"filename": filename, "size": 3, **({"platform": platform} if platform else {})}
        announced_response = await world.call("POST", f"{path}/artifacts", owner, json=body)
        sent_response = await world.http.put(announced_response.json()["upload_url"], content=b"abc")
        assert sent_response.status_code == 201, sent_response.text
        return announced_response.json()["artifact_id"]

    assert await publish_release() == (409, "the release 1.0.0 has no file")
    linux, windows = await uploaded("a.zip", "linux"), await uploaded("b.zip", "windows")
    await uploaded("sums.txt", None)
    no_build_text = "no build exists of a.zip, b.zip, sums.txt: not processed yet, or rejected"
    assert await publish_release() == (409, no_build_text)
    await file_row(world, linux)
    assert await publish_release() == (409, "no build exists of b.zip: not processed yet, or rejected")
    assert await versions(world, owner) == []
    await file_row(world, windows)
    assert await publish_release() == (200, "")
    assert await publish_release() == (200, ""), "publishing twice is fine"


async def test_a_release_with_only_notes_needs_no_build_and_has_no_file(world: World, owner: str) -> None:
    drafted = {"version": "1.0.0", "channel": "stable", "notes": "Moved", "notes_only": True}
    created_response = await world.call("POST", "/products/made/releases", owner, json=drafted)
    announced_response = await world.call(
        "POST", "/products/made/releases/1.0.0/artifacts", owner, json={"filename": "a.zip", "size": 3}
    )
    await world.http.put(announced_response.json()["upload_url"], content=b"abc")

    with_file = await world.call("POST", "/products/made/releases/1.0.0/publish", owner)
    await release(world, owner, "2.0.0", published=False)
    undeclared_response = await world.call("PUT", "/products/made/releases/2.0.0", owner, json={"notes_only": False})
    refused_response = await world.call("POST", "/products/made/releases/2.0.0/publish", owner)
    await world.call("PUT", "/products/made/releases/2.0.0", owner, json={"notes_only": True})
    published_response = await world.call("POST", "/products/made/releases/2.0.0/publish", owner)

    assert (created_response.json()["notes_only"], "notes_only" in undeclared_response.json()) == (True, False)
    assert [(response.status_code, response.json()["code"]) for response in (with_file, refused_response)] == [
        (409, "release_incomplete")
    ] * 2
    assert (published_response.status_code, published_response.json()["notes_only"]) == (200, True)
    assert [
        listed_release["notes_only"] for listed_release in (await world.call("GET", "/products/made/releases")).json()
    ] == [True]


NUMBERS = st.integers(0, 30).map(str)
IDENTIFIERS = st.one_of(NUMBERS, st.text("abcXYZ-", min_size=1, max_size=4))
SEMVERS = st.builds(
    lambda numbers, pre: ".".join(numbers) + (f"-{'.'.join(pre)}" if pre else ""),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.lists(IDENTIFIERS, max_size=3),
)
PACKAGED = st.builds(
    lambda epoch, release, pre, post, dev: f"{epoch}{'.'.join(release)}{pre}{post}{dev}",
    st.sampled_from(["", "1!"]),
    st.one_of(st.lists(NUMBERS, min_size=1, max_size=2), st.lists(NUMBERS, min_size=4, max_size=4)),
    st.sampled_from(["", "a1", "a2", "b1", "rc1", "rc10"]),
    st.sampled_from(["", ".post1", ".post2"]),
    st.sampled_from(["", ".dev1", ".dev2"]),
)


def precedence(version: str) -> Any:
    """Compare versions by SemVer 2.0.0 §11, implemented simply."""
    core, _, pre = version.partition("-")
    numbers = tuple(int(number) for number in core.split("."))
    steps = (
        [(0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier) for identifier in pre.split(".")]
        if pre
        else []
    )
    return numbers, not pre, steps


@given(SEMVERS, SEMVERS)
def test_semantic_versions_sort_by_their_precedence(left: str, right: str) -> None:
    assert (sort_key(left) < sort_key(right)) == (precedence(left) < precedence(right))
    assert (sort_key(left) == sort_key(right)) == (precedence(left) == precedence(right))


@given(PACKAGED, PACKAGED)
def test_other_versions_sort_as_packages_do(left: str, right: str) -> None:
    assert (sort_key(left) < sort_key(right)) == (Version(left) < Version(right))
    assert (sort_key(left) == sort_key(right)) == (Version(left) == Version(right))


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_has_a_place(left: str, right: str) -> None:
    assert isinstance(sort_key(left) < sort_key(right), bool)
