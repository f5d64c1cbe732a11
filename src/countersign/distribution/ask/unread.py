"""What of a question means nothing to the grammar, for the words of a refusal."""

from collections.abc import Iterator
from functools import cache

from countersign.distribution.ask import clauses, conditions, grammar, things, wordlists
from countersign.distribution.ask.dates import MONTHS, WEEKDAYS
from countersign.distribution.ask.grammar import Names
from countersign.distribution.ask.tokens import FILLERS, Token

_DATES = (
    "in on since after before between from to until by last past previous this the today yesterday ago day days week "
    "weeks month months year years hour hours quarter half halloween christmas than more less within during"
)


@cache
def known_words() -> frozenset[str]:
    """Every word of every form and table."""
    return frozenset(_words())


def _words() -> Iterator[str]:
    templates = [form.template for form in grammar.FORMS]
    templates += [clause.template for clause in clauses.CLAUSES]
    templates += [conditions.EXCEPTIONS, *things.RELEASES_AT, *things.TAILS]
    for template in templates:
        yield from (word.strip("()[]|") for part in template.split() for word in part.split("|"))
    for table in wordlists.TABLES:
        yield from (word for phrase in table for word in phrase.split())
    yield from (*FILLERS, *MONTHS, *WEEKDAYS, *_DATES.split(), *wordlists.AUXILIARIES, *wordlists.NEGATIONS)


def unread(tokens: list[Token], names: Names) -> list[str]:
    """The words that nothing in the grammar and no name in the catalog explains, each once."""
    named = {
        place
        for places in names.values()
        for start, ways in places.items()
        for _, end in ways
        for place in range(start, end)
    }
    left = [
        token.word
        for place, token in enumerate(tokens)
        if place not in named
        and not token.is_quoted
        and token.word not in known_words()
        and not token.word[:1].isdigit()
    ]
    return list(dict.fromkeys(left))
