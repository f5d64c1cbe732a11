"""Every text that an endpoint of either service accepts, collected from the declarations, with its limit."""

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from countersign.kernel.http.deadlines import MAX_HEADER_BYTES
from countersign.kernel.http.routing import Route
from countersign.store.app import ROUTES
from countersign.store.context import PREFIX


class AcceptedText(NamedTuple):
    """A text that an endpoint accepts: `place` is the name of a parameter or the JSON pointer of a member."""

    method: str
    path: str
    place: str
    is_parameter: bool
    limit: int
    is_told: bool
    """True if the declaration has a limit of its own. Otherwise the limit of the request applies."""


def texts() -> list[AcceptedText]:
    """Return the texts of the store."""
    return [text for route in ROUTES for text in _of_route(route)]


def address(route: Route[Any]) -> str:
    """Return the path of the route at the root."""
    return route.path if route.at_root else f"{PREFIX}{route.path}"


def _of_route(route: Route[Any]) -> Iterator[AcceptedText]:
    for pointer, length in dict(_strings(route.query, "")).items():
        limit = min(length or MAX_HEADER_BYTES, MAX_HEADER_BYTES)
        yield AcceptedText(route.method, address(route), pointer.removeprefix("/"), True, limit, length is not None)
    for pointer, length in dict(_strings(route.body, "")).items() if route.body is not None else ():
        yield AcceptedText(route.method, address(route), pointer, False, length or route.body_limit, length is not None)
    if route.streams:
        yield AcceptedText(route.method, address(route), "(the body)", False, route.body_limit, False)


def _strings(hint: Any, pointer: str, length: int | None = None) -> Iterator[tuple[str, int | None]]:
    """Yield every text in a type, by its pointer, with its maximum length."""
    if hint in (str, typing.Any, object):
        yield pointer or "/", length
    elif typing.get_origin(hint) is typing.Annotated:
        bare, *metas = typing.get_args(hint)
        max_lengths = [meta.max_length for meta in metas if isinstance(meta, msgspec.Meta)]
        yield from _strings(bare, pointer, next(filter(None, max_lengths), length))
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for arg in typing.get_args(hint):
            yield from _strings(arg, pointer, length)
    else:
        for step, inner in _inner(hint):
            yield from _strings(inner, f"{pointer}/{step}")


def _inner(hint: Any) -> Iterator[tuple[str, Any]]:
    """Yield the types inside a type, each by its step of the pointer."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint, include_extras=True)
        for field in msgspec.structs.fields(hint):
            yield field.encode_name, hints[field.name]
    elif typing.get_origin(hint) in (list, tuple):
        yield "0", typing.get_args(hint)[0]
    elif typing.get_origin(hint) is dict:
        yield "a", typing.get_args(hint)[1]


def commands(document: Mapping[str, Any]) -> list[AcceptedText]:
    """Return the texts of records, collected from the OpenAPI document of what a caller may use there."""
    accepted_texts: list[AcceptedText] = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = resolve_reference(document, content["schema"])
                accepted_texts += [
                    AcceptedText(method.upper(), path, pointer, False, length or 8 << 20, length is not None)
                    for pointer, length in dict(_members(document, schema, "", 0)).items()
                ]
    return accepted_texts


def resolve_reference(document: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """Return the schema, or what its reference points to."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return cast("dict[str, Any]", schema)


def _members(document: Mapping[str, Any], schema: Any, pointer: str, depth: int) -> Iterator[tuple[str, int | None]]:
    schema = resolve_reference(document, schema)
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if ("string" in kinds and "enum" not in schema) or schema in ({}, True):
        yield pointer or "/", schema.get("maxLength")
    if depth < 6:
        for variant in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from _members(document, variant, pointer, depth + 1)
        for name, member in schema.get("properties", {}).items():
            yield from _members(document, member, f"{pointer}/{name}", depth + 1)
        if "items" in schema:
            yield from _members(document, schema["items"], f"{pointer}/0", depth + 1)


def put(body: Any, pointer: str, text: str) -> Any:
    """Return the body with the text at the pointer. Missing objects on the path are created."""
    name, _, inner_place = pointer.removeprefix("/").partition("/")
    if not name:
        return text
    if name == "0":
        return [put(body[0] if isinstance(body, list) and body else None, inner_place, text) if inner_place else text]
    members = dict(cast("Mapping[str, Any]", body)) if isinstance(body, Mapping) else {}
    members[name] = put(members.get(name), inner_place, text) if inner_place else text
    return members
