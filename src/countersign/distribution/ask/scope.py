"""Which part of a text is the question, and which part tells what the question is about.

People write more than they ask: "Our hosts run Linux. Which free tools are there? The budget is for May." The question
decides. A sentence beside it counts where the question has no condition of its own or points back to it; of all others
only what names a product, its publisher, a platform or a kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from countersign.distribution.ask.lexicon import IGNORED, Token
from countersign.distribution.catalog.filter import SLOTS

_CONDITIONS = frozenset(["time", *SLOTS]) - {"version"}
_ASKED = frozenset(["kind", "find", "field", "answer", "order"])
_ASKED_OF_PRODUCT = frozenset(["find", "field", "order", "all"])
_QUESTION_WORDS = frozenset(str.split("which what who whose when where how why"))
_REQUESTS = frozenset(str.split("show list give find tell name so please just"))
_OPENS_ASIDE = frozenset(
    str.split("i i'm i've i'd we we're we've my our because cause cos coz thanks thx feels otherwise")
)
_OPENS_REQUEST = _QUESTION_WORDS | _REQUESTS
_BACKWARD = frozenset(str.split("one ones those them these it its they their such fit fits qualify match"))
SENTENCE_ENDS = frozenset([".", "?", "!"])
_SHORT_FORMS = frozenset(["i.e", "e.g", "etc"])
_OF_ASIDES = frozenset(["product", "org", "platform", "kind"])
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each", "beyond"])
"""What only the question itself says, where it names what it is about."""


@dataclass(slots=True)
class Item:
    """Something that was recognised: tokens `start` to `end` mean a value of a slot or class. `is_pair`: it was written
    as key=value."""

    slot: str
    value: Any
    start: int
    end: int
    is_negated: bool = False
    joint: str = ""
    is_pair: bool = False


class Sentence(NamedTuple):
    """Tokens `start` to `end`."""

    start: int
    end: int

    def has(self, item: Item) -> bool:
        """Whether the item begins in it."""
        return self.start <= item.start < self.end


class Scope:
    """The sentence that asks, and the one before it that says of what, if it needs one."""

    def __init__(self, tokens: Sequence[Token], items: Sequence[Item]) -> None:
        self._tokens, self._items = tokens, items
        self._within = {place for item in items for place in range(item.start, item.end)}
        self._sentences = self._split()
        marked = [each for each in self._sentences if tokens[each.end - 1].word == "?"]
        long = [each for each in self._sentences if each.end - each.start > 3 and any(map(each.has, items))]
        self._whole = (marked or long or self._sentences or [Sentence(0, 0)])[-1]
        self.question = self._request(self._whole)
        if any(item.is_pair for item in items):
            self._whole = self.question = Sentence(0, len(tokens))
        self._preface = Sentence(self._whole.start, self.question.start)
        self._slots = self._slots_of(self.question)
        is_after_colon = self._word(self.question.start - 1) == ":" and bool(self._slots)
        self._is_marked = bool(marked) or is_after_colon
        self._context = self._find_context()

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def _split(self) -> list[Sentence]:
        """Cut after marks that end a sentence and that a blank follows."""
        marks = [at for at, token in enumerate(self._tokens) if token.word in SENTENCE_ENDS and at not in self._within]
        marks = [at for at in marks if self._word(at - 1) not in _SHORT_FORMS]
        ends = [at + 1 for at in marks if at + 1 == len(self._tokens) or self._has_blank_before(at + 1)]
        return [Sentence(start, end) for start, end in pairwise(sorted({0, *ends, len(self._tokens)}))]

    def _has_blank_before(self, at: int) -> bool:
        return self._tokens[at - 1].end < self._tokens[at].start

    def _request(self, sentence: Sentence) -> Sentence:
        """The part of a sentence that asks: after a colon or a dash, after ", what …" where nothing before it is a
        condition, and before ", I …"."""
        begin, end = sentence
        colons = [at for at in range(begin, end - 3) if self._word(at) in (":", "-") and at not in self._within]
        begin = max([at + 1 for at in colons if self._is_pause(at)], default=begin)
        conditions = [item.start for item in self._items if item.slot in _CONDITIONS and begin <= item.start < end]
        commas = [at for at in range(begin, end - 1) if self._word(at) in (",", ";")]
        opening = [at + 1 for at in commas if self._word(at + 1) in _OPENS_REQUEST and at < min([*conditions, end])]
        begin = max(opening, default=begin)
        asides = [at for at in commas if at > begin and self._word(at + 1) in _OPENS_ASIDE and self._says(begin, at)]
        return Sentence(begin, min(asides, default=end))

    def _is_pause(self, at: int) -> bool:
        is_dash = self._has_blank_before(at) and min(self._within, default=at) < at
        return self._has_blank_before(at + 1) and (self._word(at) == ":" or is_dash)

    def _says(self, begin: int, end: int) -> bool:
        """Whether something is asked there."""
        return any(item.slot in _CONDITIONS | _ASKED for item in self._items if begin <= item.start < end)

    def _slots_of(self, sentence: Sentence | None) -> set[str]:
        if sentence is None:
            return set()
        return {item.slot for item in self._items if sentence.has(item)} & _CONDITIONS

    def _find_context(self) -> Sentence | None:
        """The nearest sentence with a condition, where the question has none or points back."""
        words = {self._word(at) for at in range(*self.question)}
        if self._slots and not _BACKWARD & words:
            return None
        others = [each for each in self._sentences if self._slots_of(each) and each != self._whole]
        before = [each for each in others if each.end <= self._whole.start]
        return self._request(before[-1]) if before else next(iter(others), None)

    def items(self) -> list[Item]:
        """The items that say what is asked."""
        return [item for item in self._items if self.question.has(item) or self._counts(item)]

    def _counts(self, item: Item) -> bool:
        """Whether an item beside the question counts."""
        if self._whole.has(item):
            return self._preface.has(item) and bool(self._slots_of(self._preface)) and self._is_new(item)
        if not self._is_marked:
            return self._is_new(item)
        if item.slot in self._slots:
            return False
        if self._context and self._context.has(item):
            asked = {each.slot for each in self._items if self.question.has(each)} & (_ASKED_OF_PRODUCT | _CONDITIONS)
            if asked and "product" in self._slots_of(self._context):
                return item.slot in ("product", "version", "number")
            return not self._slots or item.slot not in _ABOUT_ANSWER
        sentence = next(each for each in self._sentences if each.has(item))
        is_known = item.slot in self._slots_of(self._context)
        return item.slot in _OF_ASIDES and not self._is_denied(sentence) and not is_known

    def _is_new(self, item: Item) -> bool:
        """Whether the question says nothing of the kind itself."""
        return not self._slots or item.slot not in self._slots | _ABOUT_ANSWER

    def _is_denied(self, sentence: Sentence) -> bool:
        return any(item.slot == "not" and sentence.has(item) for item in self._items)

    def unknown(self) -> list[int]:
        """The places of words that are nothing known, and that could say what is asked."""
        parts = [self.question] if self._is_marked or self._slots else [Sentence(0, len(self._tokens))]
        if self._slots_of(self._preface):
            parts.append(self._preface)
        if self._context and not self._slots and "product" not in self._slots_of(self._context):
            parts.append(self._context)
        places = sorted({at for part in parts for at in range(*part)} - self._within)
        return [at for at in places if not self._tokens[at].is_mark and not self._is_ignored(at)]

    def _is_ignored(self, at: int) -> bool:
        # A label is no condition: "task: …".
        return self._word(at) in IGNORED or self._word(at + 1) == ":"

    def opening(self) -> set[int]:
        """The places before what is asked for, which tell how it is asked: "Please disclose …"."""
        parts = [self.question, *([self._context] if self._context else [])]
        return {at for part in parts for at in range(part.start, self._asked_at(part))}

    def _asked_at(self, part: Sentence) -> int:
        asked = [item.start - 2 for item in self._items if item.slot in _ASKED and part.has(item)]
        questions = [at for at in range(*part) if self._word(at) in _QUESTION_WORDS]
        return min([*asked, *questions], default=part.start)
