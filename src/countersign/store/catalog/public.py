"""The table questions are answered from: public products and what their published releases add up to, nothing else."""

import re
import unicodedata
from typing import get_args

from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.normalization import normalized
from countersign.store.catalog.schemas import ChannelName, Platform, ProductDetail

PLATFORMS: tuple[Platform, ...] = get_args(Platform)
CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)
AT_ONCE = 500

FORGET = "DELETE FROM catalog_public WHERE product_id = $1"
PUT = """
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
UNNAMED = "SELECT product_id, title, license FROM catalog_public WHERE name_key = '' LIMIT $1"
PUT_KEYS = "UPDATE catalog_public SET name_key = $2, license_key = $3 WHERE product_id = $1"
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "&": " and "}
)
"""Letters that no decomposition takes apart."""
_SILENT = re.compile(r"[\W_]+")
ORG_KEY = "replace(replace(replace(replace(replace(lower(o.name), '&', 'and'), ' ', ''), '-', ''), '.', ''), ',', '')"
"""The name of an organisation as `key` makes it of a text, in SQL."""


def key(text: str) -> str:
    """A name as it is looked up: without case, accents, blanks and punctuation, `&` being `and`; never empty.

    "Ember & Ash" and "ember and ash", "Clockmaker's Debt" and "clockmakers debt" have one key.
    """
    plain = normalized("NFKD", text)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return _SILENT.sub("", bare.casefold().translate(_LETTERS)) or text


def bits(known: tuple[str, ...], held: list[str]) -> int:
    """One bit for each of the known words that is held."""
    return sum(1 << place for place, word in enumerate(known) if word in held)


async def put(transaction: Transaction, detail: ProductDetail) -> None:
    """Write the product's row anew; none while it is not public."""
    if detail.status != "public":
        await transaction.run(FORGET, detail.id)
        return
    await transaction.run(
        PUT,
        detail.id,
        detail.slug,
        detail.title,
        key(detail.title),
        detail.org,
        detail.kind,
        bits(PLATFORMS, [*detail.platforms]),
        bits(CHANNELS, [each.channel for each in detail.channels]),
        int(detail.access == "free"),
        detail.license,
        license_key(detail.license),
        f" {' '.join(detail.tags)} ",
    )


def license_key(name: str | None) -> str:
    """A licence as it is looked up; `-` for none."""
    return "-" if name is None else key(name)


async def complete(database: Database) -> None:
    """Write the keys of rows that a migration made, which knows nothing of accents."""
    while rows := await database.fetch(UNNAMED, AT_ONCE):
        async with database.transaction() as transaction:
            await transaction.run_many(
                PUT_KEYS, [(product_id, key(title), license_key(name)) for product_id, title, name in rows]
            )
