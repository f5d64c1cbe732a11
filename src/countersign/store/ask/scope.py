"""Select the part of a text that is the question, and the part that names the subject of the question.

People write more than they ask: "Our hosts run Linux. Which free tools are there? The budget is for May." The
question determines the meaning. Another sentence is its context if the question has no condition of its own or refers
back to that sentence. In all other sentences, only products, publishers, platforms and kinds count.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

from countersign.store.ask.lexicon import IGNORED, LISTS, WordToken
from countersign.store.catalog.filter import SLOTS

_CONDITIONS = frozenset(["time", *SLOTS]) - {"version"}
"""The slots of items that restrict the results. A version alone does not identify a product."""
_REQUEST_SLOTS = frozenset(["kind", "find", "field", "answer", "order"])
"""The slots of items that state what is asked for; words before the first such item are an opening."""
SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org", "publishers": "org"}  # fmt: skip
"""The condition that each field states."""
_OF_ASIDES = frozenset(["product", "org", "platform", "kind"])
"""The slots that are used from sentences that are neither the question nor its context."""
_OF_LIMITS = (_CONDITIONS - {"time", "kind", "product"}) | {"and", "or", "not", "only"}
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each"])
"""The slots that are used only from the question itself, if the question names its subject."""
AUXILIARIES, QUESTION_WORDS, _ASKERS = LISTS["auxiliaries"], LISTS["question words"], LISTS["askers"]
"""Words that begin a yes/no question, words that begin other questions, and words for the person who asks."""
_OPENS_ASIDE = ((LISTS["before askers"], _ASKERS), (_ASKERS, LISTS["verbs of askers"]))
"""Word pairs that begin a clause about the asker."""
_OPENS_REQUEST = QUESTION_WORDS | LISTS["requests"] | AUXILIARIES
_OPENS_CLAUSE = _OPENS_REQUEST | {"i", "i'd", "i'm", "we", "we'd"}
_STATING = _CONDITIONS | _REQUEST_SLOTS | {"number", "version", "when", "step", "all"}
"""The slots of items after which the rest of a sentence can be about the asker."""
ORDERS = "stories and orders"
"""The value of items that ask for what a language model can do and a catalog cannot."""
SENTENCE_ENDS = frozenset([".", "?", "!"])
MIN_WORDS_BEFORE = 6
"""The minimum number of words before a clause that is a question by itself; after fewer words ("On Linux, which …")
the clause continues the sentence."""


@dataclass(slots=True)
class Item:
    """A recognised item: tokens `start` to `end` mean a value of a slot or class."""

    slot: str
    value: Any
    start: int
    end: int
    is_negated: bool = False
    joint: str = ""


class Sentence(NamedTuple):
    """A sentence: tokens `start` to `end`."""

    start: int
    end: int

    def has(self, item: Item) -> bool:
        """Return whether the item begins in the sentence."""
        return self.start <= item.start < self.end


_NOWHERE = Sentence(0, 0)


class Scope:
    """The sentence that asks the question, and its context: the sentence that names the subject, if the question does
    not name the subject itself."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        self._tokens, self._items, self._end = tokens, items, len(tokens)
        self._within = {*chain.from_iterable(range(item.start, item.end) for item in items)}
        self._times = [Sentence(item.start, item.end) for item in items if item.slot == "time"]
        self._slot_at = {item.start: item.slot for item in items}
        ends = [at + 1 for at in range(self._end) if self._is_end(at)]
        self._all = [Sentence(start, end) for start, end in pairwise(sorted({0, *ends, self._end}))]
        # The sentence that most resembles a question; the last one if several rank equally.
        self._whole = max(reversed(self._all), key=self._rank, default=_NOWHERE)
        self.question = self._request(self._whole)
        self._slots = self._slots_of(self.question)
        self._asked = self._slots | self._slots_of_fields()
        self._has_request = bool(self._starts(_REQUEST_SLOTS, *self.question))
        self._states_request = bool(self._slots) or self._has_request
        self._points_back = not LISTS["references"].isdisjoint(map(self._word, range(*self.question)))
        self._preface = Sentence(self._whole.start, self.question.start)
        is_context = bool(self._slots_of(self._preface) - self._slots - {"time"})
        self._context = self._preface if is_context else self._find_context()
        self._slots_of_context = self._slots_of(self._context)
        self._limiting = [*filter(self._is_limiting, (*self._all, self._preface))]

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < self._end else ""

    def _starts(self, slots: Set[str], start: int, end: int) -> list[int]:
        return [at for at in range(start, end) if self._slot_at.get(at) in slots]

    def _slots_of(self, sentence: Sentence) -> set[str]:
        """Return the slots of the conditions in the sentence."""
        return {self._slot_at[at] for at in self._starts(_CONDITIONS, *sentence)}

    def _slots_of_fields(self) -> set[str]:
        """Return the slots that the question asks for: "Keyturn is said to be MIT-licensed. Under what licence is it?".
        "It" in "Which of them run on it?" is the platform."""
        fields = [item.value for item in self._items if item.slot == "field" and self.question.has(item)]
        return {SLOT_OF_FIELD.get(name, "") for name in fields} - {"platform"}

    def _is_end(self, at: int) -> bool:
        is_mark = self._word(at) in SENTENCE_ENDS and at not in self._within
        is_before_blank = at + 1 == self._end or self._tokens[at].end < self._tokens[at + 1].start
        return is_mark and is_before_blank and self._word(at - 1) not in LISTS["short forms"]

    def _rank(self, sentence: Sentence) -> int:
        """Return the rank of the sentence. A question mark at the end ranks highest, then a question word at the start,
        then a request. A short sentence without a known word, such as "True?", is not a question by itself."""
        size, is_known = sentence.end - sentence.start, not self._slot_at.keys().isdisjoint(range(*sentence))
        if self._word(sentence.end - 1) == "?":
            return 5 * (is_known or size > 2)
        if self._word(sentence.start) in QUESTION_WORDS | AUXILIARIES:
            return 4 * is_known
        has_condition = bool(self._starts(_CONDITIONS - {"time"}, *sentence))
        # "Output the date." is about the form of the answer.
        is_request = self._word(sentence.start) not in LISTS["output words"]
        is_request &= bool(self._starts(_REQUEST_SLOTS | {"beyond"}, *sentence))
        return (1 + has_condition + is_request) * (is_known and size > 3)

    def _request(self, sentence: Sentence) -> Sentence:
        """Return the part of a sentence that asks the question. It begins after a colon or a dash, or at the last
        clause such as ", what …" that no condition precedes. It ends before ", I …"."""
        start, end = sentence
        start = max([at + 1 for at in range(start, end - 3) if self._is_pause(at)], default=start)
        first = min(self._starts(_CONDITIONS, start, end), default=end)
        start = max([at for at in range(start + 1, end) if self._opens_clause(at, start, first)], default=start)
        last = max(self._starts(_STATING, start, end), default=start)
        question = min(self._starts(_CONDITIONS | _REQUEST_SLOTS, start, end), default=end)
        return Sentence(start, min([at for at in range(question + 1, end) if self._is_aside(at, last)], default=end))

    def _is_pause(self, at: int) -> bool:
        """Return whether the token is a colon, a semicolon before a request, or a dash between recognised words."""
        word, is_before_request = self._word(at), self._word(at + 1) in _OPENS_REQUEST
        if word == "-" and min(self._within, default=at) < at:
            return is_before_request or bool(self._starts(_REQUEST_SLOTS, at, self._end))
        return at not in self._within and (word == ":" or (word == ";" and is_before_request))

    def _opens_clause(self, at: int, start: int, first: int) -> bool:
        """Return whether a clause begins that no condition precedes; `first` is the position of the first condition.
        After many words, a clause that is a question by itself ("so which games …") can follow a condition."""
        is_after_comma = self._word(at - 1) in (",", ";") and self._word(at) in _OPENS_CLAUSE
        if not (is_after_comma or self._word(at) == "whether"):
            return False
        is_late = at >= start + MIN_WORDS_BEFORE and Sentence(start, at - 1) not in self._times
        question = at + (self._word(at) in ("so", "and"))
        return at <= first or (is_late and self._word(question) in QUESTION_WORDS)

    def _is_aside(self, at: int, last: int) -> bool:
        """Return whether a clause about the asker begins: ", I have …", "because …", "or did I …", "to see who …", "so
        we can …". `last` is the position of the last condition."""
        word, following, after = self._word(at), self._word(at + 1), self._word(at + 2)
        if word in (",", ";"):
            # "…, need them for May" is about a purpose, which no condition follows.
            is_purpose = all((last < at, following in LISTS["needs"]))
            return (following in _ASKERS or is_purpose) and after not in LISTS["wishes"]
        if word == "or":
            return following in AUXILIARIES and after in LISTS["subjects"]
        if word == "to":
            return after in QUESTION_WORDS
        # "Who made Tide Runner it's so good"
        is_afterthought = all((last < at, word in ("its", "it's")))
        # "Before my visit in May" restricts the results.
        is_limit = bool(self._starts({"time", "version", "number"}, at, self._end))
        opens_aside = any(word in words and following in others for words, others in _OPENS_ASIDE)
        return any((word in LISTS["reasons"], is_afterthought, all((opens_aside, not is_limit))))

    def _is_limiting(self, part: Sentence) -> bool:
        """Return whether a part beside the question restricts the results: "Only the free ones.", "Besides the ones on
        Windows, which …"."""
        is_restricted = self._slot_at.get(part.start) in ("not", "only") and bool(self._starts(_CONDITIONS, *part))
        return is_restricted and part != self._whole and self._word(part.start) not in LISTS["denied verbs"]

    def limits(self, item: Item) -> bool:
        """Return whether the item is in a part beside the question that restricts the results."""
        return item.slot in _OF_LIMITS and any(part.has(item) for part in self._limiting)

    def _find_context(self) -> Sentence:
        """Return the nearest other sentence with a condition, if the question has no condition or refers back."""
        others = [each for each in self._all if each != self._whole and self._starts(_CONDITIONS, *each)]
        before = [each for each in others if each.end <= self._whole.start]
        if before and (self._points_back or not self._slots):
            return self._request(before[-1])
        return _NOWHERE if self._slots else next(iter(others), _NOWHERE)

    def items(self) -> list[Item]:
        """Return the items that state what is asked, without qualifiers before the first question word that do not
        affect the question: "I don't know what …"."""
        ignored = self._introduction()
        mentioned = [item for item in self._items if item.start not in ignored]
        return [item for item in mentioned if self.question.has(item) or self._counts(item)]

    def _introduction(self) -> set[int]:
        """Return the positions of qualifiers before the first question word that do not affect the question."""
        start, end = self.question
        question = min(filter(self._asks, range(start, end)), default=start)
        if self._starts(_CONDITIONS | _REQUEST_SLOTS, start, question):
            return set()
        qualifiers = [item for item in self._items if item.slot in ("not", "guard", "beyond") and item.value != ORDERS]
        return {item.start for item in qualifiers if start <= item.start and item.end <= question}

    def _asks(self, at: int) -> bool:
        """Return whether a question begins: with a question word, or as in "Good, and is it free?"."""
        is_after_pause = self._word(at - 1) in (",", "and", "so", "but")
        return self._word(at) in QUESTION_WORDS or (is_after_pause and self._word(at) in LISTS["denied verbs"])

    def _counts(self, item: Item) -> bool:
        """Return whether an item outside of the question counts."""
        if self.limits(item):
            return True
        if item.slot in self._asked or item.slot in ("beyond", "all"):
            return False
        if item.slot in _ABOUT_ANSWER:
            return self._is_open_to(item) and (self._context.has(item) or self._preface.has(item))
        return self._counts_in_context(item) if self._context.has(item) else self._counts_in_aside(item)

    def _is_open_to(self, item: Item) -> bool:
        """Return whether the question states nothing of this kind itself, as in "The newest version of each: Keyturn;
        Inkwell" and "First release of Keyturn: version and date?"."""
        if item.value == "first" and "product" in self._slots_of_context:
            return not self._starts({"answer", "order", "time", "when"}, *self.question)
        return not (self._has_request or self._slots - {"product"})

    def _counts_in_aside(self, item: Item) -> bool:
        if item.slot in self._slots_of_context or (item.slot == "product" and "kind" in self._slots):
            return False
        is_marked = self._word(self._whole.end - 1) == "?"
        is_statement = item.end <= self.question.start or not (is_marked or self._whole.has(item))
        return item.slot in _OF_ASIDES or (item.slot == "access" and is_statement)

    def _counts_in_context(self, item: Item) -> bool:
        is_of_product = "product" in self._slots_of_context
        if item.slot in ("tag", "text"):
            # In "Finance asks: is Keyturn free?", "finance" describes the asker.
            return not self._states_request or bool(self._starts({"kind", "find"}, *self._context))
        if item.slot == "time":
            # "Is that correct?" states nothing else.
            is_checked = not (self._slots or self._starts(_REQUEST_SLOTS - {"answer"}, *self.question))
            return is_checked or (self._context == self._preface and not is_of_product)
        is_newest = self._starts({"order"}, *self.question) and self._word(self.question.start) not in AUXILIARIES
        return item.slot not in ("number", "version") or (is_of_product and not is_newest)

    def unknown(self) -> list[int]:
        """Return the positions of unrecognised words that could state what is asked. In "Inkwell vs Typecas, what is
        the difference?", the context names what is compared. A label such as "task:" is not a condition."""
        is_description = all((self._points_back, not self._slots))
        is_open = any((self._context == self._preface, not self._states_request, is_description))
        is_compared = bool(self._starts({"answer"}, *self._context))
        has_open_context = any((is_compared, all((is_open, "product" not in self._slots_of_context))))
        parts = [self.question, self._context, self._preface] if has_open_context else [self.question]
        positions = {at for part in parts for at in range(*part)} - self._within
        stating = [at for at in sorted(positions) if not self._tokens[at].is_mark and self._word(at + 1) != ":"]
        return [at for at in stating if self._word(at) not in IGNORED]

    def opening(self) -> set[int]:
        """Return the positions of the words before the first word that states what is asked for, such as "Please
        disclose …"."""
        positions: set[int] = set()
        for part in (self.question, self._context):
            # The words of a yes/no question are no opening: "Was the crash at start fixed?"
            if self._word(part.start) not in LISTS["denied verbs"]:
                requests = [at - 2 for at in self._starts(_REQUEST_SLOTS, *part)]
                requests += [at for at in range(*part) if self._word(at) in QUESTION_WORDS]
                positions |= {*range(part.start, min(requests, default=part.start))}
        return positions
