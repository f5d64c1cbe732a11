"""Names that a question may hold though the catalog has none like them: any few words, where a name is asked for."""

from collections.abc import Iterator

from countersign.distribution.ask.names import UNRESOLVED, Names
from countersign.distribution.ask.tokens import Token, span

MOST_WORDS = 6
_MARKS = frozenset([",", ";", "(", ")", "$", "€", "£", "%", "<", ">", "=", "|", "'s"])
_GLUE = frozenset(
    [
        "of",
        "on",
        "for",
        "in",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "has",
        "have",
        "that",
        "which",
        "with",
        "by",
        "to",
        "from",
        "at",
        "not",
        "it",
        "what",
        "which",
        "when",
        "who",
        "how",
        "why",
        "where",
        "can",
        "could",
        "should",
        "will",
        "would",
        "than",
        "more",
        "most",
        "run",
        "runs",
        "support",
        "tagged",
        "latest",
        "newest",
        "version",
        "versions",
        "release",
        "releases",
    ]
)


def guessed(question: str, tokens: list[Token], known: Names) -> Names:
    """The known names, and every run of words that is not one of them as a product's or publisher's to be found."""
    found: Names = {kind: {start: [*ways] for start, ways in places.items()} for kind, places in known.items()}
    for start in range(len(tokens)):
        for end in _ends(tokens, start):
            for kind in ("product", "org"):
                ways = found[kind].setdefault(start, [])
                if not any(end == stop for _, stop in ways):
                    ways.append((UNRESOLVED + span(question, tokens, start, end), end))
    for kind in ("product", "org"):
        for ways in found[kind].values():
            ways.sort(key=lambda way: (str(way[0]).startswith(UNRESOLVED), -way[1]))
    return found


def _ends(tokens: list[Token], start: int) -> Iterator[int]:
    """Where a name that begins here may end, the longest first."""
    first = tokens[start]
    if first.word in _MARKS or (first.word in _GLUE and not first.is_quoted):
        return
    for end in range(min(len(tokens), start + MOST_WORDS), start, -1):
        held = tokens[start:end]
        if held[-1].word not in _GLUE and not any(token.word in _MARKS for token in held):
            yield end
