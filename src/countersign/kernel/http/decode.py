"""From the query string and the body of a request to the structs a route declares."""

import re
import types
import typing
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote_plus

import msgspec

from countersign.kernel.errors import Fault, InvalidRequest, Refused, invalid_parameter
from countersign.kernel.http.answer import JSON

StructT = TypeVar("StructT", bound=msgspec.Struct)

MAX_PARAMETERS = 64
FORM = "application/x-www-form-urlencoded"


class UnsupportedMediaType(Refused):
    """The body's Content-Type is none that this address reads."""

    status = 415
    code = "unsupported_media_type"
    title = "Unsupported media type"
    resolution = "Send the body as application/json."


def parameters(query_string: bytes) -> dict[str, str]:
    """The query string as names and values.

    Raises:
        InvalidRequest: a name stands twice, there are more than 64, or a value is no UTF-8 text.
    """
    values: dict[str, str] = {}
    for name, value in _pairs(query_string):
        if name in values:
            raise invalid_parameter(name, "is given more than once")
        values[name] = value
    return values


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if not query_string:
        return found
    pairs = query_string.decode("latin-1").split("&")
    if len(pairs) > MAX_PARAMETERS:
        raise invalid_parameter("query", f"holds more than {MAX_PARAMETERS} parameters")
    for pair in pairs:
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name, value = _text(raw_name), _text(raw_value)
        if name is None or value is None:
            raise invalid_parameter(name or "query", "is not UTF-8 text, or holds a NUL")
        found.append((name, value))
    return found


def _text(raw: str) -> str | None:
    if raw.isascii() and "%" not in raw and "+" not in raw and "\0" not in raw:
        return raw
    try:
        text = unquote_plus(raw.encode("latin-1").decode("utf-8"), errors="strict")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def query(values: dict[str, str], shape: type[StructT]) -> StructT:
    """The parameters as the route's struct; numbers and booleans are read from their text.

    Raises:
        InvalidRequest: a parameter is unknown, missing, of a wrong type or out of range; it is named.
    """
    try:
        decoded = msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        place, detail = _explain(str(error), shape)
        name = place.lstrip("/").split("/")[0]
        raise invalid_parameter(name, detail) from error
    for name, text in values.items():
        # msgspec reads "null" as nothing sent, "1e3" and "5.0" as whole numbers, and "1" and "True" as true.
        value = getattr(decoded, name, text)
        if value is None or (type(value) in (int, bool) and str(value).lower() != text):
            raise invalid_parameter(name, "is no plain value of this parameter")
    return decoded


def form(body: bytes, shape: type[StructT]) -> StructT:
    """A form-encoded body as the route's struct; empty values count as omitted (RFC 6749 §3.2). A member that may be a
    list may be given several times (RFC 8707 §2).

    Raises:
        InvalidRequest: as for `query`, members being named by pointer.
    """
    values: dict[str, str | list[str]] = {}
    seen: set[str] = set()
    for name, value in _pairs(body):
        if name in seen and name not in _repeatable(shape):
            raise invalid_parameter(name, "is given more than once")
        seen.add(name)
        known = values.get(name)
        if value:
            values[name] = value if known is None else [*([known] if isinstance(known, str) else known), value]
    try:
        return msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(error, shape) from error


@lru_cache(maxsize=256)
def _repeatable(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The members that may be a list."""
    hints = typing.get_type_hints(shape)
    return frozenset(
        name for name, hint in hints.items() if any(typing.get_origin(each) is list for each in typing.get_args(hint))
    )


def json(body: bytes, shape: type[StructT]) -> StructT:
    """A JSON body as the route's struct.

    Raises:
        InvalidRequest: it is not JSON (or nested beyond reason, or holds text no database can keep), or a
            member is unknown, missing, of a wrong type or out of range; it is named by its JSON pointer.
    """
    try:
        value = msgspec.json.decode(body, type=shape)
        if b"\\u" in body:
            _refuse_unstorable(msgspec.json.decode(body))
        return value
    except msgspec.ValidationError as error:
        raise _refusal(error, shape) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(
            "the body is not JSON",
            resolution="Send one JSON object in UTF-8.",
            faults=[Fault("", "is not JSON")],
        ) from error


def body(raw: bytes, content_type: str | None, shape: type[StructT], *, is_form: bool) -> StructT:
    """The body as the route's struct; where no member is required, an empty one is fine.

    Raises:
        UnsupportedMediaType: it is not JSON, nor a form where a form may be sent.
        InvalidRequest: as for `json` and `form`.
    """
    media_type = (content_type or "").split(";")[0].strip().lower()
    if not raw and may_be_left_out(shape):
        return shape()
    if is_form and media_type == FORM:
        return form(raw, shape)
    if media_type != JSON:
        raise UnsupportedMediaType(f"this address does not read {media_type or 'a body without Content-Type'}")
    return json(raw, shape)


@lru_cache(maxsize=256)
def may_be_left_out(shape: type[msgspec.Struct]) -> bool:
    """Whether no member of the body is required."""
    return not any(field.required for field in msgspec.structs.fields(shape))


def member(value: object, shape: type[StructT], pointer: str) -> StructT:
    """A member of a body that was decoded already, whose shape another member decides, as the struct.

    Raises:
        InvalidRequest: as `json`; what is wrong is named by its pointer from the body's root.
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        place, detail = _explain(str(error), shape)
        raise InvalidRequest(f"{pointer}{place}: {detail}", faults=[Fault(pointer + place, detail)]) from error


def _refuse_unstorable(value: object) -> None:
    """NUL and lone surrogates can be written as escapes in JSON, but neither database can store them."""
    stack: list[object] = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            members = typing.cast("dict[object, object]", here)
            stack += members.keys()
            stack += members.values()
        elif isinstance(here, list):
            stack += typing.cast("list[object]", here)
        elif isinstance(here, str) and ("\0" in here or any("\ud800" <= c <= "\udfff" for c in here)):
            raise InvalidRequest(
                "a text holds a NUL or half of a surrogate pair",
                faults=[Fault("", "a text holds a NUL or half of a surrogate pair")],
            )


def _refusal(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> InvalidRequest:
    pointer, detail = _explain(str(error), shape)
    return InvalidRequest(f"{pointer or 'the body'}: {detail}", faults=[Fault(pointer, detail)])


_PLACE = " - at `"
_FIELD = re.compile(r"^Object (contains unknown|missing required) field `(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]*|\.\.\.)\]")


def _explain(message: str, shape: type[msgspec.Struct]) -> tuple[str, str]:
    """msgspec's message as a JSON pointer (RFC 6901) and words for people."""
    # The last one: what was sent may be quoted before it.
    words, place, path = message.rpartition(_PLACE)
    if not place:
        words, path = message, ""
    path = path.removesuffix("`")
    steps = [name or index for name, index in _STEP.findall(path)]
    field = _FIELD.match(words)
    if field:
        steps.append(field.group(2))
        words = "is unknown here" if field.group(1) == "contains unknown" else "is required"
    else:
        words = _allowed(words, shape, steps)
    pointer = "".join("/" + _escape(step) for step in steps if step != "...")
    return pointer, words[:1].lower() + words[1:]


def _allowed(words: str, shape: type[msgspec.Struct], steps: list[str]) -> str:
    """What msgspec says of a value, or what is allowed in its place where that is clearer."""
    if words.startswith("Invalid enum value"):
        return f"is none of {', '.join(_choices(shape, steps))}"
    return (_needs(shape, words) if words.startswith("Expected `str` matching regex") else "") or words


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _choices(shape: type[msgspec.Struct], steps: list[str]) -> list[str]:
    """The allowed values of the field that the path leads to, from its Literal."""
    hint: Any = shape
    for step in steps:
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            hints = typing.get_type_hints(hint, include_extras=True)
            names = {field.encode_name: field.name for field in msgspec.structs.fields(hint)}
            hint = _bare(hints.get(names.get(step, step)))
        elif typing.get_origin(hint) is list:
            hint = _bare(typing.get_args(hint)[0])
    return _literals(hint) or ["the documented values"]


def _needs(shape: type[msgspec.Struct], words: str) -> str:
    """What the pattern that msgspec names asks for, in the words that stand beside it (`extra={"needs": …}`)."""
    waiting: list[Any] = [shape]
    seen: set[Any] = set()
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, msgspec.Meta):
            if hint.pattern is not None and words.endswith(repr(hint.pattern)):
                return str((hint.extra or {}).get("needs", ""))
        elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            waiting += [] if hint in seen else typing.get_type_hints(hint, include_extras=True).values()
            seen.add(hint)
        else:
            waiting += typing.get_args(hint)
    return ""


def _bare(hint: Any) -> Any:
    """What the field holds where it is there: without constraints and without None."""
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
