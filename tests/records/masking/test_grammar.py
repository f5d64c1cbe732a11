"""The grammar of placeholder tokens: which texts are tokens, which are near misses, and the text after its tokens are
replaced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.records.masking import placeholder_tokens
from countersign.records.masking.placeholder_tokens import Grammar

LABELS = ("EMAIL", "PHONE", "LITERAL", "TAX", "TAX_ID", "NOTES")
GRAMMAR = Grammar(LABELS)

# Texts that are likely to contain tokens, near misses and similar text.
PIECES = st.sampled_from(
    [*LABELS, "EMAIL_1", "EMAIL_10", "TAX_ID_7", "LITERAL_0", "email_1", "_", "-", "0", "1", "9", " ", "\n", "é", "١"]
)
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join)


def tokens_in(text: str) -> list[str]:
    """Return the tokens in the text."""
    return [token.text for token in GRAMMAR.tokens(text)]


@pytest.mark.parametrize(
    "text",
    [
        "EMAIL_1",
        "[EMAIL_1]",
        "<EMAIL_1>",
        "(EMAIL_1)",
        '"EMAIL_1"',
        "mail:EMAIL_1,",
        "EMAIL_1.",
        "-EMAIL_1-",
        "EMAIL_1\n",
        "éEMAIL_1é",
        "写EMAIL_1信",
        "\u200bEMAIL_1",
        "EMAIL_1@example.com",
        "mailto:EMAIL_1?subject=PHONE",
    ],
)
def test_a_token_ends_where_no_letter_digit_or_underscore_continues(text: str) -> None:
    assert tokens_in(text) == ["EMAIL_1"]


@pytest.mark.parametrize(
    "text",
    ["XEMAIL_1", "0EMAIL_1", "_EMAIL_1", "EMAIL_1a", "EMAIL_1_", "EMAIL_1_2", "EMAIL_", "EMAIL", "EMAIL_x", "OTHER_1"],
)
def test_a_part_of_a_longer_word_is_not_a_token(text: str) -> None:
    assert tokens_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "email_123",
        "Email_123",
        "EMAIL-123",
        "EMAIL__123",
        "EMAIL_-123",
        "EMAIL_0123",
        "EMAIL_00",
        "EMAIL_1234567890123456",
        "<EMAIL>",
        "[EMAIL]",
        "{EMAIL}",
        "<email>",
    ],
)
def test_texts_that_resemble_tokens_are_detected_and_not_treated_as_tokens(text: str) -> None:
    for around in (text, f"Write to {text}, please", f"EMAIL_5 {text} EMAIL_6"):
        assert text not in tokens_in(around)
        assert GRAMMAR.near_miss(around) == text
        assert GRAMMAR.might_hold_token_or_near_miss(around)


@pytest.mark.parametrize(
    "text", ["EMAIL_123", "[EMAIL_123]", "<EMAIL_123>", "EMAIL_1-PHONE_2", "email", "e-mail 12", "EMAIL: 12", "taxi_x"]
)
def test_tokens_and_plain_words_are_not_reported_as_mistyped_tokens(text: str) -> None:
    assert GRAMMAR.near_miss(text) is None


def test_the_longer_of_two_matching_labels_is_found() -> None:
    assert tokens_in("TAX_1 TAX_ID_1 TAX_ID_1_1") == ["TAX_1", "TAX_ID_1"]
    assert [(token.label, token.number) for token in GRAMMAR.tokens("TAX_ID_12")] == [("TAX_ID", 12)]


def test_numbers_have_fifteen_digits_at_most_and_no_leading_zero() -> None:
    assert tokens_in("EMAIL_0 EMAIL_999999999999999 EMAIL_281474976710655") == [
        "EMAIL_0",
        "EMAIL_999999999999999",
        "EMAIL_281474976710655",
    ]


def test_digits_of_other_scripts_are_not_accepted_as_digits() -> None:
    assert tokens_in("EMAIL_١٢ EMAIL_１２") == []


def test_a_token_that_is_the_prefix_of_another_token_is_replaced_separately() -> None:
    meanings = {"EMAIL_1": "one", "EMAIL_10": "ten", "EMAIL_100": "hundred"}

    assert (
        placeholder_tokens.replace_tokens(GRAMMAR, "EMAIL_1 EMAIL_10,EMAIL_100;EMAIL_1", meanings)
        == "one ten,hundred;one"
    )
    assert placeholder_tokens.replace_tokens(GRAMMAR, "EMAIL_1 EMAIL_10", {"EMAIL_1": "one"}) == "one EMAIL_10"
    assert placeholder_tokens.replace_tokens(GRAMMAR, "EMAIL_10", {"EMAIL_1": "one"}) == "EMAIL_10"


def test_five_hundred_tokens_in_one_note_are_replaced_in_one_pass() -> None:
    meanings = {f"EMAIL_{number}": f"person {number}" for number in range(500)}
    note = "".join(f"{number}: EMAIL_{number};\n" for number in range(500))

    assert placeholder_tokens.replace_tokens(GRAMMAR, note, meanings) == "".join(
        f"{number}: person {number};\n" for number in range(500)
    )


def test_an_inserted_value_is_not_searched_for_tokens() -> None:
    meanings = {"EMAIL_1": "EMAIL_2", "EMAIL_2": "EMAIL_1", "PHONE_3": "PHONE_3 EMAIL_1"}

    assert (
        placeholder_tokens.replace_tokens(GRAMMAR, "EMAIL_1, EMAIL_2, PHONE_3", meanings)
        == "EMAIL_2, EMAIL_1, PHONE_3 EMAIL_1"
    )


@given(TEXTS)
def test_every_text_is_unchanged_after_masking_and_unmasking(text: str) -> None:
    """A caller reads a clear field, in which LITERAL tokens replace token-like text, and sends it back unchanged."""
    numbers = {token: number * 7_919 for number, token in enumerate(dict.fromkeys(tokens_in(text)))}

    masked_text = placeholder_tokens.replace_tokens(
        GRAMMAR, text, {literal: f"LITERAL_{number}" for literal, number in numbers.items()}
    )

    # Every token-like part of the shown text is one of the inserted tokens. No token merges with the text around it.
    assert set(tokens_in(masked_text)) == {f"LITERAL_{number}" for number in numbers.values()}
    assert (
        placeholder_tokens.replace_tokens(
            GRAMMAR, masked_text, {f"LITERAL_{number}": literal for literal, number in numbers.items()}
        )
        == text
    )


@given(TEXTS)
def test_no_text_has_a_token_where_the_quick_look_says_there_is_none(text: str) -> None:
    if tokens_in(text):
        assert GRAMMAR.might_hold_token(text)
    if tokens_in(text) or GRAMMAR.near_miss(text):
        assert GRAMMAR.might_hold_token_or_near_miss(text)


@given(TEXTS, st.sampled_from(LABELS), st.integers(0, 10**15 - 1))
def test_a_token_between_spaces_is_found_in_any_text(text: str, label: str, number: int) -> None:
    assert f"{label}_{number}" in tokens_in(f"{text} {label}_{number} {text}")
    assert tokens_in(f"{text} {label}_{number} {text}") == [*tokens_in(text), f"{label}_{number}", *tokens_in(text)]
