"""Names that were mistyped: found by words one typing error away, taken only where one product or publisher fits."""

import re
from collections.abc import Sequence
from itertools import product as combined
from typing import NamedTuple

from countersign.distribution.ask import budget, queries
from countersign.distribution.ask.queries import Name
from countersign.distribution.catalog.public import key
from countersign.distribution.catalog.words import shortened, words
from countersign.kernel.database.port import Database

SHORTEST = 5
LONG = 9
MAX_SPELT = 12
MOST_SPELLINGS = 4
MOST_COMBINED = 256
MOST_TERMS = 400
MOST_ORGS = 20_000
MOST_SUGGESTED = 3
_CELLS_PER_STEP = 8
"""Cells of a table of distances that cost as much as one step of the search."""
_SMALL = frozenset(["the", "a", "an", "of", "and", "in", "on", "for", "to"])
_MAIN = re.compile(r"^(.{3,}?)\s*(?:[:(\[]| [-–—] ).*$")


class Meant(NamedTuple):
    """What a name may mean: the one slug, or else what could be asked back."""

    slug: str | None
    candidates: list[str]


def distance(one: str, other: str, most: int) -> int:
    """How many letters have to be added, lost, changed or swapped with their neighbour; `most` + 1 when more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    budget.current().spend(1 + len(one) * len(other) // _CELLS_PER_STEP)
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        older, before, row = before, row, [place]
        for column, target in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != target))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == target:
                cost = min(cost, older[column - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def is_like(asked: str, title: str) -> bool:
    """Whether the asked name is the title but for a typing error or two and small words; numbers have to agree."""
    one, other = words(asked), words(title)
    if _numbers(one) != _numbers(other):
        return False
    bare, wanted = _large(one), _large(other)
    if max(len(bare), len(wanted)) < SHORTEST:
        return bare == wanted
    most = 2 if len(bare) >= LONG else 1
    return distance(bare, wanted, most) <= most


def _numbers(found: list[str]) -> list[str]:
    return [word for word in found if word.isdigit()]


def _large(found: list[str]) -> str:
    return "".join(word for word in found if word not in _SMALL)


async def product(database: Database, asked: str) -> Meant:
    """The public product that is meant by a name that no product has."""
    exact = (await queries.products_named(database, [key(asked)])).get(key(asked), [])
    if exact:
        return _chosen(exact)
    spellings = [await _spellings(database, word) for word in words(asked)[:MAX_SPELT]]
    respelt = await _respelt(database, spellings)
    if respelt:
        return _chosen(respelt)
    near = await queries.with_terms(database, _terms(spellings))
    like = [name for name in near if is_like(asked, name.title)] or _by_main_part(asked, near)
    return _chosen(like) if like else Meant(None, _suggested(asked, spellings, near))


def _terms(spellings: list[list[str]]) -> list[str]:
    return [term for ways in spellings for term in ways if term not in _SMALL]


def _by_main_part(asked: str, near: Sequence[Name]) -> list[Name]:
    """The one product whose title goes on after the asked name: "Harbour" for "Harbour: Open Sea"."""
    mains = [name for name in near if (main := _MAIN.match(name.title)) and key(main[1]) == key(asked)]
    return mains if len(mains) == 1 else []


async def by_main_part(database: Database, asked: str) -> Name | None:
    """The one product whose title goes on after this."""
    found = _by_main_part(asked, await queries.with_terms(database, words(asked)))
    return found[0] if found else None


def _chosen(named: Sequence[Name]) -> Meant:
    if len(named) == 1:
        return Meant(named[0].slug, [])
    return Meant(None, [f"{name.title} ({name.slug})" for name in named[:MOST_SUGGESTED]])


def _suggested(asked: str, spellings: list[list[str]], near: Sequence[Name]) -> list[str]:
    """Titles that hold more than half of the asked words."""
    wanted = [set(ways) for word, ways in zip(words(asked), spellings, strict=False) if word not in _SMALL]
    found = [
        name.title for name in near if 2 * sum(bool(ways & set(words(name.title))) for ways in wanted) > len(wanted)
    ]
    return found[:MOST_SUGGESTED]


async def _spellings(database: Database, word: str) -> list[str]:
    """The word and words of the catalog like it, the likest first."""
    if len(word) < SHORTEST - 1 or word.isdigit():
        return [word]
    found = await queries.terms_like(database, sorted(shortened(word)))
    near = {term: distance(word, term, 2) for term in found}
    if len(word) >= LONG - 2 and not near:
        begin = word[:3]
        others = await queries.terms_from(database, begin, begin + "\U0010ffff", MOST_TERMS)
        near = {term: far for term in others if (far := distance(word, term, 2)) <= 2}
    ranked = sorted(near, key=lambda term: (near[term], term))
    return list(dict.fromkeys([word, *ranked]))[:MOST_SPELLINGS]


async def _respelt(database: Database, spellings: list[list[str]]) -> list[Name]:
    """Products whose whole title is one of the spellings."""
    count = 1
    for ways in spellings:
        count *= len(ways)
    if not spellings or count > MOST_COMBINED:
        return []
    keys = ["".join(each) for each in combined(*spellings)]
    named = await queries.products_named(database, keys)
    asked = " ".join(ways[0] for ways in spellings)
    return [name for found in named.values() for name in found if is_like(asked, name.title)]


async def org(database: Database, asked: str) -> Meant:
    """The publisher of public products that is meant by a name that none has."""
    like: list[tuple[str, str]] = []
    part: list[str] = []
    wanted = set(words(asked))
    for slug, name in await queries.public_orgs(database, MOST_ORGS):
        if key(name) == key(asked) or is_like(asked, name) or is_like(asked, slug.replace("-", " ")):
            like.append((slug, name))
        elif wanted & set(words(name)) - _SMALL:
            part.append(name)
    if len(like) == 1:
        return Meant(like[0][0], [])
    return Meant(None, [name for _, name in like][:MOST_SUGGESTED] or sorted(part)[:MOST_SUGGESTED])
