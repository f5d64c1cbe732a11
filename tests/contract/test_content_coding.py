"""Public answers to anonymous callers are compressed once for each change; no other answer is compressed."""

import gzip
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from backports import zstd

from countersign.kernel.http import response_cache
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.kernel.http.response_cache import EncodingCache
from countersign.store import app as distribution
from tests.contract.scenes import BY_KEY, QUERIES, Scene
from tests.store.conftest import ROOT_URL
from tests.store.world import World

DOCUMENTS = ("/openapi.json", "/wiki.json", "/llms.txt")
CATALOG = ("/api/v1/products?limit=100", "/api/v1/products/big", "/api/v1/products/big/releases")
UNPACK = {"gzip": gzip.decompress, "zstd": zstd.decompress, "": bytes}
PRIVATE = (
    {"Cookie": "a=b"},
    {"Authorization": "Bearer PERSON"},
    {"X-API-Key": "KEY"},
)


async def third_response(world: World, path: str, method: str = "GET", **headers: str) -> tuple[httpx.Response, bytes]:
    """Send a request with these headers three times, and return the third response with its body as it was sent."""
    request_headers = {
        "Accept-Encoding": "identity",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    for _ in range(3):
        async with world.http.stream(method, path, headers=request_headers) as answer:
            body = b"".join([piece async for piece in answer.aiter_raw()])
    return answer, body


@pytest.fixture
async def large_world(world: World) -> World:
    """A world with a product whose answers are long enough to be compressed."""
    await world.product("north", "big", description="A long story. " * 300)
    owner = await world.person("owner@north.example", north="owner")
    for number in range(3):
        body = {"version": f"1.{number}.0", "channel": "beta", "notes": "What is new. " * 100, "notes_only": True}
        await world.call("POST", "/products/big/releases", owner, json=body)
        await world.call("POST", f"/products/big/releases/1.{number}.0/publish", owner)
    return world


@pytest.mark.parametrize("path", [*DOCUMENTS, *CATALOG])
async def test_a_public_answer_has_a_form_and_a_tag_of_its_own_for_each_coding(large_world: World, path: str) -> None:
    plain_answer, plain_body = await third_response(large_world, path)
    tags = {plain_answer.headers["etag"]}
    for accepted_codings, coding in (("gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd, br", "zstd"), ("*", "zstd")):
        answer, body = await third_response(large_world, path, Accept_Encoding=accepted_codings)
        head, head_body = await third_response(large_world, path, "HEAD", Accept_Encoding=accepted_codings)
        tag = answer.headers["etag"]
        revalidated, empty = await third_response(
            large_world, path, Accept_Encoding=accepted_codings, If_None_Match=tag
        )

        assert answer.headers["content-encoding"] == head.headers["content-encoding"] == coding
        assert UNPACK[coding](body) == plain_body
        assert len(body) < len(plain_body) * 2 / 3
        assert int(answer.headers["content-length"]) == int(head.headers["content-length"]) == len(body)
        assert (head_body, head.headers["etag"]) == (b"", tag)
        assert (revalidated.status_code, empty, revalidated.headers["etag"]) == (304, b"", tag)
        assert "content-encoding" not in revalidated.headers
        tags.add(tag)
    for request_headers in ({"Accept_Encoding": "zstd"}, {"Accept_Encoding": "gzip", "Cookie": "a=b"}, {}):
        etag = (await third_response(large_world, path, **request_headers))[0].headers["etag"]
        for tag in tags:
            conditional_answer, _ = await third_response(large_world, path, **request_headers, If_None_Match=tag)
            assert (conditional_answer.status_code, conditional_answer.headers["etag"]) == (
                304 if tag == etag else 200,
                etag,
            )
        anything, _ = await third_response(large_world, path, **request_headers, If_None_Match="*")
        assert (anything.status_code, anything.headers["etag"]) == (304, etag)
    ranged, ranged_body = await third_response(large_world, path, Accept_Encoding="gzip", Range="bytes=0-9")
    assert (ranged.status_code, UNPACK["gzip"](ranged_body)) == (200, plain_body)
    assert len(tags) == 3
    for response in (plain_answer, answer, revalidated):
        assert "Accept-Encoding" in response.headers["vary"]


@pytest.mark.parametrize(
    "accepted_codings", ["", "br", "identity", "gzip;q=0, zstd;q=0", "gzip;q=0.5, identity;q=1", "*;q=0"]
)
async def test_a_client_that_accepts_no_coding_gets_an_unencoded_response(
    large_world: World, accepted_codings: str
) -> None:
    for path in (*DOCUMENTS, *CATALOG):
        assert (
            "content-encoding"
            not in (await third_response(large_world, path, Accept_Encoding=accepted_codings))[0].headers
        )


@pytest.mark.parametrize("credential", PRIVATE, ids=lambda credential: next(iter(credential)))
async def test_with_a_cookie_or_a_credential_nothing_is_compressed(
    large_world: World, credential: dict[str, str]
) -> None:
    person = await large_world.person("reader@example.com")
    key = (await large_world.call("GET", "/api/keys")).json()["api_key"]
    credential_headers = {
        name: value.replace("PERSON", person).replace("KEY", key) for name, value in credential.items()
    }
    for path in (*DOCUMENTS, *CATALOG):
        answer, _ = await third_response(large_world, path, Accept_Encoding="gzip, zstd", **credential_headers)
        assert answer.status_code == 200
        assert "content-encoding" not in answer.headers, path


async def test_no_other_answer_of_the_store_is_compressed(scene: Scene) -> None:
    public = {"/openapi.json", "/wiki.json", "/llms.txt", "/products", "/products/{id}", "/catalog"}
    for (method, name), value in BY_KEY.items():
        if name in public or method != "GET" or name.endswith(("/releases", "/feed", "/cover.svg")):
            continue
        options: dict[str, Any] = {"params": QUERIES.get((method, name)), "headers": {"Accept-Encoding": "gzip, zstd"}}
        for caller in ("anonymous", "owner of north"):
            answer = await scene.send(value, caller, **options)
            assert "content-encoding" not in answer.headers, (name, caller)


async def test_a_change_is_seen_in_every_coding_at_once(large_world: World) -> None:
    response_before, _ = await third_response(large_world, CATALOG[1], Accept_Encoding="gzip")
    owner = await large_world.person_token("owner@north.example", "read:products write:products")
    body = {"slug": "big", "title": "Changed", "kind": "game", "platforms": ["web"], "status": "public"}
    body["description"] = "Another story. " * 300
    stale_answer = await large_world.call(
        "PUT", "/products/big", owner, json=body, headers={"If-Match": '"other-gzip"'}
    )
    changed_answer = await large_world.call(
        "PUT", "/products/big", owner, json=body, headers={"If-Match": response_before.headers["etag"]}
    )

    answer_after, gzip_body = await third_response(
        large_world, CATALOG[1], Accept_Encoding="gzip", If_None_Match=response_before.headers["etag"]
    )

    assert (stale_answer.status_code, changed_answer.status_code, answer_after.status_code) == (412, 200, 200)
    assert b'"Changed"' in gzip.decompress(gzip_body)
    assert answer_after.headers["etag"] != response_before.headers["etag"]


def test_a_body_is_encoded_once_and_the_least_recently_used_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    compressed_bodies: list[bytes] = []
    original_compress = gzip.compress
    monkeypatch.setattr(
        response_cache.gzip,
        "compress",
        lambda body, *a, **k: compressed_bodies.append(body) or original_compress(body, *a, **k),
    )
    bodies = {f'"{number}"': bytes([number]) * 5000 for number in range(3)}
    size = len(original_compress(bodies['"0"'], 6, mtime=0))
    encoded = EncodingCache(2 * size + size // 2)
    for tag in ('"0"', '"1"', '"0"', '"2"', '"0"', '"1"'):
        assert gzip.decompress(encoded.body(tag, bodies[tag], "gzip")) == bodies[tag]

    assert compressed_bodies == [bodies[tag] for tag in ('"0"', '"1"', '"2"', '"1"')]


def answers(encoded: EncodingCache, body: bytes, coding: str) -> Response:
    """Return the answer with this body to a request that accepts the coding."""
    response = Response(200, body, etag=f'"{hash(body)}"')
    return encoded.answer(response, Headers([(b"accept-encoding", coding.encode())]))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_above_the_limit_is_not_encoded_and_pushes_out_no_other(
    monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    encoded = EncodingCache(10_000)
    small, noise, big = b"small " * 1000, random.Random(1).randbytes(10_000), b"x" * 10_001
    encoded_answer = answers(encoded, small, coding)

    assert answers(encoded, big, coding).body == big
    assert UNPACK[coding](answers(encoded, noise, coding).body) == noise
    # Every compression after this line fails.
    monkeypatch.setattr(response_cache.gzip, "compress", None)
    monkeypatch.setattr(response_cache.zstd, "compress", None)
    assert answers(encoded, small, coding) == encoded_answer


@pytest.mark.parametrize("accepted_codings", ["gzip", "zstd"])
async def test_without_room_for_pages_documents_are_encoded_once_and_the_catalog_never(
    large_world: World, monkeypatch: pytest.MonkeyPatch, accepted_codings: str
) -> None:
    compressed_bodies: list[bytes] = []
    for library in (response_cache.gzip, response_cache.zstd):
        original_compress = library.compress
        monkeypatch.setattr(library, "compress", partial(compress_recorded, compressed_bodies, original_compress))
    no_room = replace(large_world.store, settings=replace(large_world.store.settings, page_cache_mib=0))
    transport = httpx.ASGITransport(distribution.create(no_room), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        world = World(no_room, client)
        for path in CATALOG:
            assert (
                "content-encoding"
                not in (await third_response(world, path, Accept_Encoding=accepted_codings))[0].headers
            )
        assert compressed_bodies == []
        for number, path in enumerate(DOCUMENTS, 1):
            assert (await third_response(world, path, Accept_Encoding=accepted_codings))[0].headers[
                "content-encoding"
            ] == accepted_codings
            assert len(compressed_bodies) == number


def compress_recorded(
    compressed_bodies: list[bytes], compress: Callable[..., bytes], body: bytes, *arguments: Any, **options: Any
) -> bytes:
    """Compress the body, and record it."""
    compressed_bodies.append(body)
    return compress(body, *arguments, **options)


@pytest.mark.parametrize(
    ("accepted_codings", "coding"),
    [
        ("gzip", "gzip"),
        ("GZIP;Q=0.3", "gzip"),
        ("zstd;q=0.2, gzip;q=0.8", "gzip"),
        ("zstd;q=0, *", "gzip"),
        ("gzip;q=nonsense", None),
        ("identity, gzip;q=0.9", None),
        (",,;;q=,", None),
    ],
)
def test_the_content_coding_has_the_highest_accepted_weight(accepted_codings: str, coding: str | None) -> None:
    assert response_cache.negotiate_coding(Headers([(b"accept-encoding", accepted_codings.encode())])) == coding


@pytest.mark.parametrize("path", [*DOCUMENTS, *CATALOG, "/api/v1/catalog", "/api/v1", "/problems/invalid-request"])
async def test_pages_of_any_site_may_read_public_data_without_credentials(large_world: World, path: str) -> None:
    foreign = {"Origin": "https://shop.example"}
    answers = [await large_world.http.get(path, headers=foreign) for _ in range(3)]
    preflight = {**foreign, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "if-none-match"}
    allowed_response = await large_world.http.request("OPTIONS", path, headers=preflight)

    for answer in (*answers, allowed_response):
        assert answer.is_success
        assert answer.headers.get_list("access-control-allow-origin") == ["*"]
        assert "access-control-allow-credentials" not in answer.headers
    assert "GET" in allowed_response.headers["access-control-allow-methods"]
    assert "If-None-Match" in allowed_response.headers["access-control-allow-headers"]


@pytest.mark.parametrize("path", ["/products/big/drafts", "/library", "/jobs", "/org"])
async def test_private_answers_are_not_for_pages_of_other_sites(large_world: World, path: str) -> None:
    owner = await large_world.person_token("owner@north.example", "read:products read:library admin:org")
    answer = await large_world.call("GET", path, owner, headers={"Origin": "https://shop.example"})

    assert answer.is_success
    assert "access-control-allow-origin" not in answer.headers
