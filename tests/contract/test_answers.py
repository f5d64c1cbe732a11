"""Real answers have the members, types and formats of the API document's tables."""

import re
import uuid
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from countersign.store.context import PREFIX
from tests.contract import documented
from tests.contract.documented import DocumentedMember, EndpointRow
from tests.contract.scenes import BY_KEY, Scene

OBJECTS = documented.objects()
ROWS = documented.rows()
CALLERS = ("anonymous", "customer", "viewer of north", "publisher of north", "owner of south", "client of north")
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def _is_of(value: object, member: DocumentedMember) -> bool:
    kinds, form, values = member.form
    is_of_type = any(isinstance(value, TYPES[kind]) for kind in kinds)
    if not is_of_type or value not in (values or (value,)):
        return False
    return _has_format(value, form) if isinstance(value, str) else True


def _has_format(value: str, form: str | None) -> bool:
    if form is None:
        return True
    if form == "uuid":
        return str(uuid.UUID(value)) == value
    if form == "date-time":
        return datetime.fromisoformat(value).tzinfo is not None
    parts = urlsplit(value)
    return bool(parts.scheme and parts.netloc) and re.fullmatch(r"[\x21-\x7e]+", value) is not None


def assert_conforms(body: Any, name: str) -> None:
    """Require that the body has the required members of the document's object, and that each documented member has its
    form."""
    for member, expected in OBJECTS[name].items():
        bare = member.removesuffix("[]")
        if bare not in body:
            assert not expected.is_required, (name, member)
            continue
        values = body[bare] if member.endswith("[]") else [body[bare]]
        assert all(_is_of(value, expected) for value in values), (name, member, body[bare])
        inner = documented.PARTS.get((name, bare))
        for element in body[bare] if inner else ():
            assert_conforms(element, inner or "")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
async def test_every_answer_of_a_documented_row_conforms(scene: Scene, row: EndpointRow) -> None:
    for version, status in (("2.0.0", "draft"), ("3.0.0", "published"), ("4.0.0", "yanked")):
        await _release(scene, version, status)
    route = BY_KEY.get((row.method, row.path)) or BY_KEY[row.method, f"ROOT{row.path}"]

    for caller in CALLERS:
        for slug in ("north-public", "north-draft", "no-such-product"):
            answer = await scene.send(route, caller, slug)
            name, is_array = row.answers.get(answer.status_code, ("problem details", False))
            assert answer.is_success == (name != "problem details"), answer.text
            for member in answer.json() if is_array else (answer.json(),):
                assert_conforms(member, name)
            if "{id}" not in row.path:
                break


async def _release(scene: Scene, version: str, status: str) -> None:
    owner = scene.tokens["owner of north"]
    path = "/products/north-public/releases"
    created_response = await scene.world.call(
        "POST", path, owner, json={"version": version, "channel": "beta", "notes_only": True}
    )
    assert "published_at" not in created_response.json()
    notes = await scene.world.call("PUT", f"{path}/{version}", owner, json={"notes": "What is new"})
    assert "published_at" not in notes.json()
    if status != "draft":
        assert_conforms((await scene.world.call("POST", f"{path}/{version}/publish", owner)).json(), "Release")
    if status == "yanked":
        yanked_response = await scene.world.call("POST", f"{path}/{version}/yank", owner, json={"reason": "It crashes"})
        assert_conforms(yanked_response.json(), "Release")


async def test_drafts_have_no_publication_time_and_releases_always_have_a_publication_time(scene: Scene) -> None:
    for version, status in (("2.0.0", "draft"), ("3.0.0", "published"), ("4.0.0", "yanked")):
        await _release(scene, version, status)

    for caller in CALLERS:
        releases = await scene.send(BY_KEY["GET", "/products/{id}/releases"], caller)
        drafts = await scene.send(BY_KEY["GET", "/products/{id}/drafts"], caller)
        is_member = "north" in caller
        expected = ["4.0.0", "3.0.0", "1.0.0"] if is_member else ["3.0.0", "1.0.0"]
        assert [release["version"] for release in releases.json()] == expected, caller
        assert all(release["published_at"] for release in releases.json())
        if is_member:
            assert [(release["version"], release["status"]) for release in drafts.json()] == [("2.0.0", "draft")]
            assert all("published_at" not in release for release in drafts.json())


@pytest.mark.parametrize(
    "target",
    [
        "/no/such/place?x=1",
        f"{PREFIX}/products/no-such-product?a=b",
        f"{PREFIX}/products?limit=none",
        f"{PREFIX}/products/%3Cscript%3E",
        f"{PREFIX}/products/p\u00e4rchen",
        "/sandbox/api/v1/products/none",
    ],
)
async def test_the_instance_of_a_problem_is_the_absolute_uri_that_was_asked(scene: Scene, target: str) -> None:
    answer = await scene.world.http.get(target)

    assert answer.status_code >= 400
    assert answer.json()["instance"] == str(answer.request.url)
    assert_conforms(answer.json(), "problem details")


async def test_problems_inside_a_batch_name_absolute_uris(scene: Scene) -> None:
    operations = [{"method": "GET", "path": "/products/none"}, {"method": "GET", "path": "/info"}]
    for mode in ("parallel", "atomic"):
        for at in ("", "/sandbox"):
            address = f"{at}{PREFIX}/batch"
            answer = await scene.world.http.post(address, json={"mode": mode, "operations": operations})
            (first_result, *_) = answer.json()["results"]
            assert first_result["body"]["instance"] == f"http://127.0.0.1:8480{at}{PREFIX}/products/none"


async def test_the_api_begins_with_an_index_whose_links_all_answer(scene: Scene) -> None:
    index = await scene.world.http.get(PREFIX)

    assert index.status_code == 200
    assert len(index.content) < 1200
    links = index.json()["links"]
    assert {"openapi", "health", "products", "catalog", "sandbox", "keys"} <= set(links)
    for name, address in links.items():
        answer = await scene.world.http.get(address, follow_redirects=False)
        assert answer.status_code == (405 if name == "mcp" else 200), (name, answer.text)
