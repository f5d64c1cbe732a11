"""Select the part of a text that is the question, and the part that names the subject of the question.

People write more than they ask: "Our hosts run Linux. Which free tools are there? The budget is for May." The
question determines the meaning. Another sentence is its context if the question has no condition of its own or refers
back to that sentence. In all other sentences, only products, publishers, platforms and kinds count.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from countersign.store.ask.lexicon import IGNORED, WordToken
from countersign.store.catalog.filter import SLOTS

_CONDITIONS = frozenset(["time", *SLOTS]) - {"version"}
"""The slots of items that restrict the results. A version alone does not identify a product."""
_ASKED = frozenset(["kind", "find", "field", "answer", "order"])
"""The slots of items that state what is asked for; words before the first such item are an opening."""
_TELLING = (_CONDITIONS | _ASKED | {"beyond"}) - {"time"}
_ASKED_OF_PRODUCT = frozenset(["find", "field", "order", "all"])
"""The slots that a question can ask of a product named in another sentence, as in "What was in it?"."""
AUXILIARIES = frozenset(
    str.split(
        "is are was were does do did has have had can could any will would am"
        " isn't aren't doesn't don't didn't hasn't haven't wasn't can't"
    )
)
"""Words that begin a yes/no question."""
_OF_PRODUCT = frozenset(["product", "version", "number", "and", "or"])
"""The slots that a question can also take from the other sentence that names the product."""
_QUESTION_WORDS = frozenset(str.split("which what who whose when where how why whether what's who's how's"))
_REQUESTS = frozenset(
    str.split("show list give find tell name so please just kindly enumerate identify state specify compare count")
)
_ASKERS = frozenset(str.split("i i'm im i've ive i'd id we we're we've my our he she mom mum dad"))
_REASONS = frozenset(str.split("because cause becuase cos coz cuz thanks thx feels otherwise"))
_BEFORE_ASKERS = frozenset(str.split("so since before as while if until till but though"))
_SAYING = frozenset(str.split("said says told wants bet guess think hope swear promise heard forgot"))
_CONTRASTS = frozenset(str.split("but though although however"))
_OPENS_ASIDE = ((_BEFORE_ASKERS, _ASKERS), (_ASKERS, _SAYING))
"""Word pairs that begin a clause about the asker. Such a clause also begins with a reason, or with the asker after a
comma."""
_SUBJECTS = frozenset(
    str.split("i we you they he she it there that this all any everything everyone nobody a an the my our")
)
"""Words that follow "or did" in a second question; "or are on Linux" continues the first question."""
_LIMITS = frozenset(["time", "number", "version"])
_OBLIGATIONS = frozenset(str.split("must should have has need needs mustn't shouldn't"))
_DENIED_VERBS = (AUXILIARIES | {each.replace("'", "") for each in AUXILIARIES}) - {"don't", "dont"}
_WISHES = frozenset(str.split("want need like prefer hate"))
_OPENS_REQUEST = _QUESTION_WORDS | _REQUESTS | AUXILIARIES
_OPENS_CLAUSE = _OPENS_REQUEST | {"i", "i'd", "i'm", "we", "we'd"}
_BACKWARD = frozenset(str.split("one ones those them these it its they their such fit fits qualify match"))
"""Words by which a question refers to the sentence before it."""
ORDERS = "stories and orders"
"""The value of items that ask for what a language model can do and a catalog cannot."""
SENTENCE_ENDS = frozenset([".", "?", "!"])
MIN_WORDS_BEFORE = 6
"""The minimum number of words before a clause that is a question by itself; after fewer words ("On Linux, which …")
the clause continues the sentence."""
MAX_WORDS_OF_LIMIT = 12
"""The maximum number of words of a part that begins with a negation or "only" and restricts the question beside it."""
_SHORT_FORMS = frozenset(["i.e", "e.g", "etc"])
_OF_ASIDES = frozenset(["product", "org", "platform", "kind"])
"""The slots that are used from sentences that are neither the question nor its context."""
_OF_UNMARKED = (_CONDITIONS - {"time", "tag", "text"}) | {"and", "or", "not", "only"}
_OF_LIMITS = (_CONDITIONS - {"time", "kind", "product"}) | {"and", "or", "not", "only"}
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each", "beyond"])
"""The slots that are used only from the question itself, if the question names its subject."""


@dataclass(slots=True)
class Item:
    """A recognised item: tokens `start` to `end` mean a value of a slot or class. `is_pair` is true if the item was
    written as key=value."""

    slot: str
    value: Any
    start: int
    end: int
    is_negated: bool = False
    joint: str = ""
    is_pair: bool = False


class Sentence(NamedTuple):
    """A sentence: tokens `start` to `end`."""

    start: int
    end: int

    def has(self, item: Item) -> bool:
        """Whether the item begins in the sentence."""
        return self.start <= item.start < self.end


_NOWHERE = Sentence(0, 0)


class _Text:
    """A text, divided into sentences."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        self._tokens, self._items = tokens, items
        self._within = {index for item in items for index in range(item.start, item.end)}
        self._slot_at = {item.start: item.slot for item in items}
        self._first_known = min(self._within, default=len(tokens))

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def _has_blank_before(self, at: int) -> bool:
        return at >= len(self._tokens) or self._tokens[at - 1].end < self._tokens[at].start

    def _sentences(self) -> list[Sentence]:
        """Split the text after each mark that ends a sentence and is followed by a blank."""
        ends = [at + 1 for at in range(len(self._tokens)) if self._is_end(at)]
        return [Sentence(start, end) for start, end in pairwise(sorted({0, *ends, len(self._tokens)}))]

    def _is_end(self, at: int) -> bool:
        is_mark = self._word(at) in SENTENCE_ENDS and self._word(at - 1) not in _SHORT_FORMS
        return is_mark and at not in self._within and self._has_blank_before(at + 1)

    def _is_pause(self, at: int) -> bool:
        """Whether the token is a colon, a semicolon before a request, or a dash between blanks with recognised words
        on both sides."""
        if at in self._within or not self._has_blank_before(at + 1):
            return False
        if self._word(at) == "-":
            is_between = self._has_blank_before(at) and self._first_known < at
            return is_between and (self._opens_request(at + 1) or bool(self._starts(_ASKED, at, len(self._tokens))))
        return self._word(at) == ":" or (self._word(at) == ";" and self._opens_request(at + 1))

    def _opens_request(self, at: int) -> bool:
        return self._word(at) in _OPENS_REQUEST

    def _slots_of(self, sentence: Sentence) -> set[str]:
        """The slots of the conditions in the sentence."""
        return {self._slot_at[at] for at in self._starts(_CONDITIONS, *sentence)}

    def _request(self, sentence: Sentence) -> Sentence:
        """The part of a sentence that asks the question. It begins after a colon or a dash, or at ", what …" if no
        condition precedes this clause. It ends before ", I …"."""
        start, end = sentence
        start = self._begin(max([at + 1 for at in range(start, end - 3) if self._is_pause(at)], default=start), end)
        last = max(self._starts(_CONDITIONS, start, end), default=start)
        question = min([at for at in range(start, end) if self._slot_at.get(at) in _CONDITIONS | _ASKED], default=end)
        return Sentence(start, min([at for at in range(question + 1, end) if self._is_aside(at, last)], default=end))

    def _begin(self, start: int, end: int) -> int:
        """The start of the last clause that no condition precedes. After many words, a time does not count as a
        condition."""
        conditions = [*self._starts(_CONDITIONS, start, end), end]
        dated = min(at for at in conditions if at in (start, end) or self._slot_at[at] != "time")
        opens = [at for at in range(start + 1, end) if self._opens_clause(at)]
        late = start + MIN_WORDS_BEFORE
        begins = [at for at in opens if at <= conditions[0] or (at >= late and self._is_late(at, dated))]
        return max(begins, default=start)

    def _is_late(self, at: int, dated: int) -> bool:
        """Whether a clause after many words is the question: it is a question by itself, or only a time precedes
        it."""
        return self._is_question(at) or (at <= dated and self._tells_soon(at))

    def _tells_soon(self, at: int) -> bool:
        return not self._slot_at.keys().isdisjoint(range(at, at + MIN_WORDS_BEFORE))

    def _opens_clause(self, at: int) -> bool:
        is_after_comma = self._word(at - 1) in (",", ";")
        return (is_after_comma and self._word(at) in _OPENS_CLAUSE) or self._word(at) == "whether"

    def _is_question(self, at: int) -> bool:
        """Whether a clause is a question by itself, whatever precedes it: "so which games …", "what's new …"."""
        at += self._word(at) in ("so", "and")
        is_relative = self._word(at) in ("which", "who", "whose", "where")
        return self._word(at) in _QUESTION_WORDS and (not is_relative or bool(self._starts(_ASKED, at + 1, at + 2)))

    def _is_aside(self, at: int, last: int) -> bool:
        """Whether a clause about the asker begins: ", I have …", "because …", "so we can …". `last` is the position
        of the last condition."""
        word = self._word(at)
        if word in (",", ";"):
            is_to_reader = last < at and self._word(at + 2) == "you"
            return (is_to_reader or self._word(at + 1) in _ASKERS | _REASONS) and not self._is_wish(at + 1)
        if word in _CONTRASTS:
            is_denial = self._word(at + 1) in AUXILIARIES or bool(self._starts({"not", "only"}, at, at + 3))
            return last < at and not is_denial
        return word in _REASONS or self._is_reason(at, word)

    def _is_reason(self, at: int, word: str) -> bool:
        """Whether a clause about the asker begins without a comma: "or did I …", "to see who …", "so we can …"."""
        following, after = self._word(at + 1), self._word(at + 2)
        if word == "or":
            return following in AUXILIARIES and after in _SUBJECTS
        if word == "to":
            return at + 1 not in self._slot_at and after in _QUESTION_WORDS
        return any(word in words and following in others for words, others in _OPENS_ASIDE) and not self._limits(at)

    def _is_wish(self, at: int) -> bool:
        """Whether a clause states what the asker wants to find, as in "I want only the free ones"."""
        verbs = {self._word(at + 1), self._word(at + 2)}
        is_of_asker = self._word(at) in ("i", "we", "i'd", "we'd") and not _WISHES.isdisjoint(verbs)
        return is_of_asker and bool(self._starts(_CONDITIONS - {"time", "kind"}, at, self._end_of_clause(at)))

    def _limits(self, at: int) -> bool:
        """Whether a clause about the asker restricts the results: "before my visit in May", "since I installed
        2.8.0", "if I do not pay"."""
        limits = _CONDITIONS | _LIMITS if self._word(at) == "if" else _LIMITS
        return self._word(at) != "so" and bool(self._starts(limits, at, self._end_of_clause(at)))

    def _end_of_clause(self, at: int) -> int:
        return next((end for end in range(at, len(self._tokens)) if self._tokens[end].is_mark), len(self._tokens))

    def _starts(self, slots: Set[str], start: int, end: int) -> list[int]:
        return [at for at in range(start, end) if self._slot_at.get(at) in slots]


class Scope(_Text):
    """The sentence that asks the question, and its context: the sentence that names the subject, if the question does
    not name the subject itself."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        super().__init__(tokens, items)
        self._all = self._sentences()
        has_pairs = True in [item.is_pair for item in items]
        self._whole = Sentence(0, len(tokens)) if has_pairs else self._asking()
        self.question = self._whole if has_pairs else self._request(self._whole)
        self._slots = self._slots_of(self.question)
        before = self._word(self.question.start - 1)
        self._is_marked = self._is_request(before) or self._word(self._whole.end - 1) == "?"
        self._preface = _NOWHERE if before == ";" else Sentence(self._whole.start, self.question.start)
        is_context = bool(self._slots_of(self._preface) - self._slots - {"time"})
        self._context = self._preface if is_context else self._find_context()
        self._slots_of_context = self._slots_of(self._context)
        self._limiting = self._limiting_parts()
        is_newest = self._starts({"order"}, *self.question) and self._word(self.question.start) not in AUXILIARIES
        self._has_versions = not is_newest and "product" in self._slots_of_context
        self._asks_of_product = bool(self._starts(_ASKED_OF_PRODUCT | _CONDITIONS, *self.question))

    def _is_request(self, before: str) -> bool:
        return before == ";" or (before in (":", "-") and bool(self._starts(_ASKED, *self.question)))

    def _limiting_parts(self) -> list[Sentence]:
        return [each for each in (*self._all, self._preface) if self._is_limiting(each)]

    def _is_limiting(self, part: Sentence) -> bool:
        """Whether a part beside the question restricts the results: "Only the free ones.", "They
        must be free.", "Besides the ones on Windows, which …"."""
        if part == self._whole or not self._starts(_CONDITIONS - {"time", "kind"}, *part):
            return False
        begin, after = part.start, self._whole.end <= part.start
        # "Haven't touched it in ages." is about the asker.
        if self._word(begin) in _DENIED_VERBS:
            return False
        is_of_found = after and self._word(begin) in ("they", "it", "these", "those")
        is_of_found &= not _OBLIGATIONS.isdisjoint([self._word(begin + 1), self._word(begin + 2)])
        is_short = part.end - begin <= MAX_WORDS_OF_LIMIT and bool(self._starts({"not", "only"}, begin, begin + 1))
        return is_of_found or is_short

    def limits(self, item: Item) -> bool:
        """Whether the item is in a part beside the question that restricts the results."""
        return item.slot in _OF_LIMITS and True in [part.has(item) for part in self._limiting]

    def _asking(self) -> Sentence:
        """The sentence that most resembles a question; the last one if several rank equally."""
        return max(enumerate(self._all), key=lambda each: (self._rank(each[1]), each[0]), default=(0, _NOWHERE))[1]

    def _rank(self, sentence: Sentence) -> int:
        """The rank of the sentence. A question mark at the end ranks highest, then a question word at the start, then a
        request. A short sentence without a known word, such as "True?", is not a question by itself."""
        size, is_known = sentence.end - sentence.start, not self._slot_at.keys().isdisjoint(range(*sentence))
        if self._word(sentence.end - 1) == "?":
            return 4 * (is_known or size > 2)
        if self._word(sentence.start) in _QUESTION_WORDS | AUXILIARIES:
            return 3 * is_known
        return (1 + bool(self._starts(_TELLING, *sentence))) * (is_known and size > 3)

    def _find_context(self) -> Sentence:
        """The nearest other sentence with a condition, if the question has no condition or refers back."""
        others = [each for each in self._all if each != self._whole and self._starts(_CONDITIONS, *each)]
        before = [each for each in others if each.end <= self._whole.start]
        if not self._slots:
            return self._request(before[-1]) if before else next(iter(others), _NOWHERE)
        return self._request(before[-1]) if before and self._points_back() else _NOWHERE

    def _points_back(self) -> bool:
        return not _BACKWARD.isdisjoint([self._word(at) for at in range(*self.question)])

    def _remarks(self) -> set[int]:
        """The positions of tokens in brackets that contain no question: "(don't tell my boss)"."""
        question = {*self._starts(_CONDITIONS | _ASKED | {"only", "guard"}, 0, len(self._tokens))}
        question |= {at for at in self._starts({"when"}, 0, len(self._tokens)) if self._starts({"not"}, at - 2, at)}
        found: set[int] = set()
        start = len(self._tokens)
        for at in range(len(self._tokens)):
            if at in self._within or self._word(at) not in ("(", ")"):
                continue
            if self._word(at) == ")" and question.isdisjoint(range(start, at)):
                found |= {*range(start, at)}
            start = at if self._word(at) == "(" else len(self._tokens)
        return found

    def items(self) -> list[Item]:
        """The items that state what is asked."""
        remarks = self._remarks()
        ignored = remarks | self._introduction()
        denied = self._denied(remarks)
        mentioned = [item for item in self._items if item.start not in ignored]
        return [item for item in mentioned if self.question.has(item) or self._counts(item, denied)]

    def _denied(self, remarks: Set[int]) -> set[int]:
        """The positions of tokens in sentences that contain a negation."""
        denials = {item.start for item in self._items if item.slot == "not"} - remarks
        return {at for each in self._all if not denials.isdisjoint(range(*each)) for at in range(*each)}

    def _counts(self, item: Item, denied: Set[int]) -> bool:
        """Whether an item outside of the question counts."""
        if self.limits(item):
            return True
        if item.slot in self._slots:
            return False
        if self._context.has(item):
            return self._counts_in_context(item)
        if not self._is_marked:
            return not self._whole.has(item) and (not self._slots or item.slot in _OF_UNMARKED)
        is_of_asides = item.slot in _OF_ASIDES - self._slots_of_context
        is_of_asides &= item.slot != "product" or "kind" not in self._slots
        return is_of_asides and item.start not in denied

    def _counts_in_context(self, item: Item) -> bool:
        if item.slot in ("number", "version") and not self._has_versions:
            return False
        if self._asks_of_product and "product" in self._slots_of_context:
            is_of_preface = self._context == self._preface and item.slot in _CONDITIONS - {"time"}
            return is_of_preface or item.slot in _OF_PRODUCT or item.value == "org"
        if self._slots:
            return item.slot not in _ABOUT_ANSWER
        return item.slot not in ("tag", "text") or not self._is_label()

    def _is_label(self) -> bool:
        """Whether the context precedes a question that is complete without it, and does not name a kind or class of
        result."""
        is_whole = self._context == self._preface and self._tells()
        return is_whole and not self._starts({"kind", "find"}, *self._context)

    def unknown(self) -> list[int]:
        """The positions of unrecognised words that could state what is asked."""
        positions = {at for part in self._parts() for at in range(*part)} - self._within - self._remarks()
        return [at for at in sorted(positions) if not self._is_ignored(at)]

    def _parts(self) -> list[Sentence]:
        tells = self._tells()
        if not (self._is_marked or tells):
            return [Sentence(0, len(self._tokens))]
        is_preface = self._context == self._preface and bool(self._slots)
        is_of_product = "product" in self._slots_of_context
        is_open = not is_of_product and (is_preface or not tells)
        return [self.question, self._context, self._preface] if is_open else [self.question]

    def _tells(self) -> bool:
        return bool(self._slots or self._starts(_ASKED, *self.question))

    def _is_ignored(self, at: int) -> bool:
        # A label such as "task:" is not a condition.
        return self._tokens[at].is_mark or self._word(at) in IGNORED or self._word(at + 1) == ":"

    def _introduction(self) -> set[int]:
        """The positions of qualifiers before the first question word that do not affect the question: "I don't know
        what …"."""
        start, end = self.question
        question = min([at for at in range(start, end) if self._word(at) in _QUESTION_WORDS], default=start)
        mentioned = self._starts(_CONDITIONS | _ASKED, start, question)
        qualifiers = (item for item in self._items if item.slot in ("not", "guard", "beyond") and item.value != ORDERS)
        return {item.start for item in qualifiers if not mentioned and start <= item.start < question}

    def opening(self) -> set[int]:
        """The positions of the words before the first word that states what is asked for, such as "Please disclose
        …"."""
        return {at for part in (self.question, self._context) for at in range(part.start, self._asked_at(part))}

    def _asked_at(self, part: Sentence) -> int:
        question = [item.start - 2 for item in self._items if item.slot in _ASKED and part.has(item)]
        questions = [at for at in range(*part) if self._word(at) in _QUESTION_WORDS]
        return min([*question, *questions], default=part.start)
