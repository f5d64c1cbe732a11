"""Decodes the query string and the body of a request into the structs that a route declares."""

import types
import typing
from collections.abc import Collection
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import unquote_plus

import msgspec

from countersign.kernel import json_reader
from countersign.kernel.errors import InvalidField, InvalidRequest, Refused, invalid_parameter
from countersign.kernel.http.response import JSON
from countersign.kernel.validation_messages import explain

StructT = TypeVar("StructT", bound=msgspec.Struct)

MAX_PARAMETERS = 64
FORM = "application/x-www-form-urlencoded"


_REMEDIES: dict[type[json_reader.InvalidJson], str] = {
    json_reader.NotJson: "Send one JSON object in UTF-8.",
    json_reader.DuplicateKey: "Send each key of an object once.",
    json_reader.TooDeep: "Send a JSON object with fewer levels.",
    json_reader.TooManyValues: "Send fewer values, in several requests.",
    json_reader.UnstorableText: "Remove the character from the text.",
}


class UnsupportedMediaType(Refused):
    """The endpoint does not accept the Content-Type of the body."""

    status = 415
    code = "unsupported_media_type"
    title = "Unsupported media type"
    resolution = "Send the body as application/json."


def parameters(query_string: bytes) -> dict[str, str]:
    """Parse the query string into names and values.

    Raises:
        InvalidRequest: a name is repeated, there are more than 64, or a value is not UTF-8 text.
    """
    values: dict[str, str] = {}
    for name, value in _pairs(query_string):
        if name in values:
            raise invalid_parameter(name, "is given more than once")
        values[name] = value
    return values


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if not query_string:
        return pairs
    raw_pairs = query_string.decode("latin-1").split("&")
    if len(raw_pairs) > MAX_PARAMETERS:
        raise invalid_parameter("query", f"has more than {MAX_PARAMETERS} parameters")
    for pair in raw_pairs:
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name, value = _text(raw_name), _text(raw_value)
        if name is None or value is None:
            raise invalid_parameter(name or "query", "must be UTF-8 text without NUL")
        pairs.append((name, value))
    return pairs


def _text(raw: str) -> str | None:
    if raw.isascii() and "%" not in raw and "+" not in raw and "\0" not in raw:
        return raw
    try:
        text = unquote_plus(raw.encode("latin-1").decode("utf-8"), errors="strict")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def query(values: dict[str, str], shape: type[StructT]) -> StructT:
    """Convert the parameters to the route's struct. Numbers and booleans are parsed from their text.

    Raises:
        InvalidRequest: a parameter is unknown, missing, of a wrong type or out of range. The refusal names the
            parameter.
    """
    try:
        decoded_query = msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        place, detail = _explain(error, shape)
        name = place.lstrip("/").split("/")[0]
        raise invalid_parameter(name, detail) from error
    for name, text in values.items():
        # Refuse forms of values that only msgspec accepts: "null" for an absent value, "1e3" and "5.0" for integers,
        # and "1" and "True" for true.
        value = getattr(decoded_query, name, text)
        if value is None or (type(value) in (int, bool) and str(value).lower() != text):
            raise invalid_parameter(name, _plain_form(value))
    return decoded_query


def _plain_form(value: object) -> str:
    """Return the error text that names the canonical spelling of a value."""
    if isinstance(value, bool):
        return "must be true or false"
    return "must not be null" if value is None else f"must be written as {value}"


def form(body: bytes, shape: type[StructT]) -> StructT:
    """Convert a form-encoded body to the route's struct. Empty values count as omitted (RFC 6749 §3.2). A member that
    accepts a list may be repeated (RFC 8707 §2).

    Raises:
        InvalidRequest: a member is invalid in one of the ways listed for `query`. The refusal names the member by its
            JSON pointer.
    """
    values: dict[str, str | list[str]] = {}
    names_seen: set[str] = set()
    for name, value in _pairs(body):
        if name in names_seen and name not in _repeatable(shape):
            raise invalid_parameter(name, "is given more than once")
        names_seen.add(name)
        known_value = values.get(name)
        if value:
            values[name] = (
                value
                if known_value is None
                else [*([known_value] if isinstance(known_value, str) else known_value), value]
            )
    try:
        return msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(error, shape) from error


@lru_cache(maxsize=256)
def _repeatable(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return the names of the members that accept a list."""
    hints = typing.get_type_hints(shape)
    return frozenset(
        name
        for name, hint in hints.items()
        if any(typing.get_origin(argument) is list for argument in typing.get_args(hint))
    )


def json(body: bytes, shape: type[StructT]) -> StructT:
    """Convert a JSON body to the route's struct.

    Raises:
        InvalidRequest: the body is not JSON, has a duplicate key, is nested too deep, or contains text that no database
            stores; or a member is unknown, missing, of a wrong type or out of range. The refusal names the member by
            its JSON pointer.
    """
    try:
        return json_reader.read_as(body, shape)
    except msgspec.ValidationError as error:
        raise _refusal(error, shape) from error
    except json_reader.InvalidJson as error:
        raise _invalid_json(error) from error


def json_object(body: bytes) -> dict[str, object]:
    """Parse a JSON body whose members the service checks itself. An empty body counts as an empty object.

    Raises:
        InvalidRequest: the body is not a JSON object, or `json_reader.read` refuses it.
    """
    if not body:
        return {}
    try:
        value = json_reader.read(body)
    except json_reader.InvalidJson as error:
        raise _invalid_json(error) from error
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be one JSON object in UTF-8")
    return cast("dict[str, object]", value)


def _invalid_json(error: json_reader.InvalidJson) -> InvalidRequest:
    return InvalidRequest(str(error), resolution=_REMEDIES[type(error)], faults=[InvalidField("", str(error))])


def body(raw: bytes, content_type: str | None, shape: type[StructT], *, is_form: bool) -> StructT:
    """Convert the body to the route's struct. If no member is required, the body may be empty.

    Raises:
        UnsupportedMediaType: the body is neither JSON nor, if the route accepts forms, a form.
        InvalidRequest: the body is invalid in one of the ways listed for `json` and `form`.
    """
    media_type = (content_type or "").split(";")[0].strip().lower()
    if not raw and is_optional_body(shape):
        return shape()
    if is_form and media_type == FORM:
        return form(raw, shape)
    if media_type != JSON:
        raise UnsupportedMediaType(f"this endpoint does not accept {media_type or 'a body without Content-Type'}")
    return json(raw, shape)


def require_media_type(content_type: str | None, expected: str) -> None:
    """Check the Content-Type of a body that the handler decodes itself. The only accepted charset is UTF-8.

    Raises:
        UnsupportedMediaType: the Content-Type is missing, or is not the expected one.
    """
    media_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if media_type.strip().lower() != expected or charset not in ("", "charset=utf-8"):
        raise UnsupportedMediaType(f"the body must be sent as {expected}")


@lru_cache(maxsize=256)
def is_optional_body(shape: type[msgspec.Struct]) -> bool:
    """Return whether all members of the body are optional."""
    return not any(field.required for field in msgspec.structs.fields(shape))


def member(value: object, shape: type[StructT], pointer: str) -> StructT:
    """Convert a member of a decoded body, whose shape depends on another member, to the struct.

    Raises:
        InvalidRequest: the member is invalid in one of the ways listed for `json`. The pointer starts at the root of
            the body.
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        place, detail = _explain(error, shape)
        raise InvalidRequest(f"{pointer}{place}: {detail}", faults=[InvalidField(pointer + place, detail)]) from error


def _refusal(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> InvalidRequest:
    pointer, detail = _explain(error, shape)
    return InvalidRequest(f"{pointer or 'the body'}: {detail}", faults=[InvalidField(pointer, detail)])


def _explain(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> tuple[str, str]:
    """Convert msgspec's message to a JSON pointer (RFC 6901) and a text that names the allowed values."""
    explanation = explain(error)
    text = explanation.text
    if explanation.original.startswith("Invalid enum value"):
        text = f"must be one of {', '.join(_choices(shape, explanation.steps))}"
    elif explanation.original.startswith("Object contains unknown field"):
        text = unknown_name_error(_member_names(_field_type(shape, explanation.steps[:-1])))
    elif explanation.original.startswith("Expected `str` matching regex"):
        text = _needs(shape, explanation.original) or text
    return explanation.pointer, text


def unknown_name_error(known: Collection[str]) -> str:
    """Return the error text for an unknown parameter or member."""
    return f"is unknown here (known: {', '.join(known)})" if known else "is unknown here"


def _choices(shape: type[msgspec.Struct], steps: list[str]) -> list[str]:
    """Return the allowed values of the field at the path, from its Literal."""
    return _literals(_field_type(shape, steps)) or ["the documented values"]


def _member_names(hint: Any) -> list[str]:
    """Return the names of a struct's members in JSON."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [field.encode_name for field in msgspec.structs.fields(hint)]
    return []


def _field_type(shape: type[msgspec.Struct], steps: list[str]) -> Any:
    """Return the type of the field at the path."""
    hint_here: Any = shape
    for step in steps:
        hint: Any = hint_here
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            hints = typing.get_type_hints(hint, include_extras=True)
            names = {field.encode_name: field.name for field in msgspec.structs.fields(hint)}
            hint_here = _base_type(hints.get(names.get(step, step)))
        elif typing.get_origin(hint) is list:
            hint_here = _base_type(typing.get_args(hint)[0])
    return hint_here


def _needs(shape: type[msgspec.Struct], words: str) -> str:
    """Return the description of the pattern that msgspec's message names. The description is in the metadata of the
    field (`extra={"needs": …}`)."""
    pending_shapes: list[Any] = [shape]
    hints_seen: set[Any] = set()
    while pending_shapes:
        hint = pending_shapes.pop()
        if isinstance(hint, msgspec.Meta):
            if hint.pattern is not None and words.endswith(repr(hint.pattern)):
                return str((hint.extra or {}).get("needs", ""))
        elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            pending_shapes += [] if hint in hints_seen else typing.get_type_hints(hint, include_extras=True).values()
            hints_seen.add(hint)
        else:
            pending_shapes += typing.get_args(hint)
    return ""


def _base_type(hint: Any) -> Any:
    """Return the type without constraints and without None."""
    while typing.get_origin(hint) in (typing.Annotated, typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        if typing.get_origin(hint) is not typing.Annotated and len(parts) > 1:
            return hint
        hint = parts[0]
    return hint


def _literals(hint: Any) -> list[str]:
    if typing.get_origin(hint) is typing.Literal:
        return [str(value) for value in typing.get_args(hint)]
    return [value for part in typing.get_args(hint) for value in _literals(part)]
