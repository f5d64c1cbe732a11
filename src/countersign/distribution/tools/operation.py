"""One route as a tool: its schema from the route's own declaration, and its arguments as the request they stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from countersign.distribution.apidocs.operations import IN_PATH
from countersign.distribution.context import PREFIX, Store
from countersign.distribution.tools import schema
from countersign.kernel.errors import Refused
from countersign.kernel.http import decode
from countersign.kernel.http.request import Subrequest
from countersign.kernel.http.response import encode
from countersign.kernel.http.routing import Route
from countersign.kernel.mcp.tools import Hints, Tool

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
    query, body = schema.of_struct(route.query), schema.of_struct(route.body)
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
    tool = Tool(name, title, words, whole, _hints(route), schema.of_answers(route))
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
