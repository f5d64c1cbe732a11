"""DELETE /products/{id}/releases/{version}: removes a draft release with its files, builds and deltas."""

from dataclasses import dataclass, field

from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.products import ProductNotFound
from countersign.store.context import Store
from countersign.store.releases import artifacts as files
from countersign.store.releases import lifecycle
from countersign.store.releases.lifecycle import AlreadyPublished, JustChanged
from countersign.store.releases.permissions import (
    NotYourOrganisation,
    OwnedRelease,
    ReleaseNotFound,
    owned_release,
)
from countersign.store.releases.processing import builds
from countersign.store.releases.processing.builds import Build
from countersign.store.scopes import WRITE_RELEASES

OF_RELEASE = "SELECT artifact_id FROM build WHERE release_id = $1 ORDER BY artifact_id"


@dataclass(frozen=True, slots=True)
class ReleaseBuilds:
    """The builds of a release, with the names of their chunks."""

    builds: list[tuple[Build, list[str]]] = field(default_factory=list[tuple[Build, list[str]]])


async def builds_of(store: Store, release_id: str) -> ReleaseBuilds:
    """The release's builds, read before any row is locked."""
    with_names: list[tuple[Build, list[str]]] = []
    for artifact_id in await _built_artifacts(store.database, release_id):
        build = await builds.build(store.database, artifact_id)
        if build is not None:
            with_names.append((build, await builds.chunk_names(store, build)))
    return ReleaseBuilds(with_names)


async def remove(transaction: Transaction, release: OwnedRelease, release_builds: ReleaseBuilds) -> None:
    """Delete the draft with its files, builds and deltas.

    Raises:
        AlreadyPublished: the release is not a draft.
        JustChanged: a file was processed concurrently. The caller can repeat the call.
    """
    await lifecycle.require_draft(transaction, release)
    for build, names in release_builds.builds:
        await builds.delete_build(transaction, build, names)
    if await _built_artifacts(transaction, release.id):
        raise lifecycle.JustChanged("a file of the release was processed concurrently")
    await files.remove_all(transaction, release.id)
    await lifecycle.remove(transaction, release)


async def _built_artifacts(reader: Reader, release_id: str) -> list[str]:
    return [artifact_id for (artifact_id,) in await reader.fetch(OF_RELEASE, release_id)]


async def prepare_removal(call: StoreRequest[Nothing, Nothing]) -> ReleaseBuilds:
    """Read the builds of a draft release before the transaction of the request begins."""
    database, path = call.context.database, call.path
    release = await owned_release(database, call.caller, path["id"], path["version"], WRITE_RELEASES)
    return await builds_of(call.context, release.id) if release.status == "draft" else ReleaseBuilds()


async def remove_draft(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Remove a draft release with its files; unshared storage is freed later."""
    path = call.path
    release = await owned_release(call.transaction, call.caller, path["id"], path["version"], WRITE_RELEASES)
    release_builds = call.prepared if isinstance(call.prepared, ReleaseBuilds) else ReleaseBuilds()
    await remove(call.transaction, release, release_builds)
    return response.no_content()


ROUTES = (
    route(
        "DELETE",
        "/products/{id}/releases/{version}",
        remove_draft,
        prepare=prepare_removal,
        answers={204: None},
        refusals=(ProductNotFound, NotYourOrganisation, ReleaseNotFound, AlreadyPublished, JustChanged),
        scope=WRITE_RELEASES,
        writes=True,
    ),
)
