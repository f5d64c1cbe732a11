"""The life cycle of products and releases: create, replace, archive, draft, publish, yank and promote."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import Refused, invalid_member
from countersign.store import webhook_events
from countersign.store.auth.organisations import SlugTaken
from countersign.store.catalog import projection
from countersign.store.catalog.schemas import Draft, Release
from countersign.store.catalog.versions import sort_key
from countersign.store.releases.permissions import OwnedProduct, OwnedRelease
from countersign.store.releases.schemas import NewRelease, ProductWrite, ReleaseUpdate

INSERT_PRODUCT = """
    INSERT INTO product
        (id, org_id, slug, title, description, summary, kind, platforms, tags, homepage, buy_url, languages, license,
         access, status, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
    ON CONFLICT DO NOTHING
"""
REPLACE_PRODUCT = """
    UPDATE product
    SET slug = $2, title = $3, description = $4, summary = $5, kind = $6, platforms = $7, tags = $8, homepage = $9,
        buy_url = $10, languages = $11, license = $12, access = $13, status = $14, updated_at = $15
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
    """A file of a release, and whether it has a build."""

    filename: str
    platform: str | None
    is_built: bool


async def insert_product(
    transaction: Transaction, product_id: str, org_id: str, body: ProductWrite, status: str, now: Instant
) -> bool:
    """Write a new product. Return False if its slug is taken."""
    return bool(await transaction.run(INSERT_PRODUCT, product_id, org_id, *_column_values(body), status, now))


async def replace_product(
    transaction: Transaction, product_id: str, body: ProductWrite, status: str, now: Instant
) -> bool:
    """Replace all writable members. Return False if another product has the slug."""
    return bool(await transaction.run(REPLACE_PRODUCT, product_id, *_column_values(body), status, now))


def _column_values(body: ProductWrite) -> tuple[str | None, ...]:
    return (
        body.slug,
        body.title,
        body.description,
        body.summary,
        body.kind,
        msgspec.json.encode(body.platforms).decode(),
        msgspec.json.encode(body.tags).decode(),
        body.homepage,
        body.buy_url,
        msgspec.json.encode(body.languages).decode(),
        body.license,
        body.access,
    )


async def is_entitled(reader: Reader, product_id: str) -> bool:
    """Whether the product has an entitlement."""
    return await reader.fetch_one(ENTITLED, product_id) is not None


async def unfinished_artifact(reader: Reader, release_id: str) -> str | None:
    """Return the name of a file of the release whose upload is unfinished, or None if all uploads are finished."""
    row = await reader.fetch_one(UNFINISHED_ARTIFACT, release_id)
    return None if row is None else row[0]


async def is_notes_only(reader: Reader, release_id: str) -> bool:
    """Whether the release is declared to have no files."""
    row = await reader.fetch_one(NOTES_ONLY, release_id)
    return row is not None and bool(row[0])


async def release_files(reader: Reader, release_id: str) -> list[ReleaseFile]:
    """Return the files of a release, ordered by name."""
    rows = await reader.fetch(FILES, release_id)
    return [ReleaseFile(filename, platform, bool(is_built)) for filename, platform, is_built in rows]


class StillEntitled(Refused):
    """The product has entitlements, so it cannot be archived."""

    status = 409
    code = "product_entitled"
    title = "Product is owned"
    resolution = "Revoke the entitlements first, or set the status to draft to take it off the catalog."


def check_product(body: ProductWrite) -> None:
    """Check the rules that the schema does not express.

    Raises:
        InvalidRequest: platforms or tags contain duplicates, or the slug has the form of an id.
    """
    if len(set(body.platforms)) != len(body.platforms):
        raise invalid_member("/platforms", "must not contain duplicates")
    if len(set(body.tags)) != len(body.tags):
        raise invalid_member("/tags", "must not contain duplicates")
    if ids.is_uuid(body.slug):
        raise invalid_member("/slug", "must not have the form of an id")


async def create(transaction: Transaction, org_id: str, body: ProductWrite, product_id: str | None = None) -> str:
    """Create a product of the organisation, and return its id. Without a status, the product is a draft.

    Raises:
        InvalidRequest: as raised by `check_product`.
        SlugTaken: another product has the slug.
    """
    check_product(body)
    new_id = product_id or ids.new_uuid()
    if not await insert_product(transaction, new_id, org_id, body, body.status or "draft", clock.now()):
        raise SlugTaken("the slug is taken")
    await projection.refresh(transaction, new_id)
    return new_id


async def replace(transaction: Transaction, product: OwnedProduct, body: ProductWrite) -> None:
    """Replace all writable members. Without a status, the status does not change.

    Raises:
        InvalidRequest: as raised by `check_product`.
        SlugTaken: another product has the slug.
        StillEntitled: the new status is `archived`, and the product has entitlements.
    """
    check_product(body)
    status = body.status or product.status
    if status == "archived" and product.status != "archived":
        await _require_unowned(transaction, product.id)
    if not await replace_product(transaction, product.id, body, status, clock.now()):
        raise SlugTaken("the slug is taken")
    await projection.refresh(transaction, product.id)


async def archive(transaction: Transaction, product: OwnedProduct) -> None:
    """Remove the product from the catalog permanently. Archiving a product again has no effect.

    Raises:
        StillEntitled: the product has entitlements.
    """
    await _require_unowned(transaction, product.id)
    await transaction.run(SET_STATUS, product.id, "archived", clock.now())
    await projection.refresh(transaction, product.id)


async def lock(transaction: Transaction, product_id: str) -> None:
    """Lock the product's row until the transaction ends."""
    await transaction.run(LOCK_PRODUCT, product_id)


async def _require_unowned(transaction: Transaction, product_id: str) -> None:
    await lock(transaction, product_id)
    if await is_entitled(transaction, product_id):
        raise StillEntitled("a customer owns this product")


MAX_NAMED = 5
"""Maximum number of files that an error names."""


class ReleaseExists(Refused):
    """The product has a release of this version."""

    status = 409
    code = "release_exists"
    title = "Release exists"
    resolution = "Use the existing release, or choose another version."


class NotPublished(Refused):
    """Only a published release can be yanked or promoted."""

    status = 409
    code = "release_not_published"
    title = "Release not published"
    resolution = "Publish the release first."


class Yanked(Refused):
    """A yanked release stays yanked."""

    status = 409
    code = "release_yanked"
    title = "Release yanked"
    resolution = "Draft a release with a new version."


class Incomplete(Refused):
    """A file of the release was announced, but its upload is unfinished."""

    status = 409
    code = "upload_incomplete"
    title = "Upload incomplete"
    resolution = "Finish the upload, or announce the file again, then publish."


class ReleaseIncomplete(Refused):
    """The release has no accepted build for a platform that it has files for, or no build at all."""

    status = 409
    code = "release_incomplete"
    title = "Release incomplete"
    resolution = (
        "Have each file processed with POST /api/v1/jobs (type build.process), and replace what is refused; or set "
        "notes_only for a release without files."
    )


class AlreadyPublished(Refused):
    """A published release cannot be removed or changed back to a draft."""

    status = 409
    code = "release_published"
    title = "Release published"
    resolution = "Yank the release with a reason instead."


class JustChanged(Refused):
    """A concurrent request changed the release."""

    status = 409
    code = "release_just_changed"
    title = "Release just changed"
    resolution = "Send the same request again."


async def draft(transaction: Transaction, product: OwnedProduct, body: NewRelease) -> str:
    """Create a draft release of the product; return its id.

    Raises:
        ReleaseExists: the product has a release of this version, in any status.
    """
    release_id = ids.new_uuid()
    written_rows = await transaction.run(
        INSERT_RELEASE,
        release_id,
        product.id,
        body.version,
        sort_key(body.version),
        body.channel,
        body.notes,
        clock.now(),
        int(body.notes_only),
    )
    if not written_rows:
        raise ReleaseExists(f"there is a release {body.version}")
    return release_id


async def update(transaction: Transaction, release: OwnedRelease, body: ReleaseUpdate) -> None:
    """Change notes, channel and `notes_only`. Omitted members do not change. Each condition is part of the UPDATE
    statement, so that no concurrent publication can happen between the check and the change.

    Raises:
        Yanked: a yanked release cannot change its channel.
        AlreadyPublished: `notes_only` of a published release cannot change.
    """
    if not isinstance(body.notes, msgspec.UnsetType):
        await transaction.run(SET_NOTES, release.id, body.notes)
    if not isinstance(body.channel, msgspec.UnsetType):
        await _change_channel(transaction, release, body.channel)
    if not isinstance(body.notes_only, msgspec.UnsetType):
        written_rows = await transaction.run(SET_NOTES_ONLY, release.id, int(body.notes_only))
        if not written_rows:
            raise AlreadyPublished(
                f"the release {release.version} was published; notes_only can change on a draft only",
                resolution="Leave notes_only out, or draft a release with a new version.",
            )
    await projection.refresh(transaction, release.product.id, reindex=False)


async def publish(transaction: Transaction, release: OwnedRelease) -> None:
    """Publish a draft release. If it is the first release of a draft product, also publish the product. Publishing a
    release again has no effect.

    Raises:
        Yanked: the release was yanked.
        Incomplete: the upload of a file is unfinished.
        ReleaseIncomplete: a build is missing, and the release is not `notes_only`.
    """
    if release.status == "yanked":
        raise Yanked("a yanked release cannot be published again")
    if await transaction.run(TAKE_DRAFT, release.id):
        unfinished_file = await unfinished_artifact(transaction, release.id)
        if unfinished_file is not None:
            raise Incomplete(f"the file {unfinished_file} is not completely uploaded")
        await _require_builds(transaction, release)
    if await mark_published(transaction, release.id):
        if release.product.status == "draft":
            await transaction.run(SET_STATUS, release.product.id, "public", clock.now())
        await webhook_events.release_published(transaction, release.product.org_id, release.product.id, release.version)
    await projection.refresh(transaction, release.product.id, reindex=False)


async def _require_builds(reader: Reader, release: OwnedRelease) -> None:
    files = await release_files(reader, release.id)
    if await is_notes_only(reader, release.id):
        if files:
            raise ReleaseIncomplete(f"the release {release.version} is notes_only, but has {len(files)} files")
        return
    if not files:
        raise ReleaseIncomplete(f"the release {release.version} has no file")
    files_without_build = _files_without_build(files)
    if files_without_build:
        names = ", ".join(files_without_build[:MAX_NAMED])
        more_text = f" and {len(files_without_build) - MAX_NAMED} more" if len(files_without_build) > MAX_NAMED else ""
        raise ReleaseIncomplete(f"no build exists of {names}{more_text}: not processed yet, or rejected")


def _files_without_build(files: Sequence[ReleaseFile]) -> list[str]:
    """Return the names of the files that block publication: the files of platforms without a build, or all files if the
    release has no build."""
    built_platforms = {file.platform for file in files if file.is_built}
    needed_platforms = (
        {file.platform for file in files} - {None} if built_platforms else {file.platform for file in files}
    )
    return [file.filename for file in files if file.platform in needed_platforms - built_platforms]


async def mark_published(transaction: Transaction, release_id: str) -> bool:
    """Publish the draft without refreshing the catalog. Return False if the release is not a draft."""
    return bool(await transaction.run(PUBLISH, release_id, clock.now()))


async def mark_yanked(transaction: Transaction, release_id: str, reason: str) -> bool:
    """Yank the published release without refreshing the catalog. Return False if the release is not published."""
    return bool(await transaction.run(YANK, release_id, reason))


async def yank(transaction: Transaction, release: OwnedRelease, reason: str) -> None:
    """Yank a published release. Owners can still download it, and see the reason. Yanking a release again has no
    effect.

    Raises:
        NotPublished: the release is a draft.
    """
    if release.status == "draft":
        raise NotPublished("a draft cannot be yanked")
    if await mark_yanked(transaction, release.id, reason):
        await webhook_events.release_yanked(transaction, release.product.org_id, release.product.id, release.version)
    await projection.refresh(transaction, release.product.id, reindex=False)


async def promote(transaction: Transaction, release: OwnedRelease, channel: str) -> None:
    """Move a published release to another channel; its files do not change.

    Raises:
        NotPublished: the release is a draft.
        Yanked: the release was yanked.
    """
    if release.status == "draft":
        raise NotPublished("a draft cannot be promoted; change its channel instead")
    if release.status == "yanked":
        raise Yanked("a yanked release cannot be promoted")
    await _change_channel(transaction, release, channel)
    await projection.refresh(transaction, release.product.id, reindex=False)


async def _change_channel(transaction: Transaction, release: OwnedRelease, channel: str) -> None:
    if not await transaction.run(SET_CHANNEL, release.id, channel):
        raise Yanked(f"the release {release.version} was yanked and cannot change its channel")


async def require_draft(transaction: Transaction, release: OwnedRelease) -> None:
    """Lock a draft until the transaction ends, so that it cannot be published concurrently.

    Raises:
        AlreadyPublished: the release is not a draft.
    """
    if not await transaction.run(TAKE_DRAFT, release.id):
        raise AlreadyPublished(f"the release {release.version} was published")


async def remove(transaction: Transaction, release: OwnedRelease) -> None:
    """Delete a draft whose files were removed."""
    await transaction.run(DELETE_DRAFT, release.id)
    await projection.refresh(transaction, release.product.id, reindex=False)


async def release_view(reader: Reader, release_id: str) -> Release | Draft:
    """The release as shown to its organisation."""
    row = await reader.fetch_one(RELEASE, release_id)
    if row is None:
        raise LookupError(f"no release {release_id}")
    version, channel, published_at, notes, status, yank_reason, notes_only = row
    if published_at is None:
        return Draft(version=version, channel=channel, notes=notes, status="draft", notes_only=bool(notes_only))
    return Release(
        version=version,
        channel=channel,
        published_at=clock.rfc3339(published_at),
        notes=notes,
        status=status,
        yank_reason=yank_reason,
        notes_only=bool(notes_only),
    )
