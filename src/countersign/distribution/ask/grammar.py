"""From a question to the typed queries it may mean: every word that means something has to be accounted for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from countersign.distribution.ask import conditions, extremes_asked, fronted, things, versions_asked, vocabulary
from countersign.distribution.ask.changes_asked import CHANGES_ASKED
from countersign.distribution.ask.checks_asked import CHECKS_ASKED
from countersign.distribution.ask.extremes_asked import EXTREMES_ASKED
from countersign.distribution.ask.likeness_asked import LIKENESS_ASKED
from countersign.distribution.ask.particulars import PARTICULARS
from countersign.distribution.ask.query import Query
from countersign.distribution.ask.questions import SETS
from countersign.distribution.ask.releases_asked import RELEASES_ASKED
from countersign.distribution.ask.templates import Reading, Slot, match
from countersign.distribution.ask.tokens import Token
from countersign.distribution.ask.truths_asked import TRUTHS_ASKED
from countersign.distribution.ask.versions_asked import NOTES_ASKED, VERSIONS_ASKED
from countersign.kernel.clock import Instant

SLOTS: Mapping[str, Slot] = {
    **vocabulary.SLOTS,
    **conditions.SLOTS,
    **things.SLOTS,
    **extremes_asked.SLOTS,
    **versions_asked.SLOTS,
}
FORMS = (
    *VERSIONS_ASKED,
    *EXTREMES_ASKED,
    *RELEASES_ASKED,
    *CHANGES_ASKED,
    *PARTICULARS,
    *CHECKS_ASKED,
    *TRUTHS_ASKED,
    *LIKENESS_ASKED,
    *SETS,
    *NOTES_ASKED,
)
MOST_QUERIES = 12
Names = Mapping[str, Mapping[int, Sequence[tuple[Any, int]]]]


class Understood(NamedTuple):
    """What a question may mean, the likeliest first, and why other ways of reading it were given up."""

    queries: list[Query]
    doubts: list[str]


def understand(tokens: Sequence[Token], names: Names, now: Instant, *, most: int = MOST_QUERIES) -> Understood:
    """The queries that the question's words stand for; none where a word would be left over."""
    return _understood(Reading(tokens, SLOTS, names, now), _queries, most)


def understand_fronted(tokens: Sequence[Token], names: Names, now: Instant) -> Understood:
    """The queries that a question stands for which begins with a condition: "On Android, what is there?"."""
    return _understood(Reading(tokens, SLOTS, names, now), _after_a_front, MOST_QUERIES)


def _understood(reading: Reading, read: Callable[[Reading], Iterator[Query]], most: int) -> Understood:
    found: list[Query] = []
    for query in read(reading):
        if query not in found:
            found.append(query)
        if len(found) >= most:
            break
    # Where one way to read it has two meanings, the other ways are not to be trusted either.
    return Understood([] if reading.doubts else found, list(dict.fromkeys(reading.doubts)))


def _queries(reading: Reading) -> Iterator[Query]:
    for start in _starts(reading):
        yield from _asked(reading, start)


def _starts(reading: Reading) -> list[int]:
    """Where the question may begin: after what is said for politeness, and before it."""
    starts = dict.fromkeys(end for _, end in match("{polite} {polite} {polite}", reading, 0))
    return [0, *(each for each in starts if each)]


def _asked(reading: Reading, start: int) -> Iterator[Query]:
    for form in FORMS:
        for captured, end in match(f"{form.template}", reading, start):
            if not _is_end(reading, end):
                continue
            query = form.build(captured)
            if query is not None:
                yield query


def _after_a_front(reading: Reading) -> Iterator[Query]:
    for start in _starts(reading):
        for told, place in fronted.fronts(reading, start):
            asked = [query for query, end in fronted.asked_back(reading, place) if _is_end(reading, end)]
            for query in (*asked, *_asked(reading, place)):
                found = fronted.narrowed(query, told)
                if found is not None:
                    yield found


def _is_end(reading: Reading, place: int) -> bool:
    """Whether nothing that means anything follows."""
    if reading.is_end(place):
        return True
    return any(reading.is_end(end) for _, end in match("{here}", reading, place))
