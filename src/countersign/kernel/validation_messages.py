"""Converts msgspec's messages to a JSON pointer and a sentence without the names of Python's types."""

import re
from typing import NamedTuple

import msgspec

_NOUNS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
    "datetime": "a date and time as in RFC 3339",
    "date": "a date as YYYY-MM-DD",
    "uuid": "a UUID",
    "bytes": "base64 text",
}
_UNITS = {"str": "characters", "array": "items", "object": "members"}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "": "exactly"}
_INVALID = {
    "Invalid RFC3339 encoded datetime": _NOUNS["datetime"],
    "Invalid RFC3339 encoded date": _NOUNS["date"],
    "Invalid UUID": _NOUNS["uuid"],
    "Invalid base64 encoded string": _NOUNS["bytes"],
}

_PLACE = " - at `"
_FIELD = re.compile(r"^Object (contains unknown|missing required) field `(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]*|\.\.\.)\]")
_LENGTH = re.compile(r"^Expected `(str|array|object)` of length (>=|<=|) ?(\d+)$")
_RANGE = re.compile(r"^Expected `(?:int|float)` (>=|<=|>|<) (\S+)$")
_MULTIPLE = re.compile(r"^Expected `(?:int|float)` that's a multiple of (\S+)$")
_TYPE = re.compile(r"^Expected `([a-z |]+)`")


class Explained(NamedTuple):
    """An explained message of msgspec. `steps` is the path to the invalid value, with "..." for a key that msgspec does
    not name; `original` is msgspec's message without the path."""

    steps: list[str]
    text: str
    original: str

    @property
    def pointer(self) -> str:
        """The steps as a JSON pointer (RFC 6901), empty for the whole input."""
        return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in self.steps if step != "...")


def explain(error: msgspec.ValidationError) -> Explained:
    """Return where the input is wrong, and what it must be."""
    # Search from the end: the message may quote input before the path.
    original, place_mark, path = str(error).rpartition(_PLACE)
    if not place_mark:
        original, path = path, ""
    steps = [name or index for name, index in _STEP.findall(path.removesuffix("`"))]
    if field := _FIELD.match(original):
        text = "is unknown here" if field.group(1) == "contains unknown" else "is required"
        return Explained([*steps, field.group(2)], text, original)
    return Explained(steps, _requirement(original), original)


def sentence(error: msgspec.DecodeError) -> str:
    """Return one sentence about an invalid JSON text, such as a setting's value."""
    if not isinstance(error, msgspec.ValidationError):
        return "it is not valid JSON"
    explanation = explain(error)
    return f"{explanation.pointer.lstrip('/') or 'the value'} {explanation.text}"


def _requirement(error_text: str) -> str:
    if error_text in _INVALID:
        return f"must be {_INVALID[error_text]}"
    if length := _LENGTH.match(error_text):
        noun, bound_name, count = length.groups()
        return f"must have {_BOUNDS[bound_name]} {count} {_UNITS[noun]}"
    if bounds := _RANGE.match(error_text):
        return f"must be {_BOUNDS[bounds.group(1)]} {bounds.group(2)}"
    if multiple := _MULTIPLE.match(error_text):
        return f"must be a multiple of {multiple.group(1)}"
    if error_text.startswith("Expected `str` matching regex"):
        return "has characters or a form that are not allowed here"
    if types := _TYPE.match(error_text):
        nouns = [_NOUNS.get(word, "a documented value") for word in types.group(1).split(" | ")]
        return "must be " + " or ".join(nouns)
    return "is out of range" if "out of range" in error_text else "is not one of the documented values"
