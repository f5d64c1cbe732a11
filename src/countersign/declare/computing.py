"""Computed fields: made from others of the same record whenever one of these changes."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache

from countersign.declare.fields.field import Field, Stored
from countersign.declare.fields.number import LARGEST, Number
from countersign.declare.model import Declared


def out_of_range(model: Declared, values: Mapping[str, Stored]) -> str | None:
    """The name of a number among the values that is not within ±(2^53 - 1); None: there is none."""
    for name, value in values.items():
        if isinstance(value, int) and isinstance(model.fields[name], Number) and not -LARGEST <= value <= LARGEST:
            return name
    return None


def computed(model: Declared, values: Mapping[str, Stored]) -> dict[str, Stored]:
    """Every computed field from the record's values; empty where a source is empty."""
    known = dict(values)
    for name, function, needed in _order(model):
        given = [known.get(source) for source in needed]
        known[name] = None if None in given else _stored(function(*given))
    return {name: known[name] for name, _, _ in _order(model)}


def sources(field: Field) -> tuple[str, ...]:
    """The fields of the same model that a computed field is made from; none for any other."""
    return () if field.computed is None else tuple(inspect.signature(field.computed).parameters)


@lru_cache(maxsize=4096)
def made_from(model: Declared, name: str) -> frozenset[str]:
    """The fields of the model that a computed field is made from, directly or by way of others."""
    found: set[str] = set()
    left = list(sources(model.fields[name]))
    while left:
        source = left.pop()
        if source not in found:
            found.add(source)
            left += sources(model.fields[source])
    return frozenset(found)


def _stored(value: object) -> Stored:
    if value is None or isinstance(value, int | str):
        return value
    raise TypeError("a computed field gives text or a whole number")


@lru_cache(maxsize=512)
def _order(model: Declared) -> tuple[tuple[str, Callable[..., object], tuple[str, ...]], ...]:
    """The computed fields so that each comes after those it is made from; circles are refused at start-up."""
    left = {
        name: (field.computed, sources(field))
        for name, field in model.fields.items()
        if field.computed is not None
    }
    found: list[tuple[str, Callable[..., object], tuple[str, ...]]] = []
    while left:
        ready = [name for name, (_, needed) in left.items() if not any(source in left for source in needed)]
        for name in ready or list(left):
            function, needed = left.pop(name)
            found.append((name, function, needed))
    return tuple(found)
