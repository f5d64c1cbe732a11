"""Open the store: migrations, keys, blobs, counters, mail and job engine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from countersign.kernel import installation_id, telemetry
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migration_marker
from countersign.kernel.database.migrate import require_applied, upgrade
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.database.versions import Versions
from countersign.kernel.http.rate_limit import Counters, SharedMemoryCounters
from countersign.kernel.installation_id import InstallationLocations, ServiceTables
from countersign.kernel.jobs.open import open_engine
from countersign.kernel.mail.queue import MailQueue
from countersign.kernel.mail.transports import open_mail
from countersign.kernel.security.encryption import signer_for
from countersign.kernel.security.jose import AccessTokens
from countersign.kernel.security.masterkey import master_key
from countersign.settings import BadSetting, Settings
from countersign.store import migrations
from countersign.store.auth import tokens as token_keys
from countersign.store.auth import trusted_issuers as issuer_keys
from countersign.store.auth.people import ANY_PERSON
from countersign.store.catalog import projection
from countersign.store.context import VERSIONS, LastUses, Store, WorkerMemory

SCHEMA = migrations.SCHEMA
MIGRATIONS = migrations.__name__
NODE_PATIENCE_S = 10
DATABASE_FILE = "distribution.sqlite"
BLOBS_FOLDER = "blobs"
BOUNDED_COUNTERS = 1_024
SERVICE = ServiceTables(
    schema=SCHEMA,
    used_table="person",
    is_used=ANY_PERSON,
    files_table="blob",
    files="SELECT sha256 FROM blob WHERE state = 'live' ORDER BY sha256 LIMIT $1",
    sibling_schema="records",
    sibling_id="SELECT id FROM records.installation",
)


@asynccontextmanager
async def open_store(
    settings: Settings, root_url: str, *, is_loopback: bool, upgrades: bool = True
) -> AsyncGenerator[Store]:
    """Open a store on the configured database during the block. With `upgrades`, migrations are applied first; without,
    they must have been applied.

    Raises:
        Behind: the database is not up to date, and `upgrades` is false.
        BadSetting: a setting cannot be used.
        Moved: the directory's database was moved to PostgreSQL, and the setting for PostgreSQL is missing.
        InstallationMismatch: database, directory and blob store do not belong to one installation.
        Unavailable: database, blob store or key cannot be reached.
    """
    data = Path(settings.data)
    await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(migration_marker.require_in_use, data, settings.database_url)
    master = master_key(settings)
    async with AsyncExitStack() as stack:
        url = settings.database_url or f"sqlite:///{(data / DATABASE_FILE).absolute()}"
        database = await open_database(
            url,
            schema=SCHEMA,
            pool=settings.database_pool,
            read_deadline_s=settings.read_deadline_s,
            reserve_bytes=settings.reserve_mib << 20,
            max_bytes=settings.storage_mib << 20,
            # Only a data set of the sandbox has a storage limit. Its metrics are separate from the store's metrics.
            name="sandbox" if settings.storage_mib else SCHEMA,
        )
        stack.push_async_callback(database.close)
        files = open_blob_store(settings)
        locations = installation_id_locations(settings, database, files)
        # Check this first, so that no tables are created in the database of another installation.
        id_examination = await installation_id.examine(locations)
        if upgrades:
            await upgrade(database, MIGRATIONS)
            await projection.complete_public(database)
            await projection.reencode_outdated(database)
        else:
            await require_applied(database, MIGRATIONS, SCHEMA)
        await asyncio.to_thread(migration_marker.mark_new_folder, data, settings.database_url)
        await installation_id.register(locations, id_examination)
        counters = _counters(settings, data)
        stack.push_async_callback(counters.close)
        tokens = AccessTokens(await token_keys.load_keys(database, master), root_url, root_url)
        key_reloader = token_keys.SigningKeyReloader(
            Versions(database, VERSIONS).current, VERSIONS.index("identity"), database, master, tokens
        )
        mail = MailQueue(open_mail(settings.smtp_url, settings.mail_from, data), telemetry.logger("mail"))
        stack.push_async_callback(mail.close)
        store = Store(
            settings=settings,
            root_url=root_url,
            is_loopback=is_loopback,
            database=database,
            blobs=files,
            counters=counters,
            mail=mail,
            versions=key_reloader.current,
            master=master,
            tokens=tokens,
            cursors=signer_for(master, "cursor"),
            addresses=signer_for(master, "address"),
            codes=signer_for(master, "code"),
            key_sets=issuer_keys.new_jwks_cache(settings),
            uses=LastUses(),
            jobs=await open_engine(settings.job_engine, database, url, SCHEMA, lease_s=settings.job_lease_s),
            memory=WorkerMemory(database),
        )
        yield store


def open_blob_store(settings: Settings) -> BlobStore:
    """The configured blob store, without connecting to it.

    Raises:
        ValueError: its address cannot be used.
    """
    return open_blobs(
        settings.blobs_url,
        Path(settings.data) / BLOBS_FOLDER,
        reserve_bytes=settings.reserve_mib << 20,
        max_bytes=settings.storage_mib << 20,
        beneath=settings.blobs_beneath,
    )


def blob_store_name(settings: Settings) -> str:
    """The name of the blob store in messages."""
    return f"the blob store {settings.blobs_url or Path(settings.data) / BLOBS_FOLDER}"


def installation_id_locations(settings: Settings, database: Database | None, files: BlobStore) -> InstallationLocations:
    """The locations that store the installation's id."""
    return InstallationLocations(
        Path(settings.data), settings.database_url, SERVICE, database, files, blob_store_name(settings)
    )


def _counters(settings: Settings, data: Path) -> Counters:
    # A store with a storage limit is a data set of the sandbox, and has few callers.
    local_counters = (
        SharedMemoryCounters(data, BOUNDED_COUNTERS) if settings.storage_mib else SharedMemoryCounters(data)
    )
    if not settings.counters_url:
        return local_counters
    # Import the client only if it is configured, because the import takes 0.2 s.
    from countersign.kernel.http.rate_limit_valkey import ValkeyCounters

    return ValkeyCounters(settings.counters_url, local_counters, telemetry.logger("counters").warning)


@asynccontextmanager
async def prevent_second_node(settings: Settings) -> AsyncGenerator[None]:
    """Prevent other nodes during the block from serving this database with local rate limits or files.

    Unless COUNTERSIGN_COUNTERS_URL names a shared server, each node counts requests in its own memory. Two nodes would
    then allow twice the limit. Unless COUNTERSIGN_BLOBS_URL names a shared blob store, each node stores files in its
    own directory. Files that were uploaded to one node would then be missing on the other nodes.

    Raises:
        BadSetting: another node serves the database already.
        Unavailable: PostgreSQL cannot be reached.
    """
    own_nodes: list[str] = []
    if not settings.counters_url:
        own_nodes.append(
            "count rate limits by itself: set COUNTERSIGN_COUNTERS_URL to a Redis or Valkey that all nodes share"
        )
    if not settings.blobs_url:
        own_nodes.append("keep files of its own: set COUNTERSIGN_BLOBS_URL to a store that all nodes share")
    if not settings.database_url or not own_nodes:
        yield
        return
    from countersign.kernel.database import postgres_admin

    async with postgres_admin.advisory_lock(
        settings.database_url, "countersign:counters", patience_s=NODE_PATIENCE_S
    ) as is_sole:
        if not is_sole:
            raise BadSetting(f"another node serves this database, and each would {'; and '.join(own_nodes)}")
        yield
