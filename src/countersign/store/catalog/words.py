"""From texts to the words they are searched by, and to the shortened words that forgive one typing error."""

import re
import unicodedata

from countersign.kernel.normalization import normalized

_WORD = re.compile(r"[^\W_]+")
MAX_WORD = 40
MAX_WORDS = 400
SHORTEST_FORGIVEN = 4


def words(text: str) -> list[str]:
    """The words of a text in order: compatibility-folded, without accents, in lower case, 40 characters each."""
    plain = normalized("NFKD", text)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return [word[:MAX_WORD] for word in _WORD.findall(bare.casefold())][:MAX_WORDS]


def shortened(word: str) -> set[str]:
    """The word and all it becomes when one letter is left out; nothing for words below four letters.

    Two words share one of these whenever they differ by one letter added, lost, changed, or swapped with its
    neighbour (the symmetric-delete method of spelling correction).
    """
    if len(word) < SHORTEST_FORGIVEN:
        return set()
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


def prefix_end(word: str) -> str:
    """The first text after all that a word of a search means by itself and its beginnings, by code point.

    A single letter means itself alone: it begins so many words that the search would read half the catalog.
    """
    return word + ("\U0010ffff" if len(word) > 1 else " ")


def distance(one: str, other: str, limit: int) -> int | None:
    """How many letters are added, lost, changed or swapped with their neighbour; None when more than the limit."""
    if abs(len(one) - len(other)) > limit or len({*one} ^ {*other}) > 2 * limit:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        older, before, row = before, row, [place]
        for column, target in enumerate(other, 1):
            costs = [before[column] + 1, row[-1] + 1, before[column - 1] + (letter != target)]
            if place > 1 and column > 1 and one[place - 2 : place] == target + other[column - 2]:
                costs.append(older[column - 2] + 1)
            row.append(min(costs))
        if min(row) > limit:
            return None
    return row[-1] if row[-1] <= limit else None
