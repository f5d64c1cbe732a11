"""Names in a question: products, publishers, tags and licences of the public catalog; exact first, then mistyped."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from countersign.distribution.ask2.lexicon import Token
from countersign.distribution.catalog.projection import WEIGHT_OF_TITLE
from countersign.distribution.catalog.public import key
from countersign.distribution.catalog.statements import Statement
from countersign.distribution.catalog.words import shortened, words
from countersign.kernel.database.port import Database

MAX_WORDS_OF_NAME = 8
MAX_SPANS = 400
MAX_NAME_LENGTH = 100
MAX_RESPELT = 6
"""Words of a question that are looked for with a typing error in them."""
LIKE = 84
"""Of a hundred: how alike a mistyped name and a title have to be."""
_MAIN = re.compile(r"^(.{3,}?)\s*(?:[:(\[]| [-–—] ).*$")
_FAMILIES = frozenset("gpl agpl lgpl bsd apache mpl cc epl eupl zlib artistic ofl".split())
_ENDS = frozenset(",;()?=<>|")
_SMALL = frozenset("the a an of and in on for to".split())


LAST_LETTER = "\U0010ffff"
PRODUCTS_NAMED = "SELECT c.name_key, c.slug, c.title FROM catalog_public c WHERE c.name_key IN ({keys}) LIMIT 500"
PRODUCTS_CALLED = "SELECT c.slug, c.title FROM catalog_public c WHERE c.slug IN ({keys})"
BEGINNING = """
    SELECT c.slug, c.title FROM catalog_public c WHERE c.name_key >= $1 AND c.name_key < $2
    ORDER BY c.name_key LIMIT 6
"""
ORGS_NAMED = """
    SELECT o.slug, o.name
    FROM organisation o
    WHERE (
        o.slug IN ({keys})
        OR replace(replace(replace(replace(replace(lower(o.name), '&', 'and'), ' ', ''), '-', ''), '.', ''), ',', '')
           IN ({keys})
    )
    AND EXISTS (SELECT 1 FROM catalog_public c WHERE c.org_slug = o.slug)
    LIMIT 100
"""
PUBLISHERS = """
    SELECT o.slug, o.name FROM organisation o
    WHERE EXISTS (SELECT 1 FROM catalog_public c WHERE c.org_slug = o.slug)
    LIMIT 5000
"""
PUBLISHER_OF = "SELECT c.org_slug FROM catalog_public c WHERE c.slug = $1"
# The least of what an index holds in order: asked whether there is any, PostgreSQL would read the whole table for a tag
# that nothing has.
HAS_TAG = """
    WITH wanted(value) AS (VALUES {values})
    SELECT w.value FROM wanted w
    WHERE (SELECT min(f.title) FROM catalog_facet f WHERE f.facet = w.value) IS NOT NULL
"""
IS_PUBLIC_TAG = "SELECT 1 FROM catalog_public c WHERE c.tags LIKE $1 LIMIT 1"
HAS_LICENSE = """
    WITH wanted(value) AS (VALUES {values})
    SELECT w.value FROM wanted w
    WHERE (SELECT min(c.license) FROM catalog_public c WHERE c.license_key = w.value) IS NOT NULL
"""
LICENSES = "SELECT DISTINCT c.license FROM catalog_public c WHERE c.license_key = $1 LIMIT 50"
LICENSES_FROM = """
    SELECT DISTINCT c.license FROM catalog_public c WHERE c.license_key >= $1 AND c.license_key < $2 LIMIT 50
"""
TERMS_LIKE = "SELECT DISTINCT y.term FROM catalog_typo y WHERE y.shortened IN ({keys}) LIMIT 60"
TERMS_FROM = """
    SELECT y.term FROM catalog_typo y
    WHERE y.shortened >= $1 AND y.shortened < $2 AND y.shortened = y.term
    LIMIT 400
"""
WITH_WORDS = """
    SELECT c.slug, c.title
    FROM catalog_public c
    JOIN (
        SELECT t.product_id, count(*) AS hits
        FROM catalog_term t
        WHERE t.weight = {weight} AND t.term IN ({keys})
        GROUP BY t.product_id
    ) AS hit ON hit.product_id = c.product_id
    ORDER BY hit.hits DESC, c.title, c.product_id
    LIMIT 20
"""
TERMS_OF_PUBLIC = """
    SELECT DISTINCT t.term FROM catalog_term t
    WHERE t.term IN ({keys}) AND EXISTS (SELECT 1 FROM catalog_public c WHERE c.product_id = t.product_id)
"""
Pairs = list[tuple[str, str]]


def padded(values: Sequence[str]) -> list[str]:
    """The values, the last one repeated, so that few statements differ by their number."""
    wanted = 16
    while wanted < len(values):
        wanted *= 4
    return [*values, *([values[-1]] * (wanted - len(values)))]


class Name(NamedTuple):
    """A name in a question: tokens `start` to `end` name this value of the slot. `others` are titles that fit too."""

    slot: str
    value: str
    start: int
    end: int
    others: tuple[str, ...] = ()


class Span(NamedTuple):
    """A run of words."""

    start: int
    end: int
    text: str


def spans(question: str, found: Sequence[Token]) -> list[Span]:
    """Runs of words that could be a name, the longest first; a bounded number of them."""
    runs: list[Span] = []
    for start, first in enumerate(found):
        if first.is_mark:
            continue
        for end in range(start + 1, min(len(found), start + MAX_WORDS_OF_NAME) + 1):
            last = found[end - 1]
            if last.word in _ENDS or last.end - first.start > MAX_NAME_LENGTH:
                break
            if not last.is_mark:
                runs.append(Span(start, end, question[first.start : last.end]))
    runs.sort(key=lambda run: run.start - run.end)
    return runs[-MAX_SPANS:]


async def exact(database: Database, runs: Sequence[Span]) -> list[Name]:
    """What the runs name exactly, but for case, accents and punctuation; the longest first."""
    by_key: dict[str, list[Span]] = {}
    by_slug: dict[str, list[Span]] = {}
    for span in runs:
        by_key.setdefault(key(span.text), []).append(span)
        by_slug.setdefault("-".join(words(span.text)), []).append(span)
    by_slug.pop("", None)
    found: list[Name] = []
    for name_key, slug, title in await products_named(database, list(by_key)):
        found += [Name("product", slug, each.start, each.end, (title,)) for each in by_key[name_key]]
    for slug, title in await products_called(database, list(by_slug)):
        found += [Name("product", slug, each.start, each.end, (title,)) for each in by_slug[slug]]
    for slug, name in await orgs_named(database, [*by_key, *by_slug]):
        places = {*by_key.get(key(name), ()), *by_slug.get(slug, ())}
        found += [Name("org", slug, each.start, each.end) for each in places]
    found += await _tags(database, by_slug)
    for license_key, name in await licenses_named(database, list(by_key)):
        found += [Name("license", name, each.start, each.end) for each in by_key.get(license_key, ())]
    found += await _families(database, runs)
    return _by_place(found)


def _by_place(found: list[Name]) -> list[Name]:
    """One name for each run and slot; several products of one title are told apart by their slugs."""
    kept: dict[tuple[str, int, int], Name] = {}
    for each in found:
        before = kept.get(each[:1] + each[2:4])
        if before is None:
            kept[each.slot, each.start, each.end] = each._replace(others=())
        elif each.slot == "product" and each.value != before.value:
            kept[each.slot, each.start, each.end] = before._replace(others=(*before.others, each.value))
    return sorted(kept.values(), key=lambda each: each.start - each.end)


async def _tags(database: Database, by_slug: dict[str, list[Span]]) -> list[Name]:
    wanted: dict[str, list[Span]] = {}
    for joined, places in by_slug.items():
        if joined.count("-") > 3:
            continue
        for tag in {joined, joined.replace("-", ""), joined[:-1] if joined.endswith("s") and len(joined) > 3 else joined}:
            wanted.setdefault(tag, []).extend(places)
    held = await tags_held(database, list(wanted))
    return [Name("tag", tag, each.start, each.end) for tag in sorted(held) for each in wanted[tag]]


async def _families(database: Database, runs: Sequence[Span]) -> list[Name]:
    """A licence without its version, "GPL", is any of its versions."""
    found: list[Name] = []
    for span in runs:
        if span.end - span.start <= 2 and span.text.split()[0].lower() in _FAMILIES:
            names = await licenses_from(database, key(span.text))
            if names:
                found.append(Name("license", "|".join(names), span.start, span.end))
    return found


async def _titles_beginning(database: Database, text: str) -> list[tuple[str, str]]:
    """Products whose titles go on after the text: slug, title; the one of which it is the main part, or all."""
    near = await beginning(database, key(text))
    main = [each for each in near if (match := _MAIN.match(each[1])) and key(match[1]) == key(text)]
    return main if len(main) == 1 else near


async def _mistyped(database: Database, text: str) -> list[tuple[str, str]]:
    """Products that a mistyped name may mean, the likest first: slug, title."""
    asked = [word for word in words(text) if word not in _SMALL]
    terms: list[str] = []
    for word in asked[:MAX_RESPELT]:
        terms += [word, *await _spellings(database, word)]
    if not terms:
        return []
    near = {slug: title for slug, title in await with_words(database, terms)}
    plain = {slug: " ".join(words(title)) for slug, title in near.items()}
    scored = process.extract(" ".join(words(text)), plain, scorer=fuzz.ratio, score_cutoff=LIKE, limit=3)
    numbers = [word for word in asked if word.isdigit()]
    alike = [slug for title, _, slug in scored if [word for word in title.split() if word.isdigit()] == numbers]
    return [(slug, near[slug]) for slug in alike]


async def _spellings(database: Database, word: str) -> list[str]:
    """Words of the catalog that are one typing error away, two for long ones; the likest first."""
    if len(word) < 4 or word.isdigit():
        return []
    found = await terms_like(database, sorted(shortened(word)))
    near = {term: far for term in found if (far := OSA.distance(word, term, score_cutoff=2)) <= 1 + (len(word) > 7)}
    return sorted(near, key=lambda term: (near[term], term))[:MAX_RESPELT]


async def publishers_like(database: Database, text: str) -> list[tuple[str, str]]:
    """Publishers that a mistyped name may mean, the likest first: slug, name."""
    known = dict(await publishers(database))
    scored = process.extract(key(text), {slug: key(name) for slug, name in known.items()}, scorer=fuzz.ratio, score_cutoff=LIKE, limit=3)
    return [(slug, known[slug]) for _, _, slug in scored]


async def products_like(database: Database, text: str, *, is_known: bool) -> list[tuple[str, str]]:
    """Products that the text may name with a typing error or without its end, the likest first: slug, title.
    `is_known`: its words are words of the catalog, which may well be no name."""
    likest = await _mistyped(database, text)
    if likest or len(text) < 4 or (is_known and " " not in text):
        return likest
    return await _titles_beginning(database, text)


async def _of(database: Database, text: str, keys: Sequence[str], **fragments: object) -> list[tuple[str, ...]]:
    if not keys:
        return []
    statement = Statement()
    sql = text.format(keys=statement.list(padded(keys)), **fragments)
    return [tuple(row) for row in await database.scan(sql, *statement.values)]


async def products_named(database: Database, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Public products by the key of their title: key, slug, title."""
    return await _of(database, PRODUCTS_NAMED, keys)


async def products_called(database: Database, slugs: Sequence[str]) -> list[tuple[str, ...]]:
    """Public products by slug: slug, title."""
    return await _of(database, PRODUCTS_CALLED, slugs)


async def beginning(database: Database, name_key: str) -> Pairs:
    """Public products whose key begins so: slug, title."""
    return [(slug, title) for slug, title in await database.fetch(BEGINNING, name_key, name_key + LAST_LETTER)]


async def orgs_named(database: Database, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Organisations with public products by slug or name: slug, name."""
    return await _of(database, ORGS_NAMED, keys)


async def publishers(database: Database) -> Pairs:
    """Organisations with public products: slug, name."""
    return [(slug, name) for slug, name in await database.scan(PUBLISHERS)]


async def publisher_of(database: Database, slug: str) -> str | None:
    """The slug of the organisation that publishes the product."""
    row = await database.fetch_one(PUBLISHER_OF, slug)
    return None if row is None else str(row[0])


async def tags_held(database: Database, tags: Sequence[str]) -> set[str]:
    """Which of the tags a public product carries."""
    known = await _held(database, HAS_TAG, {f"tag:{tag}": tag for tag in tags})
    # A tag of drafts alone is none; what a tag is made of means nothing to LIKE.
    return {tag for tag in known if await database.scan(IS_PUBLIC_TAG, f"% {tag} %")}


async def licenses_named(database: Database, keys: Sequence[str]) -> Pairs:
    """Licences of public products by their key: key, licence."""
    known = await _held(database, HAS_LICENSE, {each: each for each in keys})
    return [(each, name) for each in known for (name,) in await database.scan(LICENSES, each)]


async def _held(database: Database, has: str, wanted: Mapping[str, str]) -> list[str]:
    if not wanted:
        return []
    statement = Statement()
    values = statement.list(padded(list(wanted))).replace(", ", "), (")
    rows = await database.fetch(has.format(values=f"({values})"), *statement.values)
    return list(dict.fromkeys(wanted[each] for (each,) in rows))


async def licenses_from(database: Database, begin: str) -> list[str]:
    """Licences of public products whose keys begin so."""
    return sorted(name for (name,) in await database.scan(LICENSES_FROM, begin, begin + LAST_LETTER))


async def terms_like(database: Database, short: Sequence[str]) -> list[str]:
    """Words of the catalog that share one of the shortened forms."""
    return [term for (term,) in await _of(database, TERMS_LIKE, short)]


async def terms_from(database: Database, begin: str) -> list[str]:
    """Words of the catalog that begin so."""
    return [term for (term,) in await database.fetch(TERMS_FROM, begin, begin + LAST_LETTER)]


async def with_words(database: Database, terms: Sequence[str]) -> list[tuple[str, ...]]:
    """Public products whose titles hold most of the words: slug, title."""
    return await _of(database, WITH_WORDS, terms, weight=WEIGHT_OF_TITLE)


async def terms_of_public(database: Database, terms: Sequence[str]) -> set[str]:
    """Which of the words a public product has in its title, tags or description."""
    return {term for (term,) in await _of(database, TERMS_OF_PUBLIC, terms)}
