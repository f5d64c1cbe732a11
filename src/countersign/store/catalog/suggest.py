"""GET /search/suggest: products, publishers and tags for a text that is being typed; each part reads a bounded number
of rows."""

from typing import Annotated

import msgspec

from countersign.kernel.database.port import Database
from countersign.kernel.errors import invalid_parameter
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog import products
from countersign.store.catalog.catalog_index import CatalogIndex
from countersign.store.catalog.projection import ORG_KEY, lookup_key
from countersign.store.catalog.schemas import FacetCount, Product, SearchText
from countersign.store.catalog.search import (
    MIN_CORRECTED_LENGTH,
    PageQuery,
    SqlBuilder,
    prefix_end,
    search_words,
)
from countersign.store.context import Store

MAX_PRODUCTS, MAX_PUBLISHERS, MAX_TAGS = 6, 3, 3
MAX_READ = 1_000
"""The maximum number of words of titles that one suggestion reads."""
BY_TITLE = """
    SELECT e.card
    FROM (
        SELECT product_id, max(CASE WHEN term = {word} THEN 1 ELSE 0 END) AS is_whole
        FROM (
            SELECT t.term, t.product_id
            FROM catalog_term t
            WHERE t.term >= {word} AND t.term < {end} AND t.weight >= 8{others}
            ORDER BY t.term, t.title, t.product_id
            LIMIT {limit}
        ) AS first_terms
        GROUP BY product_id
    ) AS hit
    JOIN catalog_entry e ON e.product_id = hit.product_id
    WHERE e.status = 'public'
    ORDER BY hit.is_whole DESC, e.title, e.product_id
    LIMIT {products}
"""
HAS_WORD = """
    AND EXISTS (SELECT 1 FROM catalog_term o WHERE o.term = {word} AND o.product_id = t.product_id)
"""
PUBLISHERS = f"""
    SELECT o.slug, o.name, c.product_count
    FROM catalog_publisher c
    JOIN organisation o ON o.id = c.org_id
    WHERE c.product_count > 0 AND {ORG_KEY} LIKE $1
    ORDER BY CASE WHEN {ORG_KEY} LIKE $2 THEN 0 ELSE 1 END, c.product_count DESC, o.slug
    LIMIT $3
"""
RARE_TAGS = """
    SELECT f.facet, count(*)
    FROM (
        SELECT facet, product_id FROM catalog_facet WHERE facet >= $1 AND facet < $2 ORDER BY facet, title LIMIT $3
    ) f
    JOIN catalog_index k ON k.product_id = f.product_id
    WHERE k.is_public = 1
    GROUP BY f.facet
    ORDER BY 2 DESC, 1
    LIMIT $4
"""


class SuggestedPublisher(msgspec.Struct):
    """A publisher whose name has the text, with the number of its public products."""

    slug: str
    name: str
    verified: bool
    product_count: int


class Suggestions(msgspec.Struct):
    """At most six products, three publishers and three tags; tags with the number of public products."""

    products: list[Product]
    publishers: list[SuggestedPublisher]
    tags: list[FacetCount]


class SuggestQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /search/suggest."""

    q: Annotated[SearchText, msgspec.Meta(description="The text typed so far; the last word may be incomplete.")]


async def suggest(call: StoreRequest[SuggestQuery, Nothing]) -> Response:
    """Suggest products, publishers and tags for a text that is being typed."""
    store, typed_text = call.context, call.query.q
    search_terms = search_words(typed_text)
    if not search_terms:
        raise invalid_parameter("q", "must contain a letter or digit")
    cards = await _products(store.database, search_terms)
    members = (
        encode(await _publishers(store.database, typed_text)),
        encode(await _tags(store, "-".join(search_terms))),
    )
    return Response(200, b'{"products":[%b],"publishers":%b,"tags":%b}' % (b",".join(cards), *members))


async def _products(database: Database, search_terms: list[str]) -> list[bytes]:
    """The encoded products with these words. The last word may be the beginning of a word of the title. If no product
    matches, return the products that the search matches with typing errors."""
    statement = SqlBuilder()
    *other_words, last_word = search_terms
    word, end = statement.add(last_word), statement.add(prefix_end(last_word))
    tests = "".join(HAS_WORD.format(word=statement.add(other_word)) for other_word in other_words)
    limits = {"limit": MAX_READ, "products": MAX_PRODUCTS}
    text = BY_TITLE.format(word=word, end=end, others=tests, **limits)
    rows = await database.scan(text, *statement.values)
    if not rows and len(last_word) >= MIN_CORRECTED_LENGTH:
        product_page = await products.read_page(database, PageQuery((), search_terms, "relevance", (), MAX_PRODUCTS))
        return [row[4] for row in product_page]
    return [row[0] for row in rows]


async def _publishers(database: Database, typed_text: str) -> list[SuggestedPublisher]:
    key = lookup_key(typed_text)
    if "%" in key or "_" in key:
        return []
    rows = await database.scan(PUBLISHERS, f"%{key}%", f"{key}%", MAX_PUBLISHERS)
    return [SuggestedPublisher(slug, name, False, int(count)) for slug, name, count in rows]


async def _tags(store: Store, beginning: str) -> list[FacetCount]:
    """The most frequent tags that begin with the text: first tags with a set in memory, then rare tags."""
    index = store.memory.get(CatalogIndex)
    is_own = store.database is store.memory.database
    await index.update((await store.versions())[0] if is_own else -1)
    public_products = index.products("public") or 0
    count_by_tag = {
        tag: (bits & public_products).bit_count() for tag, bits in index.tags().items() if tag.startswith(beginning)
    }
    if len(count_by_tag) < MAX_TAGS and not index.has_every_tag():
        rows = await store.database.scan(
            RARE_TAGS, f"tag:{beginning}", f"tag:{beginning}\U0010ffff", MAX_READ, 2 * MAX_TAGS
        )
        for facet, count in rows:
            count_by_tag.setdefault(facet.removeprefix("tag:"), int(count))
    most_frequent = sorted(count_by_tag.items(), key=lambda item: (-item[1], item[0]))
    return [FacetCount(tag, count) for tag, count in most_frequent[:MAX_TAGS] if count]


ROUTES = (
    route(
        "GET",
        "/search/suggest",
        suggest,
        query=SuggestQuery,
        answers={200: Suggestions},
        cached=True,
        cross_origin=True,
    ),
)
