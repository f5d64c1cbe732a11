"""Which words of a question are names of the public catalog: products, organisations, tags, licences."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from countersign.distribution.ask import budget, fuzzy, queries
from countersign.distribution.ask.tokens import Token, span
from countersign.distribution.ask.told import Either, Licensed
from countersign.distribution.catalog.public import key
from countersign.distribution.catalog.words import words
from countersign.kernel import ids
from countersign.kernel.database.port import Database

MOST_WORDS_OF_NAME = 14
MOST_WORDS_OF_TAG = 4
MOST_NUMBERED = 4
MAX_NAME_LENGTH = 200
"""Characters of a run of words that is looked for: no title and no name has more."""
_STEPS_PER_SPAN = 1
"""What looking for one run of words costs, in steps of the search."""
LAST_LETTER = "\U0010ffff"
UNRESOLVED = "?"
"""Before a name that is to be looked for: no slug begins so."""
_FAMILIES = frozenset(["gpl", "agpl", "lgpl", "bsd", "apache", "mpl", "cc", "epl", "eupl", "zlib", "artistic", "ofl"])
_MARKS = frozenset([",", ";", "(", ")", "$", "€", "£", "%", "<", ">", "=", "|", "?", "'s"])
Names = dict[str, dict[int, list[tuple[Any, int]]]]


class Spans:
    """Runs of words of a question, by their key."""

    def __init__(self, question: str, tokens: list[Token]) -> None:
        self.by_key: dict[str, list[tuple[int, int]]] = {}
        self.texts: dict[tuple[int, int], str] = {}
        self.joined: dict[tuple[int, int], str] = {}
        self.by_slug: dict[str, list[tuple[int, int]]] = {}
        spent = budget.current()
        for start in range(len(tokens)):
            for end in range(start + 1, min(len(tokens), start + MOST_WORDS_OF_NAME) + 1):
                if tokens[start].word in _MARKS or tokens[end - 1].word in _MARKS:
                    continue
                spent.spend(_STEPS_PER_SPAN)
                text = span(question, tokens, start, end)
                if len(text) > MAX_NAME_LENGTH:
                    break
                self.texts[start, end] = text
                joined = self.joined[start, end] = "-".join(words(text))
                self.by_slug.setdefault(joined, []).append((start, end))
                self.by_key.setdefault(key(text), []).append((start, end))

    def of_at_most(self, count: int) -> list[tuple[int, int, str]]:
        """The runs of so many words at most, with their words joined by dashes."""
        return [(start, end, joined) for (start, end), joined in self.joined.items() if end - start <= count]


async def names(database: Database, question: str, tokens: list[Token]) -> Names:
    """What each run of words names, by kind and by where it begins, the longest first."""
    spans = await budget.current().run(partial(Spans, question, tokens))
    found: Names = {"product": {}, "org": {}, "tag": {}, "license": {}}
    if spans.texts:
        await _products(database, spans, tokens, found)
        await _orgs(database, spans, found)
        await _tags(database, spans, found)
        await _licenses(database, spans, tokens, found)
    for places in found.values():
        for ways in places.values():
            ways.sort(key=lambda way: -way[1])
    return found


def _put(found: Names, kind: str, start: int, end: int, value: Any) -> None:
    ways = found[kind].setdefault(start, [])
    if (value, end) not in ways:
        ways.append((value, end))


async def _products(database: Database, spans: Spans, tokens: list[Token], found: Names) -> None:
    for name_key, named in (await queries.products_named(database, [*spans.by_key])).items():
        for start, end in spans.by_key[name_key]:
            # Several products of one title: which is meant has to be asked.
            value = named[0].slug if len(named) == 1 else UNRESOLVED + spans.texts[start, end]
            _put(found, "product", start, end, value)
    await _products_by_slug(database, spans, found)
    await _products_by_main_part(database, spans, tokens, found)
    await _products_by_id(database, spans, tokens, found)


async def _products_by_main_part(database: Database, spans: Spans, tokens: list[Token], found: Names) -> None:
    """A number after a product's name belongs to it where another product's title begins so: "Harbour 2: Open Sea"."""
    numbered = [
        (start, end + 1)
        for start, ways in found["product"].items()
        for _, end in ways
        if end < len(tokens) and tokens[end].word.isdigit() and (start, end + 1) in spans.texts
    ]
    for start, end in numbered[:MOST_NUMBERED]:
        named = await fuzzy.by_main_part(database, spans.texts[start, end])
        if named is not None:
            longer = [way for way in found["product"][start] if way[1] > end]
            found["product"][start] = [*longer, (named.slug, end)]


async def _products_by_slug(database: Database, spans: Spans, found: Names) -> None:
    for slug in await queries.products_called(database, [slug for slug in spans.by_slug if slug]):
        for start, end in spans.by_slug[slug]:
            if not any(end == known for _, known in found["product"].get(start, ())):
                _put(found, "product", start, end, slug)


async def _products_by_id(database: Database, spans: Spans, tokens: list[Token], found: Names) -> None:
    for start, token in enumerate(tokens):
        text = spans.texts.get((start, start + 1), token.word)
        if ids.is_uuid(text.lower()) and (slug := await queries.product_of_id(database, text.lower())):
            _put(found, "product", start, start + 1, slug)


async def _orgs(database: Database, spans: Spans, found: Names) -> None:
    keys = list(dict.fromkeys([*spans.by_key, *spans.by_slug]))
    for slug, name in await queries.orgs_named(database, [each for each in keys if each]):
        for start, end in (*spans.by_key.get(key(name), ()), *spans.by_slug.get(slug, ())):
            _put(found, "org", start, end, slug)


async def _tags(database: Database, spans: Spans, found: Names) -> None:
    wanted: dict[str, list[tuple[int, int]]] = {}
    for start, end, joined in spans.of_at_most(MOST_WORDS_OF_TAG):
        singular = [joined[:-1]] if joined.endswith("s") and len(joined) > 3 else []
        for tag in (joined, joined.replace("-", ""), *singular):
            if tag and (start, end) not in wanted.setdefault(tag, []):
                wanted[tag].append((start, end))
    for tag in sorted(await queries.tags_named(database, list(wanted))):
        for start, end in wanted[tag]:
            _put(found, "tag", start, end, tag)


async def _licenses(database: Database, spans: Spans, tokens: Sequence[Token], found: Names) -> None:
    for license_key, name in await queries.licenses_named(database, [*spans.by_key]):
        for start, end in spans.by_key.get(license_key, ()):
            _put(found, "license", start, end, Licensed(name))
    for start, token in enumerate(tokens):
        if token.word in _FAMILIES:
            await _family(database, spans, start, found)


async def _family(database: Database, spans: Spans, start: int, found: Names) -> None:
    """A licence without its version, "GPL", is any of its versions."""
    for end in (start + 2, start + 1):
        if (start, end) not in spans.texts:
            continue
        begin = key(spans.texts[start, end])
        meant = await queries.licenses_from(database, begin, begin + LAST_LETTER)
        if meant:
            value = Licensed(meant[0]) if len(meant) == 1 else Either(tuple(Licensed(each) for each in sorted(meant)))
            _put(found, "license", start, end, value)
