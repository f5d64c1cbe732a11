"""The API document is a part of the store's own description: parameters, statuses and objects are the same, and
everything else is marked as an addition."""

from collections.abc import Iterator
from typing import Any

import pytest

from countersign.store.context import PREFIX
from tests.contract import documented
from tests.contract.described import DESCRIPTION, resolve_reference
from tests.contract.documented import DocumentedMember, EndpointRow, Form

GENERAL = {401, 403, 429}
"""The statuses that the document's section on errors gives for every endpoint."""
# A restriction by a later decision: a page has at least one item.
NARROWED = {("/products", "limit"): {"minimum": 1}}

OBJECTS = documented.objects()


def _operation(row: EndpointRow) -> dict[str, Any] | None:
    for address in (PREFIX + row.path, row.path):
        operation: dict[str, Any] | None = DESCRIPTION["paths"].get(address, {}).get(row.method.lower())
        if operation is not None:
            return operation
    return None


SERVED = [row for row in documented.rows() if _operation(row) is not None]
served = pytest.mark.parametrize("row", SERVED, ids=lambda row: f"{row.method} {row.path}")


def operation(row: EndpointRow) -> dict[str, Any]:
    """Return the operation of a served row, with its references resolved."""
    documented = _operation(row)
    assert documented is not None
    answers = {status: resolve_reference(answer) for status, answer in documented["responses"].items()}
    return {**documented, "responses": answers}


def form(schema: dict[str, Any]) -> Form:
    """Return the types, format and values of a schema without its additions."""
    kinds: set[str] = set()
    values: list[str] | None = None
    formats: set[str] = set()
    for alternative in schema.get("anyOf", [schema]):
        if "x-addition" not in alternative or alternative is schema:
            resolved = resolve_reference(alternative)
            kinds.add(resolved["type"])
            values = resolved.get("enum", values)
            formats |= {resolved["format"]} if "format" in resolved else set()
    return frozenset(kinds), next(iter(formats), None), None if values is None else frozenset(values)


def members(schema: dict[str, Any]) -> Iterator[tuple[str, DocumentedMember]]:
    """Return the members of a schema without additions. Members of arrays of texts have the form `name[]`."""
    for name, member in schema["properties"].items():
        if "x-addition" in member:
            continue
        yield name, DocumentedMember(form(member), name in schema.get("required", ()))
        items = member.get("items", {})
        if items.get("type") == "string":
            yield f"{name}[]", DocumentedMember(form(items), is_required=True)


def test_every_row_is_served() -> None:
    assert len(SERVED) == len(documented.rows()) == 16


@served
def test_the_operation_is_no_addition(row: EndpointRow) -> None:
    assert "x-addition" not in operation(row)


@served
def test_parameters_match_the_api_document(row: EndpointRow) -> None:
    listed_parameters = {parameter["name"]: parameter for parameter in operation(row)["parameters"]}

    assert {name for name, parameter in listed_parameters.items() if "x-addition" not in parameter} == set(
        row.parameters
    )
    for name, expected in row.parameters.items():
        listed_parameter, schema = listed_parameters[name], listed_parameters[name]["schema"]
        narrowed = NARROWED.get((row.path, name), {})
        assert listed_parameter["in"] == expected.place
        assert listed_parameter["required"] == expected.is_required
        assert schema["type"] == expected.type
        assert schema.get("format") == expected.format
        assert schema.get("default") == expected.default
        assert schema.get("minimum") == (expected.least or narrowed.get("minimum"))
        assert schema.get("maximum") == expected.most


@served
def test_statuses_match_the_api_document(row: EndpointRow) -> None:
    answers = operation(row)["responses"]
    documented_statuses = {int(status) for status, answer in answers.items() if "x-addition" not in answer}

    assert documented_statuses - GENERAL == set(row.answers) - GENERAL
    assert set(row.answers) <= {int(status) for status in answers}


@served
def test_answers_are_the_objects_of_the_document(row: EndpointRow) -> None:
    for status, (name, is_array) in row.answers.items():
        content = operation(row)["responses"][str(status)]["content"]
        kind = "application/problem+json" if status >= 400 else "application/json"
        schema = content[kind]["schema"]
        if "anyOf" in schema:
            (schema,) = (variant for variant in schema["anyOf"] if "x-addition" not in resolve_reference(variant))
        assert (schema.get("type") == "array") == is_array
        assert_same(resolve_reference(schema["items"] if is_array else schema), name)


@served
def test_bodies_have_the_members_of_the_document(row: EndpointRow) -> None:
    described_operation = operation(row)
    assert ("requestBody" in described_operation) == bool(row.body)
    if row.body:
        assert described_operation["requestBody"]["required"]
        schema = resolve_reference(described_operation["requestBody"]["content"]["application/json"]["schema"])
        assert dict(members(schema)) == row.body


def assert_same(schema: dict[str, Any], name: str) -> None:
    """Require that the schema and its parts have the members of the document's objects."""
    assert dict(members(schema)) == OBJECTS[name], name
    for (outer, member), inner in documented.PARTS.items():
        if outer == name:
            assert_same(resolve_reference(schema["properties"][member]["items"]), inner)


def test_the_tables_of_the_document_are_parsed_correctly() -> None:
    rows = {(row.method, row.path): row for row in documented.rows()}

    limit = rows["GET", "/library"].parameters["limit"]
    assert (limit.place, limit.type, limit.default, limit.least, limit.most) == ("query", "integer", 50, 1, 100)
    assert rows["GET", "/library"].answers == {200: ("Product", True), 401: ("problem details", False)}
    assert rows["POST", "/jobs"].answers == {200: ("JobStatus", False), 202: ("JobStatus", False)}
    assert rows["POST", "/jobs"].body["payload"] == DocumentedMember(
        (frozenset({"object"}), None, None), is_required=True
    )
    assert rows["GET", "/jobs/{job_id}"].parameters["job_id"].format == "uuid"
    assert OBJECTS["Product"]["kind"].form[2] == {"game", "app", "tool"}
    assert OBJECTS["Product"]["platforms[]"].form[2] == {"windows", "macos", "linux", "android", "ios", "web"}
    assert OBJECTS["health"] == {
        "status": DocumentedMember((frozenset({"string"}), None, None), is_required=True),
        "version": DocumentedMember((frozenset({"string"}), None, None), is_required=False),
    }
