"""Statements of the typed query, put together from fixed fragments; values are parameters only.

They read the table of public products and published releases alone, so that nothing else can be found, counted or
guessed at, whatever is asked.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from countersign.distribution.ask.query import Products, Publishers, Releases
from countersign.distribution.ask.told import (
    AnyCondition,
    By,
    Either,
    Every,
    Free,
    Licensed,
    MakerOf,
    Mentioning,
    Named,
    Not,
    OfKind,
    On,
    OnlyChannel,
    OnlyOn,
    Released,
    StartingWith,
    Tagged,
    Titled,
)
from countersign.distribution.catalog.projection import WEIGHT_OF_TITLE
from countersign.distribution.catalog.public import CHANNELS, PLATFORMS, bits, key
from countersign.distribution.catalog.statements import Statement
from countersign.distribution.catalog.words import words
from countersign.distribution.publishing.versions import sort_key
from countersign.kernel import clock
from countersign.kernel.database.port import Value

_TAG = re.compile(r"[a-z0-9-]{1,40}")
LAST_LETTER = "\U0010ffff"
BY_TITLE = "c.title, c.product_id"
ORDERS = {
    "title": BY_TITLE,
    "newest": f"c.last_at DESC, {BY_TITLE}",
    "oldest": f"c.last_at, {BY_TITLE}",
    "debut_first": f"c.first_at, {BY_TITLE}",
    "debut_last": f"c.first_at DESC, {BY_TITLE}",
}
RELEASES_NEWEST = "r.published_at DESC, r.sort_key DESC, r.id DESC"
RELEASES_OLDEST = "r.published_at, r.sort_key, r.id"
HAS_TERM = (
    "c.product_id IN (SELECT t.product_id FROM catalog_term t WHERE t.term IN ({terms}) AND t.weight >= {weight})"
)

_BY_TERM, _IN_ORDER = "c.product_id IN (SELECT t.", "(c.product_id || '') IN (SELECT t."
"""Written the second way, SQLite walks the catalog in its order and stops early, and does not sort all that have it."""

Built = tuple[str, list[Value]]


def products(asked: Products, limit: int) -> Built:
    """The first products: slug, title."""
    statement = Statement()
    conditions = [condition(statement, asked.where)]
    if asked.order != "title":
        conditions.append("c.last_at IS NOT NULL")
    text = f"""
        SELECT c.slug, c.title
        FROM catalog_public c
        WHERE {" AND ".join(conditions)}
        ORDER BY {ORDERS[asked.order]}
        LIMIT {statement.value(limit)}
    """
    return text.replace(_BY_TERM, _IN_ORDER), statement.values


def count_products(asked: Products) -> Built:
    """How many products there are."""
    statement = Statement()
    text = f"SELECT count(*) FROM catalog_public c WHERE {condition(statement, asked.where)}"
    return text, statement.values


def releases(asked: Releases, limit: int) -> Built:
    """The first releases: slug, title, version, channel, published_at."""
    statement = Statement()
    text = f"""
        SELECT c.slug, c.title, r.version, r.channel, r.published_at
        FROM catalog_public c
        JOIN release r ON r.product_id = c.product_id
        WHERE {_of_releases(statement, asked)}
        ORDER BY {RELEASES_NEWEST if asked.order == "newest" else RELEASES_OLDEST}
        LIMIT {statement.value(limit)}
    """
    return text, statement.values


def count_releases(asked: Releases) -> Built:
    """How many releases there are."""
    statement = Statement()
    text = f"""
        SELECT count(*)
        FROM catalog_public c
        JOIN release r ON r.product_id = c.product_id
        WHERE {_of_releases(statement, asked)}
    """
    return text, statement.values


def publishers(asked: Publishers, limit: int) -> Built:
    """The first organisations: slug, name."""
    statement = Statement()
    text = f"""
        SELECT o.slug, o.name
        FROM organisation o
        WHERE {_publishes(statement, asked)}
        ORDER BY o.name, o.slug
        LIMIT {statement.value(limit)}
    """
    return text, statement.values


def count_publishers(asked: Publishers) -> Built:
    """How many organisations there are."""
    statement = Statement()
    text = f"SELECT count(*) FROM organisation o WHERE {_publishes(statement, asked)}"
    return text, statement.values


def _publishes(statement: Statement, asked: Publishers) -> str:
    held = f"o.slug IN (SELECT c.org_slug FROM catalog_public c WHERE {condition(statement, asked.where)})"
    return f"o.slug IN (SELECT c.org_slug FROM catalog_public c) AND NOT {held}" if asked.none else held


def _of_releases(statement: Statement, asked: Releases) -> str:
    conditions = ["r.status = 'published'", *_range(statement, "r.published_at", asked.since, asked.until)]
    if asked.channel is not None:
        conditions.append(f"r.channel = {statement.value(asked.channel)}")
    conditions += [f"r.channel <> {statement.value(each)}" for each in asked.barred]
    if asked.above is not None:
        conditions.append(f"r.sort_key > {statement.value(sort_key(asked.above))}")
    if asked.below is not None:
        conditions.append(f"r.sort_key < {statement.value(sort_key(asked.below))}")
    conditions.append(condition(statement, asked.where))
    return " AND ".join(conditions)


def instant(moment: str) -> int:
    """A moment of the typed query as the database stores it."""
    return clock.from_datetime(datetime.fromisoformat(moment))


def _range(statement: Statement, column: str, since: str | None, until: str | None) -> list[str]:
    found: list[str] = []
    if since is not None:
        found.append(f"{column} >= {statement.value(instant(since))}")
    if until is not None:
        found.append(f"{column} < {statement.value(instant(until))}")
    return found


def condition(statement: Statement, told: AnyCondition) -> str:
    """The condition in SQL, true or false of every row of `catalog_public c`, never NULL."""
    if isinstance(told, Every):
        return _joined(statement, told.of, " AND ", "1 = 1")
    if isinstance(told, Either):
        return _joined(statement, told.of, " OR ", "1 = 0")
    if isinstance(told, Not):
        return f"NOT {condition(statement, told.of)}"
    if isinstance(told, Released):
        return _released(statement, told)
    return _of_product(statement, told) or _of_words(statement, told)


def _joined(statement: Statement, of: Sequence[AnyCondition], joint: str, empty: str) -> str:
    return f"({joint.join(condition(statement, each) for each in of) or empty})"


def _of_product(statement: Statement, told: AnyCondition) -> str:
    match told:
        case OfKind(value):
            return f"c.kind = {statement.value(value)}"
        case On(value):
            return f"(c.platforms & {statement.value(bits(PLATFORMS, [value]))}) <> 0"
        case OnlyOn(values):
            return f"c.platforms = {statement.value(bits(PLATFORMS, [*values]))}"
        case By(value):
            return f"c.org_slug = {statement.value(value)}"
        case Free():
            return "c.is_free = 1"
        case Named(value):
            return f"c.slug = {statement.value(value)}"
        case OnlyChannel(value):
            return f"c.channels = {statement.value(bits(CHANNELS, [value]))}"
        case Licensed(value):
            return _licensed(statement, value)
        case _:
            return ""


def _licensed(statement: Statement, name: str | None) -> str:
    if name is None:
        return "c.license IS NULL"
    return f"(c.license IS NOT NULL AND lower(c.license) = lower({statement.value(name)}))"


def _of_words(statement: Statement, told: AnyCondition) -> str:
    match told:
        case Tagged(value):
            # Other letters no tag has, and two of them would mean something to LIKE.
            return f"c.tags LIKE {statement.value(f'% {value} %')}" if _TAG.fullmatch(value) else "1 = 0"
        case Titled(texts):
            return _terms(statement, [[word] for word in _words(texts)], WEIGHT_OF_TITLE)
        case Mentioning(texts):
            return _terms(statement, [forms(word) for word in _words(texts)], 0)
        case MakerOf(value):
            return f"c.org_slug IN (SELECT d.org_slug FROM catalog_public d WHERE d.slug = {statement.value(value)})"
        case StartingWith(value):
            begin, end = statement.value(key(value)), statement.value(key(value) + LAST_LETTER)
            return f"(c.name_key >= {begin} AND c.name_key < {end})"
        case _:
            raise TypeError(f"no condition of one product: {told}")


def _words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in words(text)]


def forms(word: str) -> list[str]:
    """A word in singular and plural."""
    found = [word, f"{word}s"]
    if word.endswith("s") and len(word) > 3:
        found.append(word[:-1])
    if word.endswith("ies") and len(word) > 4:
        found.append(f"{word[:-3]}y")
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    return found


def _terms(statement: Statement, wanted: list[list[str]], weight: int) -> str:
    found = [HAS_TERM.format(terms=statement.list(terms), weight=weight) for terms in wanted]
    return f"({' AND '.join(found) or '1 = 0'})"


def _released(statement: Statement, told: Released) -> str:
    if told.channel is None and (told.first or told.since is None or told.until is None):
        # The row itself knows its first and its newest release.
        late = "c.first_at" if told.first else "c.last_at"
        conditions = _range(statement, late, told.since, None) + _range(statement, "c.first_at", None, told.until)
        return f"({' AND '.join(['c.first_at IS NOT NULL', *conditions])})"
    if told.channel is not None and told.since is None and told.until is None:
        return f"(c.channels & {statement.value(bits(CHANNELS, [told.channel]))}) <> 0"
    return _released_of_all(statement, told)


def _released_of_all(statement: Statement, told: Released) -> str:
    conditions = ["r.status = 'published'"]
    if told.channel is not None:
        conditions.append(f"r.channel = {statement.value(told.channel)}")
    ranged = _range(statement, "min(r.published_at)" if told.first else "r.published_at", told.since, told.until)
    grouped = f" GROUP BY r.product_id HAVING {' AND '.join(ranged)}" if told.first else ""
    where = " AND ".join(conditions if told.first else conditions + ranged)
    return f"c.product_id IN (SELECT r.product_id FROM release r WHERE {where}{grouped})"
