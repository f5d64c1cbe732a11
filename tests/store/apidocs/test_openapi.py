"""The API description is consistent: its references, examples, links and headers are correct."""

import ast
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, get_args

import jsonschema
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from countersign import store
from countersign.kernel.clock import Instant
from countersign.kernel.http.deprecation import Deprecation, deprecated
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Route, route
from countersign.kernel.webhooks import signatures
from countersign.store.apidocs import openapi, operations, problems
from countersign.store.auth import authentication
from countersign.store.webhook_events import EventType
from tests.contract.described import DESCRIPTION, resolve_reference
from tools.reference import EVERY_ROUTE

OPERATIONS = [
    pytest.param(method, path, operation, id=f"{method.upper()} {path}")
    for path, item in DESCRIPTION["paths"].items()
    for method, operation in item.items()
]
each_operation = pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
# Headers that OpenAPI describes in other ways (media types, credentials), or that every route reads.
IN_OTHER_WORDS = {
    *("accept", "content-type", "content-length", "authorization", "x-api-key", "cookie", "x-forwarded-for", "host"),
    *("origin", "sec-fetch-site", "user-agent"),
}


def validate(value: object, schema: dict[str, Any]) -> None:
    """Require that the value is valid by JSON Schema 2020-12, including formats."""
    full_schema = {**schema, "components": DESCRIPTION["components"]}
    jsonschema.Draft202012Validator(full_schema, format_checker=jsonschema.FormatChecker()).validate(value)


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every body of the operation: its position, its media type, and its description."""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "body", kind, content
    for status, answer in operation["responses"].items():
        for kind, content in resolve_reference(answer).get("content", {}).items():
            yield status, kind, content


def test_every_reference_leads_somewhere() -> None:
    references = set(re.findall(r'"\$ref":"(#/[^"]+)"', openapi.encode(DESCRIPTION).decode()))

    assert len(references) > 100
    for reference in references:
        assert resolve_reference({"$ref": reference})


@each_operation
def test_every_example_is_valid(method: str, path: str, operation: dict[str, Any]) -> None:
    for parameter in operation["parameters"]:
        validate(parameter["example"], parameter["schema"])
    for content_place, kind, content in contents(operation):
        shown_examples = [resolve_reference(example)["value"] for example in content.get("examples", {}).values()]
        shown_examples += [content["example"]] if "example" in content else []
        is_json = kind.endswith(("/json", "+json")) and content["schema"]
        assert shown_examples or not is_json, f"{content_place} {kind} has no example"
        for value in shown_examples:
            validate(value, content["schema"])


NO_VALUES = {"text", "string", "a", "x", ""}


def values(json_value: Any) -> Iterator[str]:
    """Yield every text in the part."""
    for member in (
        json_value.values() if isinstance(json_value, dict) else json_value if isinstance(json_value, list) else ()
    ):
        yield from values(member)
    if isinstance(json_value, str):
        yield json_value


def examples_of(operation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every example of the operation with its position, except the examples of refusals."""
    for parameter in operation["parameters"]:
        yield parameter["name"], parameter["example"]
    for content_place, kind, content in contents(operation):
        if content_place == "body" or int(content_place) < 400:
            yield from (
                (f"{content_place} {kind}", resolve_reference(example)["value"])
                for example in content.get("examples", {}).values()
            )
            yield from ((f"{content_place} {kind}", content[name]) for name in ("example",) if name in content)


@each_operation
def test_every_example_has_real_values(method: str, path: str, operation: dict[str, Any]) -> None:
    for example_place, example in examples_of(operation):
        assert not NO_VALUES & set(values(example)), example_place
        assert example != {} or path == "/auth/revoke", example_place
        assert example != [], example_place


# Examples of texts in these positions, whose schema is only a string.
SAID = {
    ("GET", "/health", "status"): {"ok"},
    ("GET", "/products/{id}/releases", "status"): {"ready"},
    ("GET", "/codes", "kind"): {"license", "promo"},
    ("GET", "/codes", "status"): {"active", "revoked"},
    ("GET", "/org/webhooks/{webhook_id}/deliveries", "type"): {*get_args(EventType), "webhook.ping"},
    ("GET", "/org/webhooks", "types"): {*get_args(EventType)},
    ("POST", "/products/{id}/releases/{version}/artifacts", "status"): {"ready", "receiving"},
    ("GET", "/jobs/{job_id}", "status"): {"completed", "running"},
    ("GET", "/jobs", "type"): {"artifact.verify", "archive.extract", "build.process"},
    ("POST", "/auth/register", "type"): {"service_auth", "anonymous", "identity_assertion"},
    ("POST", "/auth/me", "status"): {"pending", "claimed", "initiated"},
    ("GET", "/api/keys", "status"): {"provisioned"},
    ("GET", "/sandbox", "status"): {"ok"},
}


@pytest.mark.parametrize(("method", "path", "member"), SAID)
def test_examples_contain_the_texts_that_the_service_sends(method: str, path: str, member: str) -> None:
    operation = DESCRIPTION["paths"][f"/api/v1{path}"][method.lower()]
    example_values = {
        value
        for _, example in examples_of(operation)
        for value in _texts_of_member(example, member)
        if value is not None
    }

    assert example_values <= SAID[method, path, member]


def _texts_of_member(json_value: Any, member: str) -> Iterator[str]:
    """Yield the texts of the members with this name, at any depth of the part."""
    if isinstance(json_value, dict):
        own_value = json_value.get(member)
        yield from own_value if isinstance(own_value, list) else [own_value] if isinstance(own_value, str) else []
    for address in (
        json_value.values() if isinstance(json_value, dict) else json_value if isinstance(json_value, list) else ()
    ):
        yield from _texts_of_member(address, member)


def test_the_webhooks_are_described_with_every_event_and_how_to_check_it() -> None:
    webhooks = DESCRIPTION["webhooks"]

    assert set(webhooks) == {*get_args(EventType), "webhook.ping"}
    for kind, item in webhooks.items():
        content = item["post"]["requestBody"]["content"]["application/json"]
        validate(content["example"], content["schema"])
        assert content["example"]["type"] == kind
        assert {parameter["name"] for parameter in item["post"]["parameters"]} == set(
            signatures.signature_headers([], "a", Instant(0), b"")
        )
        assert all(word in item["post"]["description"] for word in ("HMAC-SHA256", "whsec_", "base64", "full stop"))


@pytest.mark.parametrize("name", [tag["name"] for tag in DESCRIPTION["tags"]])
def test_each_section_is_a_small_complete_description(name: str) -> None:
    section = openapi.section_document(DESCRIPTION, name)

    OpenAPIV31SpecValidator(section).validate()
    assert len(openapi.encode(section)) < len(openapi.encode(DESCRIPTION)) / 8
    operations_of = {(method, path) for path, item in section["paths"].items() for method in item}
    assert operations_of == {operation.values[:2] for operation in OPERATIONS if name in operation.values[2]["tags"]}
    section_url = next(tag["externalDocs"]["url"] for tag in DESCRIPTION["tags"] if tag["name"] == name)
    assert section_url == f"http://store.example/openapi/{name}"
    assert bool(section.get("webhooks")) == (name == "webhooks")


@each_operation
def test_links_name_existing_operations_and_parameters(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    by_id = {operation.values[2]["operationId"]: operation.values[2] for operation in OPERATIONS}
    for answer in operation["responses"].values():
        for link in resolve_reference(answer).get("links", {}).values():
            names = {parameter["name"] for parameter in by_id[link["operationId"]]["parameters"]}
            assert set(link["parameters"]) <= names
            assert len(link["parameters"]) == len(re.findall(r"\{", _path_of(link["operationId"]))) or "cursor" in names


def _path_of(operation_id: str) -> str:
    return next(
        str(operation.values[1]) for operation in OPERATIONS if operation.values[2]["operationId"] == operation_id
    )


def test_the_jobs_products_and_releases_are_linked() -> None:
    linked = {
        operation["operationId"]
        for _, _, operation in (operation.values for operation in OPERATIONS)
        if any(resolve_reference(answer).get("links") for answer in operation["responses"].values())
    }

    assert {"post_jobs", "post_products", "get_products", "post_products_id_releases"} <= linked


@each_operation
def test_every_problem_code_has_a_page_with_its_status(method: str, path: str, operation: dict[str, Any]) -> None:
    pages = {type_.code for type_ in problems.problem_types(EVERY_ROUTE).values()}
    for status, answer in operation["responses"].items():
        for code in resolve_reference(answer).get("x-codes", ()):
            assert code in pages
        for content in resolve_reference(answer).get("content", {}).values():
            for code, example in content.get("examples", {}).items():
                value = resolve_reference(example)["value"]
                assert value.get("code", code) == code
                assert str(value.get("status", status)) == status or not value.get("type", "").startswith("http")


@each_operation
def test_every_rate_limited_operation_documents_its_quota_headers(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    route = _route(method, path)
    for status, answer in operation["responses"].items():
        headers = set(resolve_reference(answer).get("headers", {}))
        if int(status) not in operations.SERVER_STATUSES:
            assert "X-Request-Id" in headers
            assert ("RateLimit-Limit" in headers) == route.counted
        assert status != "429" or "Retry-After" in headers
        assert status != "401" or "WWW-Authenticate" in headers


def _route(method: str, path: str) -> Route[Any]:
    return next(
        route for route in EVERY_ROUTE if (route.method.lower(), operations.address_of(route)) == (method, path)
    )


def test_a_key_for_the_sandbox_is_marked_in_every_list_of_keys() -> None:
    for method, path, operation in (operation.values for operation in OPERATIONS):
        is_known_by_key = {"ApiKey": []} in operation.get("security", [])
        codes = resolve_reference(operation["responses"].get("403", {})).get("x-codes", [])
        is_document = authentication.is_document(_route(method, path))
        assert "sandbox_only" in codes or is_document or not is_known_by_key, (method, path)
        assert not (is_document and "sandbox_only" in codes), (method, path)


@each_operation
def test_every_parameter_is_described(method: str, path: str, operation: dict[str, Any]) -> None:
    for parameter in operation["parameters"]:
        assert len(parameter["description"].split()) > 1, parameter["name"]


def test_every_parameter_of_a_path_is_explained() -> None:
    names = {name for route in EVERY_ROUTE for name in re.findall(r"\{(\w+)\}", route.path)}

    assert names <= set(operations.PATH_PARAMETERS), "say in documents/parameters.py what it is"


def test_every_header_that_the_code_looks_at_is_described() -> None:
    described_headers = {
        parameter["name"].lower()
        for operation in OPERATIONS
        for parameter in operation.values[2]["parameters"]
        if parameter["in"] == "header"
    }
    folder = Path(next(iter(store.__path__)))
    headers_read = {name for file in folder.rglob("*.py") for name in _headers_read(ast.parse(file.read_text()))}

    assert {"prefer", "if-match", "content-range", "range"} <= headers_read
    assert headers_read - IN_OTHER_WORDS <= described_headers


def _headers_read(tree: ast.Module) -> Iterator[str]:
    """Yield the names in every `signature_headers.get("…")` of a request."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and ast.unparse(node.func.value) in ("call.headers", "headers", "request")
            and isinstance(node.args[0], ast.Constant)
        ):
            name = node.args[0].value
            if isinstance(name, str) and name.islower():
                yield name


def test_structs_of_the_same_name_are_described_separately() -> None:
    def struct_named(member: str) -> type[msgspec.Struct]:
        struct = msgspec.defstruct("Health", [(member, str | None, None)], omit_defaults=True)
        struct.__module__ = struct.__qualname__ = member
        return struct

    async def show(call: Any) -> Response:
        """Show one item."""
        return Response(204)

    same_named_routes = (route("GET", f"/{name}", show, answers={200: struct_named(name)}) for name in ("one", "two"))
    paths = openapi.document((*EVERY_ROUTE, *same_named_routes), "http://store.example", "countersign")

    content = paths["paths"]["/api/v1/one"]["get"]["responses"]["200"]["content"]
    name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert paths["components"]["schemas"][name]["properties"] == {"one": {"type": "string"}}


async def old(call: Any) -> Response:
    """Serve a route that ends."""
    return Response(204)


class DeprecatedParameter(msgspec.Struct, forbid_unknown_fields=True):
    """A deprecated parameter."""

    kind: Annotated[str, deprecated(date(2026, 1, 1), date(2026, 4, 1), "https://docs.example/kind")] = ""


def test_a_deprecated_parameter_is_marked_with_its_end() -> None:
    notice = Deprecation(date(2026, 1, 1), date(2026, 4, 1), "https://docs.example/old")
    deprecated_routes = (
        route("GET", "/old", old, answers={204: None}, deprecation=notice),
        route("GET", "/other", old, answers={204: None}, query=DeprecatedParameter),
    )
    description = openapi.document((*EVERY_ROUTE, *deprecated_routes), "http://store.example", "countersign")
    paths = description["paths"]

    old_operation, other_operation = paths["/api/v1/old"]["get"], paths["/api/v1/other"]["get"]
    assert (old_operation["deprecated"], old_operation["x-sunset"]) == (True, "2026-04-01")
    assert "endpoint_gone" in old_operation["responses"]["410"]["x-codes"]
    assert "deprecated" not in other_operation
    parameter = other_operation["parameters"][0]
    assert (parameter["deprecated"], parameter["schema"]["x-sunset"]) == (True, "2026-04-01")
    assert other_operation["responses"]["410"]["x-codes"] == ["parameter_gone"]
    for answer in (old_operation["responses"]["204"], other_operation["responses"]["204"]):
        named_answer = description["components"]["responses"][answer["$ref"].rpartition("/")[2]]
        assert {"Deprecation", "Sunset", "Link"} <= set(named_answer["headers"])


def test_operations_at_the_root_and_in_the_api_have_ids_of_their_own() -> None:
    ids = [operation.values[2]["operationId"] for operation in OPERATIONS]

    assert len(set(ids)) == len(ids) == len(EVERY_ROUTE)
