"""DELETE /products/{id}/releases/{version}: a draft that is not wanted any more."""

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.catalog.visibility import ProductNotFound
from countersign.distribution.processing import removal
from countersign.distribution.processing.removal import Built
from countersign.distribution.publishing.releases import AlreadyPublished, JustChanged
from countersign.distribution.publishing.rules import NotYourOrganisation, ReleaseNotFound, owned_release
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route

WRITE_RELEASES = "write:releases"


async def _builds(call: StoreRequest[Nothing, Nothing]) -> Built:
    database, path = call.context.database, call.path
    release = await owned_release(database, call.caller, path["id"], path["version"], WRITE_RELEASES)
    return await removal.built(call.context, release.id) if release.status == "draft" else Built()


async def remove_draft(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Remove a draft release with its files; what others do not share of them is freed after a while."""
    path = call.path
    release = await owned_release(call.transaction, call.caller, path["id"], path["version"], WRITE_RELEASES)
    known = call.prepared if isinstance(call.prepared, Built) else Built()
    await removal.remove(call.transaction, release, known)
    return response.no_content()


ROUTES = (
    route(
        "DELETE",
        "/products/{id}/releases/{version}",
        remove_draft,
        prepare=_builds,
        answers={204: None},
        refusals=(ProductNotFound, NotYourOrganisation, ReleaseNotFound, AlreadyPublished, JustChanged),
        scope=WRITE_RELEASES,
        writes=True,
    ),
)
