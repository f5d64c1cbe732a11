"""Each condition has exactly one operator."""

from typing import Any

import pytest

from countersign.declare import CALLER, Where, where


def test_a_condition_names_field_operator_and_value() -> None:
    assert where("stage", eq="new") == Where("stage", "eq", "new")
    assert where("owner", eq=CALLER) == Where("owner", "eq", CALLER)
    assert where("party", is_null=False) == Where("party", "is_null", False)


def test_the_operator_in_is_written_with_an_underscore() -> None:
    assert where("stage", in_=["new", "won"]) == Where("stage", "in", ["new", "won"])


@pytest.mark.parametrize(
    "condition", [{}, {"eq": 1, "ne": 2}, {"equals": 1}, {"in_": [1], "eq": 1}, {"in__": [1]}, {"_eq": 1}]
)
def test_a_condition_without_exactly_one_known_operator_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"where\('stage', …\): name exactly one of eq, ne, contains, in, gt"):
        where("stage", **condition)
