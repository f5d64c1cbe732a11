"""SQL of products and releases as their organisation writes them."""

from typing import NamedTuple

import msgspec

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.store.releases.schemas import ProductWrite

INSERT_PRODUCT = """
    INSERT INTO product
        (id, org_id, slug, title, description, kind, platforms, tags, homepage, license, access, status,
         created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)
    ON CONFLICT DO NOTHING
"""
REPLACE_PRODUCT = """
    UPDATE product
    SET slug = $2, title = $3, description = $4, kind = $5, platforms = $6, tags = $7, homepage = $8,
        license = $9, access = $10, status = $11, updated_at = $12
    WHERE id = $1
      AND NOT EXISTS (SELECT 1 FROM product other WHERE other.slug = $2 AND other.id <> $1)
"""
SET_STATUS = "UPDATE product SET status = $2, updated_at = $3 WHERE id = $1"
LOCK_PRODUCT = "UPDATE product SET updated_at = updated_at WHERE id = $1"
ENTITLED = "SELECT 1 FROM entitlement WHERE product_id = $1 AND revoked_at IS NULL LIMIT 1"
TAKE_DRAFT = "UPDATE release SET status = 'draft' WHERE id = $1 AND status = 'draft'"
DELETE_DRAFT = "DELETE FROM release WHERE id = $1 AND status = 'draft'"
INSERT_RELEASE = """
    INSERT INTO release (id, product_id, version, sort_key, channel, notes, status, created_at, notes_only)
    VALUES ($1, $2, $3, $4, $5, $6, 'draft', $7, $8)
    ON CONFLICT DO NOTHING
"""
PUBLISH = "UPDATE release SET status = 'published', published_at = $2 WHERE id = $1 AND status = 'draft'"
YANK = "UPDATE release SET status = 'yanked', yank_reason = $2 WHERE id = $1 AND status = 'published'"
SET_NOTES = "UPDATE release SET notes = $2 WHERE id = $1"
SET_NOTES_ONLY = "UPDATE release SET notes_only = $2 WHERE id = $1 AND (status = 'draft' OR notes_only = $2)"
NOTES_ONLY = "SELECT notes_only FROM release WHERE id = $1"
FILES = """
    SELECT a.filename, a.platform, b.artifact_id IS NOT NULL
    FROM artifact a
    LEFT JOIN build b ON b.artifact_id = a.id
    WHERE a.release_id = $1
    ORDER BY a.filename
"""
SET_CHANNEL = "UPDATE release SET channel = $2 WHERE id = $1 AND (status <> 'yanked' OR channel = $2)"
UNFINISHED_ARTIFACT = "SELECT filename FROM artifact WHERE release_id = $1 AND status = 'receiving' LIMIT 1"
RELEASE = """
    SELECT version, channel, published_at, notes, status, yank_reason, notes_only
    FROM release
    WHERE id = $1
"""


class ReleaseFile(NamedTuple):
    """A file of a release, and whether a build was made of it."""

    filename: str
    platform: str | None
    is_built: bool


async def insert_product(
    transaction: Transaction, product_id: str, org_id: str, body: ProductWrite, status: str, now: Instant
) -> bool:
    """Write a new product; False when its slug is taken."""
    return bool(await transaction.run(INSERT_PRODUCT, product_id, org_id, *_members(body), status, now))


async def replace_product(
    transaction: Transaction, product_id: str, body: ProductWrite, status: str, now: Instant
) -> bool:
    """Replace all writable members; False when another product has the slug."""
    return bool(await transaction.run(REPLACE_PRODUCT, product_id, *_members(body), status, now))


def _members(body: ProductWrite) -> tuple[str | None, ...]:
    return (
        body.slug,
        body.title,
        body.description,
        body.kind,
        msgspec.json.encode(body.platforms).decode(),
        msgspec.json.encode(body.tags).decode(),
        body.homepage,
        body.license,
        body.access,
    )


async def is_entitled(reader: Reader, product_id: str) -> bool:
    """Whether anybody owns the product."""
    return await reader.fetch_one(ENTITLED, product_id) is not None


async def unfinished_artifact(reader: Reader, release_id: str) -> str | None:
    """The name of a file of the release that has not arrived whole, or None."""
    row = await reader.fetch_one(UNFINISHED_ARTIFACT, release_id)
    return None if row is None else row[0]


async def is_notes_only(reader: Reader, release_id: str) -> bool:
    """Whether the release is declared to have no files."""
    row = await reader.fetch_one(NOTES_ONLY, release_id)
    return row is not None and bool(row[0])


async def files(reader: Reader, release_id: str) -> list[ReleaseFile]:
    """The files of a release, by name."""
    rows = await reader.fetch(FILES, release_id)
    return [ReleaseFile(filename, platform, bool(is_built)) for filename, platform, is_built in rows]
