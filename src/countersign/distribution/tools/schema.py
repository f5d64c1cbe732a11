"""A struct's JSON Schema as MCP clients take it: without references, titles, and null beside what may be left out."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

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
