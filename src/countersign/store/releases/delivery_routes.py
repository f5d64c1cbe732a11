"""What an updating client reads: channels, manifests, chunks, deltas and SBOMs."""

from itertools import groupby

import msgspec

from countersign.kernel import clock
from countersign.kernel.errors import NotFound
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import RANGE_READS, RANGE_SENDS, StoredContent
from countersign.kernel.http.response import JSON, Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.catalog.visibility import ProductNotFound, visible_entry
from countersign.store.context import Store
from countersign.store.releases import channels, download
from countersign.store.releases.channels import NothingBuilt
from countersign.store.releases.download import ArtifactNotFound, NotEntitled
from countersign.store.releases.permissions import ReleaseNotFound
from countersign.store.releases.processing import artifacts, deltas, queries
from countersign.store.releases.processing import queries as builds
from countersign.store.releases.processing.queries import Build
from countersign.store.releases.processing.sbom import Bill
from countersign.store.releases.schemas import BuildQuery, DeltaQuery
from countersign.updates.api_types import BEGINS_HEADER, ChannelState, ChunkPlaces, Delta, DeltaOffer, Envelope, Pack
from countersign.updates.dsse import SignatureRefused

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
    release = await channels.release(store.database, entry.product_id, version)
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
    path = download.signed_path(store.addresses, sha256, filename, expires)
    is_at_cdn = settings.cdn_url and settings.downloads == "redirect"
    return (settings.cdn_url.rstrip("/") if is_at_cdn else store.capability_base_url) + path


class NoBill(NotFound):
    """The build does not tell what it consists of."""

    code = "no_sbom"
    title = "No bill of materials"
    resolution = "Ship a CycloneDX or SPDX file, package metadata or a package lock inside the build."


async def show_channel(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show what a channel is at, signed by the organisation, with the keys that lead to the one that signs."""
    entry = await visible_entry(call.context.database, call.caller, call.path["id"])
    return response.json(await channels.state(call.context, entry.product_id, call.path["channel"]))


async def show_manifest(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show the signed manifest of a build: every file with mode, digest and chunks."""
    store = call.context
    build, _, is_for_anyone = await permitted_build(
        store, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    size = await store.blobs.size(build.envelope_sha256)
    caching = "public, max-age=300" if is_for_anyone else "private, no-cache"
    return await range_response.range_response(
        store.blobs, call.headers, StoredContent(build.envelope_sha256, size or 0, caching, JSON)
    )


async def show_chunks(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show where the chunks of a build lie: addresses that work for an hour and understand Range.

    With `Download-Begins: 1` it is counted as a download of the release: a client sends it once, when it begins to
    install the build or to update to it.
    """
    store = call.context
    build, ready, _ = await permitted_build(
        store, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    names = await artifacts.chunk_names(store, build)
    located = await queries.located(store.database, build.org_id, names)
    packs = [
        Pack(
            await address(store, sha256, "pack"),
            size,
            [(each.id, each.start, each.length) for each in group],
        )
        for (sha256, size), group in groupby(located, key=lambda each: (each.pack_sha256, each.pack_size))
    ]
    url = await address(store, ready.sha256, ready.filename)
    if call.headers.get(BEGINS_HEADER.lower()) == "1":
        await download.counting(store, ready.id)()
    return response.json(ChunkPlaces(packs, url, ready.size, ready.sha256, ready.filename))


async def offer_delta(call: StoreRequest[DeltaQuery, Nothing]) -> Response:
    """Offer the deltas from another version, where they were prepared."""
    store, query = call.context, call.query
    new, _, _ = await permitted_build(store, call.caller, call.path["id"], call.path["version"], query.platform)
    old, _, _ = await permitted_build(store, call.caller, call.path["id"], query.from_, query.platform)
    prepared = await deltas.state(store.database, old.artifact_id, new.artifact_id)
    listed: list[Delta] = []
    for sha256, size, listing in await deltas.deltas(store.database, old.artifact_id, new.artifact_id):
        said = msgspec.json.decode(listing, type=deltas.Listed)
        url = await address(store, sha256, "delta")
        listed.append(Delta(url, size, sha256, said.old, said.files, said.memory))
    status = "ready" if listed else "preparing" if prepared == "wanted" else "none"
    return response.json(
        DeltaOffer(status, query.from_, call.path["version"], old.manifest_sha256, new.manifest_sha256, listed)
    )


async def show_bill(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show what a build says it consists of, as CycloneDX 1.5."""
    build, _, _ = await permitted_build(
        call.context, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    if build.sbom is None:
        raise NoBill("no file of the build names its parts")
    return Response(200, build.sbom.encode(), JSON)


_REFUSALS = (
    ProductNotFound,
    ReleaseNotFound,
    NotProcessed,
    ArtifactNotFound,
    NotEntitled,
    InsufficientScope,
    SignatureRefused,
)
_OF_BUILD = "/products/{id}/releases/{version}"

ROUTES = (
    route(
        "GET",
        "/products/{id}/channels/{channel}",
        show_channel,
        answers={200: ChannelState},
        refusals=(ProductNotFound, NothingBuilt),
    ),
    route(
        "GET",
        _OF_BUILD + "/manifest",
        show_manifest,
        query=BuildQuery,
        answers={200: Envelope, 206: bytes},
        refusals=_REFUSALS,
        reads=RANGE_READS,
        sends=RANGE_SENDS,
    ),
    route(
        "GET",
        _OF_BUILD + "/chunks",
        show_chunks,
        query=BuildQuery,
        answers={200: ChunkPlaces},
        refusals=_REFUSALS,
        reads=(BEGINS_HEADER,),
    ),
    route("GET", _OF_BUILD + "/delta", offer_delta, query=DeltaQuery, answers={200: DeltaOffer}, refusals=_REFUSALS),
    route(
        "GET",
        _OF_BUILD + "/sbom",
        show_bill,
        query=BuildQuery,
        answers={200: Bill},
        refusals=(*_REFUSALS, NoBill),
    ),
)
