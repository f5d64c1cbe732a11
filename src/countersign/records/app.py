"""Assembles the records service: opens its resources and declares its routes."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from countersign import __version__
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.kernel import connection_urls, installation_id
from countersign.kernel.concurrency import periodic
from countersign.kernel.database import migration_marker
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Dialect
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile
from countersign.kernel.database.versions import Versions
from countersign.kernel.http import client_address, idempotency
from countersign.kernel.http.app import App, Policy
from countersign.kernel.http.decode import FORM
from countersign.kernel.http.rate_limit import SharedMemoryCounters
from countersign.kernel.http.routing import FORM_BYTES
from countersign.kernel.installation_id import InstallationLocations, ServiceTables
from countersign.kernel.mail.transports import open_mail
from countersign.kernel.security.masterkey import master_key
from countersign.kernel.webhooks import outbox, sender
from countersign.records import (
    builtin_commands,
    http,
    invitation_page,
    mcp_tools,
    mention_emails,
    modules,
    own_database,
    redaction,
    root_secret,
)
from countersign.records.access import grants, invitations, sessions, visibility
from countersign.records.access.callers import Callers
from countersign.records.access.view import Caller
from countersign.records.adopted import store as adopted_store
from countersign.records.adopted import watch
from countersign.records.adopted.replica import MEASURE_EVERY_S, ReadReplica
from countersign.records.adopted.store import AdoptedStore
from countersign.records.adopted.suspension import CHECK_EVERY_S, Suspensions
from countersign.records.adopted.watch import OutsideChangeReader
from countersign.records.approvals import changes, decisions, emails, policy
from countersign.records.approvals.rights import with_plans
from countersign.records.audit.chain import Chain
from countersign.records.commands import (
    audit_history,
    call_log,
    command,
    comments,
    csv_import,
    export,
    hooks,
    outside_changes,
    saved_views,
)
from countersign.records.commands.audit_history import with_audit
from countersign.records.commands.call_log import CallLog
from countersign.records.commands.command import CommandFunction
from countersign.records.commands.mentions import Mentions
from countersign.records.commands.run import Body, Check, Engine, Run
from countersign.records.commands.token_guess_limit import TokenGuessLimit
from countersign.records.context import Records
from countersign.records.dispatch import Dispatch
from countersign.records.http import route
from countersign.records.masking.placeholder_tokens import Grammar, MaskStore
from countersign.records.masking.value_sweep import ValueSweep
from countersign.records.masking.vault import Vault
from countersign.records.rest_handlers import Handlers
from countersign.records.schema import install
from countersign.records.suspension_emails import SuspensionEmails
from countersign.settings import BadSetting, Settings

SCHEMA = install.SCHEMA
SERVICE = ServiceTables(
    schema=SCHEMA,
    used_table="user",
    is_used=invitations.ANY_USER,
    files_table="",
    files="",
    sibling_schema="distribution",
    sibling_id="SELECT id FROM distribution.installation",
)
TEND_EVERY_S = 60
LETTERS_EVERY_S = 10
CALLS_EVERY_S = 2
SWEEP_EVERY_S = 600

@dataclass(frozen=True, slots=True)
class RecordsService:
    """A running records service: its context, engine, dispatch and callers. If there is a connected database, its
    suspended models, and the reader of the recorded changes of other applications if it is written."""

    records: Records
    engine: Engine
    callers: Callers
    dispatch: Dispatch
    suspensions: Suspensions | None = None
    value_sweep: ValueSweep | None = None
    outside_changes: OutsideChangeReader | None = None


@asynccontextmanager
async def open_records(
    settings: Settings, root_url: str, *, is_loopback: bool, upgrades: bool = True
) -> AsyncGenerator[RecordsService]:
    """Open a service on the configured database, and close it at the end of the block. The tables are upgraded first.
    If upgrades are disabled, the tables must be up to date.

    Raises:
        BadSetting: a setting cannot be used.
        DeclarationError: a module is declared wrongly.
        Moved: the directory's database is in PostgreSQL, and the setting for it is missing.
        SchemaMismatch: the database was created by a newer version, or its data do not fit the declarations.
        SchemaBehind: the database is not up to date, and upgrades are disabled.
        InstallationMismatch: the database and the directory do not belong to one installation.
        Unavailable: the database cannot be reached.
        WideRights: the role of the connected database reads rows that policies hide from others.
    """
    registry = modules.found(modules.module_names(settings.modules))
    # Check this first, so that no tables are created in a database of other applications.
    own_database.require_separate(settings, registry)
    data = Path(settings.data)
    await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(migration_marker.require_in_use, data, settings.database_url)
    master = master_key(settings)
    async with AsyncExitStack() as stack:
        connected = _connected_file(settings, registry)
        database = await open_tables(settings, connected)
        stack.push_async_callback(database.close)
        locations = installation_id_locations(settings, database)
        # Check the installation first, so that no tables are created in the database of another installation.
        installation_state = await installation_id.examine(locations)
        if upgrades:
            await install.upgrade(database, registry, master)
        else:
            await install.require_applied(database, registry)
        await asyncio.to_thread(migration_marker.mark_new_folder, data, settings.database_url)
        await installation_id.register(locations, installation_state)
        async with database.transaction() as transaction:
            await grants.seed_roles(transaction, registry)
        counters = SharedMemoryCounters(data)
        stack.push_async_callback(counters.close)
        secret = await root_secret.secret(database, master)
        adopted_database = await _open_adopted(stack, settings, registry, secret)
        await outside_changes.note_connected(database, adopted_database)
        records = Records(
            settings=settings,
            root_url=root_url,
            is_loopback=is_loopback,
            database=database,
            registry=registry,
            bits=await install.bits(database),
            master=master,
            secret=secret,
            mail=open_mail(settings.smtp_url, settings.mail_from, data),
            versions=Versions(database, ("access",)).current,
            plan_version=Versions(database, ("plan",)).current,
        )
        yield assemble_service(records, counters, adopted_database)


def _connected_file(settings: Settings, registry: Registry) -> ConnectedFile | None:
    """Return the connected SQLite file if transactions of Countersign's own SQLite file also write it, or None."""
    if settings.database_url or settings.existing_read_only:
        return None
    return adopted_store.connected_file(registry, settings.existing_url)


async def _open_adopted(
    stack: AsyncExitStack, settings: Settings, registry: Registry, secret: bytes
) -> Mapping[str, AdoptedStore]:
    """Open the existing database that the models with a table read, and return their stores."""
    if not adopted_store.adopted_models(registry):
        return {}
    has_own_tables = bool(settings.database_url) or _connected_file(settings, registry) is not None
    is_shared = has_own_tables and not settings.existing_read_only
    try:
        adopted_database = await adopted_store.open_adopted(
            registry, settings.existing_url, settings.read_deadline_s, is_shared=is_shared
        )
    except ValueError as error:
        raise BadSetting(f"the address of the existing database: {error}") from error
    stack.push_async_callback(adopted_database.close)
    await adopted_store.require_narrow_rights(registry, adopted_database, accepts_wide=settings.accept_wide_rights)
    replica = await _open_replica(stack, settings, registry, adopted_database)
    stores = await adopted_store.stores(
        registry, adopted_database, secret, is_shared=is_shared, replica=replica
    )
    for suspension in {store.suspensions for store in stores.values()}:
        await stack.enter_async_context(periodic(suspension.check, every_s=CHECK_EVERY_S))
    return stores


async def _open_replica(
    stack: AsyncExitStack, settings: Settings, registry: Registry, primary: ExistingDatabase
) -> ReadReplica | None:
    """Open the replica of the existing database, if the settings name one."""
    if not settings.read_url:
        return None
    if primary.dialect != "postgres" or not settings.read_url.startswith(connection_urls.POSTGRES_SCHEMES):
        raise BadSetting("COUNTERSIGN_READ_URL is for a replica of a PostgreSQL database: correct it, or empty it")
    try:
        connection_urls.require_postgres(settings.read_url)
    except ValueError as error:
        raise BadSetting(f"the address of the replica (COUNTERSIGN_READ_URL): {error}") from error
    open_replica = partial(adopted_store.open_adopted, registry, settings.read_url, settings.read_deadline_s)
    replica = ReadReplica(primary, open_replica)
    stack.push_async_callback(replica.close)
    await stack.enter_async_context(periodic(replica.measure, every_s=MEASURE_EVERY_S))
    return replica


def database_file(settings: Settings) -> Path:
    """Return the path of the database file. It is used only if the database is SQLite."""
    return (Path(settings.data) / "records.sqlite").absolute()


def installation_id_locations(settings: Settings, database: Database | None) -> InstallationLocations:
    """Return the places in which the id of the installation is stored. The records service has no files, because they
    belong to the store."""
    return InstallationLocations(Path(settings.data), settings.database_url, SERVICE, database)


async def open_tables(settings: Settings, connected: ConnectedFile | None = None) -> Database:
    """Open the configured database without upgrading it. The caller must close it. Its transactions can also write the
    `connected` file of others.

    Raises:
        Unavailable: the database cannot be opened or reached.
        ValueError: the setting is not a database address.
    """
    return await open_database(
        settings.database_url or f"sqlite:///{database_file(settings)}",
        schema=SCHEMA,
        pool=settings.database_pool,
        read_deadline_s=settings.read_deadline_s,
        reserve_bytes=settings.reserve_mib << 20,
        connected=connected,
    )


def assemble_service(
    records: Records, counters: SharedMemoryCounters, adopted: Mapping[str, AdoptedStore] | None = None
) -> RecordsService:
    """Return a service that uses an open context. `adopted` maps the models with a table of an existing database to
    their stores."""
    names = command.names_of(records.registry, builtin_commands.SENTENCES)
    connected_stores = set((adopted or {}).values())
    callers = Callers(records, names, partial(_narrow_caller, records.database.dialect, connected_stores))
    mentions = Mentions(callers)
    engine = Engine(
        records=records,
        vault=Vault(records.secret, records.database.dialect),
        chain=Chain(records.database.dialect, records.secret),
        grammar=Grammar(records.registry.labels),
        masks=MaskStore(),
        render=redaction.render,
        token_guesses=TokenGuessLimit(counters),
        checks={
            "grant": _check_of_values(partial(grants.check_grant, records.registry, visibility.grantable(names))),
            "role": _check_of_values(partial(grants.check_role, records.registry, names)),
            "setting": _check_of_values(partial(policy.check_setting, records.registry, names)),
            "view": saved_views.check_view,
            "dashboard": saved_views.check_dashboard,
            "favourite": saved_views.check_favourite,
            "comment": comments.check_comment,
        },
        run_hooks=hooks.run_hooks,
        commands=names,
        calls=CallLog(records.database),
        adopted=adopted or {},
        after_writes={"comment": mentions.note, "user": mentions.forget_person},
    )
    suspensions = {store.suspensions for store in connected_stores}
    for suspension in suspensions:
        suspension.on_change(callers.forget)
    dispatch = Dispatch(engine, READING, builtin_commands.commands(mentions))
    sweep = None
    if adopted:
        days = records.settings.seen_value_days
        sweep = ValueSweep(records.database, engine.vault, records.registry, adopted, days)
    reader = watch.reader_of(engine)
    return RecordsService(records, engine, callers, dispatch, next(iter(suspensions), None), sweep, reader)


def _check_of_values(check: Callable[[Mapping[str, Stored]], None]) -> Check:
    """Return a check that needs only the values."""

    async def checked(_: Run, values: Mapping[str, Stored]) -> None:
        check(values)

    return checked


def _narrow_caller(dialect: Dialect, connected_stores: Collection[AdoptedStore], caller: Caller) -> Caller:
    """Return the caller with a view that is limited to the plans and audit entries that exist for it, without suspended
    models, and without the commands that write connected tables if it cannot use them."""
    for store in connected_stores:
        caller = store.narrowed(store.suspensions.narrowed(caller))
    return with_audit(with_plans(comments.with_comments(caller, dialect), dialect), dialect)


async def _history(run: Run, model: str, body: Body) -> object:
    return await audit_history.history(run, model, body, redaction.visible_changes)


READING: Mapping[str, CommandFunction] = {
    **command.READING,
    "export": export.export,
    "import": csv_import.import_csv,
    "history": _history,
}


def create(service: RecordsService, *, sign_in: str = "") -> App[Records]:
    """Return the HTTP application: the documented routes, and the page of set-up links. That page links to the page at
    the address `sign_in`, if the address is not empty."""
    handlers = Handlers(service.dispatch, service.callers, builtin_commands.SENTENCES)
    page = invitation_page.InvitationPage(service.engine, sign_in)
    routes = (
        route("POST", "/api/auth/login", handlers.login, signed_in=False),
        route("POST", "/api/auth/agent-token", handlers.agent_token),
        route("GET", "/api/commands", handlers.commands),
        route("GET", "/api/meta", handlers.meta),
        route("GET", "/api/openapi.json", handlers.openapi),
        route("POST", "/api/approve/{plan_id}", handlers.approve, optional_body=True),
        route("POST", "/api/{model}/{command}", handlers.run),
        mcp_tools.mcp_route(mcp_tools.RecordTools(service.dispatch, builtin_commands.SENTENCES), __version__),
        route("GET", "/healthz", handlers.liveness, signed_in=False),
        route("GET", "/setup", page.show, signed_in=False),
        route("POST", "/setup", page.submit, signed_in=False, takes=FORM, body_limit=FORM_BYTES),
    )
    records = service.records
    policy = Policy(
        render_error=http.render_error,
        prefix="",
        service="records",
        log_part="records",
        trusted_proxies=client_address.configured_proxies(records.settings),
        log_requests=records.settings.log_requests,
        cache_control="no-store",
    )
    return App(
        routes,
        records,
        database=records.database,
        authenticator=http.BearerAuthentication(service.callers),
        limiter=None,
        versions=records.versions,
        policy=policy,
    )


@asynccontextmanager
async def periodic_tasks(service: RecordsService) -> AsyncGenerator[None]:
    """During the block, send webhooks and e-mails, write the log of calls, and clean up every minute (see
    `run_periodic_tasks`)."""
    engine, callers = service.engine, service.callers
    async with (
        periodic(lambda: run_periodic_tasks(service), every_s=TEND_EVERY_S),
        periodic(engine.calls.write, every_s=CALLS_EVERY_S),
        periodic(lambda: emails.send_due(engine, callers, service.records.mail), every_s=LETTERS_EVERY_S),
        periodic(lambda: mention_emails.send_due(engine, callers, service.records.mail), every_s=LETTERS_EVERY_S),
        _suspension_emails(service),
        _value_sweep(service),
        _outside_changes(service),
        sender.send_deliveries(changes.outbox_of(service.records)),
    ):
        yield


def _suspension_emails(service: RecordsService) -> AbstractAsyncContextManager[object]:
    """Send e-mails about suspended models during the block, if there is a connected database."""
    if service.suspensions is None:
        return nullcontext()
    records = service.records
    letters = SuspensionEmails(records.database, records.mail, records.root_url, service.suspensions)
    return periodic(letters.send_due, every_s=LETTERS_EVERY_S)


def _value_sweep(service: RecordsService) -> AbstractAsyncContextManager[object]:
    """Erase values that no record of the connected database has any more during the block, if there is one."""
    if service.value_sweep is None:
        return nullcontext()
    return periodic(service.value_sweep.run_daily, every_s=SWEEP_EVERY_S)


def _outside_changes(service: RecordsService) -> AbstractAsyncContextManager[object]:
    """Read the recorded changes of other applications during the block, if the connected database is written."""
    if service.outside_changes is None:
        return nullcontext()
    return periodic(service.outside_changes.read, every_s=watch.READ_EVERY_S)


async def run_periodic_tasks(service: RecordsService) -> None:
    """End the plans whose time to decide is over. Delete old sign-in failures, webhook deliveries, logged calls, and
    stored outcomes of calls with an Idempotency-Key."""
    await decisions.expire_plans(service.engine)
    async with service.records.database.transaction() as transaction:
        await sessions.forget_old_failures(transaction)
        await outbox.forget_old(transaction, service.records.settings.webhook_days)
        await idempotency.forget_old(transaction)
        await call_log.forget_old(transaction)
