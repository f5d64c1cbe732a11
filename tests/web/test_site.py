"""Which paths are pages, which are files, and which belong to the service."""

import re

import pytest

from tests.web.conftest import FILES, HERE, EchoService, browsing, store_entry, work_entry

PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_page_runs_only_scripts_of_this_service(echo: EchoService) -> None:
    async with browsing(echo, work_entry(HERE)) as http:
        answer = await http.get("/", headers=PERSON)

    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    for directive in ("frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"):
        assert directive in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert not re.search(r"<script(?! type=\"module\" src=\"/assets/)", answer.text)
    assert "style=" not in answer.text
    assert "<style" not in answer.text
    assert not echo.asked


async def test_a_page_has_the_chosen_language_and_colours(echo: EchoService) -> None:
    async with browsing(echo, work_entry(HERE)) as http:
        plain_response = await http.get("/", headers={**PERSON, "Accept-Language": "fr, de;q=0.8"})
        cookie = 'countersign-language=en; countersign-theme=dark; "odd'
        chosen_response = await http.get("/", headers={**PERSON, "Accept-Language": "de", "Cookie": cookie})
        forged_response = await http.get("/", headers={**PERSON, "Cookie": 'countersign-theme="><script>'})

    assert '<html lang="de">' in plain_response.text
    assert '<script defer src="/assets/messages-work-de-1.js"></script><script type="module"' in plain_response.text
    assert '<html lang="en" data-theme="dark">' in chosen_response.text
    assert '<html lang="en">' in forged_response.text


@pytest.mark.parametrize("accept", ["application/json", "application/json, */*;q=0.8", "*/*;q=0", "image/png"])
async def test_programs_that_do_not_take_html_are_answered_by_the_service(echo: EchoService, accept: str) -> None:
    for entry in (store_entry(HERE), work_entry(HERE)):
        async with browsing(echo, entry) as http:
            for path in ("/", "/design", "/llms.txt", "/api/v1/products"):
                answer = await http.get(path, headers={"Accept": accept})
                assert answer.headers["content-type"] == "application/json", path


@pytest.mark.parametrize("accept", ["*/*", "text/*", "", "image/png, */*;q=0.1", "text/html"])
async def test_every_page_of_both_services_is_html_for_clients_that_accept_any_type(
    echo: EchoService, accept: str
) -> None:
    for entry, pages in ((store_entry(HERE), ("/", "/design")), (work_entry(HERE), ("/", "/signin"))):
        async with browsing(echo, entry) as http:
            for path in pages:
                answer = await http.get(path, headers={"Accept": accept})
                assert answer.headers["content-type"].startswith("text/html"), (entry.name, path)
            for path in ("/llms.txt", "/api/v1/products", "/nowhere.txt"):
                if accept != "text/html":
                    answer = await http.get(path, headers={"Accept": accept})
                    assert answer.headers["content-type"] == "application/json", (entry.name, path)


@pytest.mark.parametrize("path", ["/api/v1/none", "/auth/signin", "/llms.txt"])
async def test_an_address_of_the_service_is_not_served_as_a_page(echo: EchoService, path: str) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get(path, headers=PERSON)

    assert answer.headers["content-type"] == "application/json"
    assert echo.asked == [f"GET {path}"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_browser_gets_a_refusal_outside_the_api_as_a_page(echo: EchoService, method: str) -> None:
    echo.api_status = 429
    async with browsing(echo, store_entry(HERE)) as http:
        person = await http.request(method, "/auth/signout", headers={**PERSON, "Accept-Language": "de"})
        program = await http.request(method, "/auth/signout", headers={"Accept": "application/json"})
        api = await http.request(method, "/api/v1/products", headers=PERSON)

    assert person.status_code == program.status_code == 429
    assert person.headers["content-type"].startswith("text/html")
    assert person.headers["retry-after"] == "7"
    assert "Versuchen Sie es in 7 Sekunden noch einmal." in person.text
    assert program.headers["content-type"] == api.headers["content-type"] == "application/json"


async def test_a_browser_gets_a_not_found_page_at_an_unknown_address(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        person = await http.get("/nowhere", headers=PERSON)
        apart_response = await http.get("/sandbox/nowhere", headers=PERSON)

    assert person.status_code == apart_response.status_code == 404
    assert person.headers["content-type"].startswith("text/html")
    assert apart_response.headers["content-type"] == "application/json"


async def test_a_file_is_cached_forever_and_compressed_for_clients_that_accept_compression(echo: EchoService) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        plain_response = await http.get("/assets/store-1.js", headers={"Accept-Encoding": "identity"})
        async with http.stream("GET", "/assets/store-1.js", headers={"Accept-Encoding": "gzip"}) as answer:
            packed_bytes = b"".join([chunk async for chunk in answer.aiter_raw()])

    assert plain_response.content == b"let it"
    assert packed_bytes == b"packed"
    assert "immutable" in plain_response.headers["cache-control"]
    assert plain_response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"


async def test_a_page_preloads_the_font_of_its_first_text(echo: EchoService) -> None:
    font = "assets/geist-latin-wght-normal-1.woff2"
    async with browsing(echo, store_entry(HERE), files={**FILES, font: b"glyphs"}) as http:
        page = await http.get("/", headers=PERSON)
        answer = await http.get(f"/{font}")

    assert f'<link rel="preload" as="font" type="font/woff2" href="/{font}" crossorigin>' in page.text
    assert (answer.headers["content-type"], answer.content) == ("font/woff2", b"glyphs")


async def test_the_font_has_a_permanent_address_for_pages_of_the_services(echo: EchoService) -> None:
    files = {**FILES, "assets/geist-latin-wght-normal-1.woff2": b"glyphs"}
    async with browsing(echo, store_entry(HERE), files=files) as http:
        response = await http.get("/assets/geist.woff2")
    async with browsing(echo, store_entry(HERE)) as http:
        unbuilt = await http.get("/assets/geist.woff2")

    assert response.content == b"glyphs"
    assert "immutable" not in response.headers["cache-control"]
    assert unbuilt.status_code == 404


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/../stamp", "/assets/store-1.js.gz", "/stamp", "/assets/"])
async def test_no_other_path_is_a_file(echo: EchoService, path: str) -> None:
    async with browsing(echo, store_entry(HERE)) as http:
        answer = await http.get(path)

    assert answer.status_code == 404
    assert b"of the build" not in answer.content


async def test_without_built_files_the_pages_show_the_build_command_and_the_api_works(echo: EchoService) -> None:
    async with browsing(echo, work_entry(HERE), files={}) as http:
        page = await http.get("/", headers=PERSON)
        api = await http.get("/api/meta")

    assert page.status_code == 503
    assert "make setup" in page.text
    assert api.status_code == 200
