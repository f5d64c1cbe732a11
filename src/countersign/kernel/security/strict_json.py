"""JSON from strangers, read so that it means one thing only: objects without duplicate members, bounded in depth."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

DEEPEST = 16

Members: TypeAlias = dict[str, object]
"""The members of a JSON object; values are JSON values of any kind."""


def members(data: bytes) -> Members:
    """The members of the JSON object that the bytes are.

    Raises:
        ValueError: not UTF-8, not JSON (NaN and Infinity included), no object, a member stands twice in one object,
            more than 16 deep, or a text that no database can keep (NUL, half of a surrogate pair). The text quotes
            nothing of the bytes.
    """
    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        # The cause would quote what was sent.
        raise ValueError("not a JSON object in UTF-8 whose members each stand once") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    _require_plain(cast("Members", value))
    return cast("Members", value)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member stands twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _require_plain(value: object) -> None:
    """Raises ValueError when the value is too deep, or holds a text that cannot be kept."""
    stack: list[tuple[object, int]] = [(value, 1)]
    while stack:
        here, depth = stack.pop()
        if isinstance(here, str):
            _require_storable(here)
        elif isinstance(here, dict | list):
            if depth > DEEPEST:
                raise ValueError(f"more than {DEEPEST} deep")
            stack += [(each, depth + 1) for each in _inside(cast("dict[object, object] | list[object]", here))]


def _inside(value: dict[object, object] | list[object]) -> Iterable[object]:
    return (*value.keys(), *value.values()) if isinstance(value, dict) else value


def _require_storable(text: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a text holds a NUL or half of a surrogate pair")
