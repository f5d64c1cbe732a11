"""The store's composition root: routes, application, and periodic maintenance."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from countersign.kernel import telemetry
from countersign.kernel.concurrency import periodic
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http import client_address, idempotency
from countersign.kernel.http.app import App, Policy, problem_renderer
from countersign.kernel.http.rate_limit import DOCUMENTS, RateLimiter
from countersign.kernel.http.routing import Route
from countersign.kernel.security.masterkey import MasterKey
from countersign.kernel.webhooks import outbox, sender
from countersign.settings import Settings
from countersign.store import batch, library, lifespan, mcp_tools, nlweb, webhook_events, webhooks
from countersign.store import signing_keys as signing
from countersign.store.apidocs import health
from countersign.store.apidocs import routes as documents
from countersign.store.ask import routes as ask
from countersign.store.auth import accounts, api_keys, org_routes, queries, security_events, tokens
from countersign.store.auth import routes as identity
from countersign.store.auth import trusted_issuers as issuers
from countersign.store.auth.agents import registrations
from countersign.store.auth.agents import routes as agents
from countersign.store.auth.authentication import Authenticator
from countersign.store.auth.oauth import clients, consents
from countersign.store.auth.oauth import routes as oauth
from countersign.store.catalog import home, projection, publishers, similarity, suggest
from countersign.store.catalog import routes as catalog
from countersign.store.catalog.covers import routes as covers
from countersign.store.context import PREFIX, Store
from countersign.store.jobs import queries as job_table
from countersign.store.jobs import routes as jobs
from countersign.store.jobs.job_types import AnyJobType
from countersign.store.personal import collections, export, follows, notifications
from countersign.store.personal import sessions as own_sessions
from countersign.store.redeem import codes
from countersign.store.redeem import routes as redeem
from countersign.store.releases import artifacts as builds
from countersign.store.releases import blob_gc, media, update_delivery
from countersign.store.releases import draft_removal as processing
from countersign.store.releases import routes as releases
from countersign.store.releases.processing import build_job, chunk_gc
from countersign.store.sandbox import folders
from countersign.store.sandbox import routes as sandbox
from countersign.store.sandbox.data_sets import SandboxDependencies
from countersign.store.sandbox.router import SandboxRouter
from countersign.store.statistics import counts
from countersign.store.statistics import routes as statistics

COLLECT_EVERY_S = 300

JOB_TYPES: tuple[AnyJobType, ...] = build_job.TYPES

_FEATURES: tuple[Route[Store], ...] = (
    *health.ROUTES,
    *health.HOME_ROUTES,
    *catalog.ROUTES,
    *home.ROUTES,
    *similarity.ROUTES,
    *suggest.ROUTES,
    *publishers.ROUTES,
    *covers.ROUTES,
    *releases.ROUTES,
    *media.ROUTES,
    *builds.ROUTES,
    *processing.ROUTES,
    *update_delivery.ROUTES,
    *library.ROUTES,
    *follows.ROUTES,
    *collections.ROUTES,
    *notifications.ROUTES,
    *own_sessions.ROUTES,
    *export.ROUTES,
    *redeem.ROUTES,
    *batch.ROUTES,
    *jobs.routes(JOB_TYPES),
    *ask.routes(nlweb.FLAT),
    *nlweb.ROUTES,
    *identity.ROUTES,
    *oauth.ROUTES,
    *agents.ROUTES,
    *org_routes.routes(projection.refresh_organisation),
    *statistics.ROUTES,
    *signing.ROUTES,
    *webhooks.ROUTES,
    *security_events.ROUTES,
    *accounts.routes(registrations.revoke_all_of),
    *api_keys.ROUTES,
    *sandbox.ROUTES,
)
ROUTES: tuple[Route[Store], ...] = (*_FEATURES, *mcp_tools.routes(_FEATURES, ask.TOOLS))


@asynccontextmanager
async def open_store(settings: Settings, root_url: str, *, is_loopback: bool) -> AsyncGenerator[Store]:
    """Open a store as `lifespan.open_store` does, for a server. When the block ends, record the last uses of grants.

    Raises:
        BadSetting, Unavailable: the same conditions as in `lifespan.open_store`.
    """
    async with lifespan.open_store(settings, root_url, is_loopback=is_loopback) as store:
        try:
            yield store
        finally:
            try:
                await record_uses(store)
            except Refused as refused:
                # A full or failed disk must not prevent the stop.
                telemetry.logger("store").warning(
                    "the last uses of grants could not be recorded", reason=refused.detail
                )


def create(store: Store, routes: Sequence[Route[Store]] = ROUTES, workers: Sequence[str] = ()) -> SandboxRouter:
    """The store's HTTP application: all routes, their documents, and the sandbox, which serves the same routes on other
    data. `workers` is the command of a worker process for the sandbox's jobs."""
    dependencies = SandboxDependencies(
        open_store=lambda settings, root_url, is_loopback: open_store(settings, root_url, is_loopback=is_loopback),
        application=lambda data_set: _application(data_set, routes, store.root_url, "sandbox"),
        template=folders.template_of(lifespan.MIGRATIONS),
        workers=workers,
    )
    app = _application(store, routes, store.root_url)
    return SandboxRouter(app, store, dependencies, _limiter(store), client_address.configured_proxies(store.settings))


def _application(
    store: Store, routes: Sequence[Route[Store]], problems_url: str, service: str = "distribution"
) -> App[Store]:
    settings = store.settings
    policy = Policy(
        render_error=problem_renderer(problems_url),
        prefix=PREFIX,
        service=service,
        trusted_proxies=client_address.configured_proxies(settings),
        log_requests=settings.log_requests,
        pages_bytes=settings.page_cache_mib << 20,
        max_age_s=settings.catalog_max_age_s,
    )
    return App(
        _all_routes() if routes is ROUTES else _with_documents(routes),
        store,
        database=store.database,
        authenticator=Authenticator(store),
        limiter=_limiter(store),
        versions=store.versions,
        policy=policy,
    )


@cache
def _all_routes() -> tuple[Route[Store], ...]:
    """The store's routes with their documents: the same for the store and for each data set of its sandbox."""
    return _with_documents(ROUTES)


def _with_documents(routes: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    return (*routes, *documents.routes(routes))


def _limiter(store: Store) -> RateLimiter:
    settings = store.settings
    quotas = {
        "anonymous": settings.rate_anonymous,
        "community": settings.rate_community,
        "agent": settings.rate_agent,
        "person": settings.rate_person,
        "token": settings.rate_token,
        DOCUMENTS: settings.rate_documents,
    }
    return RateLimiter(store.counters, quotas, _quota_hints(store))


def _quota_hints(store: Store) -> dict[str, str]:
    """Hints on how to get a higher quota, by the caller's quota."""
    settings = store.settings
    lower_limits = {"anonymous": settings.rate_anonymous, "community": settings.rate_community}
    hint = (
        f"A free key raises the limit to {settings.rate_agent} requests a minute: GET {store.problems_root}/api/keys?"
        "tier=agent, then send its api_key as X-API-Key."
    )
    return {quota: hint for quota, limit in lower_limits.items() if limit < settings.rate_agent}


@asynccontextmanager
async def periodic_maintenance(store: Store) -> AsyncGenerator[None]:
    """Deliver webhooks and run maintenance every few minutes during the block; first remove leftovers of an earlier
    server's sandbox. Data sets of the sandbox need no maintenance and deliver no webhooks."""
    await asyncio.to_thread(folders.remove_leftovers, Path(store.settings.data))
    async with (
        periodic(lambda: run_maintenance(store), every_s=COLLECT_EVERY_S),
        sender.send_deliveries(webhook_events.outbox_of(store)),
    ):
        yield


@asynccontextmanager
async def periodic_use_recording(store: Store) -> AsyncGenerator[None]:
    """Record the last uses every few minutes during the block. Each worker needs this, because it records only what it
    has seen itself."""
    async with periodic(lambda: record_uses(store), every_s=COLLECT_EVERY_S):
        yield


async def run_maintenance(store: Store) -> None:
    """Remove expired uploads, unused blobs, abandoned code batches, old idempotency records, sessions, external codes
    and tokens, mailed links, registrations, dynamic OAuth clients, keys, webhook deliveries and data sets of the
    sandbox; count redemptions by day and rank products by downloads; record the last uses of agents, keys and
    sessions."""
    # Record the uses first, so that no recently used key is removed.
    await record_uses(store)
    await chunk_gc.sweep(store)
    await blob_gc.collect(store)
    await codes.delete_abandoned(store)
    await counts.roll_up(store.database)
    async with store.database.transaction() as transaction:
        await idempotency.forget_old(transaction)
        await queries.forget_old_sessions(transaction)
        await queries.forget_old_revocations(transaction)
        await issuers.forget_old_tokens(transaction)
        await consents.forget_old_codes(transaction)
        await registrations.forget_old(transaction)
        await clients.delete_unused(transaction)
        await clients.delete_idle(transaction, store.settings.dynamic_client_days)
        await accounts.forget_old_links(transaction)
        await job_table.forget_old(transaction, store.settings.job_days)
        await api_keys.delete_unused(transaction, store.settings.key_days)
        await outbox.forget_old(transaction, store.settings.webhook_days)
    await asyncio.to_thread(folders.sweep, Path(store.settings.data), store.settings.sandbox_idle_s)


async def end_all_access(transaction: Transaction, master: MasterKey) -> None:
    """End every session, token, agent, consent and mailed link of a store that was restored from a backup. Some of them
    may have been ended or used after the backup was made. Passwords, client secrets and redeem codes do not change.

    Raises:
        DecryptionFailed: the master key does not belong to the store.
    """
    await tokens.replace_keys(transaction, master)
    await queries.end_every_session(transaction)
    await accounts.end_every_link(transaction)
    await registrations.revoke_all(transaction)
    await consents.revoke_all(transaction)


async def record_uses(store: Store) -> None:
    """Record the last uses of agents, clients, keys and sessions that this worker has seen."""
    # Workers record uses of the same sessions at the same time, and lock their rows in the same order.
    last_uses = dict(sorted(store.uses.take().items()))
    if last_uses:
        async with store.database.transaction() as transaction:
            await registrations.record_uses(transaction, last_uses)
            await consents.record_uses(transaction, last_uses)
            await api_keys.record_uses(transaction, last_uses)
            await queries.record_session_uses(transaction, last_uses)
