"""Normalization is equal to Unicode's, and takes linear time."""

import sys
import unicodedata

import pytest

from countersign.kernel import normalization
from countersign.kernel.normalization import MAX_MARKS, normalized

RING, CEDILLA = "\N{COMBINING RING ABOVE}", "\N{COMBINING CEDILLA}"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", ["", "plain", "Å", f"a{RING}{CEDILLA}", "ﬁ ½", "한국어", "e" + RING * MAX_MARKS])
def test_ordinary_text_has_the_form_of_unicode(form: str, text: str) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)  # pyright: ignore[reportArgumentType]


def test_a_longer_run_of_marks_is_broken_up_and_keeps_every_mark() -> None:
    text = "a" + (RING + CEDILLA) * 100

    decomposed = normalized("NFD", text)

    assert decomposed.count(RING) == decomposed.count(CEDILLA) == 100
    assert max(len(run) for run in decomposed.split("\N{COMBINING GRAPHEME JOINER}")) <= MAX_MARKS + 1
    assert normalized("NFD", decomposed) == decomposed


def test_the_pattern_for_long_runs_matches_every_character_that_decomposes_to_a_mark() -> None:
    long_run_pattern = normalization._long_run_pattern()  # pyright: ignore[reportPrivateUsage]
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0])
        and not long_run_pattern.search(chr(code) * 40)
    ]

    assert missed == []
