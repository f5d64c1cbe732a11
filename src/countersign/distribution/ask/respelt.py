"""Questions with words of the grammar mistyped: the same questions with each such word set right."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from itertools import product as combined

from countersign.distribution.ask.fuzzy import distance
from countersign.distribution.ask.scenery import is_scenery
from countersign.distribution.ask.tokens import Token
from countersign.distribution.ask.unread import known_words

SHORTEST, LONG = 4, 7
_SAYING = """
    hate hated hates avoid avoids avoided loathe detest lost lose loses lacked late later dare cheap best worst
    better worse good bad fun nice great hard easy small large big long short slow fast dead live leave left gave
    bane save saved past fake fair fare rate rated dated gone done hold hide cool sold sell ugly boring popular
    pretty skip skips sick tired fear feared ban bans banned block blocks blocked drop stop stops stopped quit
    quits
"""
_REAL = frozenset(_SAYING.split())
"""Words that say something, so like others of the grammar that they would be taken for them: "hate" for "have"."""
MOST_WRONG, MOST_WAYS, MOST_RESPELT = 3, 4, 8


@cache
def _meant(word: str) -> tuple[str, ...]:
    """The words of the grammar that are one typing error away, or two from a long one; the likest first."""
    most = 2 if len(word) >= LONG else 1
    near = [(distance(word, each, most), each) for each in known_words() if each.isalpha() and len(each) >= SHORTEST]
    least = min((far for far, _ in near), default=most + 1)
    return tuple(sorted(each for far, each in near if far == least <= most and each[0] == word[0]))[:MOST_WAYS]


def respelt(question: str, tokens: Sequence[Token], left: Sequence[str]) -> Iterator[str]:
    """The question with every word that means nothing replaced; none where one of them resembles no other word.

    A word with a capital letter within a sentence is a name, which is not set right here.
    """
    wrong = [token for token in tokens if token.word in left and not token.is_quoted]
    if not 0 < len(wrong) <= MOST_WRONG or any(_is_meant(question, token) for token in wrong):
        return
    ways = [_meant(token.word) if len(token.word) >= SHORTEST - 1 else () for token in wrong]
    yield from (_replaced(question, wrong, words) for words in islice(combined(*ways), MOST_RESPELT))


def _replaced(question: str, wrong: Sequence[Token], words: Sequence[str]) -> str:
    for token, word in reversed(list(zip(wrong, words, strict=True))):
        question = question[: token.start] + word + question[token.end :]
    return question


def _is_meant(question: str, token: Token) -> bool:
    """Whether the word is no typing error: a name, or a word of everyday language like one of the grammar."""
    if token.word in _REAL or is_scenery(token.word):
        return True
    first = question[token.start]
    return first.isupper() and not question.isupper() and bool(question[: token.start].strip())
