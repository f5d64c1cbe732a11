"""Run filters: the rows that a filter matches, and the filter in SQL, as fixed fragments with values as parameters
only.

The statements read only the table of public products and published releases, so that no question can find or count
anything else.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Row, Value
from countersign.store.catalog.filter import KNOWN, By, Filter, Values, conditions, moment, slot, with_slots
from countersign.store.catalog.projection import CHANNELS, ORG_KEY, PLATFORMS, WEIGHT_OF_TITLE, bit_mask, lookup_key
from countersign.store.catalog.schemas import ProductDetail
from countersign.store.catalog.search import SqlBuilder, words
from countersign.store.catalog.versions import sort_key

MAX_ROWS = 200
DETAILS = """
    SELECT e.detail, o.name
    FROM catalog_public c
    JOIN catalog_entry e ON e.product_id = c.product_id
    JOIN organisation o ON o.slug = c.org_slug
    WHERE c.slug IN ({slugs})
"""
FILES = """
    SELECT a.filename, a.size, a.sha256, a.platform
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    JOIN artifact a ON a.release_id = r.id
    WHERE c.slug = $1 AND r.version = $2 AND r.status = 'published' AND a.status = 'ready'
    ORDER BY a.filename
    LIMIT 50
"""
OPEN, NO_LICENSE = "open", "none"
"""Values of the licence slot: `open` means any but a proprietary licence, `none` means no licence."""
_TAG = re.compile(r"[a-z0-9-]{1,40}")
_BY_TITLE = "c.title, c.product_id"
_SORTED = "c.title || '', c.product_id"
"""The order by title as an expression that no index has."""
MAX_WALKED = 1_000
_WALKED = """
    SELECT p.product_id, p.slug, p.title, p.kind, p.platforms, p.channels, p.is_free, p.license, p.license_key, p.tags,
"""
_WALK = f"{_WALKED} p.title AS place FROM catalog_public p ORDER BY p.title, p.product_id LIMIT {{size}}"
_WALK_OF_TAG = f"""
    {_WALKED} f.title AS place FROM catalog_facet f JOIN catalog_public p ON p.product_id = f.product_id
    WHERE f.facet = {{facet}}
    ORDER BY f.title, f.product_id
    LIMIT {{size}}
"""
_SIZE_OF_TAG = "(SELECT count(*) FROM (SELECT 1 FROM catalog_facet f WHERE f.facet = {facet} LIMIT {size}) AS walk)"
_WALKED_SLOTS = frozenset(["kind", "platform", "channel", "access", "license", "tag"])
"""The slots whose conditions can be checked on each row of `catalog_public` alone."""
_RELEASES = "(SELECT count(*) FROM release r WHERE r.product_id = c.product_id AND r.status = 'published')"
_ORDERS = {
    "title": _BY_TITLE,
    "newest": f"c.last_at DESC, {_BY_TITLE}",
    "oldest": f"c.first_at, {_BY_TITLE}",
    "releases": f"{_RELEASES} DESC, {_BY_TITLE}",
    "platforms": "(c.platforms & 1) + (c.platforms & 2) / 2 + (c.platforms & 4) / 4 + (c.platforms & 8) / 8"
    f" + (c.platforms & 16) / 16 + (c.platforms & 32) / 32 DESC, {_BY_TITLE}",
    "products": _BY_TITLE,
}
_ORDERS_OF_PUBLISHERS = {
    "products": "products DESC, ",
    "releases": f"sum({_RELEASES}) DESC, ",
    "newest": "max(coalesce(c.last_at, 0)) DESC, ",
    "oldest": f"min(coalesce(c.first_at, {1 << 62})), ",
}
_FROM = {
    "products": "catalog_public c",
    "publishers": "catalog_public c JOIN organisation o ON o.slug = c.org_slug",
    "releases": "catalog_public c JOIN release r ON r.product_id = c.product_id",
}
_HAS_TERM = (
    "c.product_id IN (SELECT t.product_id FROM catalog_term t WHERE t.term IN ({terms}) AND t.weight >= {weight})"
)
_COMPARISON = re.compile(r"(>=|<=|>|<)\s*v?(.+)", re.DOTALL)
_BITS = {"platform": PLATFORMS, "channel": CHANNELS}
MAX_TAG_SETS = 20_000
"""The maximum number of distinct tag sets that are counted, the most frequent first."""
_COLUMNS = {
    "tag": "c.tags",
    "kind": "c.kind",
    "org": "c.org_slug",
    "license": "coalesce(c.license, 'none')",
    "access": "CASE c.is_free WHEN 1 THEN 'free' ELSE 'entitled' END",
}
Built = tuple[str, list[Value]]


class ProductMatch(NamedTuple):
    """A product that a filter matches."""

    slug: str
    title: str


class ReleaseMatch(NamedTuple):
    """A release that a filter matches."""

    slug: str
    title: str
    version: str
    channel: str
    published_at: Instant
    notes: str | None


class PublisherMatch(NamedTuple):
    """A publisher that a filter matches, with the number of matching products."""

    slug: str
    name: str
    products: int


class Facts(NamedTuple):
    """The facts of a product in the catalog, and its publisher's name."""

    detail: ProductDetail
    publisher: str

    @property
    def slug(self) -> str:
        """The product's slug."""
        return self.detail.slug


class ArtifactFile(NamedTuple):
    """A file of a release."""

    name: str
    size: int
    sha256: str
    platform: str


async def total(database: Database, query: Filter) -> int:
    """The number of matching rows, regardless of the limit."""
    statement = SqlBuilder()
    count_expression = "count(DISTINCT c.org_slug)" if query.find == "publishers" else "count(*)"
    text = f"SELECT {count_expression} FROM {_FROM[query.find]} WHERE {_where_clause(statement, query)}"
    return int((await database.scan(text, *statement.values))[0][0])


async def has_rows(database: Database, query: Filter) -> bool:
    """Whether any row matches."""
    # Do not order the rows, because PostgreSQL would read and sort all matching rows to find the first one.
    statement = SqlBuilder()
    text = (
        f"SELECT 1 FROM {_FROM[query.find]} WHERE {_where_clause(statement, query)}{_has_release_clause(query)} LIMIT 1"
    )
    return bool(await database.scan(text, *statement.values))


async def products(database: Database, query: Filter) -> list[ProductMatch]:
    """The first products that match the conditions, regardless of `find` of the filter."""
    query = replace(query, find="products")
    rows = await _first_matches_by_title(database, query) if _is_read_in_title_order(database, query) else None
    return [ProductMatch(*row) for row in (await _rows(database, query) if rows is None else rows)]


async def releases(database: Database, query: Filter) -> list[ReleaseMatch]:
    """The first releases that match the conditions, regardless of `find` of the filter."""
    return [ReleaseMatch(*row) for row in await _rows(database, replace(query, find="releases"))]


async def publishers(database: Database, query: Filter) -> list[PublisherMatch]:
    """The first publishers of products that match the conditions, regardless of `find` of the filter."""
    return [PublisherMatch(*row) for row in await _rows(database, replace(query, find="publishers"))]


async def counts(database: Database, query: Filter, slot_name: By) -> Counter[str]:
    """The number of rows for each value of a slot."""
    if slot_name in ("platform", "channel"):
        condition = slot(query, slot_name)
        query_by_value = {
            value: with_slots(query, **{slot_name: replace(condition, all=(*condition.all, value))})
            for value in KNOWN[slot_name]
        }
        return Counter({value: await total(database, filter) for value, filter in query_by_value.items()})
    statement, column = SqlBuilder(), _COLUMNS[slot_name]
    count_expression = "count(DISTINCT c.org_slug)" if query.find == "publishers" else "count(*)"
    text = f"SELECT {column}, {count_expression} FROM {_FROM[query.find]} WHERE {_where_clause(statement, query)}"
    text = f"{text} GROUP BY {column} ORDER BY 2 DESC, 1 LIMIT {MAX_TAG_SETS if slot_name == 'tag' else 50}"
    count_by_value: Counter[str] = Counter()
    for value, count in await database.scan(text, *statement.values):
        count_by_value.update(dict.fromkeys(str(value).split() if slot_name == "tag" else [str(value)], int(count)))
    return await _counts_by_name(database, count_by_value) if slot_name == "org" else count_by_value


async def _counts_by_name(database: Database, count_by_slug: Counter[str]) -> Counter[str]:
    """The counts of organisations by name."""
    statement = SqlBuilder()
    text = f"SELECT o.slug, o.name FROM organisation o WHERE o.slug IN ({statement.add_all(list(count_by_slug))})"
    rows = await database.scan(text, *statement.values) if count_by_slug else []
    names = {str(slug): str(name) for slug, name in rows}
    count_by_name: Counter[str] = Counter()
    for slug, count in count_by_slug.items():
        count_by_name[names.get(slug, slug)] += count
    return count_by_name


async def facts(database: Database, slugs: Sequence[str]) -> list[Facts]:
    """The public products with these slugs, in their order."""
    statement = SqlBuilder()
    rows = await database.fetch(DETAILS.format(slugs=statement.add_all(slugs)), *statement.values) if slugs else []
    facts_of_rows = [Facts(msgspec.json.decode(detail, type=ProductDetail), publisher) for detail, publisher in rows]
    by_slug = {facts.slug: facts for facts in facts_of_rows}
    return [by_slug[slug] for slug in slugs if slug in by_slug]


async def files(database: Database, slug: str, version: str) -> list[ArtifactFile]:
    """The first files of a product's published release, by name."""
    return [ArtifactFile(*row) for row in await database.fetch(FILES, slug, version)]


def _is_read_in_title_order(database: Database, query: Filter) -> bool:
    """Whether to search the first products by title before reading the complete table.

    PostgreSQL assumes that the matching rows are spread evenly over the order of titles, and follows that index to
    its end if no row or only late titles match, although the table has another order. That takes four times as long
    as reading and sorting all rows. In SQLite, the table has the order of titles."""
    is_by_title = (query.find, _ORDERS[query.order]) == ("products", _BY_TITLE)
    is_dated = query.since is not None or query.until is not None or query.when != "any"
    slots = {name for name, _ in conditions(query)}
    return database.dialect == "postgres" and is_by_title and not is_dated and slots <= _WALKED_SLOTS


async def _first_matches_by_title(database: Database, query: Filter) -> list[Row] | None:
    """The matching products among the first ones of the catalog or of a tag; None if there may be more."""
    statement, limit = SqlBuilder(), min(query.limit or MAX_ROWS, MAX_ROWS)
    tag = _only_tag(query)
    facet = statement.add(f"tag:{tag}") if tag else ""
    walk, size = (_WALK_OF_TAG, _SIZE_OF_TAG) if tag else (_WALK, "{size}")
    text = f"SELECT c.slug, c.title, {size} FROM ({walk}) c".format(facet=facet, size=MAX_WALKED)
    text += f" WHERE {_where_clause(statement, query)} ORDER BY c.place, c.product_id LIMIT {statement.add(limit)}"
    rows = await database.scan(text, *statement.values)
    is_all = bool(rows) and (len(rows) == limit or rows[0][2] < MAX_WALKED)
    return [(slug, title) for slug, title, _ in rows] if is_all else None


def _only_tag(query: Filter) -> str:
    """A tag that all matching products have; empty if there may be none."""
    condition = query.where.tag
    required_tags = [*condition.all, *(condition.any if len(condition.any) == 1 else ())]
    return required_tags[0].lower().replace(" ", "-") if required_tags else ""


async def _rows(database: Database, query: Filter) -> list[Row]:
    statement = SqlBuilder()
    where_clause = _where_clause(statement, query) + _has_release_clause(query)
    columns, order = "c.slug, c.title", _ORDERS[query.order]
    if query.find == "releases":
        columns += ", r.version, r.channel, r.published_at, r.notes"
        sign = "" if query.order == "oldest" else " DESC"
        order = f"r.published_at{sign}, r.sort_key{sign}, r.id{sign}"
    elif query.find == "publishers":
        columns, where_clause = "o.slug, o.name, count(*) AS products", f"{where_clause} GROUP BY o.slug, o.name"
        order = f"{_ORDERS_OF_PUBLISHERS.get(query.order, '')}o.name, o.slug"
    elif _is_read_in_title_order(database, query):
        order = _SORTED
    limit = statement.add(min(query.limit or MAX_ROWS, MAX_ROWS))
    text = f"SELECT {columns} FROM {_FROM[query.find]} WHERE {where_clause} ORDER BY {order} LIMIT {limit}"
    return await database.scan(text, *statement.values)


def _where_clause(statement: SqlBuilder, query: Filter) -> str:
    clauses = _release_clauses(statement, query) if query.find == "releases" else _product_clauses(statement, query)
    return " AND ".join(clauses) or "1 = 1"


def _has_release_clause(query: Filter) -> str:
    """The condition that a product has a release, if products are ordered by their releases."""
    is_dated = query.find == "products" and query.order in ("newest", "oldest")
    return " AND c.last_at IS NOT NULL" if is_dated else ""


def _product_clauses(statement: SqlBuilder, query: Filter) -> list[str]:
    is_dated = query.since is not None or query.until is not None
    clauses = _slot_clauses(
        statement, query, excluded_names=("channel",) if is_dated and query.when in ("any", "none") else ()
    )
    if query.when in ("first", "last"):
        column = f"c.{query.when}_at"
        clauses += [f"{column} IS NOT NULL", *_time_clauses(statement, column, query)]
    elif is_dated or query.when == "none":
        release_conditions = [
            *_channel_clauses(statement, query.channel),
            *_time_clauses(statement, "r.published_at", query),
        ]
        clauses.append(_release_subquery_clause(release_conditions, "NOT IN" if query.when == "none" else "IN"))
    if query.where.version:
        # DISTINCT makes PostgreSQL search for the versions first: it assumes that they are frequent, but they are
        # rare.
        clauses.append(
            _release_subquery_clause(_value_clauses(statement, _version_clause, query.where.version), "IN", "DISTINCT ")
        )
    return clauses


def _release_subquery_clause(tests: Sequence[str], sign: str = "IN", distinct: str = "") -> str:
    tests = ["r.status = 'published'", *tests]
    return f"c.product_id {sign} (SELECT {distinct}r.product_id FROM release r WHERE {' AND '.join(tests)})"


def _release_clauses(statement: SqlBuilder, query: Filter) -> list[str]:
    is_of_product = bool(query.where.product.any)
    clauses = ["r.status = 'published'"]
    clauses += _slot_clauses(statement, query, excluded_names=("channel", "text") if is_of_product else ("channel",))
    clauses += _value_clauses(statement, _notes_clause, query.where.text) if is_of_product else []
    clauses += _channel_clauses(statement, query.channel) + _time_clauses(statement, "r.published_at", query)
    return clauses + _value_clauses(statement, _version_clause, query.where.version)


def _time_clauses(statement: SqlBuilder, column: str, query: Filter) -> list[str]:
    time_limits = ((">=", query.since), ("<", query.until))
    return [f"{column} {sign} {statement.add(moment(end))}" for sign, end in time_limits if end is not None]


def _channel_clauses(statement: SqlBuilder, condition: Values) -> list[str]:
    channels = (*condition.any, *condition.all)
    clauses = [f"r.channel IN ({statement.add_all(channels)})"] if channels else []
    return clauses + ([f"r.channel NOT IN ({statement.add_all(condition.none)})"] if condition.none else [])


def _version_clause(statement: SqlBuilder, text: str) -> str:
    """A condition on releases: `>1.0` compares by the order of versions; other versions are equal with a leading `v`
    or a trailing `.0`."""
    comparison = _COMPARISON.fullmatch(text)
    if comparison:
        return f"(r.sort_key {comparison[1]} {statement.add(sort_key(comparison[2]))})"
    plain_version = text.lower().removeprefix("v")
    return f"(lower(r.version) IN ({statement.add_all([plain_version, f'v{plain_version}', f'{plain_version}.0'])}))"


def _slot_clauses(statement: SqlBuilder, query: Filter, excluded_names: Sequence[str]) -> list[str]:
    clauses: list[str] = []
    for name, condition in conditions(query):
        if name in excluded_names or name == "version":
            continue
        clauses += (
            _bit_clauses(statement, name, condition)
            if name in _BITS
            else _value_clauses(statement, _TESTS[name], condition)
        )
    return clauses


def _bit_clauses(statement: SqlBuilder, slot: str, condition: Values) -> list[str]:
    # Do not use `=`. PostgreSQL assumes that an expression rarely equals a value, and reads and sorts the whole table.
    clauses: list[str] = []
    for values, test in ((condition.any, "> 0"), (condition.none, "< 1")):
        if values:
            clauses.append(f"(c.{slot}s & {statement.add(bit_mask(_BITS[slot], [*values]))}) {test}")
    if condition.all:
        selected_bits = bit_mask(_BITS[slot], [*condition.all])
        clauses.append(f"(c.{slot}s & {statement.add(selected_bits)}) >= {statement.add(selected_bits)}")
    return clauses


def _value_clauses(statement: SqlBuilder, test: Callable[[SqlBuilder, str], str], condition: Values) -> list[str]:
    clauses = [test(statement, value) for value in condition.all]
    if condition.any:
        clauses.append(f"({' OR '.join(test(statement, value) for value in condition.any)})")
    return clauses + [f"NOT {test(statement, value)}" for value in condition.none]


def _tag_clause(statement: SqlBuilder, value: str) -> str:
    # A value with other characters matches no tag. Reject it, because `%` and `_` are wildcards of LIKE.
    plain_tag = value.lower().replace(" ", "-")
    return f"c.tags LIKE {statement.add(f'% {plain_tag} %')}" if _TAG.fullmatch(plain_tag) else "1 = 0"


def _org_clause(statement: SqlBuilder, value: str) -> str:
    org_condition = f"o.slug = {statement.add(value)} OR {ORG_KEY} = {statement.add(lookup_key(value))}"
    return f"(c.org_slug IN (SELECT o.slug FROM organisation o WHERE {org_condition}))"


def _license_clause(statement: SqlBuilder, value: str) -> str:
    if value == NO_LICENSE:
        return "(c.license IS NULL)"
    if value == OPEN:
        return "(c.license_key NOT IN ('-', 'proprietary'))"
    return f"(c.license_key = {statement.add(lookup_key(value))})"


def _notes_clause(statement: SqlBuilder, value: str) -> str:
    # Words do not contain the two wildcards of LIKE.
    note_conditions = [f"lower(coalesce(r.notes, '')) LIKE {statement.add(f'%{word}%')}" for word in words(value)]
    return f"({' AND '.join(note_conditions) or '1 = 0'})"


_TESTS: dict[str, Callable[[SqlBuilder, str], str]] = {
    "kind": lambda statement, value: f"c.kind = {statement.add(value)}",
    "access": lambda _, value: f"c.is_free = {int(value == 'free')}",
    "tag": _tag_clause,
    "org": _org_clause,
    "license": _license_clause,
    "product": lambda it, value: f"(c.slug = {it.add(value)} OR c.name_key = {it.add(lookup_key(value))})",
    "title": lambda statement, value: _terms_clause(statement, [[word] for word in words(value)], WEIGHT_OF_TITLE),
    "text": lambda statement, value: _terms_clause(statement, [forms(word) for word in words(value)], 0),
}


def forms(word: str) -> list[str]:
    """A word in its singular and plural forms."""
    forms_of_word = [word, f"{word}s"]
    if word.endswith("s") and len(word) > 3:
        forms_of_word.append(word[:-1])
    if word.endswith("ies") and len(word) > 4:
        forms_of_word.append(f"{word[:-3]}y")
    if word.endswith("y"):
        forms_of_word.append(f"{word[:-1]}ies")
    if word.endswith(("ches", "shes", "sses", "xes")):
        forms_of_word.append(word[:-2])
    return forms_of_word


def _terms_clause(statement: SqlBuilder, condition: Sequence[list[str]], weight: int) -> str:
    clauses = [_HAS_TERM.format(terms=statement.add_all(terms), weight=weight) for terms in condition]
    return f"({' AND '.join(clauses) or '1 = 0'})"
