"""What of a refused question was understood, as questions that can be asked."""

from countersign.distribution.ask import phrases, wordlists
from countersign.distribution.ask.names import UNRESOLVED, Names
from countersign.distribution.ask.phrasetable import Phrases
from countersign.distribution.ask.tokens import Token
from countersign.distribution.ask.told import AnyCondition, By, Tagged, every

_MOST_WORDS = 4
_MOST_TITLES = 2
_DENIALS = wordlists.NEGATIONS | {
    *("no", "without", "except", "excluding", "neither", "nor", "none", "nothing", "but"),
    *("hate", "hates", "dislike", "avoid", "skip", "least", "most"),
}
_TABLES: tuple[Phrases, ...] = (wordlists.KINDS, wordlists.PLATFORMS)


def offered(question: str, tokens: list[Token], names: Names) -> list[str]:
    """Questions about what is known in this one: its products, or its kinds, platforms, tags and publishers together.

    None where the question denies or limits something: what exactly is left to guess.
    """
    if any(token.word in _DENIALS for token in tokens):
        return []
    titles = _titles(question, tokens, names)
    if titles:
        return [f"What is the newest version of {title}?" for title in titles[:_MOST_TITLES]]
    conditions = _conditions(tokens, names)
    return [f"Which {phrases.products(every(conditions))} are there?"] if conditions else []


def _titles(question: str, tokens: list[Token], names: Names) -> list[str]:
    """The products as the question names them: with a capital letter or quoted, so that no everyday word is one."""
    found: list[str] = []
    place = 0
    while place < len(tokens):
        ways = names["product"].get(place, [])
        if ways and not ways[0][0].startswith(UNRESOLVED):
            end = ways[0][1]
            title = question[tokens[place].start : tokens[end - 1].end]
            if title[:1].isupper() or tokens[place].is_quoted:
                found.append(title.strip("\"'“”„«»`"))
            place = end
        else:
            place += 1
    return list(dict.fromkeys(found))


def _conditions(tokens: list[Token], names: Names) -> list[AnyCondition]:
    found: list[AnyCondition] = []
    place = 0
    while place < len(tokens):
        condition, place = _condition(tokens, place, names)
        if condition is not None:
            found.append(condition)
    return list(dict.fromkeys(found))


def _condition(tokens: list[Token], place: int, names: Names) -> tuple[AnyCondition | None, int]:
    """What begins here, if anything does, and where to go on."""
    for count in range(min(_MOST_WORDS, len(tokens) - place), 0, -1):
        phrase = " ".join(token.word for token in tokens[place : place + count])
        for table in _TABLES:
            if phrase in table:
                return table[phrase], place + count
    for kind, condition in (("tag", Tagged), ("org", By)):
        for value, end in names[kind].get(place, ())[:1]:
            return condition(value), end
    return None, place + 1
