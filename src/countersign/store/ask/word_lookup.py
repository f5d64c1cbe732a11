"""Recognise the items of a question: names of the catalog, times, phrases of the lexicon, words of the catalog's
texts.

Each word belongs to the longest item that contains it, from left to right. If a word is not recognised, similar words
are looked up, in case the word has a typing error. Words that are still unknown are recorded, because an answer lists
the words that it does not use.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby, takewhile
from typing import NamedTuple

from countersign.kernel.database.port import Database
from countersign.store.ask import dates
from countersign.store.ask.lexicon import IGNORED, KNOWN_WORDS, LISTS, MAX_PHRASE, WORDS, Meaning, WordToken, respelled
from countersign.store.ask.scope import SENTENCE_ENDS, Item, Scope
from countersign.store.catalog import names
from countersign.store.catalog.filter_queries import forms
from countersign.store.catalog.names import Name
from countersign.store.catalog.search import words as terms_of

MAX_UNKNOWN = 12
"""Maximum number of unrecognised words of a question that are looked up."""
MAX_NAMES = 12
"""Maximum number of word sequences of a question that are looked up as mistyped names."""
MAX_WORDS_OF_NAME = 8
MAX_SPANS = 300
MAX_NAME_LENGTH = 100
_NUMBER = re.compile(r"v?\d(?!\d*(?:st|nd|rd|th)$)")
"""The beginning of a number or version, not of an ordinal number such as "3rd"."""
_ENDS_OF_NAMES = frozenset(",;()?=<>|")
_PRIORITY = {
    "product": 4, "org": 3, "time": 2, "license": 2, "word": 1, "tag": 0, "beyond": -1, "number": -2
}  # fmt: skip
"""The priority of each kind of item. If a word sequence can be of several kinds, the highest priority is chosen."""
_PREPOSITIONS = frozenset(str.split("with on for of to"))


class Corrected(NamedTuple):
    """A name that was corrected: as written, as read, and the other matching titles."""

    written: str
    title: str
    others: tuple[str, ...]


async def recognize(database: Database, question: str, tokens: list[WordToken], now: datetime) -> "Recognition":
    """Recognise the items in the tokens of the question."""
    recognition = Recognition(question, tokens, await names.exact(database, spans(question, tokens)), now)
    await recognition.look_up(database)
    return recognition


def spans(question: str, tokens: Sequence[WordToken]) -> list[names.WordSpan]:
    """Return word sequences that could be a name, the longest first; at most `MAX_SPANS`."""
    runs: list[names.WordSpan] = []
    for start, first in enumerate(tokens):
        if first.is_mark:
            continue
        for end in range(start + 1, min(len(tokens), start + MAX_WORDS_OF_NAME) + 1):
            last = tokens[end - 1]
            if last.word in _ENDS_OF_NAMES or last.end - first.start > MAX_NAME_LENGTH:
                break
            if not last.is_mark:
                runs.append(names.WordSpan(start, end, question[first.start : last.end]))
    runs.sort(key=lambda run: run.start - run.end)
    return runs[-MAX_SPANS:]


class Recognition:
    """The recognised items from left to right, the unused words, a name that does not exist in the catalog, and the
    corrected names. At first, only the items that match exactly are recognised; `look_up` looks up the other words:
    first in titles, tags and descriptions, then as words with a typing error."""

    def __init__(self, question: str, tokens: list[WordToken], exact: Sequence[Name], now: datetime) -> None:
        self._question, self._tokens, self._now = question, tokens, now
        self._words = [token.word for token in tokens]
        self._names: dict[int, list[Name]] = {}
        self.items: list[Item] = []
        self.unused: dict[int, str] = {}
        self.unknown = ""
        for name in exact:
            self._names.setdefault(name.start, []).append(name)
        self._titles = [name for name in exact if self._priority(name, name.start) == _PRIORITY["product"]]
        at = 0
        while at < len(tokens):
            at = self._longest(at)
        self.corrected = [*self._ambiguous(exact)]
        self._in_texts: dict[int, str] = {}

    def _ambiguous(self, exact: Sequence[Name]) -> Iterable[Corrected]:
        """Yield the titles that several products have."""
        taken = {(item.value, item.start, item.end) for item in self.items if item.slot == "product"}
        for name in exact:
            if name.others and (name.value, name.start, name.end) in taken:
                yield Corrected(name.title, f"{name.title} ({name.value})", name.others)

    def _text(self, start: int, end: int) -> str:
        return self._question[self._tokens[start].start : self._tokens[end - 1].end]

    def _is_capital(self, at: int) -> bool:
        return at > 0 and self._question[self._tokens[at].start].isupper()

    def _longest(self, at: int) -> int:
        """Add the longest item that begins at this word, and return the position after it. An item must not cut a
        title, as the license ISC would cut "C++ Scope" in "Is C++ Scope free?"."""
        candidates = [
            (item.end, priority, item)
            for priority, item in self._candidates(at)
            if not any(item.start < title.start < item.end < title.end for title in self._titles)
        ]
        if not candidates:
            return at + 1
        self.items.append(max(candidates, key=lambda candidate: candidate[:2])[2])
        return self.items[-1].end

    def _candidates(self, at: int) -> Iterable[tuple[int, Item]]:
        """Yield the items that begin at this word, each with its priority: names, the longest phrase, and a time or a
        number."""
        for name in self._names.get(at, ()):
            mark = self._words[name.end] if name.end + 1 < len(self._words) else ""
            ends_in_mark = mark in ("?", "!") and name.title.endswith(mark)
            if name.slot != "tag" or not self._is_verb(name, at):
                yield self._priority(name, at), Item(name.slot, name.value, at, name.end + ends_in_mark)
        for end in range(min(at + MAX_PHRASE, len(self._words)), at, -1):
            meaning = WORDS.get(tuple(self._words[at:end]))
            if meaning is not None:
                yield _PRIORITY.get(meaning.slot, _PRIORITY["word"]), Item(meaning.slot, meaning.value, at, end)
                break
        time = dates.found(self._words, at, self._now)
        if time is not None:
            yield _PRIORITY["time"], Item("time", time[0], at, time[1])
        elif _NUMBER.match(self._words[at]):
            yield _PRIORITY["number"], Item("number", self._words[at], at, at + 1)

    def _is_verb(self, name: Name, at: int) -> bool:
        """Return whether a word that is also a tag describes what the asker does ("I search a tool", "I am drawing"),
        or is part of an identifier such as `search_products(`."""
        word, before = self._words[at], self._words[:at][-1:]
        is_doing = (word.endswith("ing") or word in IGNORED) and not LISTS["doing"].isdisjoint(before)
        is_of_identifier = self._question[self._tokens[name.end - 1].end :][:1] in ("_", "(")
        return is_doing or is_of_identifier or (word in IGNORED and before in (["i"], ["we"]))

    def _priority(self, name: Name, at: int) -> int:
        if name.slot == "tag":
            # A tag before a kind of product or after one ("programs for notes"), or after "tagged".
            last = self.items[-1] if self.items else Item("", "", -1, -1)
            following = WORDS.get(tuple(self._words[name.end : name.end + 1]), Meaning("", ""))
            follows = last.slot in ("kind", "find") and self._words[last.end : at] in (["for"], ["about"])
            is_topic = any(((last.value, last.end) == ("tags", at), following.slot == "kind", follows))
            return 5 if is_topic else _PRIORITY["tag"]
        is_word = name.end == at + 1 and self._words[at] in KNOWN_WORDS and not self._is_capital(at)
        # A title that is an ordinary word counts as the word.
        return -1 if name.slot == "product" and is_word else _PRIORITY[name.slot]

    async def look_up(self, database: Database) -> None:
        """Add the items that the unrecognised words represent; record the other words as unused."""
        positions = self._unknown()
        terms = {at: "".join(terms_of(self._tokens[at].word)) for at in positions[:MAX_UNKNOWN]}
        known = await names.public_terms(database, [form for term in terms.values() for form in forms(term)])
        self._in_texts = {at: term for at, term in terms.items() if known & {*forms(term)}}
        consecutive = groupby(enumerate(terms), lambda each: each[1] - each[0])
        await self._look_up_names(database, [[at for _, at in group] for _, group in consecutive])
        self.unused |= {at: self._tokens[at].word for at in positions[MAX_UNKNOWN:]}
        self.items.sort(key=lambda item: item.start)

    def _unknown(self) -> list[int]:
        """Return the positions of the unrecognised words, without words before the request in small letters."""
        scope = Scope(self._tokens, self.items)
        opening = {at for at in scope.opening() if self._text(at, at + 1).islower()}
        return [at for at in scope.unknown() if at not in opening]

    async def _look_up_names(self, database: Database, runs: Sequence[Sequence[int]]) -> None:
        tried = [span for run in runs for span in self._names_around(run)][:MAX_NAMES]
        spellings = await names.spellings_of(database, [self._text(*span) for span in tried])
        tags = await self._misspelt_tags(database, {*chain(*runs)} - self._in_texts.keys(), spellings)
        for run in runs:
            is_known = self._in_texts.keys() >= {*run}
            for span in filter(tried.__contains__, self._names_around(run)):
                text = self._text(*span)
                products = await names.products_like(database, text, is_known=is_known, known_spellings=spellings)
                if products:
                    self._correct(products, *span)
                    break
            else:
                self._look_up_words(run, tags)

    async def _misspelt_tags(
        self, database: Database, positions: Iterable[int], spellings: names.Spellings
    ) -> dict[int, str]:
        """Return the tags that the closest spellings of the words are, by position."""
        spelt = [(at, [*spellings.get(self._tokens[at].word, ())]) for at in positions]
        likest = [names.WordSpan(at, at + 1, likely[0]) for at, likely in spelt if likely]
        found = await names.exact(database, likest) if likest else []
        return {name.start: name.value for name in found if name.slot == "tag"}

    def _correct(self, meant: Sequence[tuple[str, str]], start: int, end: int) -> None:
        (value, title), *others = meant
        corrected = Corrected(self._text(start, end), title, tuple(other for _, other in others))
        self.corrected.append(corrected)
        remaining = [item for item in self.items if item.end <= start or item.start >= end]
        self.items = [*remaining, Item("product", value, start, end)]

    def _names_around(self, run: Sequence[int]) -> list[tuple[int, int]]:
        """Return the word sequences that may be a mistyped name: the run with its neighbours that are written as parts
        of a name, and the run with and without one neighbour, because a title may contain words that have another
        meaning."""
        if self._in_texts.keys() >= {*run} and not any(map(self._is_capital, run)):
            return []
        first, last = run[0], run[-1] + 1
        begin = first - len(list(takewhile(self._is_part_of_name, range(first - 1, 0, -1))))
        end = last + len(list(takewhile(self._is_part_of_name, range(last, len(self._tokens)))))
        around = ((begin, end), (first - 1, last + 1), (first - 1, last), (first, last + 1), (first, last))
        return [span for span in dict.fromkeys(around) if self._is_run(*span)]

    def _is_part_of_name(self, at: int) -> bool:
        return self._is_capital(at) or self._tokens[at].word.isdigit()

    def _is_run(self, start: int, end: int) -> bool:
        is_within = 0 <= start < end <= len(self._tokens)
        is_within &= not any(item.slot == "time" and item.start < end < item.end for item in self.items)
        return is_within and not (self._tokens[start].is_mark or self._tokens[end - 1].is_mark)

    def _look_up_words(self, run: Sequence[int], tags: Mapping[int, str]) -> None:
        for at in run:
            word = self._tokens[at].word
            slot, value = "text", self._in_texts.get(at, "")
            if not self._is_topic(at):
                slot, value = "tag", tags.get(at, "")
                if meant := respelled(word):
                    slot, value = WORDS.get((meant,), Meaning("skip", meant))
                    self._tokens[at] = self._tokens[at]._replace(word=meant)
            if value:
                self.items.append(Item(slot, value, at, at + 1))
                continue
            self.unused[at] = word
            # A name is written with a capital, but not after an article ("the PO") or at the start of a sentence.
            is_name = self._is_capital(at) and self._tokens[at - 1].word not in LISTS["articles"] | SENTENCE_ENDS
            if is_name and not self.unknown:
                self.unknown = self._text(run[0], run[-1] + 1)

    def _is_topic(self, at: int) -> bool:
        """Return whether the word describes a product's topic: it precedes the kind of product, or follows a word such
        as "about"."""
        before = {token.word for token in self._tokens[max(0, at - 3) : at]}
        nouns = [item.start for item in self.items if item.slot in ("kind", "find")] or [len(self._tokens)]
        follows = bool(before & (LISTS["topic words"] | _PREPOSITIONS)) or at + 1 in nouns
        return at in self._in_texts and (follows or self._is_capital(at))
