"""Names of organisations and clients contain visible characters."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.errors import InvalidRequest
from countersign.store.auth.organisations import require_name

UNSEEN = ["\ufe0f", "\U000e0100", "\u0301", "\U0001d159", "\U00013441", "\u2800", "\u3164", " \u0301 \ufe0f"]
MARKS_AND_SPACES = "".join(
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character)[0] in "MZC" and character != "\0"
)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_name_without_visible_characters_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        require_name(name)


@given(st.text(st.sampled_from(MARKS_AND_SPACES), max_size=200))
def test_a_name_of_only_marks_spaces_and_controls_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        require_name(name)


@pytest.mark.parametrize("name", ["A", "7", "!", "€", "北", "e\u0301", "\u2764\ufe0f", "नमस्ते"])
def test_a_name_with_a_letter_a_number_or_a_sign_is_accepted(name: str) -> None:
    require_name(name)
