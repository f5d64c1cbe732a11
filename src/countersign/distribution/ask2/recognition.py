"""What the words of a question are: names of the catalog, times, phrases of the lexicon, words of the catalog's texts.

Each word is taken for the longest of what it may begin. A word that is none of these is looked for with a typing error
in it; what is still unknown is kept, since an answer has to say what it does not use.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from rapidfuzz import fuzz, process

from countersign.distribution.ask2 import dates, names
from countersign.distribution.ask2.filter import SLOTS
from countersign.distribution.ask2.lexicon import BEYOND, IGNORED, MAX_PHRASE, WORDS, Meaning, Token
from countersign.distribution.ask2.names import Name
from countersign.distribution.ask2.statements import forms
from countersign.distribution.catalog.words import words as terms_of
from countersign.kernel.database.port import Database

MAX_UNKNOWN = 12
"""Words of a question that are looked up when nothing else is known of them."""
MIN_LIKENESS, MIN_LIKENESS_OF_SHORT = 85, 75
SENTENCE_ENDS = frozenset([".", ";", "?", "!"])
_SINGLE_WORDS = [phrase[0] for phrase in WORDS if len(phrase) == 1 and len(phrase[0]) > 3]
_ALL_WORDS = frozenset(word for phrase in (*WORDS, *BEYOND) for word in phrase) | IGNORED
_BEFORE_TOPICS = frozenset(
    "about with featuring involving mention mentions mentioning containing contain contains on for of word to".split()
)
_PRIORITY = {"product": 4, "org": 3, "time": 2, "license": 2, "word": 1, "tag": 0, "quoted": 0, "beyond": -1, "number": -2}
"""What a run of words is, where it could be several things: the higher."""
_AMBIGUOUS_TIMES = frozenset(["may", "mar", "sun", "sat"])


@dataclass(slots=True)
class Item:
    """Something that was recognised: tokens `start` to `end` mean a value of a slot or class."""

    slot: str
    value: Any
    start: int
    end: int
    is_negated: bool = False
    joint: str = ""


class Corrected(NamedTuple):
    """A name that was read as another: as written, as read, and the other titles that fit too."""

    written: str
    title: str
    others: tuple[str, ...]


@dataclass(slots=True)
class Recognition:
    """The items from left to right; the words that are none, the name of nothing in the catalog, corrected names."""

    items: list[Item]
    unused: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])


class Sentence(NamedTuple):
    """Tokens `start` to `end`."""

    start: int
    end: int

    def has(self, item: Item) -> bool:
        """Whether the item begins in it."""
        return self.start <= item.start < self.end


async def recognize(database: Database, question: str, tokens: Sequence[Token], now: datetime) -> Recognition:
    """What the tokens of the question are."""
    exact = await names.exact(database, names.spans(question, tokens))
    recognition = Recognition(_known(question, tokens, exact, now))
    unknown = _unknown(tokens, recognition.items)
    await _Unknown(database, question, tokens, recognition).look_up(unknown)
    recognition.items.sort(key=lambda item: item.start)
    return recognition


def _known(question: str, tokens: Sequence[Token], exact: Sequence[Name], now: datetime) -> list[Item]:
    by_start: dict[int, list[Name]] = {}
    for name in exact:
        by_start.setdefault(name.start, []).append(name)
    words = [token.word for token in tokens]
    items: list[Item] = []
    at = 0
    while at < len(tokens):
        follows_tags = bool(items) and (items[-1].slot, items[-1].value, items[-1].end) == ("field", "tags", at)
        candidates = [
            *_named(question, tokens, words, by_start.get(at, ()), follows_tags=follows_tags),
            *_of_lexicon(question, tokens, words, at),
            *_time(words, at, now),
        ]
        if candidates:
            items.append(max(candidates, key=lambda candidate: (candidate[1].end, candidate[0]))[1])
        at = items[-1].end if candidates else at + 1
    return items


Candidate = tuple[int, Item]


def _named(
    question: str, tokens: Sequence[Token], words: Sequence[str], named: Iterable[Name], *, follows_tags: bool
) -> Iterable[Candidate]:
    for name in named:
        priority = _PRIORITY[name.slot]
        following = WORDS.get(tuple(words[name.end : name.end + 1]))
        if name.slot == "tag" and (follows_tags or (following is not None and following.slot == "kind")):
            priority = 5
        is_one_word = name.slot == "product" and name.end == name.start + 1
        is_capital = name.start > 0 and question[tokens[name.start].start].isupper()
        if is_one_word and words[name.start] in _ALL_WORDS and not is_capital:
            # A title that is an ordinary word: meant as the word.
            priority = -1
        yield priority, Item(name.slot, name.value, name.start, name.end)


def _of_lexicon(question: str, tokens: Sequence[Token], words: Sequence[str], at: int) -> Iterable[Candidate]:
    token = tokens[at]
    if token.is_quoted:
        yield _PRIORITY["quoted"], Item("quoted", question[token.start : token.end], at, at + 1)
        return
    for size in range(min(MAX_PHRASE, len(words) - at), 0, -1):
        phrase = tuple(words[at : at + size])
        meaning = WORDS.get(phrase) or BEYOND.get(phrase)
        if meaning is not None:
            priority = _PRIORITY["beyond" if meaning.slot == "beyond" else "word"]
            yield priority, Item(meaning.slot, meaning.value, at, at + size)
            return


def _time(words: Sequence[str], at: int, now: datetime) -> Iterable[Candidate]:
    time = dates.found(words, at, now)
    if time is not None and not (time.end == at + 1 and words[at] in _AMBIGUOUS_TIMES):
        yield _PRIORITY["time"], Item("time", time.range, at, time.end)
    elif words[at].removeprefix("v")[:1].isdigit():
        yield _PRIORITY["number"], Item("number", words[at], at, at + 1)


def question_in(tokens: Sequence[Token], items: Sequence[Item]) -> Sentence:
    """The sentence that asks: the last with a question mark, or else the last that says more than thanks. What is
    around it is about the asker."""
    within = {place for item in items for place in range(item.start, item.end)}
    sentences: list[Sentence] = []
    start = 0
    for at, token in enumerate(tokens):
        is_last = at == len(tokens) - 1
        ends = token.word in SENTENCE_ENDS and at not in within and (is_last or tokens[at + 1].start > token.end)
        if ends or is_last:
            sentences.append(Sentence(start, at + 1))
            start = at + 1
    marked = [each for each in sentences if tokens[each.end - 1].word == "?"]
    long = [each for each in sentences if each.end - each.start > 3 and any(map(each.has, items))]
    start, end = (marked or long or sentences or [Sentence(0, 0)])[-1]
    colons = [
        at + 1
        for at in range(start, end - 3)
        if tokens[at].word == ":" and at not in within and tokens[at + 1].start > tokens[at].end
    ]
    return Sentence(colons[-1] if colons else start, end)


def _unknown(tokens: Sequence[Token], items: Sequence[Item]) -> list[int]:
    """The places of the question's words that are nothing known; of all words where the question has no condition."""
    used = {place for item in items for place in range(item.start, item.end)}
    sentence = question_in(tokens, items)
    if not any(sentence.has(item) and item.slot in SLOTS for item in items):
        sentence = Sentence(0, len(tokens))
    return [
        at
        for at in range(*sentence)
        if at not in used and not tokens[at].is_mark and tokens[at].word not in IGNORED
    ]


class _Unknown:
    """Looks up words that are nothing known: in titles, tags and descriptions, then with a typing error in them."""

    def __init__(
        self, database: Database, question: str, tokens: Sequence[Token], recognition: Recognition
    ) -> None:
        self._database = database
        self._question = question
        self._tokens = tokens
        self._recognition = recognition
        self._nouns = {item.start for item in recognition.items if item.slot in ("kind", "find")} or {len(tokens)}
        self._in_texts: dict[int, str] = {}

    async def look_up(self, places: Sequence[int]) -> None:
        """Add the items that these words are; keep the others as unused."""
        terms = {at: "".join(terms_of(self._tokens[at].word)) for at in places[:MAX_UNKNOWN]}
        every_form = [form for term in terms.values() if term for form in forms(term)]
        known = await names.terms_of_public(self._database, every_form)
        self._in_texts = {at: term for at, term in terms.items() if term and known & {*forms(term)}}
        for run in _runs(places[:MAX_UNKNOWN]):
            if not await self._is_mistyped_name(run):
                self._each_word(run)
        self._recognition.unused += [self._tokens[at].word for at in places[MAX_UNKNOWN:]]

    def _text(self, start: int, end: int) -> str:
        return self._question[self._tokens[start].start : self._tokens[end - 1].end]

    def _is_capital(self, at: int) -> bool:
        return at > 0 and self._question[self._tokens[at].start].isupper()

    async def _is_mistyped_name(self, run: Sequence[int]) -> bool:
        is_known = all(at in self._in_texts for at in run)
        if is_known and not any(map(self._is_capital, run)):
            return False
        first, last = run[0], run[-1] + 1
        # With the words around it, since a title may have words that mean something else too.
        for start, end in ((first - 1, last + 1), (first, last + 1), (first - 1, last), (first, last)):
            if start < 0 or end > len(self._tokens) or self._tokens[start].is_mark or self._tokens[end - 1].is_mark:
                continue
            products = await names.products_like(self._database, self._text(start, end), is_known=is_known)
            if products:
                self._correct("product", products, start, end)
                return True
        publishers = await names.publishers_like(self._database, self._text(first, last))
        if publishers:
            self._correct("org", publishers, first, last)
        return bool(publishers)

    def _correct(self, slot: str, meant: Sequence[tuple[str, str]], start: int, end: int) -> None:
        (value, title), *others = meant
        self._recognition.corrected.append(
            Corrected(self._text(start, end), title, tuple(other for _, other in others))
        )
        self._recognition.items.append(Item(slot, value, start, end))

    def _each_word(self, run: Sequence[int]) -> None:
        for at in run:
            meaning = Meaning("text", self._in_texts[at]) if self._is_topic(at) else _respelled(self._tokens[at].word)
            if meaning is not None:
                self._recognition.items.append(Item(meaning.slot, meaning.value, at, at + 1))
                continue
            self._recognition.unused.append(self._tokens[at].word)
            if self._is_capital(at) and not self._recognition.unknown:
                self._recognition.unknown = self._text(run[0], run[-1] + 1)

    def _is_topic(self, at: int) -> bool:
        """Whether the word says what a product is about: it is beside the kind, or after "about" and the like."""
        if at not in self._in_texts:
            return False
        before = {token.word for token in self._tokens[max(0, at - 3) : at]}
        is_beside = bool({at + 1, at + 2} & self._nouns)
        return is_beside or bool(_BEFORE_TOPICS & before) or self._is_capital(at) or len(self._tokens) < 5


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Neighbours together."""
    runs = [[at] for at in places[:1]]
    for before, at in pairwise(places):
        if at == before + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _respelled(word: str) -> Meaning | None:
    """The meaning of a mistyped word of the lexicon."""
    if len(word) < 4:
        return None
    cutoff = MIN_LIKENESS if len(word) > 5 else MIN_LIKENESS_OF_SHORT
    best = process.extractOne(word, _SINGLE_WORDS, scorer=fuzz.ratio, score_cutoff=cutoff)
    return WORDS[(best[0],)] if best is not None and best[0][0] == word[0] else None
