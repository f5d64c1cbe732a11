"""Questions that change the question before them: "and on Windows?", "how many of those?"."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from countersign.distribution.catalog.filter import Filter, conditions, slot, with_slots

_OPENINGS = frozenset(
    str.split(
        "and or what how only just but also same now then instead ok okay cool great thanks without not no any"
    )
)
_BACKWARD = frozenset(
    str.split(
        "it its it's they them their those these that ones one same instead there else more others other rest"
    )
)
_ASKING = frozenset(str.split("which what who when list show how is are does do"))


def is_onward(words: Sequence[str], slots: set[str]) -> bool:
    """Whether the question makes sense only after another: it points back, begins in the middle, or names nothing."""
    first = next((word for word in words if word.replace("'", "").isalpha()), "")
    is_fragment = first in _OPENINGS and (first not in ("what", "how") or words[1:2] == ["about"])
    names_nothing = not slots & {"kind", "product", "find", "org"}
    return any((_BACKWARD & {*words}, is_fragment, names_nothing))


def merged(base: Filter, asked: Filter, words: Sequence[str]) -> Filter:
    """The base with what the new question says of it."""
    found = _merged_slots(base, asked)
    changes: dict[str, Any] = {}
    if (asked.since, asked.until, asked.when) != (None, None, "any"):
        changes |= {"since": asked.since, "until": asked.until, "when": asked.when}
    if (asked.order, asked.limit) != ("title", None):
        changes |= {"order": asked.order, "limit": asked.limit}
    asks = _asks_anew(base, asked, words)
    if asks:
        changes |= {"answer": asked.answer, "fields": asked.fields, "by": asked.by}
        changes |= {"order": "title", "limit": None} if asked.answer == "count" else {}
    if asked.find != "products" or (asks and base.find == "publishers"):
        changes["find"] = asked.find
    return replace(found, **changes)


def _merged_slots(base: Filter, asked: Filter) -> Filter:
    product = asked.where.product
    if product.any and product != base.where.product and base.answer == "list":
        return replace(base, where=asked.where, channel=asked.channel)
    found = base
    for name, values in conditions(asked):
        before = slot(base, name)
        is_denial = not (values.any or values.all) and name != "product"
        changed = replace(before, none=tuple(dict.fromkeys((*before.none, *values.none)))) if is_denial else values
        found = with_slots(found, **{name: changed})
    return found


def _asks_anew(base: Filter, asked: Filter, words: Sequence[str]) -> bool:
    """Whether the new question has a form of its own: "and how many", but not "and on Windows?"."""
    is_about = words[:2] in (["what", "about"], ["how", "about"]) or words[:1] == ["and"]
    asks = asked.answer != "list" or (not is_about and bool(_ASKING & {*words[:3]}))
    is_same = asked.answer in ("exists", "fields") and not asked.fields and base.answer != "list"
    return asks and not (is_about and is_same)
