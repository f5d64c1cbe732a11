"""One route as a tool: its schema from the route's own declaration, and its arguments as the request they stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode

import msgspec

from countersign.distribution.context import PREFIX, Store
from countersign.kernel.errors import Refused
from countersign.kernel.http.answer import encode
from countersign.kernel.http.call import Inner
from countersign.kernel.http.route import Route
from countersign.kernel.mcp.tools import Hints, Tool

KEY = "idempotency_key"
NOT_TOLD = frozenset({"format", "stream"})
"""Parameters that ask for something else than the one JSON answer that a tool gives."""

_KEY_SCHEMA = {
    "type": "string",
    "format": "uuid",
    "description": "A UUID of your choice; a repeat with the same one has no second effect.",
}
_REFERENCE = "#/components/schemas/{name}"
_JSON = (("content-type", "application/json"),)
_ABSENT = re.compile(r"\{(\w+)\}")

Schema = dict[str, Any]


class BadArgument(Refused):
    """An argument is unknown, missing, or cannot be put into an address."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A route that is offered as the tool of this name. `members` are those of its body."""

    route: Route[Store]
    tool: Tool
    path: tuple[str, ...]
    query: frozenset[str]
    members: frozenset[str]

    def request(self, arguments: Mapping[str, Any]) -> Inner:
        """The request that the arguments stand for; null is as good as left out. Values are the route's to judge.

        Raises:
            BadArgument: one is unknown, or a part of the path is missing or no text.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        unknown = given.keys() - self.tool.input_schema["properties"].keys()
        if unknown:
            raise BadArgument(f"{min(unknown)}: is unknown here")
        headers: tuple[tuple[str, str], ...] = ()
        if KEY in given:
            headers = (("idempotency-key", _header(given[KEY])),)
        target = _ABSENT.sub(lambda found: _segment(found[1], given), self.route.path)
        query = {name: _parameter(name, given[name]) for name in given if name in self.query}
        address = ("" if self.route.at_root else PREFIX) + target + (f"?{urlencode(query)}" if query else "")
        if self.route.body is None:
            return Inner(self.route.method, address, headers)
        body = encode({name: value for name, value in given.items() if name in self.members})
        return Inner(self.route.method, address, (*_JSON, *headers), body)


def operation(name: str, route: Route[Store]) -> Operation:
    """The route as a tool of this name.

    Raises:
        ValueError: two of its parameters and members have the same name.
    """
    path = tuple(_ABSENT.findall(route.path))
    query = _struct(route.query)
    body = {} if route.body is None else _struct(route.body)
    parameters = {each: query["properties"][each] for each in query["properties"] if each not in NOT_TOLD}
    members: Schema = body.get("properties", {})
    properties: Schema = {each: {"type": "string"} for each in path} | parameters | members
    if len(properties) != len(path) + len(parameters) + len(members):
        raise ValueError(f"{name}: a name is there twice")
    if route.writes:
        properties[KEY] = _KEY_SCHEMA
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [each for each in (*path, *query.get("required", ()), *body.get("required", ())) if each in properties]
    if required:
        schema["required"] = required
    words = " ".join((route.handler.__doc__ or route.summary).split())
    tool = Tool(name, name.replace("_", " ").capitalize(), words, schema, _hints(route))
    return Operation(route, tool, path, frozenset(parameters), frozenset(members))


def _hints(route: Route[Store]) -> Hints:
    """A batch may hold whatever there is to do."""
    return Hints(read_only=route.method == "GET", idempotent=route.method == "GET", destructive=route.alone)


def _struct(shape: type[msgspec.Struct]) -> Schema:
    """The struct's schema without references, which many clients cannot follow."""
    _, components = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return cast("Schema", _flat(components[shape.__name__], components))


def _flat(schema: object, components: Mapping[str, Any]) -> object:
    if isinstance(schema, list):
        return [_flat(each, components) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("Schema", schema)
    if "$ref" in members:
        return _flat(components[members["$ref"].rpartition("/")[2]], components)
    # What may be null may be left out, and every client knows how to leave something out.
    choices = [each for each in members.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        members = {**choices[0], **{name: value for name, value in members.items() if name not in ("anyOf", "default")}}
        return _flat(members, components)
    kept = {name: value for name, value in members.items() if name != "title" or not isinstance(value, str)}
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return {name: _flat(value, components) for name, value in kept.items()}


def _segment(name: str, given: Mapping[str, Any]) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise BadArgument(f"{name}: is required, a text")
    return quote(_storable(name, value), safe="")


def _parameter(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise BadArgument(f"{name}: must be one plain value")
    return _storable(name, value)


def _storable(name: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        raise BadArgument(f"{name}: holds a NUL or half of a surrogate pair")
    return value


def _header(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise BadArgument(f"{KEY}: must be a UUID")
    return value
