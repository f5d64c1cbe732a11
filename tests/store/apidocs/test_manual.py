"""The manual, the overview and the well-known files match the routes, and anyone can read them."""

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.apidocs import documents, manual, problems
from countersign.store.apidocs.operations import address_of
from countersign.store.context import Store
from tests.servers.countersign import environment, served
from tests.store.world import World
from tools.reference import EVERY_ROUTE

ROOT = "http://127.0.0.1:8480"
SECURITY = "/.well-known/security.txt"
DOCUMENTS = (
    "/openapi.json",
    "/wiki.json",
    "/llms.txt",
    "/.well-known/api-catalog",
    "/problems/invalid-cursor",
    SECURITY,
)


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Documents are generated from declarations, so one kind of database is sufficient."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with a contact for security reports."""
    return replace(settings, security_contact="security@example.com, https://example.com/report")


async def test_the_manual_has_every_endpoint_and_every_code(http: httpx.AsyncClient) -> None:
    manual = (await http.get("/wiki.json")).json()

    endpoints = {endpoint["endpoint"]: endpoint for endpoint in manual["endpoints"]}
    codes = {error["code"] for error in manual["errors"]}
    assert set(endpoints) == {f"{route.method} {address_of(route)}" for route in EVERY_ROUTE}
    assert codes == {type_.code for type_ in problems.problem_types(EVERY_ROUTE).values()}
    assert all(set(endpoint["errors"]) <= codes for endpoint in endpoints.values())


async def test_the_sections_of_the_manual_hold_each_endpoint_once(http: httpx.AsyncClient) -> None:
    manual = (await http.get("/wiki.json")).json()

    sections = {section["id"]: section for section in manual["sections"]}
    assert "/api/keys?tier=sandbox" in sections["trying"]["text"]
    assert {"authentication", "errors", "rate-limits", "idempotency", "catalog", "jobs"} <= set(sections)
    assert all(section["text"] for section in sections.values())
    assert len(sections) == len(manual["sections"])
    listed_endpoints = sorted(name for section in sections.values() for name in section["endpoints"])
    assert listed_endpoints == sorted(endpoint["endpoint"] for endpoint in manual["endpoints"])


async def test_the_manual_shows_how_each_endpoint_is_called(http: httpx.AsyncClient) -> None:
    endpoints = {endpoint["endpoint"]: endpoint for endpoint in (await http.get("/wiki.json")).json()["endpoints"]}

    library, draft = endpoints["GET /api/v1/library"], endpoints["POST /api/v1/products/{id}/releases"]
    assert (library["needs"], library["addition"]) == ("read:library", False)
    assert endpoints["GET /api/v1/org"]["addition"]
    assert "{" not in draft["example"]["request"]
    assert draft["example"]["body"]["version"] == "1.4.0"
    assert draft["example"]["status"] == 201
    assert draft["example"]["answer"]["channel"] == "stable"


async def test_the_manual_shows_the_answer_of_each_endpoint_that_answers_json(http: httpx.AsyncClient) -> None:
    endpoints = (await http.get("/wiki.json")).json()["endpoints"]
    without_example = {
        endpoint["endpoint"]
        for endpoint in endpoints
        if endpoint["answers"].get("200", "").startswith("application/json")
    }
    without_example -= {endpoint["endpoint"] for endpoint in endpoints if "answer" in endpoint["example"]}

    assert not without_example
    assert len(endpoints) > 100
    for endpoint in endpoints:
        assert ': "text"' not in json.dumps(endpoint["example"]), endpoint["endpoint"]
        assert " " not in endpoint["example"]["request"].partition(" ")[2], endpoint["endpoint"]


async def test_the_manual_shows_how_webhooks_are_signed(http: httpx.AsyncClient) -> None:
    sections = {section["id"]: section["text"] for section in (await http.get("/wiki.json")).json()["sections"]}

    assert all(
        word in sections["webhook-signatures"] for word in ("webhook-id", "webhook-timestamp", "HMAC-SHA256", "whsec_")
    )


async def test_the_overview_is_short_and_names_every_document_and_every_section(http: httpx.AsyncClient) -> None:
    answer = await http.get("/llms.txt")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("# Countersign\n\n> ")
    for name, path in documents.DOCUMENTS.items():
        assert name == "llms" or f"]({ROOT}{path})" in answer.text
    section_url, names = re.search(r"- (\S+)/SECTION: one section of openapi: (.*)", answer.text).groups()  # pyright: ignore
    tags = [tag["name"] for tag in (await http.get("/openapi.json")).json()["tags"]]
    assert names.split(", ") == [tag for tag in tags if (await http.get(f"{section_url}/{tag}")).status_code == 200]


@pytest.mark.parametrize("root_url", [ROOT, "https://downloads.a-rather-long-name.example-company.com"])
def test_the_overview_is_at_most_3_kb(root_url: str) -> None:
    assert len(manual.overview(EVERY_ROUTE, root_url, "Countersign").encode()) <= manual.MAX_BYTES


def test_the_recipes_of_the_overview_run(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as store:
        text = httpx.get(f"{store.url}/llms.txt", trust_env=False).text
        begin, *recipes = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        variables = environment()
        results = [
            subprocess.run(["bash", "-c", begin + recipe], env=variables, capture_output=True, text=True, check=True)
            for recipe in recipes
        ]

    listed_json, batch, download, published_json, registered_json = (result.stdout for result in results)
    assert all("linux" in item["platforms"] for item in json.loads(listed_json)["items"])
    assert json.loads(listed_json)["items"]
    assert [result["status"] for result in json.loads(batch)["results"]] == [200, 200]
    announced_digest, digest_line = download.split("\n")[:2]
    assert re.fullmatch("[0-9a-f]{64}", announced_digest)
    assert digest_line == f"{announced_digest}  -"
    product, draft, artifact, job, release = _objects(published_json)
    assert (product["slug"], draft["version"], artifact["status"]) == ("my-tool", "1.0", "ready")
    assert job["status"] == "completed", job
    assert (release["version"], release["channel"]) == ("1.0", "beta")
    assert "published_at" in release
    claim = json.loads(registered_json)["claim"]
    assert claim["user_code"]
    assert claim["verification_uri"].startswith(f"{store.url}/auth/claim")


def _objects(text: str) -> list[Any]:
    """Yield the JSON objects in the text."""
    objects: list[Any] = []
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        objects.append(value)
        text = text[end:].strip()
    return objects


async def test_the_api_catalog_links_to_the_descriptions_of_the_api(http: httpx.AsyncClient) -> None:
    answer = await http.get("/.well-known/api-catalog")
    head = await http.head("/.well-known/api-catalog")

    kind = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
    assert answer.headers["content-type"] == head.headers["content-type"] == kind
    assert head.headers["link"] == f'<{ROOT}/.well-known/api-catalog>; rel="api-catalog"'
    assert head.content == b""
    catalog, api = answer.json()["linkset"]
    assert catalog["anchor"] == f"{ROOT}/.well-known/api-catalog"
    assert [item["href"] for item in catalog["item"]] == [f"{ROOT}/api/v1"] == [api["anchor"]]
    for relation in ("service-desc", "service-doc", "service-meta", "status"):
        for link in api[relation]:
            response = await http.get(link["href"])
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(link["type"])


async def test_security_txt_names_contact_expiry_and_its_address(http: httpx.AsyncClient) -> None:
    now = clock.from_datetime(datetime(2026, 3, 1, 15, 30, tzinfo=UTC))
    with clock.fixed(now):
        answer, later_response = await http.get(SECURITY), await http.get(SECURITY)

    lines = answer.text.splitlines()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert lines[:2] == ["Contact: mailto:security@example.com", "Contact: https://example.com/report"]
    fields = dict(line.split(": ", 1) for line in lines)
    expires = datetime.fromisoformat(fields["Expires"])
    assert timedelta(days=30) < expires - datetime(2026, 3, 1, tzinfo=UTC) < timedelta(days=365)
    assert fields["Canonical"] == ROOT + SECURITY
    assert later_response.headers["etag"] == answer.headers["etag"]


async def test_without_a_contact_there_is_no_security_txt(store: Store) -> None:
    contactless = replace(store, settings=replace(store.settings, security_contact=""))
    transport = httpx.ASGITransport(distribution.create(contactless))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT) as http:
        answer = await http.get(SECURITY)

    assert (answer.status_code, answer.json()["code"]) == (404, "resource_not_found")
    assert "COUNTERSIGN_SECURITY_CONTACT" in answer.json()["resolution"]


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_documents_are_kept_checked_and_read_by_any_site(http: httpx.AsyncClient, path: str) -> None:
    answer, head = await http.get(path), await http.head(path)
    second_response = await http.get(path, headers={"If-None-Match": answer.headers["etag"]})

    assert answer.status_code == head.status_code == 200
    assert head.content == b""
    assert head.headers["etag"] == answer.headers["etag"]
    assert (second_response.status_code, second_response.content) == (304, b"")
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "ratelimit-limit" in answer.headers


async def test_the_start_page_leads_to_every_document(world: World) -> None:
    page = await world.http.get("/", headers={"Accept": "text/html"})
    for relation, path in (("service-doc", "auth.md"), ("api-catalog", ".well-known/api-catalog")):
        assert f'</{path}>; rel="{relation}"' in page.headers["link"]
    assert '</llms.txt>; rel="describedby"' in page.headers["link"]

    for path in documents.DOCUMENTS.values():
        assert f'href="{path}"' in page.text
