"""A route as an MCP tool: JSON Schemas as MCP clients accept them, and arguments as the request they stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode

import msgspec

from countersign.kernel.errors import Refused
from countersign.kernel.http import decode
from countersign.kernel.http.request import Subrequest
from countersign.kernel.http.response import encode
from countersign.kernel.http.routing import Route
from countersign.kernel.mcp.tools import Hints, Tool
from countersign.store.apidocs.operations import IN_PATH
from countersign.store.apidocs.schemas import Schemas
from countersign.store.context import PREFIX, Store

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


KEY = "idempotency_key"
NOT_OFFERED = frozenset({"format", "stream", "streaming"})
"""Parameters and members that ask for another form of answer than the one JSON object of a tool."""

_KEY_SCHEMA = {
    "type": "string",
    "format": "uuid",
    "description": "A UUID of your choice; a repeat with the same one has no second effect.",
}
_JSON = (("content-type", "application/json"),)
_PARAMETER = re.compile(r"\{(\w+)\}")


class BadArgument(Refused):
    """An argument is unknown, missing, or cannot be put into an address."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A route that is offered as the tool of this name. `members` are those of its body."""

    route: Route[Store]
    tool: Tool
    query: frozenset[str]
    members: frozenset[str]

    def request(self, arguments: Mapping[str, Any]) -> Subrequest:
        """The request that the arguments stand for; null is as good as left out. Values are the route's to judge.

        Raises:
            BadArgument: one is unknown, or cannot be sent in its place.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        known = self.tool.input_schema["properties"]
        unknown = given.keys() - known.keys()
        if unknown:
            raise BadArgument(f"{min(unknown)}: {decode.unknown_here(known)}")
        headers = (("idempotency-key", _header(given[KEY])),) if KEY in given else ()
        if self.route.body is None:
            return Subrequest(self.route.method, self._address(given), headers)
        body = encode({name: given[name] for name in self.members & given.keys()})
        return Subrequest(self.route.method, self._address(given), (*_JSON, *headers), body)

    def _address(self, given: Mapping[str, Any]) -> str:
        prefix = "" if self.route.at_root else PREFIX
        path = _PARAMETER.sub(lambda found: _segment(found[1], given), self.route.path)
        query = urlencode({name: _parameter(name, given[name]) for name in self.query & given.keys()})
        return f"{prefix}{path}?{query}" if query else prefix + path


def operation(name: str, route: Route[Store]) -> Operation:
    """The route as a tool of this name.

    Raises:
        ValueError: two of its parameters and members have the same name.
    """
    path = _PARAMETER.findall(route.path)
    query, body = of_struct(route.query), of_struct(route.body)
    for left_out in NOT_OFFERED:
        query["properties"].pop(left_out, None)
        body["properties"].pop(left_out, None)
    places = ({each: _in_path(each) for each in path}, query["properties"], body["properties"])
    properties = {**places[0], **places[1], **places[2], **({KEY: _KEY_SCHEMA} if route.writes else {})}
    if len(properties) != sum(map(len, places)) + route.writes:
        raise ValueError(f"{name}: a name is there twice")
    required = [each for each in (*path, *query.get("required", ()), *body.get("required", ())) if each in properties]
    whole = {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }
    words = " ".join((route.handler.__doc__ or route.summary).split())
    title = name.replace("_", " ").capitalize()
    tool = Tool(name, title, words, whole, _hints(route), of_answers(route))
    return Operation(route, tool, frozenset(query["properties"]), frozenset(body["properties"]))


def _in_path(name: str) -> dict[str, Any]:
    described, words = IN_PATH[name]
    return {**described, "description": words}


def _hints(route: Route[Store]) -> Hints:
    """A batch may hold whatever there is to do; a question is a POST, and changes nothing."""
    return Hints(read_only=not route.writes, idempotent=not route.writes, destructive=route.alone)


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
        raise BadArgument(f"{name}: must be a string, a number, true or false")
    return _storable(name, value)


def _storable(name: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        raise BadArgument(f"{name}: holds a NUL or half of a surrogate pair")
    return value


def _header(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise BadArgument(f"{KEY}: must be a UUID")
    return value
