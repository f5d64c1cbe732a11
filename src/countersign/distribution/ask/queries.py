"""SQL of questions about particular products, and of the names that questions use."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from countersign.distribution.catalog.schemas import ChannelName, ProductDetail
from countersign.distribution.catalog.statements import Statement
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database

DETAIL = """
    SELECT e.detail, o.name
    FROM catalog_public c
    JOIN catalog_entry e ON e.product_id = c.product_id
    JOIN organisation o ON o.slug = c.org_slug
    WHERE c.slug = $1
"""
RELEASES = """
    SELECT r.version, r.channel, r.published_at, r.notes, r.sort_key
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    WHERE c.slug = $1 AND r.status = 'published'
      AND ($2 = '' OR r.channel = $2)
      AND (
          $3 = ''
          OR NOT EXISTS (
              SELECT 1 FROM artifact a
              WHERE a.release_id = r.id AND a.status = 'ready' AND a.platform IS NOT NULL
          )
          OR EXISTS (SELECT 1 FROM artifact a WHERE a.release_id = r.id AND a.status = 'ready' AND a.platform = $3)
      )
"""
BY_VERSION = f"{RELEASES} ORDER BY r.sort_key DESC, r.published_at DESC, r.id DESC LIMIT $4"
BY_DATE = f"{RELEASES} ORDER BY r.published_at DESC, r.sort_key DESC, r.id DESC LIMIT $4"
BY_VERSION_OLDEST = f"{RELEASES} ORDER BY r.sort_key, r.published_at, r.id LIMIT $4"
BY_DATE_OLDEST = f"{RELEASES} ORDER BY r.published_at, r.sort_key, r.id LIMIT $4"
ORDERS = {
    ("version", "newest"): BY_VERSION,
    ("date", "newest"): BY_DATE,
    ("version", "oldest"): BY_VERSION_OLDEST,
    ("date", "oldest"): BY_DATE_OLDEST,
}
OF_VERSION = """
    SELECT r.version, r.channel, r.published_at, r.notes, r.sort_key
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    WHERE c.slug = $1 AND r.status = 'published' AND lower(r.version) IN ($2, $3, $4)
    ORDER BY CASE lower(r.version) WHEN $2 THEN 0 ELSE 1 END, r.id
    LIMIT 1
"""
BETWEEN = """
    SELECT r.version, r.channel, r.published_at, r.notes, r.sort_key
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    WHERE c.slug = $1 AND r.status = 'published' AND r.sort_key > $2 AND r.sort_key <= $3
    ORDER BY r.sort_key, r.published_at, r.id
    LIMIT $4
"""
BY_ID = "SELECT c.slug FROM catalog_public c WHERE c.product_id = $1"


class Release(NamedTuple):
    """A published release."""

    version: str
    channel: ChannelName
    published_at: Instant
    notes: str | None
    sort_key: str


class Facts(NamedTuple):
    """What the catalog says of a product, and its publisher's name."""

    detail: ProductDetail
    publisher: str


class Name(NamedTuple):
    """A public product by its names."""

    slug: str
    title: str


async def facts(database: Database, slug: str) -> Facts | None:
    """The public product with this slug."""
    row = await database.fetch_one(DETAIL, slug)
    return None if row is None else Facts(msgspec.json.decode(row[0], type=ProductDetail), row[1])


async def releases(
    database: Database, slug: str, *, channel: str = "", platform: str = "", order: tuple[str, str], limit: int
) -> list[Release]:
    """Published releases of a public product by version or by date, newest or oldest first."""
    rows = await database.fetch(ORDERS[order], slug, channel, platform, limit)
    return [Release(*row) for row in rows]


async def release(database: Database, slug: str, version: str) -> Release | None:
    """The published release with this version, whatever the case, with or without `v` before it or `.0` after it."""
    asked = version.lower()
    other = asked[1:] if asked.startswith("v") else f"v{asked}"
    row = await database.fetch_one(OF_VERSION, slug, asked, other, f"{asked.removeprefix('v')}.0")
    return None if row is None else Release(*row)


async def between(database: Database, slug: str, after: str, until: str, limit: int) -> list[Release]:
    """Published releases whose versions come after the one key and not after the other, in that order."""
    return [Release(*row) for row in await database.fetch(BETWEEN, slug, after, until, limit)]


def padded(values: Sequence[str]) -> list[str]:
    """The values, the last one repeated, so that few statements differ by their number."""
    wanted = 16
    while wanted < len(values):
        wanted *= 4
    return [*values, *([values[-1]] * (wanted - len(values)))]


async def products_named(database: Database, keys: Sequence[str]) -> dict[str, list[Name]]:
    """Public products by the key of their title."""
    found: dict[str, list[Name]] = {}
    if keys:
        statement = Statement()
        text = PRODUCTS_NAMED.format(keys=statement.list(padded(keys)))
        for name_key, slug, title in await database.fetch(text, *statement.values):
            found.setdefault(name_key, []).append(Name(slug, title))
    return found


async def products_called(database: Database, slugs: Sequence[str]) -> dict[str, Name]:
    """Public products by their slug."""
    if not slugs:
        return {}
    statement = Statement()
    text = PRODUCTS_CALLED.format(slugs=statement.list(padded(slugs)))
    return {slug: Name(slug, title) for slug, title in await database.fetch(text, *statement.values)}


async def product_of_id(database: Database, product_id: str) -> str | None:
    """The slug of the public product with this id."""
    row = await database.fetch_one(BY_ID, product_id)
    return None if row is None else str(row[0])


PRODUCTS_NAMED = "SELECT c.name_key, c.slug, c.title FROM catalog_public c WHERE c.name_key IN ({keys}) LIMIT 500"
PRODUCTS_CALLED = "SELECT c.slug, c.title FROM catalog_public c WHERE c.slug IN ({slugs})"
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
PUBLIC_ORGS = """
    SELECT o.slug, o.name
    FROM organisation o
    WHERE EXISTS (SELECT 1 FROM catalog_public c WHERE c.org_slug = o.slug)
    LIMIT $1
"""
# The least of what an index holds in order: asked whether there is any, PostgreSQL would read the whole table for a tag
# that nothing has, because it expects one in any few rows. One question of many rows: as many columns are more than a
# row may have, and each is planned by itself.
HAS_TAG = """
    WITH wanted(value) AS (VALUES {values})
    SELECT w.value FROM wanted w
    WHERE (SELECT min(f.title) FROM catalog_facet f WHERE f.facet = w.value) IS NOT NULL
"""
HAS_LICENSE = """
    WITH wanted(value) AS (VALUES {values})
    SELECT w.value FROM wanted w
    WHERE (SELECT min(c.license) FROM catalog_public c WHERE c.license_key = w.value) IS NOT NULL
"""
IS_PUBLIC_TAG = "SELECT 1 FROM catalog_public c WHERE c.tags LIKE $1 LIMIT 1"
LICENSES = "SELECT DISTINCT c.license FROM catalog_public c WHERE c.license_key = $1 LIMIT 50"
LICENSES_FROM = """
    SELECT DISTINCT c.license FROM catalog_public c WHERE c.license_key >= $1 AND c.license_key < $2 LIMIT 50
"""
TERMS_LIKE = "SELECT DISTINCT y.term FROM catalog_typo y WHERE y.shortened IN ({shortened}) LIMIT 60"
TERMS_FROM = """
    SELECT y.term FROM catalog_typo y
    WHERE y.shortened >= $1 AND y.shortened < $2 AND y.shortened = y.term
    LIMIT $3
"""
WITH_TERMS = """
    SELECT c.slug, c.title
    FROM catalog_public c
    JOIN (
        SELECT t.product_id, count(*) AS hits
        FROM catalog_term t
        WHERE t.weight = 8 AND t.term IN ({terms})
        GROUP BY t.product_id
    ) AS hit ON hit.product_id = c.product_id
    ORDER BY hit.hits DESC, c.title, c.product_id
    LIMIT 20
"""


async def orgs_named(database: Database, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Organisations with public products by slug or name: slug, name."""
    if not keys:
        return []
    statement = Statement()
    text = ORGS_NAMED.format(keys=statement.list(padded(keys)))
    return [(slug, name) for slug, name in await database.scan(text, *statement.values)]


async def public_orgs(database: Database, limit: int) -> list[tuple[str, str]]:
    """Organisations with public products: slug, name."""
    return [(slug, name) for slug, name in await database.scan(PUBLIC_ORGS, limit)]


async def tags_named(database: Database, tags: Sequence[str]) -> set[str]:
    """Which of the tags a public product carries."""
    if not tags:
        return set()
    known = await _held(database, HAS_TAG, {f"tag:{tag}": tag for tag in tags})
    # A tag of drafts alone is none; what a tag is made of means nothing to LIKE.
    return {tag for tag in known if await database.scan(IS_PUBLIC_TAG, f"% {tag} %")}


async def licenses_named(database: Database, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Licences of public products by their key: key, licence."""
    if not keys:
        return []
    known = await _held(database, HAS_LICENSE, {each: each for each in keys})
    return [(each, name) for each in known for (name,) in await database.scan(LICENSES, each)]


async def _held(database: Database, has: str, wanted: Mapping[str, str]) -> list[str]:
    """What those values stand for that the catalog holds, each once."""
    statement = Statement()
    values = statement.list(padded(list(wanted))).replace(", ", "), (")
    rows = await database.fetch(has.format(values=f"({values})"), *statement.values)
    return list(dict.fromkeys(wanted[each] for (each,) in rows))


async def licenses_from(database: Database, begin: str, end: str) -> list[str]:
    """Licences of public products whose keys lie between the two."""
    return [name for (name,) in await database.scan(LICENSES_FROM, begin, end)]


async def terms_like(database: Database, shortened: Sequence[str]) -> list[str]:
    """Words of the catalog that share one of the shortened forms: one typing error away."""
    statement = Statement()
    text = TERMS_LIKE.format(shortened=statement.list(padded(shortened)))
    return [term for (term,) in await database.fetch(text, *statement.values)]


async def terms_from(database: Database, begin: str, end: str, limit: int) -> list[str]:
    """Words of the catalog between the two."""
    return [term for (term,) in await database.fetch(TERMS_FROM, begin, end, limit)]


async def with_terms(database: Database, terms: Sequence[str]) -> list[Name]:
    """Public products whose titles hold most of the words."""
    if not terms:
        return []
    statement = Statement()
    text = WITH_TERMS.format(terms=statement.list(padded(terms)))
    return [Name(slug, title) for slug, title in await database.scan(text, *statement.values)]
