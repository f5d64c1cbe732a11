"""Products as the catalog shows them: lists, one product, its releases and drafts, and who may see them."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Reader, Row, Value
from countersign.kernel.errors import NotFound
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.catalog import search
from countersign.store.catalog.schemas import Artifact, ChannelName, Draft, Release, UpdateSize

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
UPDATE_SIZES = """
    SELECT new.release_id, old_release.version, new.platform, sum(d.size)
    FROM build new
    JOIN release new_release ON new_release.id = new.release_id
    JOIN delta d ON d.to_artifact = new.artifact_id
    JOIN build old ON old.artifact_id = d.from_artifact
    JOIN release old_release ON old_release.id = old.release_id
    WHERE new.release_id IN ({releases}) AND old_release.status = 'published'
      AND old_release.channel = new_release.channel
      AND (old_release.published_at, old_release.sort_key, old_release.id)
          < (new_release.published_at, new_release.sort_key, new_release.id)
    GROUP BY new.release_id, new.artifact_id, new.platform, new.created_at, old_release.id, old_release.version,
             old_release.published_at, old_release.sort_key
    ORDER BY new.platform, old_release.published_at DESC, old_release.sort_key DESC, new.created_at DESC
"""
NEWEST_POSSIBLE = ((1 << 62), "\U0010ffff", "\U0010ffff")


class CatalogEntry(NamedTuple):
    """A product with its encoded detail and entity tag."""

    product_id: str
    detail: bytes
    etag: str
    status: str
    org_id: str


class Card(NamedTuple):
    """A product in a list, with the sort keys of the list."""

    title: str
    product_id: str
    published_at: int
    score: int
    card: bytes
    status: str
    etag: str


async def read_page(database: Database, query: search.PageQuery) -> list[Row]:
    """One page of products, in order; each row has the members of a `Card`."""
    first_page = search.title_match_statement(query) or await _page_of_common_word(database, query)
    if first_page is not None:
        rows = await database.scan(first_page[0], *first_page[1])
        if len(rows) == query.limit:
            return rows
    rare_facet = query.possibly_rare_facet
    if rare_facet is not None and await _is_common(database, search.common_facet_statement(rare_facet)):
        rare_facet = None
    text, values = search.page_statement(query, rare_facet)
    return await (database.fetch(text, *values) if query.is_bounded else database.scan(text, *values))


async def _page_of_common_word(database: Database, query: search.PageQuery) -> tuple[str, list[Value]] | None:
    word = query.only_word
    if word is None or query.sort != "title" or query.orgs:
        return None
    return (
        search.common_word_page_statement(query, word)
        if await _is_common(database, search.common_word_statement(word))
        else None
    )


async def _is_common(database: Database, statement: tuple[str, list[Value]]) -> bool:
    text, values = statement
    return bool(await database.fetch(text, *values))


async def find_entry(reader: Reader, id_or_slug: str, *, is_id: bool) -> CatalogEntry | None:
    """The product with this id or slug, regardless of visibility."""
    row = await reader.fetch_one(DETAIL_BY_ID if is_id else DETAIL_BY_SLUG, id_or_slug)
    return None if row is None else CatalogEntry(*row)


async def owns(reader: Reader, owner: str, product_id: str) -> bool:
    """Whether the owner has an entitlement to the product that is not revoked."""
    return await reader.fetch_one(OWNS, owner, product_id) is not None


async def catalog_page(database: Database, after_key: Sequence[str], limit: int) -> list[tuple[str, str, bytes, bytes]]:
    """Public products by title: title, id, encoded card, encoded newest releases."""
    rows = await database.fetch(CATALOG_PAGE, after_key[0], after_key[1], limit)
    return [(title, product_id, card, newest_release) for title, product_id, card, newest_release in rows]


class ReleaseRow(NamedTuple):
    """A release or a draft with the sort keys of its list."""

    release: Release | Draft
    at: int
    sort_key: str
    id: str


PUBLISHED_ONLY, WITH_YANKED = 0, 1


async def releases(
    database: Database, product_id: str, channel: str, visibility: int, after_key: tuple[int, str, str], limit: int
) -> list[ReleaseRow]:
    """A product's releases, newest first, with their artifacts. `visibility` selects the rows that the caller may see:
    published releases only, or yanked ones as well. A row is the same for every caller."""
    rows = await database.fetch(RELEASES, product_id, channel, visibility, *after_key, limit)
    files = await _artifacts(database, product_id, ready_only=True)
    updates = await _update_sizes(database, [row[0] for row in rows])
    return [_release_row(row, files, updates) for row in rows]


async def drafts(
    database: Database, product_id: str, channel: str, after_key: tuple[int, str, str], limit: int
) -> list[ReleaseRow]:
    """A product's drafts, newest first, with all their artifacts."""
    rows = await database.fetch(DRAFTS, product_id, channel, *after_key, limit)
    files = await _artifacts(database, product_id, ready_only=False)
    return [
        ReleaseRow(
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


async def _update_sizes(database: Database, release_ids: Sequence[str]) -> dict[str, list[UpdateSize]]:
    """The updates by the id of the release that they install, for these releases. For each platform, it is the update
    from the newest earlier release of the channel for which one is prepared."""
    if not release_ids:
        return {}
    placeholders = ", ".join(f"${number}" for number in range(1, len(release_ids) + 1))
    rows = await database.fetch(UPDATE_SIZES.format(releases=placeholders), *release_ids)
    sizes: dict[str, dict[str, UpdateSize]] = {}
    for release_id, version, platform, size in rows:
        sizes.setdefault(release_id, {}).setdefault(platform, UpdateSize(version, platform or None, int(size)))
    return {release_id: list(by_platform.values()) for release_id, by_platform in sizes.items()}


def _release_row(
    row: tuple[str, str, ChannelName, int, str, str, str, str, int],
    files: dict[str, list[Artifact]],
    updates: dict[str, list[UpdateSize]],
) -> ReleaseRow:
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
        updates=updates.get(release_id, msgspec.UNSET),
    )
    return ReleaseRow(release, published_at, sort_key, release_id)


SHOW_DRAFTS = ("read:releases", "read:products", "write:releases")


class ProductNotFound(NotFound):
    """No product has this id or slug, or the caller may not see it."""

    resolution = "List the products with GET /api/v1/products and use an id or slug from there."


async def visible_entry(reader: Reader, caller: Caller, id_or_slug: str) -> CatalogEntry:
    """The product, if the caller may see it.

    Raises:
        ProductNotFound: no such product, or the product is a draft of another organisation; the response is the same.
    """
    product = await find_entry(reader, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    if product is None or not await _may_see(reader, caller, product):
        raise ProductNotFound("no product has this id or slug")
    return product


async def _may_see(reader: Reader, caller: Caller, product: CatalogEntry) -> bool:
    if product.status == "public" or is_member(caller, product):
        return True
    if product.status != "archived" or caller.is_anonymous:
        return False
    return await owns(reader, caller.owner, product.product_id)


def is_member(caller: Caller, product: CatalogEntry) -> bool:
    """Whether the caller is a member of the product's organisation."""
    return product.org_id in caller.orgs_allowing("read:products")


def require_drafts_visible(caller: Caller, product: CatalogEntry) -> None:
    """Let only members of the product's organisation see its drafts.

    Raises:
        InsufficientScope: the caller is not a member, or its token has none of the scopes that show drafts.
    """
    if not any(product.org_id in caller.orgs_allowing(scope) for scope in SHOW_DRAFTS):
        raise InsufficientScope(
            "drafts are visible to members of the product's organisation only",
            resolution="Act as a member or as an OAuth client of the organisation; the scope alone is not enough.",
        )
