"""Fields of the kinds Text and LongText accept valid texts up to the maximum length, and refuse all others."""

import pytest

from countersign.declare import BadValue, LongText, Number, Text


@pytest.mark.parametrize("text", ["", " ", "a", "x" * 1000, "\u00fc" * 1000, "\U0001f33b" * 1000, "a\nb\t", "\ufffd"])
def test_a_text_is_read_unchanged(text: str) -> None:
    assert Text().read(text) == text


@pytest.mark.parametrize("value", [1, 1.0, True, ["a"], {"a": 1}, b"a"])
def test_only_a_string_is_a_text(value: object) -> None:
    with pytest.raises(BadValue, match="must be a string"):
        Text().read(value)


@pytest.mark.parametrize(("field", "max_length"), [(Text(), 1_000), (LongText(), 1_000_000), (Text(max_length=20), 20)])
def test_a_text_is_as_long_as_its_kind_or_the_field_allows(field: Text, max_length: int) -> None:
    assert field.read("\U0001f33b" * max_length) == "\U0001f33b" * max_length
    with pytest.raises(BadValue, match=f"must have {max_length} characters at most"):
        field.read("a" * (max_length + 1))


@pytest.mark.parametrize("code", [number for number in range(32) if chr(number) not in "\t\n\r"])
@pytest.mark.parametrize("text", ["{}", "a{}b", "ü{}"])
def test_a_control_character_is_refused_by_its_number(text: str, code: int) -> None:
    for field in (Text(), LongText()):
        with pytest.raises(BadValue, match=f"must not contain the control character U\\+{code:04X}"):
            field.read(text.format(chr(code)))


@pytest.mark.parametrize(
    ("text", "stored_text"),
    [("a\r\nb", "a\nb"), ("a\rb", "a\nb"), ("\r\n\r", "\n\n"), ("\n\r", "\n\n"), ("a\tb", "a\tb")],
)
def test_every_line_end_becomes_a_newline(text: str, stored_text: str) -> None:
    assert LongText().read(text) == stored_text
    assert LongText().operand(text) == stored_text
    assert len(Text(max_length=3).read("a\r\nb")) == 3


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\udc00\ud800", "\ud83c x \udf3b"])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="must be valid Unicode"):
        LongText().read(text)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "\u00a0"])
def test_a_required_text_is_not_blank(text: str) -> None:
    with pytest.raises(BadValue, match="must not be blank"):
        Text(required=True).read(text)


def test_a_filter_accepts_texts_longer_than_the_field_but_no_invalid_texts() -> None:
    assert Text(max_length=1, required=True).operand("") == ""
    assert Text(max_length=1).operand("ab") == "ab"
    for invalid in ("\0", "\ud800", 5):
        with pytest.raises(BadValue):
            Text().operand(invalid)


def test_an_error_text_does_not_contain_the_refused_value() -> None:
    with pytest.raises(BadValue) as refusal:
        Text(max_length=3).read("secret")

    assert "secret" not in str(refusal.value)


def test_the_schema_contains_the_length_limits() -> None:
    assert Text(max_length=20, required=True).schema() == {"type": "string", "maxLength": 20, "minLength": 1}
    assert LongText().schema() == {"type": "string", "maxLength": 1_000_000}


def test_the_former_names_of_options_work_with_a_deprecation_warning() -> None:
    with pytest.warns(DeprecationWarning, match="the option longest is called max_length"):
        assert Text(longest=3).max_length == 3
    with pytest.warns(DeprecationWarning, match="the option least is called min_value"):
        assert Number(least=0).schema()["minimum"] == 0
    with pytest.warns(DeprecationWarning, match="the option most is called max_value"):
        assert Number(most=9).schema()["maximum"] == 9
