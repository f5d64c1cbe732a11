"""How long a text with placeholder tokens may be: by what its writer can know, never by what they stand for."""

from collections.abc import Mapping, Sequence

from countersign.declare import BadValue, LongText, Text
from countersign.declare.fields.field import LITERAL
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH, MAX_TEXT_LENGTH
from countersign.kernel import ids
from countersign.records.masking.grammar import Token

GROWN = 8 * MAX_LONGTEXT_LENGTH
"""Up to so many characters a long text may become by being written on again and again; from twice as many on it is
refused, and in between by chance: a certain limit would tell how long the text was to begin with."""


def require_fitting(
    field: Text, text: str, found: Sequence[Token], meanings: Mapping[str, str], long_labels: frozenset[str]
) -> None:
    """Insist that the text fits the field, before its tokens are replaced.

    A token alone always fits: what it stands for was found to fit where it was written. In a longer text each counts
    as the longest line. Of tokens that stand for long texts, a long text may hold one, uncounted, so that an agent can
    add to notes: whatever it adds, how much there was is not told.

    Raises:
        BadValue: it does not.
    """
    is_alone = [token.text for token in found if token.label != LITERAL] == [text]
    _require_labels(field, [token for token in found if token.label in long_labels])
    if not is_alone:
        _require_room(field, text, found, meanings, long_labels)


def _require_labels(field: Text, long: Sequence[Token]) -> None:
    if long and not isinstance(field, LongText):
        raise BadValue(f"takes no placeholder token of a long text ({long[0].label})")
    if len(long) > 1:
        raise BadValue("may hold one placeholder token of a long text")


def _require_room(
    field: Text, text: str, found: Sequence[Token], meanings: Mapping[str, str], long_labels: frozenset[str]
) -> None:
    counted = len(text) + sum(_counted(token, meanings, long_labels) - len(token.text) for token in found)
    if counted > field.longest:
        raise BadValue(
            f"must have {field.longest} characters at most, a placeholder token counting as {MAX_TEXT_LENGTH}"
        )
    whole = len(text) + sum(len(meanings[token.text]) for token in found)
    if whole > GROWN and whole > GROWN + int.from_bytes(ids.random_bytes(8)) % GROWN:
        raise BadValue("has grown too long: write it anew")


def _counted(token: Token, meanings: Mapping[str, str], long_labels: frozenset[str]) -> int:
    if token.label in long_labels:
        return len(token.text)
    return len(meanings[token.text]) if token.label == LITERAL else MAX_TEXT_LENGTH
