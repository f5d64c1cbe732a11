"""Pictures and videos of a product are announced, uploaded, shown to permitted callers, and deleted."""

import io
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from PIL import Image

from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database.port import Database
from countersign.store.releases import blob_gc, blobs, media
from tests.store.files import Shop, open_shop, product, sha256_of
from tests.store.world import World

MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(500)
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm" + bytes(
    500
)


def png(colour: str = "red") -> bytes:
    """Return a PNG picture."""
    png_bytes = io.BytesIO()
    Image.new("RGB", (64, 32), colour).save(png_bytes, "PNG")
    return png_bytes.getvalue()


async def announce(shop: Shop, size: int, **overrides: object) -> httpx.Response:
    """Announce a picture of the shop's product."""
    announcement = {"kind": "cover", "filename": "cover.png", "size": size, "alt": "A river", **overrides}
    return await shop.world.call("POST", f"/products/{shop.product_id}/media", shop.token, json=announcement)


async def announce_and_upload(shop: Shop, data: bytes, **overrides: object) -> httpx.Response:
    """Announce and upload a picture."""
    response = await announce(shop, len(data), **overrides)
    assert response.status_code == 201, response.text
    return await shop.put(response.json()["upload_url"], data)


async def product_media(shop: Shop, token: str | None = None) -> list[dict[str, Any]]:
    """Return the media in the product's detail."""
    return (await shop.world.call("GET", f"/products/{shop.product_id}", token)).json()["media"]


async def list_sealed_digests(shop: Shop) -> set[str]:
    """Return the digests of all sealed blobs."""
    return {digest async for digest, *_ in shop.store.blobs.sealed_blobs()}


async def test_a_picture_is_encoded_again_and_is_shown_at_once(shop: Shop) -> None:
    data = png() + b"what follows a picture"

    response = await announce_and_upload(shop, data)

    assert response.status_code == 201, response.text
    picture = response.json()
    assert (picture["kind"], picture["alt"], picture["width"], picture["height"]) == ("cover", "A river", 64, 32)
    assert await product_media(shop) == [picture]
    digest = picture["url"].rsplit("/", 1)[1]
    assert digest != sha256_of(data)
    assert await list_sealed_digests(shop) == {digest}
    assert [blob async for blob in shop.store.blobs.staged_uploads()] == []


async def test_a_picture_is_served_without_active_content_and_cached_for_a_year(shop: Shop) -> None:
    url = (await announce_and_upload(shop, png())).json()["url"]
    digest = url.rsplit("/", 1)[1]

    response = await shop.world.http.get(url, headers={"Accept": "image/*"})
    unchanged_response = await shop.world.http.get(url, headers={"If-None-Match": f'"{digest}"'})
    range_response = await shop.world.http.get(url, headers={"Range": "bytes=0-7"})

    assert (response.status_code, response.headers["Content-Type"]) == (200, "image/png")
    assert sha256_of(response.content) == digest
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert unchanged_response.status_code == 304
    assert (range_response.status_code, range_response.content) == (206, b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(("film", "media_type"), [(MP4, "video/mp4"), (WEBM, "video/webm")])
async def test_a_video_is_stored_unchanged(shop: Shop, film: bytes, media_type: str) -> None:
    body = (await announce_and_upload(shop, film, kind="video", filename="film")).json()

    response = await shop.world.http.get(body["url"])

    assert (body["width"], body["height"]) == (None, None)
    assert (response.content, response.headers["Content-Type"]) == (film, media_type)


@pytest.mark.parametrize(
    ("overrides", "data", "code"),
    [
        ({}, b"<svg xmlns='http://www.w3.org/2000/svg'/>", "unsupported_image"),
        ({}, b"GIF89a" + bytes(50), "unsupported_image"),
        ({}, MP4, "unsupported_image"),
        ({"kind": "video"}, png(), "unsupported_video"),
        ({"kind": "video"}, b"<html>", "unsupported_video"),
        ({"kind": "video"}, MP4.replace(b"mp42", b"heic"), "unsupported_video"),
        ({"kind": "video"}, WEBM.replace(b"webm", b"matr"), "unsupported_video"),
    ],
)
async def test_a_refused_picture_or_video_leaves_no_files_and_no_rows(
    shop: Shop, overrides: dict[str, object], data: bytes, code: str
) -> None:
    response = await announce_and_upload(shop, data, **overrides)

    assert (response.status_code, response.json()["code"]) == (422, code)
    assert response.json()["resolution"]
    assert await list_sealed_digests(shop) == set()
    assert [blob async for blob in shop.store.blobs.staged_uploads()] == []
    for table in ("media", "upload", "blob"):
        assert await shop.store.database.fetch(f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.mark.parametrize(
    ("overrides", "expected_pointer"),
    [
        ({"kind": "poster"}, "/kind"),
        ({"filename": "a/b"}, "/filename"),
        ({"size": 0}, "/size"),
        ({"size": (20 << 20) + 1}, "/size"),
        ({"size": (512 << 20) + 1, "kind": "video"}, "/size"),
        ({"alt": "x" * 1001}, "/alt"),
        ({"alt": None}, "/alt"),
        ({"sha256": "0" * 64}, "/sha256"),
    ],
)
async def test_the_error_of_a_bad_announcement_has_the_pointer_of_the_json_member(
    shop: Shop, overrides: dict[str, object], expected_pointer: str
) -> None:
    body = {"kind": "cover", "filename": "cover.png", "size": 10, "alt": "A river", **overrides}

    response = await shop.world.call("POST", f"/products/{shop.product_id}/media", shop.token, json=body)

    assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
    assert response.json()["errors"][0]["pointer"] == expected_pointer


async def test_only_members_of_the_organisation_see_media_of_a_draft(world: World) -> None:
    shop = await open_shop(world)
    draft = shop._replace(product_id=await product(world, shop.token, "draft"))
    url = (await announce_and_upload(draft, png())).json()["url"]
    stranger_token = await world.person("s@south.example", south="owner")
    viewer_token = await world.person("v@north.example", north="viewer")

    async def get(token: str | None) -> httpx.Response:
        return await world.http.get(url, headers={} if token is None else {"Authorization": f"Bearer {token}"})

    await world.person("early@example.org")
    await world.grant("early@example.org", draft.product_id)
    early_buyer_token = await world.person_token("early@example.org", "read:library")

    assert (await get(None)).json()["code"] == "resource_not_found"
    assert (await get(stranger_token)).status_code == 404
    assert (await get(early_buyer_token)).status_code == 404
    viewer_response = await get(viewer_token)
    assert (viewer_response.status_code, viewer_response.headers["Cache-Control"]) == (200, "private, no-cache")
    await announce_and_upload(shop, png())
    public_response = await get(None)
    assert (public_response.status_code, public_response.headers["Cache-Control"]) == (
        200,
        "public, max-age=31536000, immutable",
    )


async def test_only_owners_see_media_of_an_archived_product(shop: Shop) -> None:
    url = (await announce_and_upload(shop, png())).json()["url"]
    buyer_token = await shop.world.person("buyer@example.org")
    async with shop.store.database.transaction() as transaction:
        await transaction.run("UPDATE product SET status = 'archived' WHERE id = $1", shop.product_id)

    async def status() -> int:
        return (await shop.world.http.get(url, headers={"Authorization": f"Bearer {buyer_token}"})).status_code

    assert await status() == 404
    await shop.world.grant("buyer@example.org", shop.product_id)
    assert await status() == 200


async def test_only_publishers_of_the_organisation_change_its_media(shop: Shop) -> None:
    world = shop.world
    media_id = (await announce_and_upload(shop, png())).json()["id"]
    stranger_token = await world.person("s@south.example", south="publisher")
    viewer_token = await world.person("v@north.example", north="viewer")
    hidden_product_id = await product(world, shop.token, "hidden")

    for token, status in ((None, 401), (stranger_token, 403), (viewer_token, 403)):
        shop_as_caller = shop._replace(token=token)
        assert (await announce(shop_as_caller, 10)).status_code == status
        deletion = await world.call("DELETE", f"/products/{shop.product_id}/media/{media_id}", token)
        assert deletion.status_code == status
    assert (await announce(shop._replace(token=stranger_token, product_id=hidden_product_id), 10)).status_code == 404
    assert len(await product_media(shop)) == 1


async def test_a_deleted_picture_is_missing_and_its_bytes_are_deleted_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = (await announce_and_upload(shop, png())).json()
    path = f"/products/{shop.product_id}/media/{picture['id']}"
    other_product_id = await product(shop.world, shop.token, "other")

    wrong_product_response = await shop.world.call(
        "DELETE", f"/products/{other_product_id}/media/{picture['id']}", shop.token
    )
    response = await shop.world.call("DELETE", path, shop.token)
    repeated_response = await shop.world.call("DELETE", path, shop.token)

    assert (wrong_product_response.status_code, response.status_code, repeated_response.status_code) == (404, 204, 404)
    assert await product_media(shop) == []
    assert (await shop.world.http.get(picture["url"])).status_code == 404
    monkeypatch.setattr(blob_gc, "MIN_IDLE_S", -7200)
    assert (await blob_gc.collect(shop.store)).blobs == 1
    assert await list_sealed_digests(shop) == set()


async def test_a_picture_that_was_uploaded_twice_outlives_one_deletion(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted_picture = (await announce_and_upload(shop, png())).json()
    remaining_picture = (await announce_and_upload(shop, png())).json()
    monkeypatch.setattr(blob_gc, "MIN_IDLE_S", -7200)

    await shop.world.call("DELETE", f"/products/{shop.product_id}/media/{deleted_picture['id']}", shop.token)
    await blob_gc.collect(shop.store)

    assert deleted_picture["url"] == remaining_picture["url"]
    assert (await shop.world.http.get(remaining_picture["url"])).status_code == 200


@pytest.mark.parametrize("kind", ["cover", "icon"])
async def test_a_picture_that_encodes_to_the_same_bytes_is_stored(shop: Shop, kind: str) -> None:
    picture = (await announce_and_upload(shop, png(), kind=kind)).json()
    encoded = (await shop.world.http.get(picture["url"])).content
    await shop.world.call("DELETE", f"/products/{shop.product_id}/media/{picture['id']}", shop.token)

    response = await announce_and_upload(shop, encoded, kind=kind)

    assert response.status_code == 201, response.text
    assert response.json()["url"].endswith(sha256_of(encoded))
    assert (await shop.world.http.get(response.json()["url"])).content == encoded


async def test_a_picture_with_the_bytes_of_an_artifact_does_not_remove_the_artifact(shop: Shop) -> None:
    data = png()
    artifact = await shop.upload(data, "picture.png")

    await announce_and_upload(shop, data)

    response = await shop.world.call("GET", f"/artifacts/{artifact['id']}", shop.token)
    assert (response.status_code, response.content) == (200, data)


async def test_an_announced_picture_without_bytes_is_deleted_when_it_expires(shop: Shop) -> None:
    await announce(shop, 100)
    async with shop.store.database.transaction() as transaction:
        await transaction.run("UPDATE upload SET expires_at = $1", clock.now())

    assert (await blob_gc.collect(shop.store)).uploads == 1
    assert await shop.store.database.fetch("SELECT count(*) FROM media") == [(0,)]


async def test_the_number_of_pictures_of_a_product_is_limited(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_MEDIA", 2)
    await announce(shop, 10)
    await announce(shop, 10)

    response = await announce(shop, 10)

    assert (response.status_code, response.json()["code"]) == (409, "too_many_media")


def landscape(width: int = 1300, height: int = 731) -> bytes:
    """Return a picture with the shape of a cover, half red and half blue."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (0, 0, width // 2, height))
    png_bytes = io.BytesIO()
    image.save(png_bytes, "PNG")
    return png_bytes.getvalue()


async def test_a_cover_has_smaller_sizes_that_are_served_like_the_cover(shop: Shop) -> None:
    url = (await announce_and_upload(shop, landscape())).json()["url"]

    cover = (await shop.world.call("GET", f"/products/{shop.product_id}")).json()["cover"]

    assert (cover["url"], cover["placeholder"], cover["alt"]) == (url, False, "A river")
    assert cover["color"] in {"#7f007f", "#80007f", "#7f0080", "#800080"}
    types_and_widths = [(image["type"], image["width"]) for image in cover["srcset"]]
    assert types_and_widths == [
        (media_type, width) for media_type in ("image/avif", "image/webp") for width in (320, 640, 1280)
    ]
    for smaller in cover["srcset"]:
        response = await shop.world.http.get(smaller["url"])
        assert (response.status_code, response.headers["content-type"]) == (200, smaller["type"])
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        with Image.open(io.BytesIO(response.content)) as image:
            assert image.size == (smaller["width"], round(731 * smaller["width"] / 1300))


async def test_small_covers_and_screenshots_have_no_smaller_sizes(shop: Shop) -> None:
    await announce_and_upload(shop, landscape(), kind="screenshot")
    await announce_and_upload(shop, png())

    cover = (await shop.world.call("GET", f"/products/{shop.product_id}")).json()["cover"]

    assert (cover["placeholder"], cover["srcset"]) == (False, [])


async def test_deleting_the_newest_cover_shows_the_previous_cover_and_deletes_the_sizes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_cover = (await announce_and_upload(shop, png())).json()
    new_cover = (await announce_and_upload(shop, landscape())).json()
    smaller_images = (await shop.world.call("GET", f"/products/{shop.product_id}")).json()["cover"]["srcset"]
    path = f"/products/{shop.product_id}/media"

    assert (await shop.world.call("DELETE", f"{path}/{new_cover['id']}", shop.token)).status_code == 204

    assert (await shop.world.call("GET", f"/products/{shop.product_id}")).json()["cover"]["url"] == old_cover["url"]
    assert [(await shop.world.http.get(image["url"])).status_code for image in smaller_images] == [404] * 6
    later_time = clock.later(clock.now(), seconds=2 * blob_gc.MIN_IDLE_S)
    await blob_gc.collect(shop.store)
    monkeypatch.setattr(clock, "now", lambda: later_time)
    await blob_gc.collect(shop.store, is_confirmed=True)
    assert await list_sealed_digests(shop) == {old_cover["url"].rsplit("/", 1)[1]}


async def test_garbage_collection_keeps_the_sizes_of_a_cover(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await announce_and_upload(shop, landscape())
    stored_digests = await list_sealed_digests(shop)
    later_time = clock.later(clock.now(), seconds=2 * blob_gc.MIN_IDLE_S)
    await blob_gc.collect(shop.store)
    monkeypatch.setattr(clock, "now", lambda: later_time)

    await blob_gc.collect(shop.store, is_confirmed=True)

    assert await list_sealed_digests(shop) == stored_digests
    assert len(stored_digests) == 7


async def test_a_smaller_size_that_is_removed_before_the_cover_refers_to_it_is_stored_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    original_put, original_reserve, digests, removed_digests = blobs.put, blobs.reserve, list[str](), list[str]()

    async def recording_put(database: Database, store: BlobStore, data: bytes) -> str:
        digests.append(await original_put(database, store, data))
        return digests[-1]

    async def reserve_after_a_removal(
        database: Database, store: BlobStore, stored_blobs: Sequence[tuple[str, int]]
    ) -> list[blobs.Reservation]:
        if not removed_digests:
            # The service stores the smaller sizes first, and then the cover itself.
            removed_digests.append(digests[0])
            assert await blobs.remove_noted(database, store, removed_digests[0])
        return await original_reserve(database, store, stored_blobs)

    monkeypatch.setattr(blobs, "put", recording_put)
    monkeypatch.setattr(blobs, "reserve", reserve_after_a_removal)

    assert (await announce_and_upload(shop, landscape())).status_code == 201

    cover = (await shop.world.call("GET", f"/products/{shop.product_id}")).json()["cover"]
    assert [(await shop.world.http.get(image["url"])).status_code for image in cover["srcset"]] == [200] * 6
    assert removed_digests[0] in await list_sealed_digests(shop)
