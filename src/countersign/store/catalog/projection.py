"""The catalog's own tables: a product's card, detail, facets, search words and public row, encoded when it changes.

A read request joins bytes that are encoded already. Every change of a product, its releases or its media calls
`refresh` in the same transaction, so that the catalog is never older than its sources. The answers of `/ask` come
from `catalog_public` alone: it contains public products and aggregates of their published releases.
"""

import re
from collections.abc import Iterable, Sequence
from typing import get_args

from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Transaction, Value
from countersign.kernel.http.response import encode, etag_of
from countersign.kernel.normalization import folded
from countersign.store.catalog import catalog_index
from countersign.store.catalog.product_assembly import ProductRecord, card_of, read_products
from countersign.store.catalog.schemas import ChannelName, Platform, ProductDetail
from countersign.store.catalog.search import deletion_variants, words

PLATFORMS: tuple[Platform, ...] = get_args(Platform)
CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)
AT_ONCE = 500
ENCODING = 3
"""The version of the encoding of rows. Increase this number when the form of card or detail changes. When the new
version of the program starts, it rewrites all rows that have a lower number."""

DELETE_PUBLIC = "DELETE FROM catalog_public WHERE product_id = $1"
PUT_PUBLIC = """
    INSERT INTO catalog_public (
        product_id, slug, title, name_key, org_slug, kind, platforms, channels, is_free, license, license_key,
        tags, first_at, last_at
    )
    VALUES (
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
        (SELECT min(published_at) FROM release WHERE product_id = $1 AND status = 'published'),
        (SELECT max(published_at) FROM release WHERE product_id = $1 AND status = 'published')
    )
    ON CONFLICT (product_id) DO UPDATE SET
        slug = excluded.slug, title = excluded.title, name_key = excluded.name_key, org_slug = excluded.org_slug,
        kind = excluded.kind, platforms = excluded.platforms, channels = excluded.channels,
        is_free = excluded.is_free, license = excluded.license, license_key = excluded.license_key,
        tags = excluded.tags, first_at = excluded.first_at, last_at = excluded.last_at
"""
WITHOUT_KEYS = "SELECT product_id, title, license FROM catalog_public WHERE name_key = '' LIMIT $1"
PUT_KEYS = "UPDATE catalog_public SET name_key = $2, license_key = $3 WHERE product_id = $1"
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "&": " and "}
)
"""Letters without a Unicode decomposition."""
_SILENT = re.compile(r"[\W_]+")
ORG_KEY = "replace(replace(replace(replace(replace(lower(o.name), '&', 'and'), ' ', ''), '-', ''), '.', ''), ',', '')"
"""The `lookup_key` of an organisation's name, in SQL."""


def lookup_key(text: str) -> str:
    """The lookup key of a name: without case, accents, blanks and punctuation, `&` replaced by `and`; never empty.

    "Ember & Ash" and "ember and ash" have the same key, as have "Clockmaker's Debt" and "clockmakers debt".
    """
    return _SILENT.sub("", folded(text).translate(_LETTERS)) or text


def bit_mask(options: tuple[str, ...], values: list[str]) -> int:
    """A mask with the bit of each option that is among the values."""
    return sum(1 << position for position, word in enumerate(options) if word in values)


async def put_public(transaction: Transaction, detail: ProductDetail) -> None:
    """Rewrite the product's row in `catalog_public`; delete it if the product is not public."""
    if detail.status != "public":
        await transaction.run(DELETE_PUBLIC, detail.id)
        return
    await transaction.run(
        PUT_PUBLIC,
        detail.id,
        detail.slug,
        detail.title,
        lookup_key(detail.title),
        detail.org,
        detail.kind,
        bit_mask(PLATFORMS, [*detail.platforms]),
        bit_mask(CHANNELS, [channel.channel for channel in detail.channels]),
        int(detail.access == "free"),
        detail.license,
        license_key(detail.license),
        f" {' '.join(detail.tags)} ",
    )


def license_key(name: str | None) -> str:
    """The lookup key of a licence; `-` for none."""
    return "-" if name is None else lookup_key(name)


async def complete_public(database: Database) -> None:
    """Write the lookup keys of rows that a migration inserted. A migration cannot write them in SQL, because SQL cannot
    remove accents."""
    while rows := await database.fetch(WITHOUT_KEYS, AT_ONCE):
        async with database.transaction() as transaction:
            await transaction.run_many(
                PUT_KEYS, [(product_id, lookup_key(title), license_key(name)) for product_id, title, name in rows]
            )


PUT_ENTRY = """
    INSERT INTO catalog_entry
        (product_id, org_id, org_slug, slug, title, kind, status, published_at, card, detail, newest, etag, encoding)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (product_id) DO UPDATE SET
        slug = excluded.slug, title = excluded.title, kind = excluded.kind, status = excluded.status,
        published_at = excluded.published_at, card = excluded.card, detail = excluded.detail,
        newest = excluded.newest, etag = excluded.etag, encoding = excluded.encoding
"""
OUTDATED = "SELECT product_id FROM catalog_entry WHERE encoding < $1 ORDER BY encoding, product_id LIMIT $2"
OF_ORGANISATION = """
    SELECT product_id FROM catalog_entry WHERE org_id = $1 AND product_id > $2 ORDER BY product_id LIMIT $3
"""
LOCK_ENTRY = "UPDATE catalog_entry SET encoding = encoding WHERE product_id = $1"
CLEAR_CHANNELS = """
    DELETE FROM catalog_facet
    WHERE product_id = $1
      AND facet IN ('channel:stable', 'channel:beta', 'channel:nightly', 'channel:alpha')
"""
CLEAR_FACETS = "DELETE FROM catalog_facet WHERE product_id = $1"
PUT_FACET = "INSERT INTO catalog_facet (facet, title, product_id, published_at) VALUES ($1, $2, $3, $4)"
DATE_FACETS = "UPDATE catalog_facet SET published_at = $2 WHERE product_id = $1 AND published_at <> $2"
CLEAR_TERMS = "DELETE FROM catalog_term WHERE product_id = $1"
PUT_TERM = "INSERT INTO catalog_term (term, product_id, weight, title) VALUES ($1, $2, $3, $4)"
PUT_TYPO = "INSERT INTO catalog_typo (shortened, term) VALUES ($1, $2) ON CONFLICT DO NOTHING"

WEIGHT_OF_TITLE = 8
WEIGHT_OF_TAG = 4
WEIGHT_OF_DESCRIPTION = 1


async def refresh(transaction: Transaction, product_id: str, *, reindex: bool = True) -> None:
    """Rewrite the catalog's rows of a product, and increment the catalog's version.

    With `reindex=False`, search words are not rewritten, and of the facets only channels are rewritten. This is enough
    after a change of releases or media.
    """
    records = await read_products(transaction, [product_id])
    if not records:
        raise LookupError(f"no product {product_id}")
    record = records[0]
    detail = record.detail
    await transaction.run(PUT_ENTRY, *_entry(record))
    await put_public(transaction, detail)
    if reindex:
        await _write_index(transaction, record)
    await transaction.run(CLEAR_CHANNELS, product_id)
    await transaction.run(DATE_FACETS, product_id, record.published_at)
    await _put_facets(transaction, record, [f"channel:{channel.channel}" for channel in detail.channels])
    version = await versions.bump(transaction, "catalog")
    await catalog_index.put_row(transaction, detail, version, record.published_at, record.updated_at)


def _entry(record: ProductRecord) -> tuple[Value, ...]:
    """The row of `catalog_entry`."""
    detail, encoded_detail = record.detail, encode(record.detail)
    names = (detail.id, record.org_id, detail.org, detail.slug, detail.title, detail.kind, detail.status)
    bodies = (encode(card_of(detail)), encoded_detail, encode(record.newest), etag_of(encoded_detail))
    return (*names, record.published_at, *bodies, ENCODING)


async def reencode_outdated(database: Database) -> None:
    """Rewrite the encoded rows that an earlier version wrote, in batches of one transaction each."""
    while rows := await database.fetch(OUTDATED, ENCODING, AT_ONCE):
        async with database.transaction() as transaction:
            await _reencode(transaction, [product_id for (product_id,) in rows])
            await versions.bump(transaction, "catalog")


async def refresh_organisation(transaction: Transaction, org_id: str) -> None:
    """Rewrite the encoded rows of the organisation's products, which contain its name."""
    after_id = ""
    while rows := await transaction.fetch(OF_ORGANISATION, org_id, after_id, AT_ONCE):
        after_id = rows[-1][0]
        await _reencode(transaction, [product_id for (product_id,) in rows])
    await versions.bump(transaction, "catalog")


async def _reencode(transaction: Transaction, product_ids: Sequence[str]) -> None:
    # Lock the rows before the products are read. Otherwise a concurrent change could be overwritten with older values.
    await transaction.run_many(LOCK_ENTRY, [(product_id,) for product_id in sorted(product_ids)])
    records = await read_products(transaction, product_ids)
    await transaction.run_many(PUT_ENTRY, [_entry(record) for record in records])


async def _write_index(transaction: Transaction, record: ProductRecord) -> None:
    detail = record.detail
    facets = [f"kind:{detail.kind}", f"org:{detail.org}", f"access:{detail.access}"]
    facets += [f"platform:{platform}" for platform in detail.platforms]
    facets += [f"tag:{tag}" for tag in detail.tags]
    await transaction.run(CLEAR_FACETS, detail.id)
    await _put_facets(transaction, record, facets)
    weight_by_word = word_weights(detail.title, detail.tags, f"{record.own_summary or ''} {detail.description or ''}")
    await transaction.run(CLEAR_TERMS, detail.id)
    await transaction.run_many(
        PUT_TERM,
        [
            (term, detail.id, weight, detail.title if weight == WEIGHT_OF_TITLE else "")
            for term, weight in weight_by_word.items()
        ],
    )
    await transaction.run_many(
        PUT_TYPO, [(variant, term) for term in weight_by_word for variant in sorted(deletion_variants(term))]
    )


async def _put_facets(transaction: Transaction, record: ProductRecord, facets: Iterable[str]) -> None:
    detail = record.detail
    rows = [(facet, detail.title, detail.id, record.published_at) for facet in facets]
    await transaction.run_many(PUT_FACET, rows)


def word_weights(title: str, tags: Iterable[str], description: str) -> dict[str, int]:
    """Map each search word of a product to its weight. A word has the weight of the most important text that contains
    it: the title, then the tags, then the description."""
    weight_by_word: dict[str, int] = {}
    sources = (
        (description, WEIGHT_OF_DESCRIPTION),
        (" ".join(tags), WEIGHT_OF_TAG),
        (title, WEIGHT_OF_TITLE),
    )
    for text, weight in sources:
        weight_by_word.update((word, max(weight, weight_by_word.get(word, 0))) for word in words(text))
    return dict(sorted(weight_by_word.items()))
