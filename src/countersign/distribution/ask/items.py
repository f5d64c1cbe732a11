"""What the words of a question are: names of the catalog, times, phrases of the lexicon, words of the catalog's texts.

Each word belongs to the longest item that begins with it or before it. A word that is none of these is looked for with
a typing error in it; what is still unknown is kept, since an answer has to say what it does not use.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple, get_args

from countersign.distribution.ask import dates
from countersign.distribution.ask.lexicon import (
    IGNORED,
    KEYS,
    KNOWN_WORDS,
    MAX_PHRASE,
    WORDS,
    Meaning,
    Token,
    respelled,
)
from countersign.distribution.catalog import names
from countersign.distribution.catalog.filter import KNOWN, SLOTS, By, FieldName
from countersign.distribution.catalog.filter_queries import forms
from countersign.distribution.catalog.names import Name
from countersign.distribution.catalog.words import words as terms_of
from countersign.kernel.database.port import Database

MAX_UNKNOWN = 12
"""Words of a question that are looked up when nothing else is known of them."""
MAX_WORDS_OF_VALUE = 6
MAX_MORE_WORDS = 4
MAX_WORDS_OF_NAME = 8
MAX_SPANS = 300
MAX_NAME_LENGTH = 100
_ENDS_OF_NAMES = frozenset(",;()?=<>|")
MIN_TAG = 5
"""Letters of a mistyped tag."""
SENTENCE_ENDS = frozenset([".", ";", "?", "!"])
_BEFORE_TOPICS = frozenset(
    str.split(
        "about with featuring involving mention mentions mentioning containing contain contains on for of word to"
    )
)
_PRIORITY = {
    "product": 4, "org": 3, "time": 2, "license": 2, "word": 1, "tag": 0, "quoted": 0, "beyond": -1, "number": -2
}  # fmt: skip
"""What a run of words is, where it could be several things: the higher."""
_OPERATORS = frozenset(["=", ":", "!=", ">", "<", ">=", "<="])
_COMPARISONS = ([">"], ["<"], [">="], ["<="])
_SIGNS = {"since": ">=", "until": "<=", "dated": ""}
"""How the keys of dates compare, where they are written with `=`."""
_JOINTS = {"|": "or", "or": "or", "&": "and", "&&": "and", "||": "or", "and": "and", "+": "and", ",": "or", "/": "or"}
_OPENING, _CLOSING = (["["], ["("], ["{"]), (["]"], [")"], ["}"])
_ALLOWED: dict[str, tuple[str, ...]] = {
    **KNOWN,
    "find": ("products", "releases", "publishers"),
    "answer": ("list", "count", "exists", "fields", "compare", "breakdown"),
    "order": ("title", "newest", "oldest", "releases", "platforms", "products"),
    "by": get_args(By),
    "when": ("any", "first", "last", "none"),
    "fields": get_args(FieldName),
    "limit": tuple(map(str, range(1, 101))),
}
"""The keys whose values are fixed."""


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
    exact = await names.exact(database, spans(question, tokens))
    recognition = Recognition(known_items(question, tokens, exact, now))
    await _Unknown(database, question, tokens, recognition).look_up()
    recognition.items.sort(key=lambda item: item.start)
    return recognition


def known_items(question: str, tokens: Sequence[Token], exact: Sequence[Name], now: datetime) -> list[Item]:
    """The items that need no guess, from left to right."""
    return _Known(question, tokens, exact, now).items


def spans(question: str, tokens: Sequence[Token]) -> list[names.Span]:
    """Runs of words that could be a name, the longest first; a bounded number of them."""
    runs: list[names.Span] = []
    for start, first in enumerate(tokens):
        if first.is_mark:
            continue
        for end in range(start + 1, min(len(tokens), start + MAX_WORDS_OF_NAME) + 1):
            last = tokens[end - 1]
            if last.word in _ENDS_OF_NAMES or last.end - first.start > MAX_NAME_LENGTH:
                break
            if not last.is_mark:
                runs.append(names.Span(start, end, question[first.start : last.end]))
    runs.sort(key=lambda run: run.start - run.end)
    return runs[-MAX_SPANS:]


Candidate = tuple[int, Item]


class _Question:
    """The words of a question, as they are written."""

    def __init__(self, question: str, tokens: Sequence[Token]) -> None:
        self._question, self._tokens = question, tokens

    def _text(self, start: int, end: int) -> str:
        return self._question[self._tokens[start].start : self._tokens[end - 1].end]

    def _is_capital(self, at: int) -> bool:
        return at > 0 and self._question[self._tokens[at].start].isupper()


class _Known(_Question):
    def __init__(self, question: str, tokens: Sequence[Token], exact: Sequence[Name], now: datetime) -> None:
        super().__init__(question, tokens)
        self._now = now
        self._words = [token.word for token in tokens]
        self._names: dict[int, list[Name]] = {}
        self.items: list[Item] = []
        for name in exact:
            self._names.setdefault(name.start, []).append(name)
        at = 0
        while at < len(tokens):
            at = self._pair(at) or self._longest(at)

    def _longest(self, at: int) -> int:
        candidates = [*self._named(at), *self._of_lexicon(at), *self._time(at)]
        if not candidates:
            return at + 1
        self.items.append(max(candidates, key=lambda candidate: (candidate[1].end, candidate[0]))[1])
        return self.items[-1].end

    def _named(self, at: int) -> Iterable[Candidate]:
        for name in self._names.get(at, ()):
            mark = self._words[name.end] if name.end + 1 < len(self._words) else ""
            ends_in_mark = mark in ("?", "!") and name.title.endswith(mark)
            yield self._priority(name, at), Item(name.slot, name.value, at, name.end + ends_in_mark)

    def _priority(self, name: Name, at: int) -> int:
        if name.slot == "tag":
            last = self.items[-1] if self.items else Item("", "", -1, -1)
            following = WORDS.get(tuple(self._words[name.end : name.end + 1]), Meaning("", ""))
            is_meant = (last.value, last.end) == ("tags", at) or following.slot == "kind"
            return 5 if is_meant else _PRIORITY["tag"]
        is_word = name.end == at + 1 and self._words[at] in KNOWN_WORDS and not self._is_capital(at)
        # A title that is an ordinary word: meant as the word.
        return -1 if name.slot == "product" and is_word else _PRIORITY[name.slot]

    def _of_lexicon(self, at: int) -> Iterable[Candidate]:
        token = self._tokens[at]
        if token.is_quoted:
            yield _PRIORITY["quoted"], Item("quoted", self._text(at, at + 1), at, at + 1)
            return
        meaning, end = self._meaning(at)
        if meaning is not None:
            yield _PRIORITY.get(meaning.slot, _PRIORITY["word"]), Item(meaning.slot, meaning.value, at, end)

    def _meaning(self, at: int) -> tuple[Meaning | None, int]:
        """The meaning of the longest phrase that begins here, and where it ends."""
        for size in range(min(MAX_PHRASE, len(self._words) - at), 0, -1):
            meaning = WORDS.get(tuple(self._words[at : at + size]))
            if meaning is not None:
                return meaning, at + size
        return None, at

    def _time(self, at: int) -> Iterable[Candidate]:
        time = dates.found(self._words, at, self._now)
        if time is not None:
            yield _PRIORITY["time"], Item("time", time.range, at, time.end)
        elif self._words[at].removeprefix("v")[:1].isdigit():
            yield _PRIORITY["number"], Item("number", self._words[at], at, at + 1)

    def _key(self, at: int) -> tuple[str, int]:
        """The key that is written here, and the place of the operator after it."""
        for size in (3, 2, 1):
            key = KEYS.get(tuple(self._words[at : at + size]))
            if key and self._words[at + size : at + size + 1] and self._words[at + size] in _OPERATORS:
                return key, at + size
        return "", at

    def _pair(self, at: int) -> int:
        """Take `key=value` where it begins here; the place after it, or 0."""
        key, place = self._key(at)
        # "Apps: …" is no pair, unless it is at the beginning or written as agents do.
        is_apart = self._tokens[place].start > self._tokens[place - 1].end
        if not key or (is_apart and at > 0 and self._words[place] == ":"):
            return 0
        if key in _SIGNS:
            return self._dated_pair(key, at, place)
        found = [*self._values(key, place)]
        joint = found[1][2] if len(found) > 1 else ""
        is_negated = self._words[place] == "!="
        self.items += [Item(key, value, at, end, is_negated, joint, is_pair=True) for value, end, _ in found]
        after = found[-1][1] if found else 0
        return after + (after > 0 and self._words[after : after + 1] in _CLOSING)

    def _values(self, key: str, place: int) -> Iterable[tuple[str, int, str]]:
        """The values after the operator, where each ends, and what joins it to the one before."""
        joint, end = "or", place
        while joint and not self._key(end + 1)[0]:
            start = end + 1 + (self._words[end + 1 : end + 2] in _OPENING)
            value, end = (self._fixed_value if key in _ALLOWED else self._open_value)(key, start)
            if not value:
                return
            yield value, end, joint
            joint = _JOINTS.get("".join(self._words[end : end + 1]), "")

    def _fixed_value(self, key: str, at: int) -> tuple[str, int]:
        """The value of the key that is written here, and where it ends; empty where there is none."""
        # "published_at" is two words.
        written = [("_".join(self._words[at:end]), end) for end in (at + 2, at + 1)]
        meaning, end = self._meaning(at)
        written += [(str(meaning.value), end)] if meaning else []
        return next((each for each in written if each[0] in _ALLOWED[key]), ("", at))

    def _open_value(self, key: str, at: int) -> tuple[str, int]:
        if key == "version" and self._words[at : at + 1] in _COMPARISONS:
            return "".join(self._words[at : at + 2]), at + 2
        last = min(len(self._words), at + MAX_WORDS_OF_VALUE)
        end = next(filter(self._ends_value, range(at, last)), last)
        values = self._known_values(key, at)
        if at < end and (key not in ("org", "product") or self._tokens[at].is_quoted):
            text = self._text(at, end)
            values.append(("-".join(terms_of(text)) if key == "tag" else text, end))
        return next(iter(values), ("", at))

    def _known_values(self, key: str, at: int) -> list[tuple[str, int]]:
        meaning, end = self._meaning(at)
        values = [(name.value, name.end) for name in self._names.get(at, ()) if name.slot == key]
        return [*values, (meaning.value, end)] if meaning and meaning.slot == key else values

    def _ends_value(self, at: int) -> bool:
        return self._tokens[at].is_mark or self._words[at] in _JOINTS or bool(self._key(at)[0])

    def _dated_pair(self, key: str, at: int, place: int) -> int:
        value = "".join(self._words[place + 1 : place + 2])
        sign = self._words[place] if [self._words[place]] in _COMPARISONS else _SIGNS[key] or self._words[place]
        # A moment is where the range ends; a day belongs to it.
        sign = "<" if sign == "<=" and "t" in value[9:12] else sign
        time = dates.found([sign, *self._words[place + 1 : place + dates.MAX_WORDS]], 0, self._now)
        if time is not None:
            self.items.append(Item("time", time.range, at, place + time.end, is_pair=True))
            return place + time.end
        if not _SIGNS[key] or not value.removeprefix("v")[:1].isdigit():
            return 0
        version = f"{'>' if key == 'since' else '<='}{value}"
        self.items.append(Item("version", version, at, place + 2, is_pair=True))
        return place + 2


def question_in(tokens: Sequence[Token], items: Sequence[Item]) -> Sentence:
    """The sentence that asks: the last with a question mark, or else the last that says more than thanks. What is
    around it is about the asker. Of key=value pairs all belong together."""
    if True in [item.is_pair for item in items]:
        return Sentence(0, len(tokens))
    within = _covered(items)
    sentences = _sentences(tokens, within)
    marked = [each for each in sentences if tokens[each.end - 1].word == "?"]
    long = [each for each in sentences if each.end - each.start > 3 and any(map(each.has, items))]
    asking = next(filter(None, (marked, long, sentences)), [Sentence(0, 0)])
    return _after_colon(tokens, within, asking[-1])


def _covered(items: Sequence[Item]) -> set[int]:
    return {place for item in items for place in range(item.start, item.end)}


def _after_colon(tokens: Sequence[Token], within: set[int], sentence: Sentence) -> Sentence:
    colons = [at for at in range(sentence.start, sentence.end - 3) if tokens[at].word == ":" and at not in within]
    begins = [at + 1 for at in colons if tokens[at + 1].start > tokens[at].end]
    return sentence._replace(start=max(begins, default=sentence.start))


def _sentences(tokens: Sequence[Token], within: set[int]) -> list[Sentence]:
    """Cut after marks that end a sentence and that a blank follows."""
    marks = [at for at, token in enumerate(tokens) if token.word in SENTENCE_ENDS and at not in within]
    ends = [at + 1 for at in marks if at + 1 == len(tokens) or tokens[at + 1].start > tokens[at].end]
    return [Sentence(start, end) for start, end in pairwise(sorted({0, *ends, len(tokens)}))]


def _unknown(tokens: Sequence[Token], items: Sequence[Item]) -> list[int]:
    """The places of the question's words that are nothing known; of all words where the question has no condition."""
    used, sentence = _covered(items), question_in(tokens, items)
    has_condition = {item.slot for item in items if sentence.has(item)} & {*SLOTS}
    words = [at for at in range(*(sentence if has_condition else (0, len(tokens)))) if at not in used]
    return [at for at in words if not tokens[at].is_mark and tokens[at].word not in IGNORED]


class _Unknown(_Question):
    """Looks up words that are nothing known: in titles, tags and descriptions, then with a typing error in them."""

    def __init__(
        self, database: Database, question: str, tokens: Sequence[Token], recognition: Recognition
    ) -> None:
        super().__init__(question, tokens)
        self._database, self._recognition = database, recognition
        self._nouns = {item.start for item in recognition.items if item.slot in ("kind", "find")} or {len(tokens)}
        self._in_texts: dict[int, str] = {}

    async def look_up(self) -> None:
        """Add the items that the words are; keep the others as unused."""
        places = _unknown(self._tokens, self._recognition.items)
        terms = {at: "".join(terms_of(self._tokens[at].word)) for at in places[:MAX_UNKNOWN]}
        known = await names.public_terms(self._database, [form for term in terms.values() for form in forms(term)])
        self._in_texts = {at: term for at, term in terms.items() if known & {*forms(term)}}
        for run in _runs(places[:MAX_UNKNOWN]):
            if not await self._is_mistyped_name(run):
                await self._each_word(run)
        self._recognition.unused += [self._tokens[at].word for at in places[MAX_UNKNOWN:]]

    async def _is_mistyped_name(self, run: Sequence[int]) -> bool:
        is_known = all(at in self._in_texts for at in run)
        if is_known and not any(map(self._is_capital, run)):
            return False
        first, last = run[0], run[-1] + 1
        # With the words around it, since a title may have words that mean something else too.
        far = self._end_of_name(last)
        for start, end in ((first - 1, far), (first, last)):
            if self._is_run(start, end):
                products = await names.products_like(self._database, self._text(start, end), is_known=is_known)
                if products:
                    self._correct("product", products, start, end)
                    return True
        publishers = await names.publishers_like(self._database, self._text(first, last))
        if publishers:
            self._correct("org", publishers, first, last)
        return bool(publishers)

    def _end_of_name(self, last: int) -> int:
        """Where a name that begins before may end: after the words in capitals and numbers that follow."""
        limit = min(len(self._tokens), last + MAX_MORE_WORDS)
        following = [at for at in range(last, limit) if not (self._is_capital(at) or self._tokens[at].word.isdigit())]
        return max(min(following, default=limit), last + 1)

    def _is_run(self, start: int, end: int) -> bool:
        is_within = 0 <= start < end <= len(self._tokens)
        times = [item for item in self._recognition.items if item.slot == "time"]
        is_within &= not any(item.start < end < item.end for item in times)
        return is_within and not (self._tokens[start].is_mark or self._tokens[end - 1].is_mark)

    def _correct(self, slot: str, meant: Sequence[tuple[str, str]], start: int, end: int) -> None:
        (value, title), *others = meant
        corrected = Corrected(self._text(start, end), title, tuple(other for _, other in others))
        self._recognition.corrected.append(corrected)
        kept = [item for item in self._recognition.items if item.end <= start or item.start >= end]
        self._recognition.items = [*kept, Item(slot, value, start, end)]

    async def _each_word(self, run: Sequence[int]) -> None:
        for at in run:
            meaning = Meaning("text", self._in_texts[at]) if self._is_topic(at) else await self._respelled(at)
            if meaning is not None:
                self._recognition.items.append(Item(meaning.slot, meaning.value, at, at + 1))
                continue
            self._recognition.unused.append(self._tokens[at].word)
            if self._is_capital(at) and not self._recognition.unknown:
                self._recognition.unknown = self._text(run[0], run[-1] + 1)

    async def _respelled(self, at: int) -> Meaning | None:
        """The meaning of a mistyped word of the lexicon, or the tag that it is."""
        word = self._tokens[at].word
        meaning = respelled(word)
        if meaning is not None or at in self._in_texts or len(word) < MIN_TAG:
            return meaning
        for spelling in await names.spellings(self._database, word):
            tag = await names.resolved(self._database, "tag", spelling)
            if tag is not None:
                self._recognition.corrected.append(Corrected(word, tag, ()))
                return Meaning("tag", tag)
        return None

    def _is_topic(self, at: int) -> bool:
        """Whether the word says what a product is about: it is beside the kind, or after "about" and the like."""
        if at not in self._in_texts:
            return False
        before = {token.word for token in self._tokens[max(0, at - 3) : at]}
        is_beside = bool({at + 1, at + 2} & self._nouns)
        return is_beside or bool(_BEFORE_TOPICS & before) or self._is_capital(at) or len(self._tokens) < 5


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Neighbours together."""
    starts = [place for place, at in enumerate(places) if not place or at != places[place - 1] + 1]
    return [[*places[start:end]] for start, end in pairwise([*starts, len(places)])]
