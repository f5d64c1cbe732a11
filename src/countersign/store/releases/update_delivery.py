"""Updates for clients: signed channel statements, manifests, chunks, deltas and SBOMs.

A channel statement names the newest release of a channel and its builds. A client rejects a statement with a lower
counter than the last statement that the client saw.
"""

from itertools import groupby
from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import RANGE_REQUEST_HEADERS, RANGE_RESPONSE_HEADERS, StoredContent
from countersign.kernel.http.response import JSON, Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store import signing_keys
from countersign.store import signing_keys as signing
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.catalog.products import ProductNotFound, visible_entry
from countersign.store.context import Store
from countersign.store.releases import download
from countersign.store.releases.download import ArtifactNotFound, NotEntitled
from countersign.store.releases.permissions import ReleaseNotFound
from countersign.store.releases.processing import builds, deltas
from countersign.store.releases.processing.builds import Build
from countersign.store.releases.processing.sbom import Bill
from countersign.store.releases.schemas import BuildQuery, DeltaQuery
from countersign.updates import trust
from countersign.updates.api_types import (
    BEGINS_HEADER,
    ChannelState,
    ChannelStatement,
    ChunkPlaces,
    Delta,
    DeltaOffer,
    Envelope,
    Pack,
)
from countersign.updates.dsse import SignatureRefused

NEWEST_BUILT = """
    SELECT r.id, r.version
    FROM release r
    WHERE r.product_id = $1 AND r.channel = $2 AND r.status = 'published'
      AND EXISTS (SELECT 1 FROM build b WHERE b.release_id = r.id)
    ORDER BY r.published_at DESC, r.sort_key DESC, r.id DESC
    LIMIT 1
"""
STATEMENT = "SELECT counter, said, envelope, expires_at FROM channel_statement WHERE product_id = $1 AND channel = $2"
# The statement locks the row until the transaction ends, so that concurrent transactions get increasing counters.
NEXT_COUNTER = """
    INSERT INTO channel_statement (product_id, channel, counter, said, envelope, expires_at)
    VALUES ($1, $2, $3, '', '', 0)
    ON CONFLICT (product_id, channel) DO UPDATE SET counter = CASE
        WHEN excluded.counter > channel_statement.counter THEN excluded.counter
        ELSE channel_statement.counter + 1
    END
"""
STORE_STATEMENT = """
    UPDATE channel_statement SET said = $3, envelope = $4, expires_at = $5
    WHERE product_id = $1 AND channel = $2
"""
PRODUCT = """
    SELECT p.id, p.slug, o.id, o.slug
    FROM product p
    JOIN organisation o ON o.id = p.org_id
    WHERE p.id = $1
"""
RELEASE = "SELECT id, status FROM release WHERE product_id = $1 AND version = $2"


class ChannelProduct(NamedTuple):
    """The ids and slugs of a product and its organisation."""

    id: str
    slug: str
    org_id: str
    org: str


class StoredStatement(NamedTuple):
    """A stored statement: its counter, its content without counter and dates, the envelope, and its expiry."""

    counter: int
    said: str
    envelope: str
    expires_at: Instant


async def product_row(reader: Reader, product_id: str) -> ChannelProduct:
    """The product with this id, which must exist."""
    row = await reader.fetch_one(PRODUCT, product_id)
    if row is None:
        raise LookupError(f"no product {product_id}")
    return ChannelProduct(*row)


async def newest_built(reader: Reader, product_id: str, channel: str) -> tuple[str, str] | None:
    """The id and version of the newest published release in the channel that has a build."""
    row = await reader.fetch_one(NEWEST_BUILT, product_id, channel)
    return None if row is None else (row[0], row[1])


async def release_status(reader: Reader, product_id: str, version: str) -> tuple[str, str] | None:
    """Id and status of a release."""
    row = await reader.fetch_one(RELEASE, product_id, version)
    return None if row is None else (row[0], row[1])


async def statement(reader: Reader, product_id: str, channel: str) -> StoredStatement | None:
    """The last statement of the channel."""
    row = await reader.fetch_one(STATEMENT, product_id, channel)
    return None if row is None else StoredStatement(*row)


async def next_counter(transaction: Transaction, product_id: str, channel: str, min_counter: int) -> int:
    """Return the counter of the next statement. It is greater than all previous counters, and at least
    `min_counter`."""
    await transaction.run(NEXT_COUNTER, product_id, channel, min_counter)
    row = await transaction.fetch_one(STATEMENT, product_id, channel)
    if row is None:
        raise LookupError("a locked row is missing")
    return row[0]


async def store_statement(transaction: Transaction, product_id: str, channel: str, content: StoredStatement) -> None:
    """Store the statement."""
    await transaction.run(STORE_STATEMENT, product_id, channel, content.said, content.envelope, content.expires_at)


class NothingBuilt(NotFound):
    """The channel has no published release with a build."""

    code = "nothing_built"
    title = "Nothing built"
    resolution = (
        "Use another channel, or download a file of a release. The publisher creates a build with the job "
        "build.process."
    )


async def channel_state(store: Store, product_id: str, channel: str) -> ChannelState:
    """The channel's signed statement with the key chain that verifies it.

    The counter is at least the current time in seconds, so that the counter still increases after the service is
    restored from a backup. A statement is valid for `statement_ttl_s` seconds, and is renewed after half of this time.

    Raises:
        NothingBuilt: the channel has no published release with a build.
    """
    product = await product_row(store.database, product_id)
    content = await _current_content(store.database, product, channel)
    stored_statement = await statement(store.database, product_id, channel)
    if (
        stored_statement is None
        or stored_statement.said != content
        or await _is_outdated(store, product, stored_statement)
    ):
        stored_statement = await _issue_statement(store, product, channel)
    chain, rotations = await signing.chain(store.database, product.org_id)
    return ChannelState(msgspec.json.decode(stored_statement.envelope, type=Envelope), chain[0], rotations)


async def _current_content(reader: Reader, product: ChannelProduct, channel: str) -> str:
    """The content of the statement as JSON: version and builds."""
    newest_build = await newest_built(reader, product.id, channel)
    if newest_build is None:
        raise NothingBuilt(f"the channel {channel} has no published release with a build")
    build = await builds.builds_of_release(reader, newest_build[0])
    return msgspec.json.encode((newest_build[1], build), order="deterministic").decode()


async def _is_outdated(store: Store, product: ChannelProduct, stored_statement: StoredStatement) -> bool:
    """Whether half of the statement's validity is over, or the signing key was rotated."""
    if stored_statement.expires_at < clock.later(clock.now(), seconds=store.settings.statement_ttl_s / 2):
        return True
    key = await signing_keys.ensure_key(store, product.org_id)
    return msgspec.json.decode(stored_statement.envelope, type=Envelope).signatures[0].keyid != key.public.keyid


async def _issue_statement(store: Store, product: ChannelProduct, channel: str) -> StoredStatement:
    await signing_keys.ensure_key(store, product.org_id)
    now = clock.now()
    expires_at = clock.later(now, seconds=store.settings.statement_ttl_s)
    async with store.database.transaction() as transaction:
        counter = await next_counter(transaction, product.id, channel, now // clock.SECOND)
        # Read the content again after the counter is incremented. Otherwise a slow transaction could publish old
        # content with a higher counter.
        current_content = await _current_content(transaction, product, channel)
        version, build = msgspec.json.decode(current_content, type=tuple[str, dict[str, str]])
        newest_key = await signing.current_key(transaction, store.master, product.org_id)
        if newest_key is None:
            raise LookupError(f"the signing key of {product.org_id} was removed while it was read")
        statement = ChannelStatement(
            org=product.org,
            product_id=product.id,
            product=product.slug,
            channel=channel,
            version=version,
            builds=build,
            counter=counter,
            issued_at=clock.rfc3339(now),
            expires_at=clock.rfc3339(expires_at),
        )
        signed_statement = msgspec.json.encode(trust.sign_statement(statement, newest_key[1])).decode()
        content = StoredStatement(counter, current_content, signed_statement, expires_at)
        await store_statement(transaction, product.id, channel, content)
    return content


ADDRESS_TTL_S = 3600
"""The time for which the addresses of packs and deltas are valid. Afterwards, clients request new addresses."""


class NotProcessed(NotFound):
    """The release has no build for this platform."""

    code = "not_processed"
    title = "Not processed"
    resolution = "Use another platform, or start the job build.process for the release's artifact."


async def permitted_build(
    store: Store, caller: Caller, id_or_slug: str, version: str, platform: str | None
) -> tuple[Build, download.DownloadableArtifact, bool]:
    """The release's build for the platform, its artifact, and whether it is public.

    Raises:
        ProductNotFound, ReleaseNotFound: the product or release does not exist, or the caller may not see it.
        NotProcessed: the release has no build for this platform.
        InsufficientScope, Unauthenticated, NotEntitled: the caller may not download the artifact.
    """
    entry = await visible_entry(store.database, caller, id_or_slug)
    release = await release_status(store.database, entry.product_id, version)
    if release is None or (release[1] == "draft" and entry.org_id not in caller.orgs):
        raise ReleaseNotFound("the product has no release of this version")
    build = await builds.build_of_release(store.database, release[0], platform or "")
    if build is None:
        raise NotProcessed(f"the release {version} has no build for {platform or 'no platform'}")
    ready_artifact, is_public = await download.permitted_artifact(store, caller, build.artifact_id)
    return build, ready_artifact, is_public


async def signed_address(store: Store, sha256: str, filename: str) -> str:
    """A temporary signed address of a blob, at the CDN if one is configured."""
    settings = store.settings
    if settings.downloads == "redirect" and not settings.cdn_url:
        bucket_url = await store.blobs.signed_url(sha256, filename, ADDRESS_TTL_S)
        if bucket_url is not None:
            return bucket_url
    expires = int(clock.later(clock.now(), seconds=ADDRESS_TTL_S) // clock.SECOND)
    path = download.signed_path(store.addresses, sha256, filename, expires)
    is_at_cdn = settings.cdn_url and settings.downloads == "redirect"
    return (settings.cdn_url.rstrip("/") if is_at_cdn else store.capability_base_url) + path


class NoSbom(NotFound):
    """The build contains no information about its components."""

    code = "no_sbom"
    title = "No bill of materials"
    resolution = "Ship a CycloneDX or SPDX file, package metadata or a package lock inside the build."


async def show_channel(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the newest release of a channel, signed by the organisation, with the chain of signing keys."""
    entry = await visible_entry(call.context.database, call.caller, call.path["id"])
    return response.json(await channel_state(call.context, entry.product_id, call.path["channel"]))


async def show_manifest(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show the signed manifest of a build: every file with mode, digest and chunks."""
    store = call.context
    build, _, is_public = await permitted_build(
        store, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    size = await store.blobs.size(build.envelope_sha256)
    caching = "public, max-age=300" if is_public else "private, no-cache"
    return await range_response.range_response(
        store.blobs, call.headers, StoredContent(build.envelope_sha256, size or 0, caching, JSON)
    )


async def show_chunks(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show the locations of a build's chunks: addresses that are valid for an hour and support Range.

    With `Download-Begins: 1`, the request counts as a download of the release: a client sends it once, when it starts
    to install or update to the build.
    """
    store = call.context
    build, ready_artifact, _ = await permitted_build(
        store, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    names = await builds.chunk_names(store, build)
    locations = await builds.chunk_locations(store.database, build.org_id, names)
    packs = [
        Pack(
            await signed_address(store, sha256, "pack"),
            size,
            [(piece.id, piece.start, piece.length) for piece in group],
        )
        for (sha256, size), group in groupby(locations, key=lambda location: (location.pack_sha256, location.pack_size))
    ]
    url = await signed_address(store, ready_artifact.sha256, ready_artifact.filename)
    if call.headers.get(BEGINS_HEADER.lower()) == "1":
        await download.download_counter(store, ready_artifact.id, is_update=True)()
    return response.json(ChunkPlaces(packs, url, ready_artifact.size, ready_artifact.sha256, ready_artifact.filename))


async def offer_delta(call: StoreRequest[DeltaQuery, Nothing]) -> Response:
    """Show the prepared deltas from another version."""
    store, query = call.context, call.query
    new_build, _, _ = await permitted_build(store, call.caller, call.path["id"], call.path["version"], query.platform)
    old_build, _, _ = await permitted_build(store, call.caller, call.path["id"], query.from_, query.platform)
    delta_state = await deltas.pair_state(store.database, old_build.artifact_id, new_build.artifact_id)
    listed_deltas: list[Delta] = []
    for sha256, size, listing in await deltas.deltas(store.database, old_build.artifact_id, new_build.artifact_id):
        content = msgspec.json.decode(listing, type=deltas.DeltaListing)
        url = await signed_address(store, sha256, "delta")
        listed_deltas.append(Delta(url, size, sha256, content.old, content.files, content.memory))
    status = "ready" if listed_deltas else "preparing" if delta_state == "wanted" else "none"
    return response.json(
        DeltaOffer(
            status,
            query.from_,
            call.path["version"],
            old_build.manifest_sha256,
            new_build.manifest_sha256,
            listed_deltas,
        )
    )


async def show_sbom(call: StoreRequest[BuildQuery, Nothing]) -> Response:
    """Show the SBOM of a build, as CycloneDX 1.5."""
    build, _, _ = await permitted_build(
        call.context, call.caller, call.path["id"], call.path["version"], call.query.platform
    )
    if build.sbom is None:
        raise NoSbom("no file of the build lists its components")
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
        reads=RANGE_REQUEST_HEADERS,
        sends=RANGE_RESPONSE_HEADERS,
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
        show_sbom,
        query=BuildQuery,
        answers={200: Bill},
        refusals=(*_REFUSALS, NoSbom),
    ),
)
