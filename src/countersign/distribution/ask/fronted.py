"""Questions that begin with a condition: "On Android, what is there that isn't on iOS?", "Among the apps, which …"."""

from collections.abc import Iterator

import msgspec

from countersign.distribution.ask.query import Count, Exists, Most, NewestOfEach, Products, Publishers, Query, Releases
from countersign.distribution.ask.templates import Reading, match, value
from countersign.distribution.ask.told import ANYTHING, AnyCondition, Every, Named, OfKind, every, is_of_releases

_FRONTS = (
    "{where} [,]",
    "(among|of|out of|from|as for|concerning|regarding|with|about|when it comes to) [all] [the|your|these|those] "
    "{things} [,]",
    "{things} [,]",
)
_THAT = (
    "(fits|fit|qualifies|qualify|remains|remain|matches|match|is left|are left|are that|is that|are like that|"
    "is like that|are so|is so|do that|does that|is there|are there|comes to mind|come to mind|would that be|would "
    "those be|do you have|have you got|can i get|can i have|do i get|are those|are these|are they|would work|"
    "is possible|are possible|is it|are meant|is available|are available|exist|exists|are on offer|is on offer|"
    "could i use|can i use|can i choose|are left over|is left over|apply|applies|is what i want|is what i need)"
)
_ASKED = (
    f"(what|which|which ones|which of them|which of those|which of these) {_THAT}",
    f"(what|which) {{things}} {_THAT}",
)
MOST_FRONTS = 12
_ASKING = frozenset(["who", "what", "which", "whose", "how", "when", "where", "why"])
"""With these words a question begins, not what is said before it."""
_ASKERS = frozenset(["i", "we", "you", "he", "she", "they", "it", "my", "our", "one"])


def fronts(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """The conditions that the question may begin with, the shortest first, each with the place after it."""
    found: dict[tuple[AnyCondition, int], None] = {}
    if reading.words[start : start + 1] and reading.words[start] in _ASKERS:
        # What is said of the one who asks is not said of products: "I don't have Windows".
        return
    for template in _FRONTS:
        for captured, end in match(template, reading, start):
            things = value(captured, "things")
            told = value(captured, "where") if things is None else things.where if things.is_plain else ANYTHING
            if end > start and told != ANYTHING and not _ASKING & {*reading.words[start:end]}:
                found[told, end] = None
    yield from sorted(list(found), key=lambda way: way[1])[:MOST_FRONTS]


def asked_back(reading: Reading, start: int) -> Iterator[tuple[Query, int]]:
    """What asks for nothing but what was said before: "what fits?", "which games are like that?"."""
    for template in _ASKED:
        for captured, end in match(template, reading, start):
            things = value(captured, "things")
            if things is None or things.is_plain:
                yield Products(ANYTHING if things is None else things.where), end


def narrowed(query: Query, told: AnyCondition) -> Query | None:
    """The question about those alone of which the condition is true; None where it is not about any products."""
    if isinstance(query, Count | Exists):
        of = narrowed(query.of, told)
        return msgspec.structs.replace(query, of=of) if isinstance(of, Products | Releases | Publishers) else None
    if not isinstance(query, Products | Releases | Publishers | Most | NewestOfEach):
        return None
    if isinstance(query, Releases) and (is_of_releases(told) or isinstance(query.where, Named)):
        return None
    where = every([told, query.where])
    # A tool that is an app is asked for by nobody: the words mean something else.
    return None if _is_of_two_kinds(where) else msgspec.structs.replace(query, where=where)


def _is_of_two_kinds(where: AnyCondition) -> bool:
    held = where.of if isinstance(where, Every) else ()
    return len({each for each in held if isinstance(each, OfKind)}) > 1
