"""The store put together: what it stands on is opened here, and its features' routes are listed here."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from countersign.distribution.accounts import queries as links
from countersign.distribution.accounts import routes as accounts
from countersign.distribution.agents import registrations, security_events
from countersign.distribution.agents import routes as agents
from countersign.distribution.ask import routes as ask
from countersign.distribution.batch import routes as batch
from countersign.distribution.builds import collector
from countersign.distribution.builds import routes as builds
from countersign.distribution.catalog import public
from countersign.distribution.catalog import routes as catalog
from countersign.distribution.context import PREFIX, VERSIONS, Store
from countersign.distribution.delivery import routes as delivery
from countersign.distribution.documents import health, home
from countersign.distribution.documents import routes as documents
from countersign.distribution.identity import keys, org_routes, queries
from countersign.distribution.identity import routes as identity
from countersign.distribution.identity.gate import Gate
from countersign.distribution.issuers import keys as issuer_keys
from countersign.distribution.issuers import queries as issuers
from countersign.distribution.jobs import queries as job_table
from countersign.distribution.jobs import routes as jobs
from countersign.distribution.jobs.kinds import AnyJobType
from countersign.distribution.keys import queries as api_keys
from countersign.distribution.keys import routes as key_routes
from countersign.distribution.library import routes as library
from countersign.distribution.oauth import authorization_code, consents
from countersign.distribution.oauth import routes as oauth
from countersign.distribution.processing import gc, types
from countersign.distribution.processing import routes as processing
from countersign.distribution.publishing import media_routes
from countersign.distribution.publishing import routes as publishing
from countersign.distribution.redeem import issue
from countersign.distribution.redeem import routes as redeem
from countersign.distribution.sandbox import folders, original
from countersign.distribution.sandbox import routes as sandbox
from countersign.distribution.sandbox.front import Front
from countersign.distribution.sandbox.parts import Parts
from countersign.distribution.signing import routes as signing
from countersign.distribution.tools import routes as tools
from countersign.distribution.uses import Uses
from countersign.kernel import telemetry
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.database import postgres_lock
from countersign.kernel.database.migrate import upgrade
from countersign.kernel.database.open import open_database
from countersign.kernel.database.versions import Versions
from countersign.kernel.http import idempotency
from countersign.kernel.http.app import App, Policy
from countersign.kernel.http.counters import Counters, SharedMemoryCounters
from countersign.kernel.http.ratelimit import RateLimiter
from countersign.kernel.http.route import Route
from countersign.kernel.jobs.open import open_engine
from countersign.kernel.mail.open import open_mail
from countersign.kernel.mail.room import MailRoom
from countersign.kernel.repeated import repeated
from countersign.kernel.security.jose import AccessTokens
from countersign.kernel.security.masterkey import MasterKey, load_master_key
from countersign.kernel.security.sealed import signature
from countersign.settings import BadSetting, Settings

SCHEMA = "distribution"
MIGRATIONS = "countersign.distribution.migrations"
COLLECT_EVERY_S = 300
NODE_PATIENCE_S = 10
DATABASE_FILE = "distribution.sqlite"
BLOBS_FOLDER = "blobs"
BOUNDED_COUNTERS = 1_024

JOB_TYPES: tuple[AnyJobType, ...] = types.TYPES

_FEATURES: tuple[Route[Store], ...] = (
    *health.ROUTES,
    *home.ROUTES,
    *catalog.ROUTES,
    *publishing.ROUTES,
    *media_routes.ROUTES,
    *builds.ROUTES,
    *processing.ROUTES,
    *delivery.ROUTES,
    *library.ROUTES,
    *redeem.ROUTES,
    *batch.ROUTES,
    *jobs.routes(JOB_TYPES),
    *ask.ROUTES,
    *identity.ROUTES,
    *oauth.ROUTES,
    *agents.ROUTES,
    *org_routes.ROUTES,
    *signing.ROUTES,
    *security_events.ROUTES,
    *accounts.routes(registrations.revoke_all_of),
    *key_routes.ROUTES,
    *sandbox.ROUTES,
)
ROUTES: tuple[Route[Store], ...] = (*_FEATURES, *tools.routes(_FEATURES))


@asynccontextmanager
async def opened(settings: Settings, root_url: str, *, is_loopback: bool) -> AsyncGenerator[Store]:
    """A store on the configured database, brought up to date, closed when the block is left.

    Raises:
        BadSetting: a setting cannot be used.
        Unavailable: database, blob store or key cannot be reached.
    """
    data = Path(settings.data)
    await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
    master = _master_key(settings, data)
    async with AsyncExitStack() as stack:
        url = settings.database_url or f"sqlite:///{(data / DATABASE_FILE).absolute()}"
        database = await open_database(
            url,
            schema=SCHEMA,
            pool=settings.database_pool,
            read_deadline_s=settings.read_deadline_s,
            reserve_bytes=settings.reserve_mib << 20,
            most_bytes=settings.storage_mib << 20,
        )
        stack.push_async_callback(database.close)
        await upgrade(database, MIGRATIONS)
        await public.complete(database)
        counters = _counters(settings, data)
        stack.push_async_callback(counters.close)
        tokens = AccessTokens(await keys.token_keys(database, master), root_url, root_url)
        watched = keys.Watched(
            Versions(database, VERSIONS).current, VERSIONS.index("identity"), database, master, tokens
        )
        mail = MailRoom(open_mail(settings.smtp_url, settings.mail_from, data), telemetry.logger("mail"))
        stack.push_async_callback(mail.close)
        store = Store(
            settings=settings,
            root_url=root_url,
            is_loopback=is_loopback,
            database=database,
            blobs=open_blobs(
                settings.blobs_url,
                data / BLOBS_FOLDER,
                reserve_bytes=settings.reserve_mib << 20,
                most_bytes=settings.storage_mib << 20,
                beneath=settings.blobs_beneath,
            ),
            counters=counters,
            mail=mail,
            versions=watched.current,
            master=master,
            tokens=tokens,
            cursors=signature(master, "cursor"),
            addresses=signature(master, "address"),
            codes=signature(master, "code"),
            key_sets=issuer_keys.key_sets(settings),
            uses=Uses(),
            jobs=await open_engine(settings.job_engine, database, url, SCHEMA, lease_s=settings.job_lease_s),
        )
        stack.push_async_callback(_record_uses, store)
        yield store


def _master_key(settings: Settings, data: Path) -> MasterKey:
    if settings.database_url and not (settings.master_key or settings.master_key_file):
        raise BadSetting(
            "with PostgreSQL every node needs the same master key: set COUNTERSIGN_MASTER_KEY or "
            "COUNTERSIGN_MASTER_KEY_FILE (for example from `openssl rand -base64 32`)"
        )
    file = Path(settings.master_key_file) if settings.master_key_file else None
    return load_master_key(settings.master_key or None, file, data)


def _counters(settings: Settings, data: Path) -> Counters:
    # A store that is bounded has few callers.
    local = SharedMemoryCounters(data, BOUNDED_COUNTERS) if settings.storage_mib else SharedMemoryCounters(data)
    if not settings.counters_url:
        return local
    # Its client takes a fifth of a second to import, which only those who configure it should wait for.
    from countersign.kernel.http.counters_valkey import ValkeyCounters

    return ValkeyCounters(settings.counters_url, local, telemetry.logger("counters").warning)


@asynccontextmanager
async def sole_node(settings: Settings) -> AsyncGenerator[None]:
    """While the block lasts, no other node may serve this database with rate limits or files of its own.

    Each node counts in its own memory unless COUNTERSIGN_COUNTERS_URL names a shared store; with several nodes every
    limit would silently be multiplied by their number. Each keeps files in its own directory unless
    COUNTERSIGN_BLOBS_URL names a store; what was uploaded to one would be missing on the others.

    Raises:
        BadSetting: another node serves the database already.
        Unavailable: PostgreSQL cannot be reached.
    """
    own: list[str] = []
    if not settings.counters_url:
        own.append(
            "count rate limits by itself: set COUNTERSIGN_COUNTERS_URL to a Redis or Valkey that all nodes share"
        )
    if not settings.blobs_url:
        own.append("keep files of its own: set COUNTERSIGN_BLOBS_URL to a store that all nodes share")
    if not settings.database_url or not own:
        yield
        return
    async with postgres_lock.held(settings.database_url, "countersign:counters", patience_s=NODE_PATIENCE_S) as is_sole:
        if not is_sole:
            raise BadSetting(f"another node serves this database, and each would {'; and '.join(own)}")
        yield


def create(store: Store, routes: Sequence[Route[Store]] = ROUTES, workers: Sequence[str] = ()) -> Front:
    """The store's HTTP application: every feature's routes, the documents made from them, and the sandbox in which the
    same routes work on other data. `workers` is the command of a process that works on the sandbox's jobs."""
    put_together = Parts(
        opening=lambda settings, root_url, is_loopback: opened(settings, root_url, is_loopback=is_loopback),
        application=lambda data_set: _application(data_set, routes, store.root_url),
        template=original.template(MIGRATIONS),
        workers=workers,
    )
    app = _application(store, routes, store.root_url)
    return Front(app, store, put_together, _limiter(store), _proxies(store.settings))


def _application(store: Store, routes: Sequence[Route[Store]], problems_url: str) -> App[Store]:
    settings = store.settings
    policy = Policy(
        root_url=problems_url,
        prefix=PREFIX,
        trusted_proxies=_proxies(settings),
        log_requests=settings.log_requests,
        pages_bytes=settings.page_cache_mib << 20,
        max_age_s=settings.catalog_max_age_s,
    )
    described = (*routes, *documents.routes(routes))
    return App(
        described,
        store,
        database=store.database,
        gate=Gate(store),
        limiter=_limiter(store),
        versions=store.versions,
        policy=policy,
    )


def _limiter(store: Store) -> RateLimiter:
    settings = store.settings
    quotas = {
        "anonymous": settings.rate_anonymous,
        "community": settings.rate_community,
        "agent": settings.rate_agent,
        "person": settings.rate_person,
        "token": settings.rate_token,
    }
    return RateLimiter(store.counters, quotas)


def _proxies(settings: Settings) -> frozenset[str]:
    return frozenset(part.strip() for part in settings.trusted_proxies.split(",") if part.strip())


@asynccontextmanager
async def tended(store: Store) -> AsyncGenerator[None]:
    """While the block lasts, what has expired is removed every few minutes; at its begin, what an earlier server left
    of the sandbox."""
    await asyncio.to_thread(folders.clean, Path(store.settings.data))
    async with repeated(lambda: tend(store), every_s=COLLECT_EVERY_S):
        yield


async def tend(store: Store) -> None:
    """Remove what has expired: uploads, unused blobs, abandoned code batches, old idempotency records, sessions, codes
    and tokens of others, mailed links, registrations, keys, data sets of the sandbox; and write down when agents and
    keys were last used."""
    # First, so that no key is forgotten that was just used.
    await _record_uses(store)
    await gc.sweep(store)
    await collector.collect(store)
    await issue.collect_abandoned(store)
    async with store.database.transaction() as transaction:
        await idempotency.forget_old(transaction)
        await queries.forget_old_sessions(transaction)
        await queries.forget_old_revocations(transaction)
        await issuers.forget_old_tokens(transaction)
        await authorization_code.forget_old(transaction)
        await registrations.forget_old(transaction)
        await links.forget_old(transaction)
        await job_table.forget_old(transaction, store.settings.job_days)
        await api_keys.forget_unused(transaction, store.settings.key_days)
    await asyncio.to_thread(folders.sweep, Path(store.settings.data), store.settings.sandbox_idle_s)


async def _record_uses(store: Store) -> None:
    """Write down when agents and clients were last used, as far as this worker knows."""
    used = store.uses.taken()
    if used:
        async with store.database.transaction() as transaction:
            await registrations.record_uses(transaction, used)
            await consents.record_uses(transaction, used)
            await api_keys.record_uses(transaction, used)
