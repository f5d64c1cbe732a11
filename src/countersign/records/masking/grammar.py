"""What a placeholder token looks like, and what only nearly does."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Token(NamedTuple):
    """A token as it stands in a text: EMAIL_208471930562114, from `start` to `end`."""

    label: str
    number: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """The token itself."""
        return f"{self.label}_{self.number}"


# An underscore with a digit behind it: the cheapest sign of a token.
_SIGN = re.compile(r"_[0-9]")


class Grammar:
    """Finds tokens of the registered labels in texts."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Takes the labels that tokens may have, LITERAL included."""
        # The longest first, so that of two labels one of which begins the other the right one is found.
        words = "|".join(sorted(map(re.escape, labels), key=lambda word: (-len(word), word)))
        self._token = re.compile(rf"(?<![A-Za-z0-9_])({words})_(0|[1-9][0-9]{{0,14}})(?![A-Za-z0-9_])")
        # Another case, other joints, leading zeros, too many digits; or a label in brackets without a number.
        self._near = re.compile(
            rf"(?<![A-Za-z0-9_])(?:(?:{words})[_-]{{1,2}}[0-9]+|[<\[{{(](?:{words})[>\]}})])(?![A-Za-z0-9_])",
            re.IGNORECASE,
        )
        self._word = re.compile(words, re.IGNORECASE)

    def might_hold_token(self, text: str) -> bool:
        """Whether the text may hold a token; a no is certain."""
        return _SIGN.search(text) is not None

    def might_matter(self, text: str) -> bool:
        """Whether the text may hold a token or a near miss; a no is certain."""
        return self._word.search(text) is not None

    def tokens(self, text: str) -> list[Token]:
        """The tokens in the text, from left to right, as they are written."""
        return [Token(found[1], int(found[2]), found.start(), found.end()) for found in self._token.finditer(text)]

    def near_miss(self, text: str) -> str | None:
        """The first part of the text that looks like a token and is not one."""
        tokens = iter(self.tokens(text))
        token = next(tokens, None)
        for found in self._near.finditer(text):
            # Both come from left to right: each token is passed once.
            while token is not None and token.end < found.end():
                token = next(tokens, None)
            if token is None or found.start() < token.start:
                return found[0]
        return None
