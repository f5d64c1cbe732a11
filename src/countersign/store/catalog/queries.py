"""SQL of the catalog: pages of products, one product, its releases, and the whole as a stream."""

from collections.abc import Sequence
from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.database.port import Database, Reader, Row
from countersign.store.catalog import statements
from countersign.store.catalog.schemas import Artifact, ChannelName, Draft, Release

DETAIL_BY_SLUG = "SELECT product_id, detail, etag, status, org_id FROM catalog_entry WHERE slug = $1"
DETAIL_BY_ID = "SELECT product_id, detail, etag, status, org_id FROM catalog_entry WHERE product_id = $1"
OWNS = "SELECT 1 FROM entitlement WHERE owner = $1 AND product_id = $2 AND revoked_at IS NULL"
CATALOG_PAGE = """
    SELECT title, product_id, card, newest
    FROM catalog_entry
    WHERE status = 'public' AND (title, product_id) > ($1, $2)
    ORDER BY title, product_id
    LIMIT $3
"""
RELEASES = """
    SELECT id, version, channel, published_at, sort_key, notes, status, yank_reason, notes_only
    FROM release
    WHERE product_id = $1
      AND ($2 = '' OR channel = $2)
      AND (status = 'published' OR (status = 'yanked' AND $3 = 1))
      AND (published_at, sort_key, id) < ($4, $5, $6)
    ORDER BY published_at DESC, sort_key DESC, id DESC
    LIMIT $7
"""
DRAFTS = """
    SELECT id, version, channel, created_at, sort_key, notes, notes_only
    FROM release
    WHERE product_id = $1
      AND status = 'draft'
      AND ($2 = '' OR channel = $2)
      AND (created_at, sort_key, id) < ($3, $4, $5)
    ORDER BY created_at DESC, sort_key DESC, id DESC
    LIMIT $6
"""
ARTIFACTS = """
    SELECT a.release_id, a.id, a.filename, a.size, a.sha256, a.platform, a.status
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    WHERE r.product_id = $1
    ORDER BY a.filename, a.id
"""
NEWEST_POSSIBLE = ((1 << 62), "\U0010ffff", "\U0010ffff")


class Entry(NamedTuple):
    """A product as its page shows it: encoded detail and entity tag."""

    product_id: str
    detail: bytes
    etag: str
    status: str
    org_id: str


class Card(NamedTuple):
    """A product as a list shows it, with the keys the list is ordered by."""

    title: str
    product_id: str
    published_at: int
    score: int
    card: bytes
    status: str


async def page(database: Database, wanted: statements.Wanted) -> list[Row]:
    """One page of products, in order; each row has the members of a `Card`."""
    text, values = statements.page(wanted)
    return await (database.fetch(text, *values) if wanted.is_bounded else database.scan(text, *values))


async def entry(reader: Reader, id_or_slug: str, *, is_id: bool) -> Entry | None:
    """The product with this id or slug, whoever may see it."""
    row = await reader.fetch_one(DETAIL_BY_ID if is_id else DETAIL_BY_SLUG, id_or_slug)
    return None if row is None else Entry(*row)


async def owns(reader: Reader, owner: str, product_id: str) -> bool:
    """Whether the owner has a standing entitlement to the product."""
    return await reader.fetch_one(OWNS, owner, product_id) is not None


async def catalog_page(database: Database, after: Sequence[str], limit: int) -> list[tuple[str, str, bytes, bytes]]:
    """Public products by title: title, id, encoded card, encoded newest releases."""
    rows = await database.fetch(CATALOG_PAGE, after[0], after[1], limit)
    return [(title, product_id, card, newest) for title, product_id, card, newest in rows]


class Position(NamedTuple):
    """A release or a draft with the keys its list is ordered by."""

    release: Release | Draft
    at: int
    sort_key: str
    id: str


SEES_PUBLISHED, SEES_YANKED = 0, 1


async def releases(
    database: Database, product_id: str, channel: str, sees: int, after: tuple[int, str, str], limit: int
) -> list[Position]:
    """A product's releases, newest first, with their artifacts. `sees` is which rows the caller may see: published
    releases, or yanked ones as well. A row is the same for every caller."""
    rows = await database.fetch(RELEASES, product_id, channel, sees, *after, limit)
    files = await _artifacts(database, product_id, ready_only=True)
    return [_position(row, files) for row in rows]


async def drafts(
    database: Database, product_id: str, channel: str, after: tuple[int, str, str], limit: int
) -> list[Position]:
    """A product's drafts, newest first, with all their artifacts."""
    rows = await database.fetch(DRAFTS, product_id, channel, *after, limit)
    files = await _artifacts(database, product_id, ready_only=False)
    return [
        Position(
            Draft(
                version=version,
                channel=channel,
                status="draft",
                notes=notes,
                notes_only=bool(notes_only),
                artifacts=files.get(release_id, []),
            ),
            created_at,
            sort_key,
            release_id,
        )
        for release_id, version, channel, created_at, sort_key, notes, notes_only in rows
    ]


async def _artifacts(database: Database, product_id: str, *, ready_only: bool) -> dict[str, list[Artifact]]:
    """The artifacts of a product by the id of their release."""
    files: dict[str, list[Artifact]] = {}
    for release_id, *members in await database.fetch(ARTIFACTS, product_id):
        artifact = Artifact(*members)
        if artifact.status == "ready" or not ready_only:
            files.setdefault(release_id, []).append(artifact)
    return files


def _position(
    row: tuple[str, str, ChannelName, int, str, str, str, str, int], files: dict[str, list[Artifact]]
) -> Position:
    release_id, version, channel, published_at, sort_key, notes, status, yank_reason, notes_only = row
    release = Release(
        version=version,
        channel=channel,
        published_at=clock.rfc3339(clock.Instant(published_at)),
        notes=notes,
        status=None if status == "published" else status,
        yank_reason=yank_reason,
        notes_only=bool(notes_only),
        artifacts=files.get(release_id, []),
    )
    return Position(release, published_at, sort_key, release_id)
