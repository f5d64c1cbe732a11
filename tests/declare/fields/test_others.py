"""Booleans, choices, references, and the kinds that only the engine writes."""

from datetime import UTC, datetime

import pytest

from countersign.declare import BadValue, Bool, Moment, Ref, Select, Structure


def test_a_bool_accepts_and_shows_true_and_false() -> None:
    assert [Bool().read(True), Bool().read(False)] == [1, 0]
    assert [Bool().show(1), Bool().show(0)] == [True, False]


@pytest.mark.parametrize("value", [1, 0, "true", "", 1.0, [], "yes"])
def test_only_true_and_false_are_truth_values(value: object) -> None:
    with pytest.raises(BadValue, match="must be true or false"):
        Bool().read(value)


def test_a_select_value_is_exactly_one_of_the_options() -> None:
    field = Select("new", "won")

    assert field.read("won") == "won"
    for wrong_value in ("Won", "won ", "", 1, True, ["won"], None):
        with pytest.raises(BadValue, match="must be one of new, won"):
            field.read(wrong_value)


def test_options_are_ordered_as_they_are_declared() -> None:
    field = Select("new", "won", "lost")

    assert sorted(["lost", "new", "won"], key=field.rank) == ["new", "won", "lost"]
    assert field.ordered('"stage"') == "CASE \"stage\" WHEN 'new' THEN 0 WHEN 'won' THEN 1 WHEN 'lost' THEN 2 END"


def test_a_ref_reads_an_id_and_reads_any_other_text_as_the_empty_string() -> None:
    field = Ref("party")

    assert field.read("0123456789abcdef01234567") == "0123456789abcdef01234567"
    for text in ("", "0123456789ABCDEF01234567", "0123456789abcdef0123456", "x" * 24, "0123456789abcdef01234567\n"):
        assert field.read(text) == ""


@pytest.mark.parametrize("value", [1, True, ["0" * 24], {"id": "0" * 24}])
def test_a_reference_must_be_text(value: object) -> None:
    with pytest.raises(BadValue, match="must be the id of a party record"):
        Ref("party").read(value)


def test_a_reference_is_always_indexed() -> None:
    assert Ref("party").index


def test_an_instant_is_kept_to_the_microsecond_and_shown_in_utc_to_the_millisecond() -> None:
    stored_moment = Moment().read("2026-11-21T05:00:00.123456+01:00")

    assert isinstance(stored_moment, int)
    assert stored_moment == (datetime(2026, 11, 21, 4, tzinfo=UTC).timestamp() * 1_000_000) + 123_456
    assert Moment().show(stored_moment) == "2026-11-21T04:00:00.123Z"
    assert Moment().show(stored_moment - 123_000 + 5_000) == "2026-11-21T04:00:00.005Z"


@pytest.mark.parametrize("value", ["2026-11-21", "2026-11-21T05:00:00", "2026-02-30T05:00:00Z", "", 5, None])
def test_a_value_that_is_not_an_instant_is_refused(value: object) -> None:
    with pytest.raises(BadValue, match="must be an RFC 3339 instant"):
        Moment().read(value)


def test_a_structure_is_never_accepted_from_a_caller() -> None:
    with pytest.raises(BadValue):
        Structure().read({})
    assert not Structure().operators


@pytest.mark.parametrize(
    ("field", "operators"),
    [
        (Bool(), {"eq", "ne", "in", "is_null"}),
        (Ref("party"), {"eq", "ne", "in", "is_null"}),
        (Select("a"), {"eq", "ne", "in", "is_null", "gt", "gte", "lt", "lte"}),
    ],
)
def test_a_select_can_be_compared_by_order_but_a_bool_and_a_ref_cannot(
    field: Bool | Ref | Select, operators: set[str]
) -> None:
    assert field.operators == operators
