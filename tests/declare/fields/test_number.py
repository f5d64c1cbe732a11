"""Numbers and money: integers, exact in every JSON client, in the field's range."""

import pytest

from countersign.declare import BadValue, Money, Number

LARGEST = 9_007_199_254_740_991


@pytest.mark.parametrize("number", [0, -1, 12, LARGEST, -LARGEST])
@pytest.mark.parametrize("field", [Number(), Money()])
def test_an_integer_up_to_the_largest_exact_integer_is_stored(field: Number, number: int) -> None:
    assert field.read(number) == number
    assert field.operand(number) == number


@pytest.mark.parametrize("number", [LARGEST + 1, -LARGEST - 1, 10**30])
def test_a_number_that_some_clients_would_round_is_refused(number: int) -> None:
    for read_number in (Number().read, Money().read, Number().operand):
        with pytest.raises(BadValue, match=f"must lie between -{LARGEST} and {LARGEST}"):
            read_number(number)


@pytest.mark.parametrize("value", [1.0, 1.5, float("nan"), "1", "", True, False, [1], {}])
def test_only_an_integer_is_a_number(value: object) -> None:
    for read_number in (Number().read, Money().read, Number().operand):
        with pytest.raises(BadValue, match="must be an integer"):
            read_number(value)


def test_the_range_of_a_field_limits_written_values_but_not_filter_values() -> None:
    field = Number(min_value=0, max_value=10)

    assert [field.read(0), field.read(10)] == [0, 10]
    for number in (-1, 11):
        assert field.operand(number) == number
        with pytest.raises(BadValue, match="must lie between 0 and 10"):
            field.read(number)


def test_the_schema_says_the_range() -> None:
    assert Number(min_value=0).schema() == {"type": "integer", "minimum": 0, "maximum": LARGEST}


def test_the_label_of_money_omits_the_suffix_minor() -> None:
    price = Money()
    price.name = "unit_price_minor"

    assert (price.kind, price.label) == ("money", "Unit price")
