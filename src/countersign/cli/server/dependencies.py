"""The checks of `countersign doctor` for what the services depend on: key, databases, files, counters and mail."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from countersign.backup.schema_validation import UnknownSchemaObjects
from countersign.cli import output
from countersign.cli.admin import databases, installation
from countersign.cli.admin.open_store import Tables
from countersign.declare import DeclarationError
from countersign.kernel import clock, ids
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.open import SQLITE, open_existing
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.kernel.database.postgres_privileges import PrivilegeMissing
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.sqlite_outside_tables import IN_WAL
from countersign.kernel.database.sqlite_read_only import COPY_IN_UTF_8, CORRECT_URL, IN_UTF_16, MISSING
from countersign.kernel.errors import Refused, Unavailable, is_disk_full
from countersign.kernel.http.rate_limit import SharedMemoryCounters
from countersign.kernel.mail.transports import OUTBOX_FOLDER, open_mail
from countersign.kernel.security.encryption import MemoryCipher
from countersign.kernel.security.masterkey import FILE_NAME as KEY_FILE
from countersign.kernel.security.masterkey import (
    NEEDED_WITH_POSTGRESQL,
    MasterKey,
    MasterKeyRefused,
    load_master_key,
    missing_key_remedy,
)
from countersign.kernel.webhooks import outbox
from countersign.records import modules
from countersign.records.adopted.store import is_writable
from countersign.settings import BadSetting, Settings
from countersign.store import lifespan

Status: TypeAlias = Literal["ok", "warn", "fail"]

NAME_WIDTH = len("distribution database")
"""The width of the column with the names of checks."""

COUNTER_SLOTS = 8
"""The size of the local counters that `ValkeyCounters` requires as a fallback: the smallest number of slots."""


@dataclass(slots=True)
class Finding:
    """The result of one check, with a remedy unless the check passed."""

    name: str
    status: Status
    detail: str
    remedy: str = ""
    is_disk_full: bool = False

    def say(self) -> None:
        """Print the finding as text."""
        output.say(f"{self.status:4}  {self.name:{NAME_WIDTH}}  {self.detail}")
        if self.remedy:
            output.say(f"      {'':{NAME_WIDTH}}  {self.remedy}")

    def as_json(self) -> dict[str, str]:
        """Return the finding as a JSON object."""
        return {"check": self.name, "standing": self.status, "detail": self.detail, "remedy": self.remedy}


def failed_finding(name: str, refusal: Refused, remedy: str = "") -> Finding:
    """Return the failed finding for a refusal. If `remedy` is given, it replaces the remedy of the refusal."""
    # `Unavailable.resolution` tells API clients to wait as long as Retry-After says. An operator sees no Retry-After.
    usual_remedy = (
        "Correct the problem, and check again." if refusal.remedy == Unavailable.resolution else refusal.remedy
    )
    # Details of this machine, such as a path, are notes on the exception.
    detail = " ".join((refusal.detail, *getattr(refusal, "__notes__", ())))
    return Finding(name, "fail", detail, remedy or usual_remedy, is_disk_full=is_disk_full(refusal))


def check_master_key(settings: Settings) -> Finding:
    """Check that the master key can be read. `check_database` checks whether the key can decrypt stored values."""
    name, data = "master key", Path(settings.data)
    if settings.database_url and not _is_key_configured(settings):
        return Finding(name, "fail", NEEDED_WITH_POSTGRESQL, missing_key_remedy(data))
    if _has_key(settings):
        return _check_present_key(settings)
    if installation.files(settings):
        remedy = "Restore your copy of the key: no other key can decrypt the databases."
        return Finding(name, "fail", f"{data / KEY_FILE}, which encrypted the databases, is missing", remedy)
    return Finding(name, "ok", f"{data / KEY_FILE} will be made at the first start")


def _check_present_key(settings: Settings) -> Finding:
    name, is_given = "master key", _is_key_configured(settings)
    try:
        key = _load_key(settings)
    except Refused as refused:
        return failed_finding(name, refused)
    remedy = "" if is_given else "Keep a copy of the key off this machine: without the key, encrypted values are lost."
    return Finding(name, "ok" if is_given else "warn", f"key {key.current.id} encrypts new values", remedy)


def _is_key_configured(settings: Settings) -> bool:
    return bool(settings.master_key or settings.master_key_file)


def _has_key(settings: Settings) -> bool:
    return _is_key_configured(settings) or (Path(settings.data) / KEY_FILE).exists()


def _load_key(settings: Settings) -> MasterKey:
    file = Path(settings.master_key_file) if settings.master_key_file else None
    return load_master_key(settings.master_key or None, file, Path(settings.data))


async def check_database(settings: Settings, service: str) -> Finding:
    """Check that the service's database can be reached, written and decrypted.

    If migrations are pending, also check that the database may be upgraded.
    """
    name = f"{service} database"
    database_name = "PostgreSQL" if settings.database_url else str(Path(settings.data) / f"{service}.sqlite")
    try:
        return await _check_tables(settings, service, Finding(name, "ok", database_name))
    except MasterKeyRefused as refused:
        return Finding(name, "warn", "its encrypted values were not checked", refused.remedy)
    except Refused as refused:
        return failed_finding(name, refused)
    except DeclarationError as error:
        return Finding(name, "fail", str(error), "Correct the module, or leave it out of COUNTERSIGN_MODULES.")
    except BadSetting as error:
        return Finding(name, "fail", str(error), "Correct the setting; `countersign config` explains every setting.")
    except (SchemaMismatch, ValueError) as error:
        return Finding(name, "fail", str(error), "Check COUNTERSIGN_DATABASE_URL and the installed version.")


async def _check_tables(settings: Settings, service: str, finding: Finding) -> Finding:
    service_databases = databases.SERVICES[service]
    rights = None
    if settings.database_url:
        (rights,) = await privileges_at(settings.database_url, (service,))
        rights.require_write()
    has_tables = await service_databases.tables.exist(settings)
    pending = await service_databases.pending(settings)
    if rights and pending:
        rights.require_upgrade()
    if not has_tables:
        finding.detail += " will be made at the first start"
        return finding
    if pending:
        finding.status = "warn"
        finding.detail += f": {len(pending)} pending migrations, the first is {pending[0].partition(': ')[2]}"
        finding.remedy = "The next start applies them; or run: countersign db upgrade"
        return finding
    await service_databases.tables.require_writable(settings)
    if _has_key(settings):
        await service_databases.tables.require_keys(settings, _load_key(settings))
        finding.detail += ": readable, writable, up to date, decrypted with the master key"
    else:
        finding.detail += ": readable, writable, up to date"
    return await _check_restorable(settings, service_databases.tables, finding)


async def _check_restorable(settings: Settings, tables: Tables, finding: Finding) -> Finding:
    """Return the finding; turn it into a warning if a restore would refuse every backup of the database."""
    with suppress(PrivilegeMissing):
        try:
            await tables.require_restorable(settings)
        except UnknownSchemaObjects as refused:
            finding.status, finding.remedy = "warn", refused.remedy
            finding.detail += f"; but a restore will refuse every backup of it: {refused.detail}"
    return finding


async def check_connected(settings: Settings) -> Finding:
    """Check that the existing database that the modules read can be reached, and that a SQLite file is in a mode in
    which its tables can be read, and written if a module says so."""
    name, url = "connected database", settings.existing_url
    if _is_missing_file(url):
        return Finding(name, "fail", MISSING, CORRECT_URL)
    try:
        database = await open_existing(
            url, pool=1, read_deadline_s=settings.read_deadline_s, new_cipher=MemoryCipher
        )
        try:
            await database.scan("SELECT 1")
            if database.dialect == "sqlite":
                return await _check_sqlite_mode(settings, database, name)
        finally:
            await database.close()
    except Refused as refused:
        return failed_finding(name, refused)
    except ValueError as error:
        return Finding(name, "fail", str(error), "Correct COUNTERSIGN_EXISTING_URL.")
    return Finding(name, "ok", "PostgreSQL answers")


def _is_missing_file(url: str) -> bool:
    return url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).is_file()


async def _check_sqlite_mode(settings: Settings, database: ExistingDatabase, name: str) -> Finding:
    if await database.scan("PRAGMA encoding") != [("UTF-8",)]:
        return Finding(name, "fail", IN_UTF_16, COPY_IN_UTF_8)
    if await database.scan("PRAGMA journal_mode") == [("wal",)] and _is_written(settings):
        reason, _, remedy = IN_WAL.partition(". ")
        return Finding(name, "warn", reason, remedy)
    return Finding(name, "ok", "the SQLite file can be read")


def _is_written(settings: Settings) -> bool:
    """Return whether the service writes tables of the existing database."""
    try:
        registry = modules.found(modules.module_names(settings.modules))
    except DeclarationError:
        # The check of the service's database reports it.
        return False
    return not settings.existing_read_only and is_writable(registry)


async def check_blobs(settings: Settings) -> Finding:
    """Check that files can be written to the blob store, read from it and removed from it."""
    name, folder = "blob store", Path(settings.data) / lifespan.BLOBS_FOLDER
    if not settings.blobs_url and not folder.exists():
        return Finding(name, "ok", f"{folder} will be made at the first start")
    try:
        await open_blobs(settings.blobs_url or None, folder).check()
    except Refused as refused:
        return failed_finding(name, refused)
    except (BadSetting, ValueError) as error:
        return Finding(name, "fail", str(error), "Correct COUNTERSIGN_BLOBS_URL.")
    return Finding(name, "ok", f"{settings.blobs_url or folder}: written, read and removed")


async def check_installation(settings: Settings) -> Finding:
    """Check that the databases, the data directory and the blob store belong to one installation.

    The finding also contains the notes of the overview, such as those of the garbage collector.
    """
    name = "installation"
    try:
        installation_overview = await installation.overview(settings)
    except (Refused, SchemaMismatch, ValueError) as error:
        return Finding(name, "warn", "not checked", f"Repair the database first: {str(error) or 'it cannot be read'}")
    if installation_overview.conflict:
        return Finding(name, "fail", installation_overview.conflict, installation_overview.remedy)
    installation_id = next((place.id for place in installation_overview.places if place.id), None)
    if installation_overview.notes:
        remedy = "`countersign installation show` lists the places; docs/how-to/installation.md explains what to do."
        return Finding(name, "warn", "; ".join(installation_overview.notes), remedy)
    return Finding(name, "ok", installation_id or "its id will be made at the first start")


async def check_counters(settings: Settings) -> Finding:
    """Check that the counter server works, which counts the requests to all nodes.

    If no counter server is configured, each node counts its own requests, and nothing needs to be checked.
    """
    name = "counters"
    if not settings.counters_url:
        return Finding(name, "ok", "rate limits are counted on this node")
    # The client takes a fifth of a second to import, so it is imported only if it is configured.
    from countersign.kernel.http.rate_limit_valkey import ValkeyCounters

    warnings: list[str] = []
    with TemporaryDirectory() as folder:
        try:
            counters = ValkeyCounters(
                settings.counters_url, SharedMemoryCounters(Path(folder), COUNTER_SLOTS), warnings.append
            )
        except ValueError as error:
            return Finding(name, "fail", str(error), "Correct COUNTERSIGN_COUNTERS_URL.")
        try:
            await counters.peek(f"doctor-{ids.new_uuid()}", 1, 1)
        finally:
            await counters.close()
    if warnings:
        remedy = "Correct COUNTERSIGN_COUNTERS_URL, or repair that server; until then each node counts alone."
        return Finding(name, "fail", warnings[0], remedy)
    return Finding(name, "ok", "the rate-limit server works")


async def check_mail(settings: Settings) -> Finding:
    """Check that the mail server accepts mail. If no mail server is configured, check the outbox folder instead."""
    data = Path(settings.data)
    try:
        await open_mail(settings.smtp_url, settings.mail_from, data).check()
    except Refused as refused:
        return failed_finding(
            "mail", refused, "Correct COUNTERSIGN_SMTP_URL, or repair the mail server." if settings.smtp_url else ""
        )
    except BadSetting as error:
        return Finding("mail", "fail", str(error), "Correct the setting; `countersign config` explains it.")
    if settings.smtp_url:
        return Finding("mail", "ok", "the mail server accepts mail")
    return Finding("mail", "ok", f"e-mails stay in {data / OUTBOX_FOLDER}: `countersign mail` shows them")


async def check_deliveries(settings: Settings) -> Finding:
    """Check whether webhooks and e-mails are sent, or have been paused since a restore."""
    name = "deliveries"
    try:
        pauses = {name: await service.tables.paused_since(settings) for name, service in databases.SERVICES.items()}
    except (Refused, SchemaMismatch, ValueError):
        return Finding(name, "warn", "not checked, because a database check failed", "Correct the databases first.")
    paused_services = [
        f"{service} since {clock.rfc3339(since)}" for service, since in pauses.items() if since is not None
    ]
    if paused_services:
        remedy = f"This is a restored backup: check its webhooks, then run `{outbox.RESUME_COMMAND}`."
        return Finding(name, "warn", f"webhooks and e-mails are paused: {', '.join(paused_services)}", remedy)
    return Finding(name, "ok", "webhooks and e-mails are sent")
