"""Attacks on the pages by a stranger, a sibling site, a cache on the way or a publisher."""

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from countersign.kernel.http.request import ASGIApp, Receive, Send
from countersign.web import api_client
from countersign.web.origin import PublicAddress
from tests.web.conftest import BEARER, HERE, PUBLIC, SESSION, EchoService, browsing, store_entry, work_entry

OURS = {"Sec-Fetch-Site": "same-origin"}
PERSON = {"Accept": "text/html"}
SIGNED_IN = {"Cookie": f"countersign={SESSION}", **OURS}
PRODUCT = {
    "slug": "evil",
    "title": "</title><script>alert(1)</script>",
    "description": '"><script>alert(1)</script>',
    "kind": "game",
    "platforms": [],
    "access": "free",
    "license": "<script>alert(1)</script>",
    "org": '"><script>alert(1)</script>',
    "media": [],
    "summary": "<script>alert(1)</script>",
    "publisher": {"slug": "evil", "name": "<script>alert(1)</script>", "verified": False},
    "cover": {
        "url": '"><script>alert(1)</script>',
        "focus": "left",
        "placeholder": True,
        "srcset": [],
        "color": '"><script>alert(1)</script>',
    },
}


def answering(answers: dict[str, tuple[int, Any]], **headers: str) -> ASGIApp:
    """Return a service with these answers by path. It exchanges sessions, and all other answers are empty."""
    response_headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def service(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        exchanged = (200, {"access_token": BEARER, "expires_in": 900})
        path = scope["path"]
        status, body = exchanged if path == "/auth/session/token" else answers.get(path, (200, {}))
        await send({"type": "http.response.start", "status": status, "headers": response_headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode(), "more_body": False})

    return service


@pytest.mark.parametrize("space", [b"\xa0", b"\x85", b"\x0b", b"\x1f"])
@pytest.mark.parametrize("name", [b"__Host-countersign", b"__Host-countersign-work"])
async def test_a_sibling_site_cannot_slip_in_a_cookie_past_its_prefix(
    echo: EchoService, space: bytes, name: bytes
) -> None:
    # A browser ties a cookie named __Host-… to its host; a name with a byte before that can be set by any subdomain.
    entry = work_entry(PUBLIC) if name.endswith(b"work") else store_entry(PUBLIC)
    headers = [(b"cookie", b"a=1;" + space + name + b"=" + SESSION.encode()), (b"sec-fetch-site", b"same-origin")]
    async with browsing(echo, entry, PUBLIC) as http:
        answer = await http.get("/api/v1/library", headers=headers)

    assert "authorization" not in answer.json()["headers"]


async def test_no_intermediate_cache_keeps_a_response_to_a_cookie(echo: EchoService) -> None:
    # A cache stores no answer to a request with Authorization (RFC 9111 §3.5), but it never saw that header.
    async with browsing(echo, store_entry(HERE)) as http:
        own_response = await http.get("/api/v1/codes", headers=SIGNED_IN)
        anyones = await http.get("/api/v1/codes")

    assert own_response.headers["cache-control"] == "no-store"
    assert "cache-control" not in anyones.headers


async def test_the_cache_headers_of_the_service_are_kept() -> None:
    service = answering({}, cache_control="private, no-cache")
    async with browsing(service, store_entry(HERE)) as http:
        answer = await http.get("/api/v1/library", headers=SIGNED_IN)

    assert answer.headers.get_list("cache-control") == ["private, no-cache"]


@pytest.mark.parametrize("path", ["/", "/products/evil", "/nowhere"])
async def test_no_page_is_cached_for_another_person(echo: EchoService, path: str) -> None:
    echo.api_status = 404
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get(path, headers={**PERSON, **SIGNED_IN})

    assert "private" in answer.headers["cache-control"]


async def test_an_address_with_any_number_of_parameters_is_a_page() -> None:
    query = "&".join(f"a{number}=1" for number in range(1000))
    async with browsing(answering({}), store_entry(HERE)) as http:
        answer = await http.get(f"/?{query}", headers=PERSON)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_data_too_long_for_a_page_is_loaded_by_the_script(
    echo: EchoService, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(api_client, "MAX_BYTES", 1000)
    releases = [{"notes": "n" * 2000}]
    answers = {"/api/v1/products/evil": (200, PRODUCT), "/api/v1/products/evil/releases": (status, releases)}
    async with browsing(answering(answers), store_entry(HERE)) as http:
        answer = await http.get("/products/evil", headers=PERSON)

    assert answer.status_code == 200
    assert '<div id="app"></div>' in answer.text


async def test_releases_that_could_not_be_requested_are_not_reported_as_missing() -> None:
    answers = {"/api/v1/products/evil": (200, PRODUCT), "/api/v1/products/evil/releases": (429, {"code": "x"})}
    async with browsing(answering(answers), store_entry(HERE)) as http:
        answer = await http.get("/products/evil", headers=PERSON)

    assert answer.status_code == 200
    assert "/releases" not in answer.text


async def test_a_fault_in_a_page_is_logged() -> None:
    answers = {"/api/v1/products/evil": (200, {"title": "nothing else"})}
    with capture_logs() as lines:
        async with browsing(answering(answers), store_entry(HERE)) as http:
            with pytest.raises(KeyError):
                await http.get("/products/evil", headers=PERSON)

    assert [line["event"] for line in lines] == ["page failed"]


async def test_a_publishers_text_is_text_in_each_place_of_its_page() -> None:
    release = {"version": "1", "channel": "stable", "notes": PRODUCT["title"], "artifacts": []}
    release["published_at"] = "2026-01-01T00:00:00Z"
    answers = {"/api/v1/products/evil": (200, PRODUCT), "/api/v1/products/evil/releases": (200, [release])}
    async with browsing(answering(answers), store_entry(HERE)) as http:
        answer = await http.get("/products/evil", headers=PERSON)

    assert answer.text.count("<script") == answer.text.count("</script") == 3
    assert "<script>" not in answer.text


@pytest.mark.parametrize("slug", ["%2e%2e", "x%3Fy=1", "x%23y", "x%0d%0aSet-Cookie:%20a=b", "%ff", "a;b", "a%5Cb"])
async def test_a_pages_address_reaches_no_other_address_of_the_api(echo: EchoService, slug: str) -> None:
    echo.api_status = 404
    async with browsing(echo, store_entry(HERE)) as http:
        url = http.base_url.copy_with(raw_path=f"/products/{slug}".encode())
        await http.get(url, headers=PERSON)

    (first_path, *_) = [line for line in echo.asked if "/api/" in line]
    segments = first_path.partition(" ")[2].split("/")
    assert segments[:4] == ["", "api", "v1", "products"]
    assert len(segments) == 5
    assert not set("?#\r\n;\\") & set(first_path)


async def test_pages_also_forget_a_revoked_bearer_token() -> None:
    requested_paths: list[str] = []
    refuse = answering({"/api/v1/store/home": (401, {})})

    async def service(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        requested_paths.append(scope["path"])
        await refuse(scope, receive, send)

    async with browsing(service, store_entry(HERE)) as http:
        for _ in range(2):
            await http.get("/", headers={**PERSON, **SIGNED_IN})

    assert requested_paths.count("/auth/session/token") == 2


async def test_anyone_who_is_known_does_not_wait_for_the_cookies_of_strangers(echo: EchoService) -> None:
    is_asked, may_answer = asyncio.Event(), asyncio.Event()
    stranger = {**SIGNED_IN, "Cookie": "countersign=css_" + "z" * 40}

    async def service(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["path"] == "/auth/session/token" and b"zzz" in dict(scope["headers"])[b"cookie"]:
            is_asked.set()
            await may_answer.wait()
        await echo(scope, receive, send)

    async with browsing(service, store_entry(HERE)) as http:
        await http.get("/api/v1/library", headers=SIGNED_IN)
        waiting_request = asyncio.create_task(http.get("/api/v1/library", headers=stranger))
        await is_asked.wait()
        answer = await asyncio.wait_for(http.get("/api/v1/library", headers=SIGNED_IN), 60)
        may_answer.set()
        await waiting_request

    assert answer.json()["headers"]["authorization"] == f"Bearer {BEARER}"


@pytest.mark.parametrize(
    ("accepted_encodings", "is_packed"),
    [
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("xgzip", False),
        ("br, gzip;q=0.5", True),
        ("GZIP", True),
        ("", False),
    ],
)
async def test_a_client_that_refuses_encodings_gets_an_unencoded_file(
    echo: EchoService, accepted_encodings: str, is_packed: bool
) -> None:
    request_headers = {"Accept-Encoding": accepted_encodings}
    async with (
        browsing(echo, store_entry(HERE)) as http,
        http.stream("GET", "/assets/store-1.js", headers=request_headers) as response,
    ):
        body = b"".join([chunk async for chunk in response.aiter_raw()])

    assert body == (b"packed" if is_packed else b"let it")


@pytest.mark.parametrize(
    "pairs",
    [
        [("origin", "http://127.0.0.1:8480"), ("origin", "http://evil.example")],
        [("origin", "http://evil.example"), ("origin", "http://127.0.0.1:8480")],
        [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "Same-Origin")],
        [("origin", "http://localhost.:8480")],
        [("origin", "http://127.1:8480")],
        [("origin", "http://[::2]:8480")],
        [("origin", "http://127.0.0.1:8480, null")],
        [("origin", "http:\\\\127.0.0.1:8480")],
    ],
)
@pytest.mark.parametrize("home", [HERE])
async def test_a_request_that_only_resembles_a_page_request_gets_no_credentials(
    echo: EchoService, pairs: list[tuple[str, str]], home: PublicAddress
) -> None:
    request_headers = [("cookie", f"countersign={SESSION}"), *pairs]
    async with browsing(echo, store_entry(home), home) as http:
        answer = await http.get("/api/v1/library", headers=request_headers)

    assert "authorization" not in answer.json()["headers"]
