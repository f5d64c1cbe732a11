"""Computed fields are calculated in the order of their dependencies, and are empty when a source is empty."""

import pytest

from countersign.declare import Number, Text
from countersign.declare.model import computed
from tests.declare.sample_modules import model


def doubled(base: int) -> int:
    """Twice the base."""
    return base * 2


def described(double: int, title: str) -> str:
    """Return a sentence about another computed field."""
    return f"{title}: {double}"


def halved(base: int) -> float:
    """Return a value that no field accepts."""
    return base / 2


# Declared before its sources.
PLANT = model(
    "Plant",
    {"text": Text(computed=described), "double": Number(computed=doubled), "title": Text(), "base": Number()},
).declared


def test_a_computed_field_may_depend_on_another_computed_field() -> None:
    assert computed(PLANT, {"title": "oak", "base": 4}) == {"double": 8, "text": "oak: 8"}


def test_a_value_computed_from_an_empty_field_is_empty() -> None:
    assert computed(PLANT, {"title": "oak", "base": None}) == {"double": None, "text": None}
    assert computed(PLANT, {"base": 0}) == {"double": 0, "text": None}


def test_a_computed_value_that_no_field_can_store_is_a_module_error() -> None:
    plant = model("Plant", {"base": Number(), "half": Number(computed=halved)}).declared

    with pytest.raises(TypeError, match="gives text or a whole number"):
        computed(plant, {"base": 1})
