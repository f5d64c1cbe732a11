"""The reader of JSON from untrusted sources, for both services: it refuses duplicate keys, deep nesting, and texts that
a database cannot store (NUL, unpaired surrogates)."""

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

MAX_DEPTH = 64
MAX_VALUES = 60_000
"""The maximum number of values in one body: they are decoded and checked in less than 0.1 s on the event loop."""
MAX_SHOWN = 64
"""The number of characters of a duplicate key that the refusal quotes."""


class InvalidJson(ValueError):
    """The text is refused; the message gives the reason, for the sender."""


class NotJson(InvalidJson):
    """The text is not JSON in UTF-8."""


class DuplicateKey(InvalidJson):
    """An object has the same key twice: readers would disagree about its value (RFC 8259 §4)."""


class TooDeep(InvalidJson):
    """Arrays and objects are nested deeper than the limit."""


class TooManyValues(InvalidJson):
    """There are more values than the limit."""


class UnstorableText(InvalidJson):
    """A text contains NUL or an unpaired surrogate, which no database stores."""


ShapeT = TypeVar("ShapeT")

_decode: Callable[[bytes | str], object] = msgspec.json.Decoder().decode


def read(raw: bytes | str, *, max_depth: int = MAX_DEPTH, checks_texts: bool = True) -> object:
    """Parse a JSON text into plain Python values. Without `checks_texts`, unstorable texts are accepted, and the caller
    must check them.

    Raises:
        NotJson, DuplicateKey, TooDeep, TooManyValues, UnstorableText: see the classes.
    """
    if isinstance(raw, bytes) and not has_at_most(MAX_VALUES, raw):
        raise TooManyValues(f"the body has more than {MAX_VALUES:,} values")
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson("the body is not JSON in UTF-8") from error
    # Only escapes can name a NUL or a surrogate: JSON in UTF-8 contains neither.
    checks_texts = checks_texts and not (isinstance(raw, bytes) and b"\\u" not in raw)
    _refuse_duplicates(raw, _members(value, max_depth, max_depth, checks_texts=checks_texts))
    return value


def read_as(raw: bytes, shape: type[ShapeT]) -> ShapeT:
    """Parse a JSON text into a struct.

    Raises:
        InvalidJson: `read` refuses the text.
        msgspec.ValidationError: the value does not have this shape.
    """
    read(raw)
    return msgspec.json.decode(raw, type=shape)


def has_at_most(count: int, raw: bytes) -> bool:
    """Return whether a JSON text has at most `count` values, without decoding it.

    A value follows a comma, or is the first value of a list, of an object or of the text. It has at least one byte.
    """
    if len(raw) <= count or 1 + sum(map(raw.count, (b",", b"[", b"{"))) <= count:
        return True
    # Remove texts before counting, since their content does not count. Each text is a value or a key.
    texts = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if texts.count(b'"') > 4 * count:
        return False
    text_outside_strings = b" ".join(texts.split(b'"')[::2])
    empty_count = text_outside_strings.count(b"[]") + text_outside_strings.count(b"{}")
    return 1 + sum(map(text_outside_strings.count, (b",", b"[", b"{"))) - empty_count <= count


def _members(value: object, depth: int, max_depth: int, *, checks_texts: bool) -> int:
    """Return the number of members of all objects in the value."""
    if isinstance(value, str) and checks_texts:
        _require_storable(value)
    if not isinstance(value, dict | list):
        return 0
    if not depth:
        raise TooDeep(f"the JSON is nested more than {max_depth} levels deep")
    names, items = _names_and_items(cast("dict[str, object] | list[object]", value))
    if checks_texts:
        _require_storable("".join(names))
    # Do not call this function for values that have neither members nor texts to check: most values are such.
    kinds = (dict, list, str) if checks_texts else (dict, list)
    nested_members = cast("list[object]", [item for item in items if isinstance(item, kinds)])
    return len(names) + sum(
        [_members(member, depth - 1, max_depth, checks_texts=checks_texts) for member in nested_members]
    )


def _names_and_items(value: dict[str, object] | list[object]) -> tuple[Collection[str], Iterable[object]]:
    """Return the names of an object's members, and their values; a list has items without names."""
    if isinstance(value, list):
        return (), value
    return value.keys(), value.values()


def _require_storable(text: str) -> None:
    try:
        is_storable = "\0" not in text and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        is_storable = False
    if not is_storable:
        raise UnstorableText("a text contains NUL or an unpaired surrogate")


def _refuse_duplicates(raw: bytes | str, members: int) -> None:
    # Each member has one colon outside of texts. If there are no more colons than members, no key is duplicated.
    colons = raw.count(b":") if isinstance(raw, bytes) else raw.count(":")
    if colons > members:
        # Do not parse numbers: their values are not needed, and Python refuses numbers of several thousand digits.
        json.loads(raw, object_pairs_hook=_unique, parse_int=len, parse_float=len)


def _unique(pairs: list[tuple[str, Any]]) -> None:
    seen_keys: set[str] = set()
    for name, _ in pairs:
        if name in seen_keys:
            raise DuplicateKey(f'duplicate key "{_printable(name)}"')
        seen_keys.add(name)


def _printable(name: str) -> str:
    """Return the key in a printable form, for an error message."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name[:MAX_SHOWN]
    )


MAX_OBJECT_DEPTH = 16

Members: TypeAlias = dict[str, object]
"""The members of a JSON object; values are JSON values of any kind."""


def read_object(data: bytes) -> Members:
    """Parse a JSON object of at most 16 levels.

    Raises:
        ValueError: `read` refuses the text, or it is not a JSON object. The message quotes no part of the text.
    """
    try:
        value = read(data, max_depth=MAX_OBJECT_DEPTH)
    except (NotJson, DuplicateKey):
        # Drop the cause, which would quote the input.
        raise ValueError("not a JSON object in UTF-8 with unique keys") from None
    except InvalidJson as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return cast("Members", value)
