"""Select the part of a text that is the question, and the words beside the question that count.

People write more than they ask: "Our hosts run Linux. Which free tools are there? The budget is for May." The question
determines the meaning. Its context is the part of the sentence before it, and the sentence before it if the question
has no condition of its own or refers back. The conditions of the context count if the question has no such condition.
From all other parts, only products, publishers, platforms and kinds count.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from countersign.store.ask.lexicon import IGNORED, LISTS, WordToken
from countersign.store.catalog.filter import SLOTS

_CONDITIONS = frozenset(["time", *SLOTS]) - {"version"}
"""The slots of items that restrict the results. A version alone does not identify a product."""
_REQUEST_SLOTS = frozenset(["kind", "find", "field", "answer", "order"])
"""The slots of items that state what is asked for."""
SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org", "publishers": "org"}  # fmt: skip
"""The condition that each field states."""
_OF_ASIDES = frozenset(["product", "org", "platform", "kind"])
"""The slots that are used from sentences that are neither the question nor its context."""
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each", "skip"])
"""The slots that are used only from the question itself, if the question names its subject."""
AUXILIARIES, QUESTION_WORDS, _ASKERS = LISTS["auxiliaries"], LISTS["question words"], LISTS["askers"]
"""Words that begin a yes/no question, words that begin other questions, and words for the person who asks."""
_OPENS_REQUEST = QUESTION_WORDS | LISTS["requests"] | AUXILIARIES
_STATING = _CONDITIONS | _REQUEST_SLOTS | {"number", "version", "when", "all"}
"""The slots of items after which the rest of a sentence can be about the asker."""
SENTENCE_ENDS = frozenset([".", "?", "!"])


@dataclass(slots=True)
class Item:
    """A recognised item: tokens `start` to `end` mean a value of a slot or class."""

    slot: str
    value: Any
    start: int
    end: int
    is_negated: bool = False
    joint: str = ""


class Scope:
    """The part of a text that asks the question, and its context."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        self._tokens, self._items, self._end = tokens, items, len(tokens)
        self._within = {*chain.from_iterable(range(item.start, item.end) for item in items)}
        self._slot_at = {item.start: item.slot for item in items}
        self._all = [*self._sentences()]
        # The sentence that most resembles a question; the last one if several rank equally.
        self._whole = max(reversed(self._all), key=self._rank, default=range(0))
        self.question = self._request(self._whole)
        self._preface = range(self._whole.start, self.question.start)
        self._slots = self._slots_of(self.question)
        # "Keyturn is said to be MIT-licensed. Under what licence is it?"
        fields = [item.value for item in items if item.slot == "field" and item.start in self.question]
        self._asked = self._slots | {SLOT_OF_FIELD.get(name, "") for name in fields} - {"platform"}
        self.begin = self._whole.start
        self._has_request = bool(self._starts(_REQUEST_SLOTS, self.question))
        self._context = self._find_context()

    def _sentences(self) -> Iterator[range]:
        bounds = [0, *(at + 1 for at in range(self._end - 1) if self._is_end(at)), self._end]
        # "Only the free ones." restricts the results, and is a part of the sentence beside it.
        joined = {max(start, bounds[1]) for start, end in pairwise(bounds) if self._is_limit(start, end)} - {self._end}
        return (range(start, end) for start, end in pairwise(sorted({*bounds} - joined)))

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < self._end else ""

    def _starts(self, slots: Set[str], part: range) -> list[int]:
        return [at for at in part if self._slot_at.get(at) in slots]

    def _slots_of(self, sentence: range) -> set[str]:
        """Return the slots of the conditions in the sentence."""
        return {self._slot_at[at] for at in self._starts(_CONDITIONS, sentence)}

    def _is_end(self, at: int) -> bool:
        is_mark = self._word(at) in SENTENCE_ENDS and at not in self._within
        return is_mark and self._word(at - 1) not in LISTS["short forms"]

    def _is_limit(self, start: int, end: int) -> bool:
        """Return whether a part restricts the results: "Only the free ones.", "Besides the ones on Windows,
        which …"."""
        word, has_condition = self._word(start), bool(self._starts(_CONDITIONS, range(start, end)))
        is_restriction = self._slot_at.get(start) in ("not", "only") and self._word(start + 1) != ","
        return is_restriction and has_condition and word not in AUXILIARIES | {"just"}

    def _rank(self, sentence: range) -> int:
        """Return the rank of the sentence. A question mark at the end ranks highest, then a question word at the start,
        then a request. A short sentence without a known word, such as "True?", is not a question by itself."""
        size, is_known = sentence.stop - sentence.start, not self._slot_at.keys().isdisjoint(sentence)
        if self._word(sentence.stop - 1) == "?":
            return 5 * (is_known or size > 2)
        if self._word(sentence.start) in QUESTION_WORDS | AUXILIARIES:
            return 4 * is_known
        has_condition = bool(self._starts(_CONDITIONS - {"time"}, sentence))
        is_request = bool(self._starts(_REQUEST_SLOTS | {"beyond"}, sentence))
        return (1 + has_condition + is_request) * (is_known and size > 3)

    def _request(self, sentence: range) -> range:
        """Return the part of a sentence that asks the question. It begins after a colon or a dash, or at the clause
        such as ", what …" that no condition precedes. It ends before a clause about the asker."""
        start, end = sentence.start, sentence.stop
        start = max(filter(self._is_pause, range(start, end - 3)), default=start - 1) + 1
        condition = min(self._starts(_CONDITIONS, range(start, end)), default=end)
        start = max(filter(self._opens_clause, range(start + 1, min(condition + 1, end))), default=start)
        stated = min(self._starts(_CONDITIONS | _REQUEST_SLOTS, range(start, end)), default=end)
        start = next(filter(self._asks, range(start, min(stated + 1, end))), start)
        last = max(self._starts(_STATING, range(start, end)), default=start)
        return range(start, next((at for at in range(stated + 1, end) if self._is_aside(at, is_stated=at > last)), end))

    def _asks(self, at: int) -> bool:
        """Return whether the word is a question word, and not a later word of an item such as "since when"."""
        return self._word(at) in QUESTION_WORDS and (at in self._slot_at or at not in self._within)

    def _is_pause(self, at: int) -> bool:
        """Return whether the token is a colon, a semicolon before a request, or a dash between recognised words."""
        word, is_before_request = self._word(at), self._word(at + 1) in _OPENS_REQUEST
        if word == "-" and min(self._within, default=at) < at:
            return is_before_request or bool(self._starts(_REQUEST_SLOTS, range(at, self._end)))
        return at not in self._within and (word == ":" or (word == ";" and is_before_request))

    def _opens_clause(self, at: int) -> bool:
        """Return whether a clause such as ", is it …" begins. In "Which licence, precisely, is …", it does not."""
        first = {self._word(self._whole.start), self._word(self._whole.start + 1)} - {"how"}
        openings = _OPENS_REQUEST if first.isdisjoint(QUESTION_WORDS) else _OPENS_REQUEST - AUXILIARIES
        is_after_pause = self._word(at - 1) in (",", ";", "and", "so", "but")
        return self._word(at) == "whether" or (is_after_pause and self._word(at) in openings)

    def _is_aside(self, at: int, *, is_stated: bool) -> bool:
        """Return whether a clause about the asker begins: ", I have …", "because …", "or did I …", "to see who …", "so
        we can …". `is_stated` is true after the last item that states what is asked: "…, I want only free ones" and
        "before my visit in May" restrict the results."""
        word, following, after = self._word(at), self._word(at + 1), self._word(at + 2)
        if word in (",", ";"):
            is_of_asker = following in _ASKERS and after not in LISTS["wishes"]
            return is_of_asker or (is_stated and following in LISTS["needs"])
        if word == "or":
            return following in LISTS["present tense"] | {"did", "have"}
        return word in LISTS["reasons"] or (word == "to" and after in QUESTION_WORDS)

    def _find_context(self) -> range:
        """Return the part of the sentence before the question, or the sentence that names what the question is
        about."""
        if self._slots_of(self._preface) - self._slots - {"time"}:
            return self._preface
        others = [each for each in self._all if each != self._whole and self._starts(_CONDITIONS, each)]
        before = [each for each in others if each.stop <= self._whole.start]
        points_back = not LISTS["references"].isdisjoint(map(self._word, self.question))
        if all((before, any((points_back, not self._slots)))):
            return self._request(before[-1])
        return range(0) if self._slots else next(iter(others), range(0))

    def items(self) -> list[Item]:
        """Return the items that state what is asked."""
        return [item for item in self._items if item.start in self.question or self._counts(item)]

    def beside(self) -> list[Item]:
        """Return the items that state conditions beside the question, and do not count."""
        counted = {item.start for item in self.items()}
        return [item for item in self._items if all((item.slot in _CONDITIONS, item.start not in counted))]

    def _counts(self, item: Item) -> bool:
        """Return whether an item outside of the question counts."""
        if item.slot in self._asked | {"beyond", "all"}:
            return False
        if item.slot in _ABOUT_ANSWER:
            is_near = any((item.start in self._context, item.start in self._preface))
            return is_near and not any((self._has_request, self._slots - {"product"}))
        return self._counts_in_context(item) if item.start in self._context else self._counts_in_aside(item)

    def _counts_in_context(self, item: Item) -> bool:
        if item.slot in ("tag", "text"):
            # In "Finance asks: is Keyturn free?", "finance" describes the asker.
            has_noun = self._starts({"kind", "find"}, self._context)
            return bool(has_noun) or not any((self._slots, self._has_request))
        # "Is that correct?" states nothing else.
        is_checked = not any((self._slots, self._starts(_REQUEST_SLOTS - {"answer"}, self.question)))
        return any((item.slot != "time", is_checked, self._context == self._preface))

    def _counts_in_aside(self, item: Item) -> bool:
        if item.slot == "product" and "kind" in self._slots:
            return False
        is_marked = self._word(self._whole.stop - 1) == "?"
        is_statement = item.end <= self.question.start or not (is_marked or item.start in self._whole)
        return item.slot in _OF_ASIDES or (item.slot == "access" and is_statement)

    def unknown(self) -> list[int]:
        """Return the positions of unrecognised words that could state what is asked. A label such as "task:" does not
        state anything."""
        is_described = not (self._slots or "product" in self._slots_of(self._context))
        parts = [self.question, self._context] if is_described else [self.question]
        positions = {at for part in parts for at in part} - self._within
        stating = [at for at in sorted(positions) if not self._tokens[at].is_mark and self._word(at + 1) != ":"]
        return [at for at in stating if self._word(at) not in IGNORED]

    def opening(self) -> range:
        """Return the positions of the words before the first word that states what is asked for, such as "Please
        disclose …". A yes/no question has no opening: "Was the crash at start fixed?"."""
        is_yes_no = self._word(self.question.start) in AUXILIARIES
        stated = 0 if is_yes_no else min(self._starts(_REQUEST_SLOTS, self.question), default=0) - 2
        return range(self.question.start, stated)
