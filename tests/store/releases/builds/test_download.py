"""Downloads: who may download, and how the bytes are sent: completely, as ranges, conditionally, by redirect, and
counted."""

from dataclasses import replace

import httpx
import pytest

from countersign.kernel import clock
from countersign.store import app as distribution
from countersign.store.context import Store
from countersign.store.releases import download
from tests.store.files import Shop, pattern, product, release, sha256_of

DATA = pattern(1000)


async def downloads(shop: Shop) -> int:
    """Return the number of counted downloads."""
    sum_downloads = "SELECT coalesce(sum(value), 0) FROM daily_count WHERE metric = 'downloads'"
    row = await shop.store.database.fetch_one(sum_downloads)
    assert row is not None
    return int(row[0])


async def test_a_sold_product_is_downloaded_only_with_an_entitlement(shop: Shop) -> None:
    world = shop.world
    path = f"/artifacts/{(await shop.upload(DATA))['id']}"
    buyer = await world.person("buyer@example.org")
    other_token = await world.person("other@example.org")
    stranger = await world.client_token("south")
    site = await world.client_token("north", "read:releases")
    blind = await world.client_token("north", "read:library")
    await world.grant("buyer@example.org", shop.product_id)

    anonymous = await world.call("GET", path)

    assert (anonymous.status_code, anonymous.json()["code"]) == (401, "invalid_token")
    assert "resource_metadata=" in anonymous.headers["WWW-Authenticate"]
    for token, status, code in (
        (buyer, 200, None),
        (shop.token, 200, None),
        (site, 200, None),
        (other_token, 403, "not_entitled"),
        (stranger, 403, "not_entitled"),
        (blind, 403, "insufficient_scope"),
    ):
        answer = await world.call("GET", path, token)
        assert answer.status_code == status
        assert answer.headers["Cache-Control"].startswith("private") if code is None else answer.json()["code"] == code
        assert (answer.content == DATA) == (code is None)


async def test_a_caller_without_an_entitlement_is_shown_ways_to_get_an_entitlement(shop: Shop) -> None:
    path = f"/artifacts/{(await shop.upload(DATA))['id']}"
    other_person = await shop.world.person("other@example.org")

    answer = await shop.world.call("GET", path, other_person)

    assert "/redeem" in answer.json()["resolution"]


async def test_anyone_may_download_and_cache_a_free_product(shop: Shop) -> None:
    free = await product(shop.world, shop.token, "free", access="free")
    await release(shop.world, shop.token, free, "1.0.0", publish=True)
    path = f"/artifacts/{(await shop._replace(product_id=free).upload(DATA))['id']}"

    anonymous, member = await shop.world.call("GET", path), await shop.world.call("GET", path, shop.token)

    assert (anonymous.status_code, anonymous.content) == (200, DATA)
    assert anonymous.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert member.headers["Cache-Control"].startswith("private")


async def test_a_hidden_product_cannot_be_distinguished_from_a_missing_product(shop: Shop) -> None:
    world = shop.world
    draft = await product(world, shop.token, "draft", access="free")
    await release(world, shop.token, draft, "1.0.0", publish=False)
    hidden_artifact = (await shop._replace(product_id=draft).upload(DATA))["id"]
    await release(world, shop.token, shop.product_id, "2.0.0", publish=False)
    body = {"filename": "a", "size": 1000}
    announced_response = await world.call(
        "POST", f"/products/{shop.product_id}/releases/2.0.0/artifacts", shop.token, json=body
    )
    unpublished = (await shop.put(announced_response.json()["upload_url"], DATA)).json()["id"]
    receiving = (await shop.announce(10, "unfinished")).json()["artifact_id"]
    buyer = await world.person("buyer@example.org")
    await world.grant("buyer@example.org", shop.product_id)
    missing = "0193b1de-0000-7000-8000-000000000001"

    for token in (None, buyer):
        empty_response = await world.call("GET", f"/artifacts/{missing}", token)
        assert (empty_response.status_code, empty_response.json()["code"]) == (404, "resource_not_found")
        for artifact_id in (hidden_artifact, unpublished, receiving):
            answer = await world.call("GET", f"/artifacts/{artifact_id}", token)
            assert answer.content.replace(artifact_id.encode(), missing.encode()) == empty_response.content
    assert (await world.call("GET", "/artifacts/nothing", buyer)).status_code == 404
    assert (await world.call("GET", f"/artifacts/{hidden_artifact}", shop.token)).content == DATA


async def test_a_yanked_release_is_shown_as_yanked_to_entitled_callers(shop: Shop) -> None:
    world = shop.world
    path = f"/artifacts/{(await shop.upload(DATA))['id']}"
    buyer = await world.person("buyer@example.org")
    other_token = await world.person("other@example.org")
    await world.grant("buyer@example.org", shop.product_id)
    await world.call("POST", f"/products/{shop.product_id}/releases/1.0.0/yank", shop.token, json={"reason": "bad"})

    answer = await world.call("GET", path, buyer)

    assert (answer.status_code, answer.headers["Release-Status"]) == (200, "yanked")
    assert (await world.call("GET", path, other_token)).status_code == 404
    assert (await world.call("GET", path)).status_code == 404


async def test_the_headers_describe_the_bytes(shop: Shop) -> None:
    artifact = await shop.upload(DATA, 'Größe "1" %41.zip')

    answer = await shop.world.call("GET", f"/artifacts/{artifact['id']}", shop.token)

    digest = sha256_of(DATA)
    assert answer.headers["ETag"] == f'"{digest}"'
    assert answer.headers["Content-Length"] == "1000"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Repr-Digest"].startswith("sha-256=:")
    assert answer.headers["Content-Disposition"] == (
        "attachment; filename=\"Gr__e _1_ _41.zip\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%221%22%20%2541.zip"
    )


@pytest.mark.parametrize(
    ("requested_range", "start", "stop"),
    [("bytes=0-99", 0, 100), ("bytes=100-", 100, 1000), ("bytes=-10", 990, 1000), ("bytes=900-5000", 900, 1000)],
)
async def test_a_range_request_returns_exactly_its_bytes(
    shop: Shop, requested_range: str, start: int, stop: int
) -> None:
    artifact = await shop.upload(DATA)

    answer = await shop.world.call(
        "GET", f"/artifacts/{artifact['id']}", shop.token, headers={"Range": requested_range}
    )

    assert (answer.status_code, answer.content) == (206, DATA[start:stop])
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/1000"
    assert answer.headers["Content-Length"] == str(stop - start)
    assert await downloads(shop) == (1 if start == 0 else 0)


async def test_ranges_and_conditions_follow_the_standard(shop: Shop) -> None:
    artifact = await shop.upload(DATA)
    etag = f'"{artifact["sha256"]}"'

    async def get(**headers: str) -> httpx.Response:
        request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await shop.world.call("GET", f"/artifacts/{artifact['id']}", shop.token, headers=request_headers)

    beyond = await get(Range="bytes=1000-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */1000")
    assert (await get(Range="bytes=0-1,4-5")).content == DATA
    assert (await get(Range="bytes=0-1", If_Range=etag)).status_code == 206
    assert (await get(Range="bytes=0-1", If_Range='"other"')).content == DATA
    assert (await get(Range="bytes=0-1", If_Range="Wed, 21 Oct 2015 07:28:00 GMT")).content == DATA
    unchanged = await get(If_None_Match=etag)
    assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", etag)
    assert (await get(If_None_Match='"other"')).status_code == 200


async def test_downloads_are_counted_when_they_begin_at_the_first_byte(shop: Shop) -> None:
    path = f"/artifacts/{(await shop.upload(DATA))['id']}"
    call, token = shop.world.call, shop.token

    await call("GET", path, token)
    await call("GET", path, token, headers={"Range": "bytes=0-0"})
    head = await call("HEAD", path, token)
    await call("GET", path, token, headers={"Range": "bytes=1-"})
    await call("GET", path, token, headers={"If-None-Match": "*"})
    await call("GET", path)

    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, "1000", b"")
    assert await downloads(shop) == 2


async def test_usage_shows_the_most_downloaded_versions_of_the_own_organisation_only(shop: Shop) -> None:
    world = shop.world
    owner = await world.person("owner@north.example", north="owner")
    other_token = await world.person("owner@south.example", south="owner")
    for platform, times in (("linux", 3), (None, 1), ("windows", 2)):
        members = {"platform": platform} if platform else {}
        path = f"/artifacts/{(await shop.upload(DATA, f'{platform}.zip', **members))['id']}"
        for _ in range(times):
            await world.call("GET", path, shop.token)

    usage = (await world.call("GET", "/org/usage", owner)).json()

    downloads = [
        (row["product"], row["version"], row["platform"], row["downloads"]) for row in usage["downloaded"]
    ]
    assert downloads == [("river", "1.0.0", "linux", 3), ("river", "1.0.0", "windows", 2), ("river", "1.0.0", None, 1)]
    assert usage["downloads"] == 6
    assert (await world.call("GET", "/org/usage", other_token)).json()["downloaded"] == []


def client_of(store: Store) -> httpx.AsyncClient:
    """Return a client of an application of the store."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(distribution.create(store)), base_url=store.root_url)


async def test_a_cdn_is_sent_to_by_signed_addresses(shop: Shop) -> None:
    artifact = await shop.upload(DATA, "ü.zip")
    choices = replace(shop.store.settings, downloads="redirect", cdn_url="http://cdn.example/api/v1")
    async with client_of(replace(shop.store, settings=choices)) as client:
        headers = {"Authorization": f"Bearer {shop.token}"}

        answer = await client.get(f"/api/v1/artifacts/{artifact['id']}", headers=headers)
        await client.head(f"/api/v1/artifacts/{artifact['id']}", headers=headers)

        assert (answer.status_code, answer.headers["Cache-Control"]) == (307, "no-store")
        location = answer.headers["Location"]
        assert location.startswith(f"http://cdn.example/api/v1/blobs/{artifact['sha256']}?expires=")
        cdn_answer = await client.get(location.removeprefix("http://cdn.example"), headers={"Range": "bytes=10-"})
        assert (cdn_answer.status_code, cdn_answer.content) == (206, DATA[10:])
        assert "filename*=UTF-8''%C3%BC.zip" in cdn_answer.headers["Content-Disposition"]
        assert await downloads(shop) == 1


async def test_with_redirects_a_bucket_serves_the_bytes_itself(shop: Shop) -> None:
    artifact = await shop.upload(DATA)
    choices = replace(shop.store.settings, downloads="redirect")
    async with client_of(replace(shop.store, settings=choices)) as client:
        headers = {"Authorization": f"Bearer {shop.token}"}

        answer = await client.get(f"/api/v1/artifacts/{artifact['id']}", headers=headers)

    if not choices.blobs_url:
        assert (answer.status_code, answer.content) == (200, DATA)
        return
    assert answer.status_code == 307
    async with httpx.AsyncClient() as browser:
        assert (await browser.get(answer.headers["Location"])).content == DATA


async def test_forged_and_late_addresses_are_refused(shop: Shop) -> None:
    digest = (await shop.upload(DATA))["sha256"]
    other_digest = (await shop.upload(pattern(10), "other"))["sha256"]
    now_s = clock.now() // clock.SECOND
    signer = shop.store.addresses
    valid_path = download.signed_path(signer, digest, "a.zip", now_s + 60)
    late_path = download.signed_path(signer, digest, "a.zip", now_s - 1)
    gone_path = download.signed_path(signer, "0" * 64, "a.zip", now_s + 60)

    async def get(path: str) -> tuple[int, str]:
        answer = await shop.world.call("GET", path)
        return answer.status_code, "" if answer.content == DATA else answer.json()["code"]

    assert await get(valid_path) == (200, "")
    assert await get(late_path) == (410, "address_expired")
    assert await get(gone_path) == (404, "resource_not_found")
    for forged_path in (
        valid_path.replace(digest, other_digest),
        valid_path.replace("a.zip", "b.zip"),
        valid_path.replace(f"expires={now_s + 60}", f"expires={now_s + 61}"),
        valid_path[:-3] + "AAA",
        valid_path + "%C3%BC",
    ):
        assert await get(forged_path) == (403, "invalid_signature")
    assert await get(f"/blobs/{digest}") == (400, "invalid_request")


async def test_downloads_are_counted_with_their_bytes_by_day(shop: Shop) -> None:
    path = f"/artifacts/{(await shop.upload(DATA))['id']}"
    for _ in range(2):
        assert (await shop.world.call("GET", path, shop.token)).content == DATA

    rows = await shop.store.database.fetch("SELECT metric, day, value FROM daily_count ORDER BY metric")

    today = clock.rfc3339(clock.now())[:10]
    assert [tuple(row) for row in rows] == [("bytes", today, 2 * len(DATA)), ("downloads", today, 2)]
