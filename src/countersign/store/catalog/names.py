"""Finds names of the public catalog in a text: products, publishers, tags and licences. Exact names come first, then
mistyped ones.

A mistyped name is looked up by catalog words that differ in one letter (two in long words). It is accepted if the whole
title differs in at most one letter (two from LONG_NAME on).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from countersign.kernel.database.port import Database
from countersign.store.catalog.projection import ORG_KEY, WEIGHT_OF_TITLE, lookup_key
from countersign.store.catalog.search import MIN_CORRECTED_LENGTH, SqlBuilder, deletion_variants, edit_distance, words

MAX_SPELLINGS = 6
MAX_COUNTED = 100
"""Maximum number of titles that are compared for a word."""
MAX_TITLE_KEYS = 100
"""Maximum number of combinations of spellings that are looked up as titles."""
MAX_TAGS = 100
MAX_FAMILIES = 4
MAX_TAGS_OF_TEXT = 20
LONG_NAME = 9
"""Minimum length of a name in which two typing errors are tolerated."""
_PLURAL = re.compile(r"(?<=...)s$")
_MAIN = re.compile(r"^(.{3,}?)\s*(?:[:(\[]| [-–—] ).*$")
_FAMILIES = frozenset(str.split("gpl agpl lgpl bsd apache mpl cc epl eupl zlib artistic ofl"))
_LICENSE_WORDS = frozenset(str.split("the license licence version v"))
_SMALL = frozenset(str.split("the a an of and in on for to"))
_LAST_LETTER = "\U0010ffff"

_PRODUCTS = """
    SELECT c.name_key, c.slug, c.title FROM catalog_public c
    WHERE c.name_key IN ({keys}) OR c.slug IN ({keys})
    ORDER BY c.product_id
    LIMIT 500
"""
_BEGINNING = """
    SELECT c.slug, c.title FROM catalog_public c WHERE c.name_key >= $1 AND c.name_key < $2
    ORDER BY c.name_key LIMIT 6
"""
_ORGS = f"""
    SELECT o.slug, o.name FROM organisation o
    WHERE (o.slug IN ({{keys}}) OR {ORG_KEY} IN ({{keys}}))
      AND EXISTS (SELECT 1 FROM catalog_public c WHERE c.org_slug = o.slug)
    LIMIT 100
"""
_PUBLISHERS = """
    SELECT o.slug, o.name FROM organisation o
    WHERE lower(substr(o.name, 1, 1)) = $1 AND length(o.name) BETWEEN $2 AND $3
      AND EXISTS (SELECT 1 FROM catalog_public c WHERE c.org_slug = o.slug)
    LIMIT 300
"""
_PUBLISHER_OF = "SELECT c.org_slug FROM catalog_public c WHERE c.slug = $1"
# Tags that only drafts have are ignored. The statement selects the first row in the order of the index, because with
# EXISTS, PostgreSQL would read the whole table for an unused tag.
_TAGS = """
    WITH wanted(value) AS (VALUES {keys})
    SELECT w.value FROM wanted w
    WHERE (
        SELECT 1 FROM catalog_facet f JOIN catalog_public c ON c.product_id = f.product_id WHERE f.facet = w.value
        ORDER BY f.title, f.product_id LIMIT 1
    ) = 1
"""
_ROW_SEPARATOR = "), ("
_TAG_SETS = "SELECT DISTINCT c.tags FROM catalog_public c LIMIT 500"
_LICENSES = """
    WITH wanted(value) AS (VALUES {keys})
    SELECT w.value, (SELECT min(c.license) FROM catalog_public c WHERE c.license_key = w.value) FROM wanted w
"""
_LICENSES_FROM = """
    SELECT DISTINCT c.license FROM catalog_public c WHERE c.license_key >= $1 AND c.license_key < $2 LIMIT 50
"""
# Words that occur only in drafts are ignored.
_TERMS_LIKE = f"""
    WITH near(term) AS MATERIALIZED (
        SELECT DISTINCT y.term FROM catalog_typo y WHERE y.shortened IN ({{keys}}) LIMIT 800
    )
    SELECT n.term, (
        SELECT count(*) FROM (
            SELECT 1 FROM catalog_term t JOIN catalog_public c ON c.product_id = t.product_id
            WHERE t.term = n.term LIMIT {MAX_COUNTED}
        ) AS counted
    ) FROM near n
"""
_TITLES_WITH_WORD = f"""
    SELECT c.slug, c.title FROM catalog_public c
    WHERE c.product_id IN (
        SELECT t.product_id FROM catalog_term t WHERE t.weight = {WEIGHT_OF_TITLE} AND t.term IN ({{keys}})
    )
    LIMIT {MAX_COUNTED}
"""
_TITLES_OF_KEYS = f"""
    SELECT c.slug, c.title FROM catalog_public c WHERE c.name_key IN ({{keys}}) LIMIT {MAX_COUNTED}
"""
_PUBLIC_TERMS = """
    WITH wanted(value) AS (VALUES {keys})
    SELECT w.value FROM wanted w
    WHERE (
        SELECT 1 FROM catalog_term t JOIN catalog_public c ON c.product_id = t.product_id WHERE t.term = w.value LIMIT 1
    ) = 1
"""


Spellings = dict[str, dict[str, int]]
"""Maps each word to its spellings in the catalog, and each spelling to its number of public products."""


class Name(NamedTuple):
    """A name in a text: the words from `start` to `end` name `value`, which is of the kind `slot` (product, org, tag or
    license). `others` are further matching slugs."""

    slot: str
    value: str
    start: int
    end: int
    others: tuple[str, ...] = ()
    title: str = ""


class WordSpan(NamedTuple):
    """A range of consecutive words."""

    start: int
    end: int
    text: str


async def exact(database: Database, runs: Sequence[WordSpan]) -> list[Name]:
    """Names that equal one of the ranges, the longest first. Case, accents and punctuation are ignored."""
    spans_by_form: dict[str, list[WordSpan]] = {}
    for span in runs:
        for form in {lookup_key(span.text), "-".join(words(span.text))} - {""}:
            spans_by_form.setdefault(form, []).append(span)
    results: list[Name] = []
    products = await _rows(database, _PRODUCTS, list(spans_by_form))
    # Exact slug and exact spelling first, then older products of the same name.
    span_texts = {span.text for span in runs}
    products.sort(key=lambda row: (row[1] not in spans_by_form, row[2] not in span_texts))
    for name_key, slug, title in products:
        results += [result._replace(title=title) for result in _named("product", slug, spans_by_form, name_key, slug)]
    for slug, name in await _rows(database, _ORGS, list(spans_by_form)):
        results += _named("org", slug, spans_by_form, lookup_key(name), slug)
    for license_key, name in {*await _rows(database, _LICENSES, list(spans_by_form), separator=_ROW_SEPARATOR)}:
        results += _named("license", name, spans_by_form, license_key) if name else []
    return _merge_by_span([*results, *await _license_families(database, runs), *await _tags(database, spans_by_form)])


async def _license_families(database: Database, runs: Sequence[WordSpan]) -> list[Name]:
    """Licence families: a name without a version ("GPL") or with other words ("Apache License 2.0") matches as a
    prefix."""
    results: list[Name] = []
    licenses: dict[str, str] = {}
    for span in runs:
        begin = _license_prefix(span.text)
        if not begin:
            continue
        if begin not in licenses and len(licenses) < MAX_FAMILIES:
            rows = await database.scan(_LICENSES_FROM, begin, begin + _LAST_LETTER)
            licenses[begin] = "|".join(sorted(name for (name,) in rows))
        results += [Name("license", licenses[begin], span.start, span.end)] if licenses.get(begin) else []
    return results


def _license_prefix(text: str) -> str:
    """The prefix of the licence keys that the text names; empty if it names none."""
    family, *other_words = words(text) or [""]
    significant = [word for word in other_words if word not in _LICENSE_WORDS]
    is_family = len(other_words) <= 3 and family in _FAMILIES and "".join(["0", *significant]).isdigit()
    return "".join([family, *significant]) if is_family else ""


def _named(slot: str, value: str, spans_by_form: dict[str, list[WordSpan]], *forms: str) -> Iterable[Name]:
    spans = {span for form in forms for span in spans_by_form.get(form, ())}
    return [Name(slot, value, span.start, span.end) for span in spans]


def _merge_by_span(results: list[Name]) -> list[Name]:
    """One name for each range and slot; the slugs of further products with the same title go into `others`."""
    unique: dict[tuple[str, int, int], Name] = {}
    for match in results:
        earlier_match = unique.setdefault((match.slot, match.start, match.end), match)
        if match.slot == "product" and match.value != earlier_match.value:
            unique[match.slot, match.start, match.end] = earlier_match._replace(
                others=(*earlier_match.others, match.value)
            )
    return sorted(unique.values(), key=lambda match: match.start - match.end)


async def _tags(database: Database, spans_by_form: dict[str, list[WordSpan]]) -> list[Name]:
    """Tags that the text writes with or without the hyphen, or in the plural."""
    spans_by_tag: dict[str, list[WordSpan]] = {}
    for form, runs in spans_by_form.items():
        for tag in {form, form.replace("-", ""), _PLURAL.sub("", form)}:
            spans_by_tag.setdefault(tag, []).extend(runs)
    rows = await _rows(database, _TAGS, [f"tag:{tag}" for tag in spans_by_tag], separator=_ROW_SEPARATOR)
    known_tags = sorted({facet.removeprefix("tag:") for (facet,) in rows})
    return [name for tag in known_tags[:MAX_TAGS_OF_TEXT] for name in _named("tag", tag, spans_by_tag, tag)]


def _significant_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in _SMALL][:MAX_SPELLINGS]


async def spellings_of(database: Database, texts: Sequence[str]) -> Spellings:
    """The spellings of the words in these texts that are used to look up products."""
    return await spellings(database, list(dict.fromkeys(word for text in texts for word in _significant_words(text))))


async def products_like(
    database: Database, text: str, *, is_known: bool = True, known_spellings: Spellings | None = None
) -> list[tuple[str, str]]:
    """Products that the text may name with a typing error or incompletely, the closest first: slug, title.
    `is_known` is true if the words of the text occur in the catalog, so that it may be an ordinary word instead of a
    name. `known_spellings` is the result of `spellings_of` for several texts, including this text."""
    known_spellings = await spellings_of(database, [text]) if known_spellings is None else known_spellings
    spelt = {word: known_spellings[word] for word in _significant_words(text)}
    likest = _closest(text, await _with_words(database, text, spelt))
    is_word = is_known and " " not in text
    return likest if likest or len(text) < 4 or is_word else await _products_beginning_with(database, lookup_key(text))


async def _with_words(database: Database, text: str, spelt: Spellings) -> list[tuple[str, str]]:
    """Products whose titles contain each word in one of its spellings: slug, title. If every word is in many titles,
    only titles that consist of these words and of small words of the text are found, because reading all titles with a
    frequent word takes long."""
    if not spelt or not all(spelt.values()):
        return []
    rarest = min(spelt, key=lambda word: sum(spelt[word].values()))
    if sum(spelt[rarest].values()) < MAX_COUNTED:
        rows = await _rows(database, _TITLES_WITH_WORD, list(spelt[rarest]))
    else:
        rows = await _rows(database, _TITLES_OF_KEYS, _title_keys(text, spelt))
    return [(slug, title) for slug, title in rows if all({*words(title)} & {*terms} for terms in spelt.values())]


def _title_keys(text: str, spelt: Spellings) -> list[str]:
    """The keys of the titles that the text may be, with each word in one of its spellings; at most `MAX_TITLE_KEYS`."""
    titles = product(*(spelt.get(word, [word]) for word in words(text)))
    return list(dict.fromkeys(lookup_key(" ".join(title)) for title in islice(titles, MAX_TITLE_KEYS)))


async def _products_beginning_with(database: Database, begin: str) -> list[tuple[str, str]]:
    """Products whose titles start with the text; if the text is the main title of exactly one product, only that
    product."""
    rows = await database.fetch(_BEGINNING, begin, begin + _LAST_LETTER)
    longer = [(slug, title) for slug, title in rows]
    main = [name for name in longer if (match := _MAIN.match(name[1])) and lookup_key(match[1]) == begin]
    return main if len(main) == 1 else longer


async def publishers_like(database: Database, text: str) -> list[tuple[str, str]]:
    """Publishers that a mistyped name may refer to, the closest first: slug, name."""
    rows = await database.scan(_PUBLISHERS, text[:1].lower(), len(text) - 4, len(text) + 4)
    return _closest(text, [(slug, name) for slug, name in rows])


async def publisher_of(database: Database, slug: str) -> str:
    """The slug of the organisation that publishes the product."""
    row = await database.fetch_one(_PUBLISHER_OF, slug)
    return "" if row is None else str(row[0])


async def resolved(database: Database, slot: str, text: str) -> str | None:
    """The value of the slot product, org or tag that this text names, exactly or with a typing error; None if no value
    matches."""
    for match in await exact(database, [WordSpan(0, 1, text)]):
        if match.slot == slot:
            return match.value
    like = {"product": products_like, "org": publishers_like}.get(slot)
    similar_matches = await like(database, text) if like else []
    return similar_matches[0][0] if similar_matches else None


async def public_tags(database: Database) -> list[str]:
    """Some of the tags of public products."""
    rows = await database.scan(_TAG_SETS)
    return sorted({tag for (tags,) in rows for tag in tags.split()})[:MAX_TAGS]


async def public_terms(database: Database, terms: Sequence[str]) -> set[str]:
    """The words that occur in the title, tags or description of a public product."""
    return {term for (term,) in await _rows(database, _PUBLIC_TERMS, terms, separator=_ROW_SEPARATOR)}


async def spellings(database: Database, terms: Sequence[str]) -> Spellings:
    """For each word the catalog words that differ in one letter (two in long words), the closest first, each with its
    number of public products; counting stops at `MAX_COUNTED`. Short words and numbers match exactly."""
    keys: set[str] = set()
    for word in terms:
        keys |= deletion_variants(word) & {word} if word.isdigit() else deletion_variants(word)
    counts: dict[str, int] = dict(await _rows(database, _TERMS_LIKE, sorted(keys)))
    return {word: _spellings(word, counts) for word in terms}


def _spellings(word: str, counts: dict[str, int]) -> dict[str, int]:
    if len(word) < MIN_CORRECTED_LENGTH:
        return {word: MAX_COUNTED}
    limit = 0 if word.isdigit() else 1 + (len(word) > 7)
    known_terms = [term for term, count in counts.items() if count]
    distance_by_term = {term: edits for term in known_terms if (edits := edit_distance(word, term, limit)) is not None}
    return {
        term: counts[term]
        for term in sorted(distance_by_term, key=lambda term: (distance_by_term[term], term))[:MAX_SPELLINGS]
    }


def _closest(text: str, named_entries: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows with names that equal the text, apart from typing errors and small words; numbers must be equal."""
    requested_text, numbers = _words_and_numbers(text)
    edits_by_row: dict[tuple[str, str], int] = {}
    for named_entry in named_entries:
        name, other_numbers = _words_and_numbers(named_entry[1])
        size = max(len(requested_text), len(name))
        edits = (
            edit_distance(requested_text, name, 2 if size >= LONG_NAME else int(size > 4))
            if numbers == other_numbers
            else None
        )
        if edits is not None:
            edits_by_row[named_entry] = edits
    return sorted(edits_by_row, key=lambda edit: (edits_by_row[edit], edit))[:3]


def _words_and_numbers(text: str) -> tuple[str, list[str]]:
    plain_words = words(text)
    return "".join(word for word in plain_words if word not in _SMALL), [word for word in plain_words if word.isdigit()]


async def _rows(database: Database, text: str, keys: Sequence[str], separator: str = ", ") -> list[Any]:
    """The rows of a statement with several keys; the last key is repeated, so that there are few different
    statements."""
    if not keys:
        return []
    row_limit = 16
    while row_limit < len(keys):
        row_limit *= 4
    statement = SqlBuilder()
    values = statement.add_all([*keys, *([keys[-1]] * (row_limit - len(keys)))]).replace(", ", separator)
    sql = text.format(keys=values if separator == ", " else f"({values})")
    return [tuple(row) for row in await database.scan(sql, *statement.values)]
