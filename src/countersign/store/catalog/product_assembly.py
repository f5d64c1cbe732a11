"""Puts products together for API answers, one or many at once, from the rows of several tables: the product itself, its
publisher, its cover and media, and the newest release of each channel."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row
from countersign.store.catalog.covers import placeholder
from countersign.store.catalog.schemas import (
    Access,
    Channel,
    ChannelName,
    Cover,
    CoverImage,
    Kind,
    LatestRelease,
    Media,
    MediaKind,
    Platform,
    Product,
    ProductDetail,
    ProductPublisher,
    Release,
    Status,
)
from countersign.store.catalog.summaries import first_sentence
from countersign.store.context import PREFIX

PRODUCTS = """
    SELECT p.id, p.slug, p.title, p.description, p.summary, p.kind, p.platforms, p.tags, p.homepage, p.buy_url,
           p.languages, p.license, p.access, p.status, p.created_at, p.updated_at, o.id, o.slug, o.name
    FROM product p
    JOIN organisation o ON o.id = p.org_id
    WHERE p.id IN ({ids})
"""
NEWEST_OF_CHANNELS = """
    SELECT product_id, id, channel, version, published_at, notes, first_at
    FROM (
        SELECT product_id, id, channel, version, published_at, notes, sort_key,
               min(published_at) OVER (PARTITION BY product_id) AS first_at,
               row_number() OVER (
                   PARTITION BY product_id, channel ORDER BY published_at DESC, sort_key DESC, id DESC
               ) AS place
        FROM release
        WHERE product_id IN ({ids}) AND status = 'published'
    ) AS ranked
    WHERE place = 1
    ORDER BY published_at DESC, sort_key DESC
"""
SIZES = """
    SELECT release_id, platform, size
    FROM artifact
    WHERE release_id IN ({ids}) AND status = 'ready' AND platform IS NOT NULL
    ORDER BY filename, id
"""
MEDIA = """
    SELECT product_id, id, kind, sha256, alt, width, height, duration_ms, color
    FROM media
    WHERE product_id IN ({ids}) AND sha256 IS NOT NULL
    ORDER BY created_at, id
"""
COVER_SIZES = """
    SELECT media_id, sha256, width, media_type
    FROM media_size
    WHERE media_id IN ({ids})
    ORDER BY media_type, width
"""
IN_GALLERY = ("screenshot", "video")


class NewestRelease(NamedTuple):
    """The newest release of a channel; `first_at` is when the product's first release was published."""

    id: str
    channel: ChannelName
    version: str
    published_at: Instant
    notes: str | None
    first_at: Instant


class OwnCover(NamedTuple):
    """The cover that the publisher uploaded last. Covers that early versions stored have no `color`."""

    media: Media
    color: str | None
    sizes: list[CoverImage]


class ProductRecord(NamedTuple):
    """A product, with the further values that its row in the catalog contains."""

    detail: ProductDetail
    org_id: str
    newest: list[Release]
    published_at: Instant
    updated_at: Instant
    own_summary: str | None


async def read_products(reader: Reader, product_ids: Sequence[str]) -> list[ProductRecord]:
    """The products with these ids, in no particular order."""
    rows = await _fetch_of_ids(reader, PRODUCTS, product_ids)
    newest_releases: dict[str, list[NewestRelease]] = {}
    for product_id, *members in await _fetch_of_ids(reader, NEWEST_OF_CHANNELS, product_ids):
        newest_releases.setdefault(product_id, []).append(NewestRelease(*members))
    media: dict[str, list[Media]] = {}
    covers: dict[str, OwnCover] = {}
    for product_id, *members, color in await _fetch_of_ids(reader, MEDIA, product_ids):
        media_item = media_of(*members)
        media.setdefault(product_id, []).append(media_item)
        if media_item.kind == "cover":
            covers[product_id] = OwnCover(media_item, color, [])
    await _add_sizes(reader, covers)
    latest_by_product = {product_id: latest_of(channels) for product_id, channels in newest_releases.items()}
    sizes = await _size_by_platform(reader, [release.id for release in latest_by_product.values()])
    return [
        _record(
            _ProductRow(*row),
            newest_releases.get(row[0], []),
            None if row[0] not in latest_by_product else _latest(latest_by_product[row[0]], sizes),
            media.get(row[0], []),
            covers.get(row[0]),
        )
        for row in rows
    ]


def latest_of(newest_releases: Sequence[NewestRelease]) -> NewestRelease:
    """The release that lists show: the newest of the channel stable, or the newest of all if stable has no release."""
    return next((release for release in newest_releases if release.channel == "stable"), newest_releases[0])


def card_of(detail: ProductDetail) -> Product:
    """The members of the product that lists show."""
    return Product(
        id=detail.id,
        slug=detail.slug,
        title=detail.title,
        description=detail.description,
        kind=detail.kind,
        platforms=detail.platforms,
        summary=detail.summary,
        org=detail.org,
        publisher=detail.publisher,
        cover=detail.cover,
        latest=detail.latest,
        access=detail.access,
        is_free=detail.is_free,
        media_count=detail.media_count,
        has_trailer=detail.has_trailer,
    )


def cover_of(slug: str, kind: Kind, tags: Sequence[str], own_cover: OwnCover | None = None) -> Cover:
    """The product's own cover, or its placeholder cover if it has no own cover."""
    description = placeholder.describe(slug, kind, tags)
    if own_cover is not None:
        color, media = own_cover.color or description.color, own_cover.media
        return Cover(
            url=media.url, srcset=own_cover.sizes, color=color, focus="center", placeholder=False, alt=media.alt
        )
    url = f"{PREFIX}/products/{slug}/cover.svg?v={description.version}"
    return Cover(url=url, srcset=[], color=description.color, focus=description.focus, placeholder=True, alt="")


def media_of(
    media_id: str, kind: MediaKind, sha256: str, alt: str, *measures: int | None
) -> Media:
    """An image or video. `measures` are the width and height in pixels, and the duration in milliseconds."""
    width, height, duration_ms = measures
    duration = None if duration_ms is None else duration_ms / 1000
    url = f"{PREFIX}/media/{sha256}"
    return Media(id=media_id, kind=kind, url=url, alt=alt, width=width, height=height, duration=duration)


async def _fetch_of_ids(reader: Reader, statement: str, ids: Sequence[str]) -> list[Row]:
    """The rows of some ids."""
    if not ids:
        return []
    placeholders = ", ".join([f"${number}" for number in range(1, len(ids) + 1)])
    return await reader.fetch(statement.format(ids=placeholders), *ids)


async def _add_sizes(reader: Reader, covers: Mapping[str, OwnCover]) -> None:
    by_media = {cover.media.id: cover for cover in covers.values()}
    for media_id, sha256, width, media_type in await _fetch_of_ids(reader, COVER_SIZES, [*by_media]):
        by_media[media_id].sizes.append(CoverImage(f"{PREFIX}/media/{sha256}", width, media_type))


async def _size_by_platform(reader: Reader, release_ids: Sequence[str]) -> dict[str, dict[Platform, int]]:
    """The size of each release's first file of each platform."""
    sizes: dict[str, dict[Platform, int]] = {}
    for release_id, platform, size in await _fetch_of_ids(reader, SIZES, release_ids):
        sizes.setdefault(release_id, {}).setdefault(platform, size)
    return sizes


class _ProductRow(NamedTuple):
    id: str
    slug: str
    title: str
    description: str | None
    summary: str | None
    kind: Kind
    platforms: str
    tags: str
    homepage: str | None
    buy_url: str | None
    languages: str
    license: str | None
    access: Access
    status: Status
    created_at: Instant
    updated_at: Instant
    org_id: str
    org_slug: str
    org_name: str


_texts = msgspec.json.Decoder(list[str])
_platforms = msgspec.json.Decoder(list[Platform])


def _latest(release: NewestRelease, sizes: Mapping[str, dict[Platform, int]]) -> LatestRelease:
    return LatestRelease(
        version=release.version,
        channel=release.channel,
        published_at=clock.rfc3339(release.published_at),
        size_by_platform=sizes.get(release.id, {}),
        first_published_at=clock.rfc3339(release.first_at),
    )


def _record(
    row: _ProductRow,
    newest_releases: Sequence[NewestRelease],
    latest_latest_release: LatestRelease | None,
    media: list[Media],
    cover: OwnCover | None,
) -> ProductRecord:
    tags = _texts.decode(row.tags)
    detail = ProductDetail(
        id=row.id,
        slug=row.slug,
        title=row.title,
        description=row.description,
        kind=row.kind,
        platforms=_platforms.decode(row.platforms),
        summary=row.summary or first_sentence(row.description),
        org=row.org_slug,
        publisher=ProductPublisher(slug=row.org_slug, name=row.org_name, verified=False),
        cover=cover_of(row.slug, row.kind, tags, cover),
        latest=latest_latest_release,
        access=row.access,
        is_free=row.access == "free",
        media_count=sum(media_file.kind in IN_GALLERY for media_file in media),
        has_trailer=any(media_file.kind == "video" for media_file in media),
        status=row.status,
        channels=[
            Channel(release.channel, release.version, clock.rfc3339(release.published_at))
            for release in newest_releases
        ],
        media=media,
        tags=tags,
        homepage=row.homepage,
        buy_url=row.buy_url,
        languages=_texts.decode(row.languages),
        license=row.license,
        created_at=clock.rfc3339(row.created_at),
        updated_at=clock.rfc3339(row.updated_at),
    )
    releases = [
        Release(
            version=release.version,
            channel=release.channel,
            published_at=clock.rfc3339(release.published_at),
            notes=release.notes,
        )
        for release in newest_releases
    ]
    published_at = max((newest_release.published_at for newest_release in newest_releases), default=row.created_at)
    return ProductRecord(detail, row.org_id, releases, published_at, row.updated_at, row.summary)
