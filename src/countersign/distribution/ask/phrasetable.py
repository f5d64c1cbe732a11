"""Tables of phrases: every way to say a thing, with what it means."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Phrases: TypeAlias = Mapping[str, Any]


def said(text: str, value: Any = True) -> dict[str, Any]:
    """The phrases of the text, separated by `|`, all with one value."""
    return dict.fromkeys((phrase.strip() for phrase in text.split("|")), value)
