"""The build that a client asks for, once it may have it."""

from countersign.distribution.auth.callers import Caller
from countersign.distribution.builds import addresses, download
from countersign.distribution.catalog.visibility import visible_entry
from countersign.distribution.context import Store
from countersign.distribution.delivery import queries
from countersign.distribution.processing import queries as builds
from countersign.distribution.processing.queries import Build
from countersign.distribution.publishing.rules import ReleaseNotFound
from countersign.kernel import clock
from countersign.kernel.errors import NotFound

ADDRESS_TTL_S = 3600
"""How long the addresses of packs and deltas work; a client whose time runs out asks again."""


class NotProcessed(NotFound):
    """The release has no build for this platform."""

    code = "not_processed"
    title = "Not processed"
    resolution = "Ask for another platform, or start the job build.process for the release's artifact."


async def permitted_build(
    store: Store, caller: Caller, id_or_slug: str, version: str, platform: str | None
) -> tuple[Build, download.Ready, bool]:
    """The release's build for the platform, its artifact, and whether anyone may have it.

    Raises:
        ProductNotFound, ReleaseNotFound: there is none, or the caller may not know of it.
        NotProcessed: nothing was made of the release for this platform.
        InsufficientScope, Unauthenticated, NotEntitled: as for a download of the artifact.
    """
    entry = await visible_entry(store.database, caller, id_or_slug)
    release = await queries.release(store.database, entry.product_id, version)
    if release is None or (release[1] == "draft" and entry.org_id not in caller.orgs):
        raise ReleaseNotFound("the product has no release of this version")
    found = await builds.build_of_release(store.database, release[0], platform or "")
    if found is None:
        raise NotProcessed(f"the release {version} has no build for {platform or 'no platform in particular'}")
    ready, is_for_anyone = await download.permitted(store, caller, found.artifact_id)
    return found, ready, is_for_anyone


async def address(store: Store, sha256: str, filename: str) -> str:
    """A signed address of a blob that works for a while, at the CDN where there is one."""
    settings = store.settings
    if settings.downloads == "redirect" and not settings.cdn_url:
        elsewhere = await store.blobs.signed_url(sha256, filename, ADDRESS_TTL_S)
        if elsewhere is not None:
            return elsewhere
    expires = int(clock.later(clock.now(), seconds=ADDRESS_TTL_S) // clock.SECOND)
    path = addresses.signed_path(store.addresses, sha256, filename, expires)
    is_at_cdn = settings.cdn_url and settings.downloads == "redirect"
    return (settings.cdn_url.rstrip("/") if is_at_cdn else store.capability_base_url) + path
