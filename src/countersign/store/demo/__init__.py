"""The demonstration: publishers with products, releases and codes, made with a fixed clock and fixed ids.

Only the numbers of downloads and the newest releases depend on the current day: they are of the last weeks before it.
"""

import asyncio
import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.security import passwords, secrets
from countersign.store import library
from countersign.store.auth import organisations, people, queries
from countersign.store.auth.oauth import clients
from countersign.store.catalog import catalog_index, projection
from countersign.store.catalog.covers import placeholder
from countersign.store.catalog.covers.primitives import hash_of
from countersign.store.catalog.covers.routes import SVG
from countersign.store.catalog.schemas import Platform
from countersign.store.context import Store
from countersign.store.demo import downloads
from countersign.store.demo.catalog import DAYS_BEFORE_RELEASE, DemoProduct, DemoRelease, moment, products
from countersign.store.demo.profiles import PROFILES
from countersign.store.demo.signed_builds import component_list, processed_release, updated_release
from countersign.store.redeem import codes
from countersign.store.releases import artifacts, blobs, lifecycle, media
from countersign.store.releases.permissions import OwnedProduct
from countersign.store.releases.processing.video_duration import VideoFile, duration_ms
from countersign.store.releases.schemas import NewRelease, ProductWrite
from countersign.store.releases.uploads import Content
from countersign.store.statistics import counts

PLAYER, PUBLISHER, PASSWORD = "player@example.com", "publisher@example.com", "countersign-demo"
CLIENT_ID, CLIENT_SECRET = "demo-publisher", "demo-publisher-secret"
CLIENT_SCOPES = "read:products read:releases read:library write:products write:releases admin:org"
ORGANISATIONS = (
    ("northwind-games", "Northwind Games"),
    ("toolsmith", "Toolsmith"),
    ("openfield", "Openfield"),
    ("lanternworks", "Lanternworks"),
    ("pixel-harbour", "Pixel Harbour"),
    ("harbour-collective", "Harbour Collective"),
    ("quiet-apps", "Quiet Apps"),
)
LICENCE_CODES = tuple(f"DEMO0-LICEN-SE000-{number:05d}" for number in range(1, 6))
PROMO_CODE, PROMO_USES = "DEMO0-PROMO-00000-00100", 100
OF_LICENCE_CODES, OF_PROMO_CODE = "harbour-of-small-lights", "copper-meridian"
OF_PLAYER = {
    "quiet-siege": date(2025, 4, 2),
    "second-draft": date(2026, 1, 18),
    "neon-abbey": date(2026, 2, 7),
    "saltmarsh-detective": date(2026, 3, 1),
    "owl-hour": date(2026, 3, 14),
    "seven-bells": date(2026, 5, 30),
    "marginalia": date(2026, 7, 4),
    "gantry": date(2026, 9, 12),
    "driftwood-kingdom": date(2026, 10, 28),
}
"""Maps each product that the player owns to the day since which the player owns it."""
FOUNDED, SIGNED_UP = date(2024, 3, 1), date(2026, 10, 28)
ANY_ORGANISATION = "SELECT 1 FROM organisation LIMIT 1"
TARGETS: Mapping[Platform, str] = {
    "windows": "windows-x86_64",
    "macos": "macos-universal",
    "linux": "linux-x86_64",
    "android": "android-arm64",
    "ios": "ios-arm64",
    "web": "web",
}
"""The platform and processor architecture of a build, as its file's name ends."""
BLOBS_AT_ONCE = 8
MIN_ASSETS, MAX_MORE_ASSETS = 9_000, 30_000
"""The size of a build's largest file, in bytes. The files are small, because there are 200 releases."""
POPULAR_ASSETS = 12
"""The factor by which the newest builds of popular products are larger than other builds."""
PROCESSED_ASSETS = 60
"""The factor by which builds that are processed are larger than other builds."""
CHANGED_PLACES, CHANGED_BYTES = 8, 64
"""The number of places of the largest file that differ between versions of a product whose builds are processed, and
the size of each place."""


async def seed(store: Store) -> bool:
    """Insert the demonstration data in one transaction. If the store already has data, change nothing and return
    False."""
    if await store.database.fetch_one(ANY_ORGANISATION) is not None:
        return False
    password_hash = await passwords.hash_password(PASSWORD)
    with ids.seeded("demo"):
        builds_by_release = {
            (product.slug, release.version): builds(product, release) for product, release in _releases()
        }
        shots = {product.slug: screenshots(product) for product in products()}
        await _store_blobs(
            store, {*chain(*builds_by_release.values()), *chain(*shots.values()), *_covers_and_trailers()}
        )
        async with store.database.transaction() as transaction:
            if await transaction.fetch_one(ANY_ORGANISATION) is not None:
                return False
            with clock.fixed(moment(FOUNDED)):
                orgs = await _organisations(transaction)
            org_ids: dict[str, str] = {}
            for product in products():
                of_product = {
                    release.version: builds_by_release[product.slug, release.version] for release in product.releases
                }
                org_ids[product.slug] = await _product(
                    transaction, orgs[product.publisher], product, of_product, shots[product.slug]
                )
            with clock.fixed(moment(SIGNED_UP)):
                await _people(transaction, orgs[ORGANISATIONS[0][0]], password_hash, org_ids)
    return True


async def _organisations(transaction: Transaction) -> dict[str, str]:
    """Insert the publishers with their profiles; their ids by slug."""
    orgs = {
        slug: (await organisations.create_organisation(transaction, slug, name)).id for slug, name in ORGANISATIONS
    }
    for slug, (text, website) in PROFILES.items():
        await transaction.run(queries.SET_PROFILE, orgs[slug], text, website)
    return orgs


async def is_open(reader: Reader) -> bool:
    """Whether a password or secret of the demonstration is valid."""
    client = await queries.client(reader, CLIENT_ID)
    if client is not None and secrets.matches(CLIENT_SECRET, client.secret_hash):
        return True
    for email in (PUBLISHER, PLAYER):
        person = await queries.person_with_email(reader, email)
        if person is not None and await passwords.verify(PASSWORD, person.password_hash):
            return True
    return False


def builds(product: DemoProduct, release: DemoRelease) -> list[bytes]:
    """The release's builds, in the order of the product's platforms. Only the newest builds of popular products, and
    builds that are processed, differ by platform. Older builds of a product whose builds are processed are as large."""
    version = release.version
    if release is processed_release(product):
        extra_files = {"bom.json": component_list(product, version)}
        return [
            archive(product.slug, version, platform, PROCESSED_ASSETS, extra_files) for platform in product.platforms
        ]
    if release is updated_release(product):
        return [archive(product.slug, version, platform, PROCESSED_ASSETS) for platform in product.platforms]
    if product.slug in downloads.POPULAR and release is product.releases[-1]:
        return [archive(product.slug, version, platform, POPULAR_ASSETS) for platform in product.platforms]
    times = PROCESSED_ASSETS if product.components else 1
    return [archive(product.slug, version, times=times)] * len(product.platforms)


def archive(
    slug: str, version: str, platform: str = "linux", times: int = 1, extra_files: Mapping[str, bytes] | None = None
) -> bytes:
    """A small real build: a tar.gz with a start script, a manual and some data, the same bytes every time. Most of the
    data is the same in every version and on every platform; `times` is the factor by which the data is larger, and
    `extra_files` maps names to further files."""
    tiles = "".join(f"{slug} {version} tile {number}\n" for number in range(120))
    size = (MIN_ASSETS + hash_of(slug) % MAX_MORE_ASSETS) * times
    program = (2_000 + hash_of(platform) % 4_000) * times
    assets = _assets(slug, version, size) if times == PROCESSED_ASSETS else _random_bytes(slug, size)
    files = {
        "start.sh": (f'#!/bin/sh\necho "{slug} {version}"\n'.encode(), 0o755),
        "README.md": (f"# {slug} {version}\n\nRun `./start.sh`.\n".encode(), 0o644),
        "data/level-1.txt": (tiles.encode(), 0o644),
        "data/assets.bin": (assets, 0o644),
        "data/new.bin": (_random_bytes(f"{slug} {version}", size // 12), 0o644),
        f"data/{platform}.bin": (_random_bytes(f"{slug} {platform}", program), 0o644),
        **{name: (content, 0o644) for name, content in (extra_files or {}).items()},
    }
    archive_file = io.BytesIO()
    with tarfile.open(fileobj=archive_file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(f"{slug}-{version}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, moment(FOUNDED) // clock.SECOND
            tar.addfile(entry, io.BytesIO(content))
    # Most of the data is random and cannot be compressed, so large builds are only stored.
    return gzip.compress(archive_file.getvalue(), compresslevel=1 if times == 1 else 0, mtime=0)


def _random_bytes(name: str, size: int) -> bytes:
    return hashlib.shake_128(name.encode()).digest(size)


def _assets(slug: str, version: str, size: int) -> bytes:
    """The same data in every version, except for a few bytes in some places."""
    data = bytearray(_random_bytes(slug, size))
    for number in range(CHANGED_PLACES):
        name = f"{slug} {version} {number}"
        start = hash_of(name) % (size - CHANGED_BYTES)
        data[start : start + CHANGED_BYTES] = _random_bytes(name, CHANGED_BYTES)
    return bytes(data)


def screenshots(product: DemoProduct) -> list[bytes]:
    """The product's screenshots: scenes that are drawn as placeholder covers are, in the palette of its cover."""
    return [
        placeholder.draw_motif(f"{product.slug}-{number}", shot.motif, _palette(product))
        for number, shot in enumerate(product.screenshots, 1)
    ]


def cover(product: DemoProduct) -> bytes:
    """The cover in the product's palette. It is the placeholder cover if the product has no palette of its own."""
    motif = placeholder.motif_of(product.slug, product.kind, product.tags)
    mirror_again = product.cover is not None and product.cover.turned
    return placeholder.draw_motif(product.slug, motif, _palette(product), mirror_again=mirror_again)


def _palette(product: DemoProduct) -> int:
    return placeholder.palette_of(product.slug) if product.cover is None else product.cover.palette


def _covers_and_trailers() -> Iterable[bytes]:
    for product in products():
        if product.cover is not None:
            yield cover(product)
        if product.trailer is not None:
            yield product.read_trailer()


def _releases() -> Iterable[tuple[DemoProduct, DemoRelease]]:
    return ((product, release) for product in products() for release in product.releases)


async def _store_blobs(store: Store, contents: Iterable[bytes]) -> None:
    """Put the contents into the blob store, several at a time."""
    pending_contents = iter(contents)

    async def work() -> None:
        for content in pending_contents:
            await blobs.put(store.database, store.blobs, content)

    await asyncio.gather(*(work() for _ in range(BLOBS_AT_ONCE)))


async def _people(transaction: Transaction, org_id: str, password_hash: str, org_ids: Mapping[str, str]) -> None:
    """Insert two people, a client, the player's entitlements, and codes for other products."""
    player = await people.add_person(transaction, PLAYER, password_hash)
    await people.add_person(transaction, PUBLISHER, password_hash)
    await people.set_role(transaction, org_id, PUBLISHER, "owner")
    scopes = CLIENT_SCOPES.split()
    await clients.add_client(transaction, org_id, CLIENT_ID, CLIENT_SECRET, "Demo publisher", scopes)
    for slug, day in OF_PLAYER.items():
        await library.grant(transaction, f"person:{player.id}", [org_ids[slug]], "demo", moment(day))
    await codes.add_batch(transaction, org_id, "license", [org_ids[OF_LICENCE_CODES]], LICENCE_CODES, 1)
    await codes.add_batch(transaction, org_id, "promo", [org_ids[OF_PROMO_CODE]], [PROMO_CODE], PROMO_USES)


async def _product(
    transaction: Transaction, org_id: str, product: DemoProduct, archives: Mapping[str, list[bytes]], shots: list[bytes]
) -> str:
    body = _body(product)
    created_at = moment(product.releases[0].date - timedelta(days=DAYS_BEFORE_RELEASE))
    with clock.fixed(created_at):
        product_id = await lifecycle.create(transaction, org_id, body)
    await _media(transaction, product_id, product, shots, created_at)
    owned_product = OwnedProduct(product_id, org_id, product.publisher, body.slug, "public", body.access, created_at)
    published_releases: list[tuple[date, list[str]]] = []
    for number, release in enumerate(product.releases):
        # Releases of one day are a few minutes apart.
        with clock.fixed(moment(release.date, minutes=17 * number)):
            artifact_ids = await _release(transaction, owned_product, product, release, archives[release.version])
        if release.withdrawn is None:
            published_releases.append((release.date, artifact_ids))
    # The catalog is refreshed once, after the last release.
    await projection.refresh(transaction, product_id, reindex=False)
    today = date.fromisoformat(clock.rfc3339(clock.now())[:10])
    is_own = product.publisher == ORGANISATIONS[0][0]
    days = downloads.HISTORY_DAYS if is_own and product.slug in downloads.POPULAR else downloads.DAYS
    daily_rows = [*downloads.daily_downloads(product.slug, published_releases, today, days)]
    await counts.put_downloads(transaction, daily_rows)
    await catalog_index.put_downloads(transaction, product_id, downloads.total_of_last_week(daily_rows, today))
    if is_own:
        version, release_days = product.releases[-1].version, [release for release, _ in published_releases]
        rows = [
            (org_id, metric, day, product_id, version, product.platforms[0], value)
            if metric == "updates"
            else (org_id, metric, day, product_id, "", "", value)
            for metric, day, value in downloads.other_counts(product.slug, release_days, today, days)
        ]
        await counts.put_counts(transaction, rows)
    return product_id


async def _media(
    transaction: Transaction, product_id: str, product: DemoProduct, shots: list[bytes], created_at: Instant
) -> None:
    """Insert the product's own cover and trailer, if it has them, and its screenshots."""
    if product.cover is not None:
        with clock.fixed(created_at):
            content = replace(_picture_content(cover(product)), color=placeholder.mean_color(product.cover.palette))
            await media.put_ready(transaction, product_id, "cover", product.cover.alt, content)
    for number, (shot, screenshot_data) in enumerate(zip(product.screenshots, shots, strict=True)):
        # Media are shown in the order of their creation.
        with clock.fixed(clock.later(created_at, seconds=number)):
            await media.put_ready(transaction, product_id, "screenshot", shot.alt, _picture_content(screenshot_data))
    if product.trailer is not None:
        trailer = product.read_trailer()
        video = VideoFile(len(trailer), lambda start, length: trailer[start : start + length])
        digest, milliseconds = hashlib.sha256(trailer).hexdigest(), duration_ms(video, "video/webm")
        content = Content(digest, len(trailer), "video/webm", duration_ms=milliseconds)
        with clock.fixed(clock.later(created_at, seconds=len(shots))):
            await media.put_ready(transaction, product_id, "video", product.trailer, content)


def _body(product: DemoProduct) -> ProductWrite:
    home = f"https://{product.publisher}.example/{product.slug}"
    return ProductWrite(
        slug=product.slug,
        title=product.title,
        description=product.description.strip(),
        summary=product.summary,
        kind=product.kind,
        platforms=product.platforms,
        tags=product.tags,
        homepage=home,
        buy_url=None if product.access == "free" else f"{home}/buy",
        languages=product.languages,
        license=product.license,
        access=product.access,
        status="public",
    )


def _picture_content(image_data: bytes) -> Content:
    return Content(hashlib.sha256(image_data).hexdigest(), len(image_data), SVG, placeholder.WIDTH, placeholder.HEIGHT)


async def _release(
    transaction: Transaction,
    owned_product: OwnedProduct,
    product: DemoProduct,
    release: DemoRelease,
    release_builds: list[bytes],
) -> list[str]:
    """Publish the release; return the ids of its artifacts."""
    new_release = NewRelease(release.version, release.channel, release.notes.strip())
    release_id = await lifecycle.draft(transaction, owned_product, new_release)
    artifact_ids = [
        await artifacts.put_ready(
            transaction,
            release_id,
            f"{product.slug}-{release.version}-{TARGETS[platform]}.tar.gz",
            Content(hashlib.sha256(build).hexdigest(), len(build)),
            platform,
        )
        for platform, build in zip(product.platforms, release_builds, strict=True)
    ]
    await lifecycle.mark_published(transaction, release_id)
    if release.withdrawn is not None:
        await lifecycle.mark_yanked(transaction, release_id, release.withdrawn)
    return artifact_ids
