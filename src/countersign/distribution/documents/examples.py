"""Examples that keep to their schemas: each value by the name of what it is for, or made from what its schema says."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from countersign.distribution.documents.example_values import DIGEST, ID, LEFT_OUT, NAMED, SHAPES
from countersign.distribution.documents.schemas import Document

_FORMATS: Mapping[str, str] = {
    "uuid": ID,
    "uri": "https://store.example/api/v1/products",
    "uri-reference": "/api/v1/products",
    "date-time": "2026-03-01T12:00:00Z",
    "date": "2026-03-01",
}
_FORM_OF: Mapping[str, re.Pattern[str]] = {
    "uuid": re.compile(r"[0-9a-f]{8}-"),
    "uri": re.compile(r"https?://"),
    "uri-reference": re.compile(r"https?://|/"),
    "date-time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
}
_KINDS: Mapping[type, str] = {str: "string", list: "array", int: "integer", dict: "object", type(None): "null"}
_MAX_DEPTH = 12


class Examples:
    """Makes examples of schemas, which may refer to these components."""

    def __init__(self, components: Mapping[str, Document]) -> None:
        self._components = components

    def of(self, schema: Document, name: str = "", depth: int = 0) -> Any:
        """A value that the schema allows, as what is called `name` would be. `allOf`, `not` and conditions are not
        looked at; the documents have none."""
        if "$ref" in schema:
            component = str(schema["$ref"]).rpartition("/")[2]
            referred = self._components[component]
            if referred.get("type") == "object":
                return self._object(referred, depth + 1, SHAPES.get(component, {}))
            return self.of(referred, name, depth + 1)
        known = _known(schema, name)
        if known:
            return known[0]
        if "anyOf" in schema:
            parts = cast("list[Document]", schema["anyOf"])
            return self.of(next((part for part in parts if part.get("type") != "null"), parts[0]), name, depth + 1)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Document, name: str, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth, {})
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "string":
            return _text(schema)
        if name == "status" and kind == "integer":
            return 200
        if kind in ("integer", "number"):
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        return kind == "boolean"

    def _object(self, schema: Document, depth: int, known: Mapping[str, object]) -> Document:
        """An object of the known members and those that the schema describes; what may be left out and has no value of
        its own is left out."""
        members: Mapping[str, Document] = schema.get("properties", {})
        required = schema.get("required", ())
        made: Document = {}
        for each, member in members.items():
            # What refers to itself ends at some depth.
            if each in known:
                made[each] = known[each]
            elif each in required or (depth < _MAX_DEPTH and not _is_unsaid(each, member)):
                made[each] = self.of(member, each, depth + 1)
        return {each: value for each, value in made.items() if value is not LEFT_OUT}

    def _array(self, schema: Document, name: str, depth: int) -> list[Any]:
        items = schema.get("items")
        if not isinstance(items, dict) or depth >= _MAX_DEPTH:
            return []
        held = cast("Document", items)
        return [self.of(held, name.removesuffix("s"), depth + 1) for _ in range(max(1, schema.get("minItems", 1)))]


def _known(schema: Document, name: str) -> Sequence[Any]:
    """The values that the schema shows or allows, or the one by this name; the first is the example."""
    if said := schema.get("examples"):
        return cast("list[Any]", said)
    if name in NAMED and _fits(NAMED[name], schema):
        return [NAMED[name]]
    if "enum" in schema:
        return cast("list[Any]", schema["enum"])
    return [schema["default"]] if "default" in schema else []


def _is_unsaid(name: str, schema: Document) -> bool:
    """Whether a member is null where it is not sent, and there is no value to show."""
    return "default" in schema and schema["default"] is None and not (name in NAMED and _fits(NAMED[name], schema))


def _fits(value: object, schema: Document) -> bool:
    """Whether a known value is one for this schema, as far as the names in use need telling apart."""
    if "anyOf" in schema:
        return any(_fits(value, part) for part in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind = _KINDS[type(value)]
    if schema.get("type") not in (kind, "number" if kind == "integer" else kind):
        return False
    if isinstance(value, str):
        return _is_text_for(value, schema)
    if isinstance(value, list):
        return all(_fits(each, schema.get("items", {})) for each in cast("list[object]", value))
    if isinstance(value, int):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def _is_text_for(value: str, schema: Document) -> bool:
    if schema.get("format") in _FORMATS and _FORM_OF[schema["format"]].match(value) is None:
        return False
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return re.search(schema.get("pattern", ""), value) is not None


def _text(schema: Document) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    for candidate in ("text", "a", DIGEST, "a@example.com", "https://store.example/", "1.0.0"):
        if _is_text_for(candidate, schema):
            return candidate
    return "x" * schema.get("minLength", 1)
