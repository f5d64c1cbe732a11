"""Patterns of questions: words, {slots}, [what may be left out], (this|or that), matched by trying every way."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from countersign.distribution.ask import budget
from countersign.distribution.ask.tokens import FILLERS, Token

_PIECE = re.compile(r"\{\w+\}|[\[\]()|]|[^\s\[\](){}|]+")

Captured: TypeAlias = tuple[tuple[str, Any], ...]
"""The values of the slots that were passed, in order."""

Slot: TypeAlias = Callable[["Reading", int], Iterator[tuple[Any, int]]]


class _Word(NamedTuple):
    word: str


class _Slot(NamedTuple):
    name: str


class _Choice(NamedTuple):
    ways: tuple[tuple["_Node", ...], ...]


class _Phrases(NamedTuple):
    """A choice among words alone, by their first one."""

    by_first: Mapping[str, Sequence[tuple[str, ...]]]
    is_optional: bool


_Node: TypeAlias = _Word | _Slot | _Choice | _Phrases


class Reading:
    """A question while it is read: its words, what its spans may name, and what was found so far at each place.

    `names` tells for a kind of name (product, org, tag, license) what begins at a place, as values with their ends.
    `doubts` are reasons for which a way of reading it was given up.
    """

    def __init__(
        self,
        found: Sequence[Token],
        slots: Mapping[str, Slot],
        names: Mapping[str, Mapping[int, Sequence[tuple[Any, int]]]],
        now: int,
        *,
        is_loose: bool = False,
    ) -> None:
        self.tokens = found
        self.words = [token.word if not token.is_quoted else "" for token in found]
        self.names = names
        self.now = now
        self.is_loose = is_loose
        self.doubts: list[str] = []
        self._slots = slots
        self._known: dict[tuple[str, int], list[tuple[Any, int]]] = {}
        self._spend = budget.current().spend
        self._starts = _starts(self.words)

    def slot(self, name: str, start: int) -> list[tuple[Any, int]]:
        """Every value that the slot may have here, with the place after it.

        Raises:
            TooInvolved: the question's budget is spent.
        """
        place = (name, start)
        if place not in self._known:
            self._known[place] = []
            found: list[tuple[Any, int]] = []
            for way in self._slots[name](self, start):
                self.step()
                found.append(way)
            self._known[place] = found
        return self._known[place]

    def step(self) -> None:
        """Count one more attempt.

        Raises:
            TooInvolved: the question's budget is spent.
        """
        self._spend()

    def starts(self, place: int) -> Sequence[int]:
        """The place itself, and those after words that mean nothing."""
        return self._starts[place]

    def after(self, words: Sequence[str], place: int) -> int | None:
        """The place after these words, which stand here; None when they do not."""
        for word in words:
            while place < len(self.words) and self.words[place] != word and self.words[place] in FILLERS:
                place += 1
            if place >= len(self.words) or self.words[place] != word:
                return None
            place += 1
        return place

    def word(self, place: int) -> str | None:
        """The word at the place; None behind the last one."""
        return self.words[place] if place < len(self.words) else None

    def is_end(self, place: int) -> bool:
        """Whether nothing that means anything follows."""
        return all(word in FILLERS for word in self.words[place:])


def _starts(words: Sequence[str]) -> list[tuple[int, ...]]:
    """For each place, and the one behind the last word, where what stands there may begin."""
    starts: list[tuple[int, ...]] = [(len(words),)]
    for place in reversed(range(len(words))):
        starts.append((place, *starts[-1]) if words[place] in FILLERS else (place,))
    return starts[::-1]


# Templates are constants of the code, so that none is thrown away: with room for fewer than there are, each question
# compiled nearly all of them anew.
@cache
def compiled(template: str) -> tuple[_Node, ...]:
    """The pattern that the template says.

    Raises:
        ValueError: its brackets do not match.
    """
    pieces = _PIECE.findall(template)
    nodes, place = _sequence(pieces, 0)
    if place != len(pieces):
        raise ValueError(f"unbalanced: {template}")
    return nodes


def _sequence(pieces: list[str], place: int) -> tuple[tuple[_Node, ...], int]:
    nodes: list[_Node] = []
    while place < len(pieces) and pieces[place] not in ("]", ")", "|"):
        piece = pieces[place]
        if piece in ("[", "("):
            ways: list[tuple[_Node, ...]] = []
            while pieces[place] not in ("]", ")"):
                way, place = _sequence(pieces, place + 1)
                ways.append(way)
            nodes.append(_choice(ways, is_optional=piece == "["))
        else:
            nodes.append(_Slot(piece[1:-1]) if piece[0] == "{" else _Word(piece))
        place += 1
    return tuple(nodes), place


def _choice(ways: list[tuple[_Node, ...]], *, is_optional: bool) -> _Node:
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for way in ways:
        words = tuple(node.word for node in way if isinstance(node, _Word))
        if len(words) < len(way) or not words:
            return _Choice((*ways, ()) if is_optional else tuple(ways))
        by_first.setdefault(words[0], []).append(words[1:])
    return _Phrases(by_first, is_optional)


def match(template: str, reading: Reading, start: int) -> Iterator[tuple[Captured, int]]:
    """Every way in which the template fits here, the longer optional part first: slot values, place after it."""
    words = _first_words(template)
    if words is None or not words.isdisjoint([reading.word(place) for place in reading.starts(start)]):
        yield from _match(compiled(template), reading, start, ())


@cache
def _first_words(template: str) -> frozenset[str] | None:
    """The words that the template can begin with; None where it can begin with a slot or fit nothing."""
    words: set[str] = set()
    return frozenset(words) if _add_first_words(compiled(template), words) is False else None


def _add_first_words(nodes: Sequence[_Node], words: set[str]) -> bool | None:
    """Add the words that the nodes can begin with. Whether they can fit nothing; None where they begin with a slot."""
    for node in nodes:
        if isinstance(node, _Slot):
            return None
        if isinstance(node, _Word):
            words.add(node.word)
            return False
        if isinstance(node, _Phrases):
            words.update(node.by_first)
            is_empty = node.is_optional
        else:
            ways = [_add_first_words(way, words) for way in node.ways]
            if None in ways:
                return None
            is_empty = any(ways)
        if not is_empty:
            return False
    return True


def _past_words(nodes: tuple[_Node, ...], reading: Reading, start: int) -> tuple[tuple[_Node, ...], int] | None:
    """The nodes after the words that these begin with, and the place after those; None when they do not stand here."""
    reading.step()
    while nodes and isinstance(first := nodes[0], _Word):
        for place in reading.starts(start):
            if reading.word(place) == first.word:
                nodes, start = nodes[1:], place + 1
                break
        else:
            return None
        reading.step()
    return nodes, start


def _match(
    nodes: tuple[_Node, ...], reading: Reading, start: int, captured: Captured
) -> Iterator[tuple[Captured, int]]:
    passed = _past_words(nodes, reading, start)
    if passed is None:
        return
    nodes, start = passed
    if not nodes:
        yield captured, start
        return
    first, nodes = nodes[0], nodes[1:]
    if isinstance(first, _Choice):
        for way in first.ways:
            yield from _match(way + nodes, reading, start, captured)
    elif isinstance(first, _Slot):
        for place in reading.starts(start):
            for value, end in reading.slot(first.name, place):
                yield from _match(nodes, reading, end, (*captured, (first.name, value)))
    elif isinstance(first, _Phrases):
        for end in _ends(first, reading, start):
            yield from _match(nodes, reading, end, captured)


def _ends(phrases: _Phrases, reading: Reading, start: int) -> list[int]:
    """The places after the phrases, where they stand here."""
    ends: list[int] = []
    for place in reading.starts(start):
        word = reading.word(place)
        for rest in phrases.by_first.get(word, ()) if word is not None else ():
            end = reading.after(rest, place + 1)
            if end is not None:
                ends.append(end)
    if phrases.is_optional:
        ends.append(start)
    return ends


def values(captured: Captured, name: str) -> list[Any]:
    """All values of the slot."""
    return [value for key, value in captured if key == name]


def value(captured: Captured, name: str, default: Any = None) -> Any:
    """The first value of the slot."""
    return next((value for key, value in captured if key == name), default)
