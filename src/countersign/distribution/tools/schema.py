"""The JSON Schemas of a tool as MCP clients take them: without references and titles; of its input, without null beside
what may be left out."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from countersign.distribution.apidocs.schemas import Schemas
from countersign.distribution.context import Store
from countersign.kernel.http.routing import Route

_REFERENCE = "#/components/schemas/{name}"

Schema = dict[str, Any]


def of_struct(shape: type[msgspec.Struct] | None) -> Schema:
    """The schema of the struct's object; of None that of an empty one."""
    if shape is None:
        return {"properties": {}}
    _, components = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return _flat(components[shape.__name__], components)


def _flat(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _flat(components[schema["$ref"].rpartition("/")[2]], components)
    only = _only_choice(schema)
    if only is not None:
        beside = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
        return _flat({**only, **beside}, components)
    return {name: _value(name, value, components) for name, value in schema.items() if name != "title"}


def _only_choice(schema: Schema) -> Schema | None:
    """What a member may be beside null: every client knows how to leave one out, few how to send null."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return choices[0] if len(choices) == 1 else None


def _value(name: str, value: object, components: Mapping[str, Schema]) -> object:
    if name == "properties":
        members = cast("Mapping[str, Schema]", value)
        return {member: _flat(schema, components) for member, schema in members.items()}
    if name == "description":
        return " ".join(str(value).split())
    if isinstance(value, list) and name == "anyOf":
        return [_flat(each, components) for each in cast("list[Schema]", value)]
    return _flat(cast("Schema", value), components) if isinstance(value, dict) else cast("object", value)


def of_answers(route: Route[Store]) -> Schema:
    """The schema of the object that a tool answers with: the body of the route's answers, in which an array has the
    cursor of its next page beside it.

    Raises:
        ValueError: the answers have no body, or bodies of several shapes.
    """
    shapes = list(dict.fromkeys(each for each in route.answers.values() if each is not None))
    if len(shapes) != 1:
        raise ValueError(f"{route.method} {route.path}: a tool needs answers of one shape")
    schemas = Schemas((route,))
    found = _expanded(schemas.of(shapes[0]), schemas.components)
    if found.get("type") != "array":
        return found
    members = {"items": found, "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    return {"type": "object", "properties": members, "required": list(members)}


def _expanded(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """The schema with everything in its place. Where one of several objects may be, as in a query, which has others
    inside, it is called an object and no more: clients refuse schemas that refer to themselves."""
    if "$ref" in schema:
        return _expanded({**components[_name(schema)], **_without(schema, "$ref")}, components)
    choices = cast("list[Schema]", schema.get("anyOf", []))
    if sum("$ref" in each for each in choices) > 1:
        others = [each for each in choices if "$ref" not in each]
        return {"anyOf": [{"type": "object"}, *others]} if others else {"type": "object"}
    return {name: _expanded_value(name, value, components) for name, value in schema.items() if _is_for_clients(name)}


def _is_for_clients(name: str) -> bool:
    return name != "title" and not name.startswith("x-")


def _expanded_value(name: str, value: object, components: Mapping[str, Schema]) -> object:
    if name == "properties":
        members = cast("Mapping[str, Schema]", value)
        return {member: _expanded(schema, components) for member, schema in members.items()}
    if name == "description":
        return " ".join(str(value).split())
    if name == "anyOf":
        return [_expanded(each, components) for each in cast("list[Schema]", value)]
    is_schema = isinstance(value, dict) and name in ("items", "additionalProperties")
    return _expanded(cast("Schema", value), components) if is_schema else cast("object", value)


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _without(schema: Schema, name: str) -> Schema:
    return {each: value for each, value in schema.items() if each != name}
