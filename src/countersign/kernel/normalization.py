"""Unicode normalisation (UAX #15) in linear time: long runs of combining marks are made stream-safe first."""

import re
import unicodedata
from functools import cache
from typing import Literal

MAX_MARKS = 30
"""The longest run of combining marks that `unicodedata.normalize` has to sort. No writing system needs a longer run
(UAX #15, Stream-Safe Format)."""
_MARK_CODE_RANGE = (0x300, 0x1F000)
_DECOMPOSE_TO_MARKS = frozenset({0x0F73, 0x0F75, 0x0F81, 0xFF9E, 0xFF9F})
"""Characters that are not combining marks, but decompose to combining marks."""
_JOINER = "\N{COMBINING GRAPHEME JOINER}"


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in this normalization form. In a run of more than 30 combining marks, U+034F is inserted after
    each 30.

    Without this, `unicodedata.normalize` sorts each run by insertion, which takes hours for a million marks.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _long_run_pattern().sub(rf"\g<0>{_JOINER}", text))


def folded(text: str) -> str:
    """Return the text in the form in which words are compared: NFKD-normalised, case-folded, without accents."""
    return "".join(each for each in normalized("NFKD", text) if not unicodedata.combining(each)).casefold()


@cache
def _long_run_pattern() -> re.Pattern[str]:
    """Return a pattern for exactly 30 consecutive characters that are or become combining marks, followed by one
    more."""
    codes = {code for code in range(*_MARK_CODE_RANGE) if unicodedata.combining(chr(code))}
    marks = _ranges(sorted(codes | _DECOMPOSE_TO_MARKS))
    return re.compile(f"[{marks}]{{{MAX_MARKS}}}(?=[{marks}])")


def _ranges(codes: list[int]) -> str:
    """Return the characters as ranges for a character class of a regular expression."""
    ranges: list[str] = []
    start = codes[0]
    for code, next_code in zip(codes, [*codes[1:], -1], strict=True):
        if next_code != code + 1:
            ranges.append(f"{re.escape(chr(start))}-{re.escape(chr(code))}")
            start = next_code
    return "".join(ranges)
