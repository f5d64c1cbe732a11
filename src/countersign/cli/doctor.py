"""`countersign doctor`: what a server needs, checked one by one, each failure with its remedy."""

import asyncio
import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias

import click
import httpx
import msgspec

from countersign.cli import configuration, lock, operating, output, record_store, store
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock, ids
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.errors import Refused
from countersign.kernel.http.operator import Readiness
from countersign.kernel.mail.open import open_mail
from countersign.kernel.mail.outbox import FOLDER
from countersign.kernel.security.masterkey import FILE_NAME as KEY_FILE
from countersign.kernel.security.masterkey import MasterKey, MasterKeyRefused, load_master_key
from countersign.kernel.webhooks import holding
from countersign.settings import PREFIX, BadSetting, Settings, file_variables

Standing: TypeAlias = Literal["ok", "warn", "fail"]

OLDEST_NOW = 1_767_225_600 * clock.SECOND
"""2026-01-01T00:00:00Z: a clock before this was never set."""
LARGEST_SKEW_S = 5
SCARCE_MIB = 1024
PATIENCE_S = 60
"""More than all checks of a running server may take together."""
OF_CLIENTS = {f"{PREFIX}{name}" for name in ("SERVER", "TOKEN", "CLIENT_ID", "CLIENT_SECRET", "BACKUP_PASSPHRASE")}


@dataclass(slots=True)
class Finding:
    """What one check found; a remedy unless all is well."""

    name: str
    standing: Standing
    detail: str
    remedy: str = ""


@click.command()
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option("--distribution-port", type=click.IntRange(0, 65535), default=8480, show_default=True)
@output.json_option
def doctor(data: str | None, distribution_port: int) -> None:
    """Check Python, settings, disk, keys, database, blob store, mail, deliveries, port and clock; nothing is changed.

    A server that runs and has an operator's port is asked as well.

    Exit code 0 when nothing failed (warnings are fine), else 1.
    """
    findings = [_python()]
    try:
        settings = configuration.load(data=data)
    except Failure as failure:
        findings.append(Finding("settings", "fail", failure.why, failure.remedy))
    else:
        findings.append(_settings())
        findings += checked(settings, distribution_port)
    if output.wants_json():
        shown = [{"check": each.name, **_members(each)} for each in findings]
        output.answer({"ok": _is_well(findings), "checks": shown})
    else:
        for each in findings:
            output.say(f"{each.standing:4}  {each.name:12}  {each.detail}")
            if each.remedy:
                output.say(f"      {'':12}  {each.remedy}")
    if not _is_well(findings):
        sys.exit(Exit.FAILED)


def _members(finding: Finding) -> dict[str, str]:
    return {"standing": finding.standing, "detail": finding.detail, "remedy": finding.remedy}


def _is_well(findings: list[Finding]) -> bool:
    return all(each.standing != "fail" for each in findings)


def checked(settings: Settings, port: int) -> Iterator[Finding]:
    """Every check that needs settings, in the order in which their remedies help."""
    data = Path(settings.data)
    directory = _directory(data)
    yield directory
    if directory.standing != "fail":
        yield _disk(data, settings.reserve_mib)
    yield _master_key(settings, data)
    yield asyncio.run(_database(settings, data))
    yield asyncio.run(_blobs(settings, data))
    yield asyncio.run(_mail(settings, data))
    yield asyncio.run(_deliveries(settings))
    yield _port(data, port)
    if settings.operator_port and lock.is_held(data):
        yield _ready(settings)
    yield _clock(data)


def _python() -> Finding:
    # Older ones than 3.11 cannot even read this file.
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def _settings() -> Finding:
    """Names of the environment are not refused, since other programs may use the prefix too."""
    known = {PREFIX + item.name.upper() for item in fields(Settings)} | file_variables() | OF_CLIENTS
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        remedy = "Correct or remove it; `countersign config` lists every name."
        return Finding("settings", "warn", f"no setting is called {', '.join(unknown)}", remedy)
    return Finding("settings", "ok", "every setting can be used")


def _existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _directory(data: Path) -> Finding:
    found = _existing(data)
    if not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        remedy = "Make it a directory that this user may write, or choose another with --data."
        return Finding("data", "fail", f"{found} cannot be written", remedy)
    if found != data.absolute():
        return Finding("data", "ok", f"{data} will be made at the first start")
    if data.stat().st_mode & 0o077:
        remedy = f"Run: chmod 700 {data}"
        return Finding("data", "warn", f"{data} can be read by other users of this machine", remedy)
    return Finding("data", "ok", str(data))


def _disk(data: Path, reserve_mib: int) -> Finding:
    free_mib = shutil.disk_usage(_existing(data)).free >> 20
    detail = f"{free_mib} MiB free, {reserve_mib} MiB are kept in reserve"
    if free_mib <= reserve_mib:
        return Finding("disk", "fail", detail, "Free space: every write is refused with 507.")
    if free_mib <= reserve_mib + SCARCE_MIB:
        return Finding("disk", "warn", detail, "Free space soon, or move the data directory.")
    return Finding("disk", "ok", detail)


def _master_key(settings: Settings, data: Path) -> Finding:
    is_given = bool(settings.master_key or settings.master_key_file)
    if settings.database_url and not is_given:
        remedy = "Set COUNTERSIGN_MASTER_KEY or _FILE, for example from: openssl rand -base64 32"
        return Finding("master key", "fail", "with PostgreSQL every node needs the same master key", remedy)
    if _has_key(settings, data):
        return _present_key(settings, data, is_given=is_given)
    if store.has_database(settings):
        remedy = "Put your copy of it back: a start makes another key, which opens nothing of before."
        return Finding("master key", "fail", f"{data / KEY_FILE}, which sealed the database, is missing", remedy)
    return Finding("master key", "ok", f"{data / KEY_FILE} will be made at the first start")


def _present_key(settings: Settings, data: Path, *, is_given: bool) -> Finding:
    name = "master key"
    try:
        key = _key(settings, data)
    except Refused as refused:
        return Finding(name, "fail", refused.detail, refused.remedy)
    remedy = "" if is_given else "Keep a copy of it away from this machine: without it sealed values are lost."
    return Finding(name, "ok" if is_given else "warn", f"key {key.current.id} seals", remedy)


def _key(settings: Settings, data: Path) -> MasterKey:
    file = Path(settings.master_key_file) if settings.master_key_file else None
    return load_master_key(settings.master_key or None, file, data)


def _has_key(settings: Settings, data: Path) -> bool:
    return bool(settings.master_key or settings.master_key_file) or (data / KEY_FILE).exists()


async def _database(settings: Settings, data: Path) -> Finding:
    where = "PostgreSQL" if settings.database_url else str(data / store.DATABASE_FILE)
    if not store.has_database(settings):
        return Finding("database", "ok", f"{where} will be made at the first start")
    try:
        pending = await store.pending(settings)
        if not pending:
            await store.require_writable(settings)
            if _has_key(settings, data):
                await store.require_keys(settings, _key(settings, data))
    except MasterKeyRefused as refused:
        return Finding("database", "warn", "what it holds sealed was not looked at", refused.remedy)
    except Refused as refused:
        return Finding("database", "fail", refused.detail, refused.remedy)
    except (SchemaMismatch, ValueError) as error:
        return Finding("database", "fail", str(error), "Check COUNTERSIGN_DATABASE_URL and the installed version.")
    if pending:
        remedy = "The next start applies them; or run: countersign db upgrade"
        return Finding("database", "warn", f"{where}: migrations to come: {', '.join(pending)}", remedy)
    return Finding("database", "ok", f"{where}: readable, writable, up to date")


async def _blobs(settings: Settings, data: Path) -> Finding:
    folder = data / "blobs"
    if not settings.blobs_url and not folder.exists():
        return Finding("blob store", "ok", f"{folder} will be made at the first start")
    try:
        await open_blobs(settings.blobs_url or None, folder).check()
    except Refused as refused:
        return Finding("blob store", "fail", refused.detail, refused.remedy)
    except (BadSetting, ValueError) as error:
        return Finding("blob store", "fail", str(error), "Correct COUNTERSIGN_BLOBS_URL.")
    where = "the configured store" if settings.blobs_url else str(folder)
    return Finding("blob store", "ok", f"{where}: readable, writable")


async def _mail(settings: Settings, data: Path) -> Finding:
    try:
        await open_mail(settings.smtp_url, settings.mail_from, data).check()
    except Refused as refused:
        remedy = "Correct COUNTERSIGN_SMTP_URL, or see to the mail server." if settings.smtp_url else refused.remedy
        return Finding("mail", "fail", refused.detail, remedy)
    except BadSetting as error:
        return Finding("mail", "fail", str(error), "Correct the setting; `countersign config` explains it.")
    if settings.smtp_url:
        return Finding("mail", "ok", "the mail server takes mail")
    return Finding("mail", "ok", f"letters stay in {data / FOLDER}: `countersign mail` shows them")


async def _deliveries(settings: Settings) -> Finding:
    try:
        found = {"distribution": await store.held_since(settings), "records": await record_store.held_since(settings)}
    except (Refused, SchemaMismatch, ValueError) as error:
        return Finding("deliveries", "warn", "not looked at", f"See to the database first: {type(error).__name__}")
    held = [f"{name} since {clock.rfc3339(at)}" for name, at in found.items() if at is not None]
    if held:
        remedy = f"This was restored: look through its webhooks, then run `{holding.COMMAND}`."
        return Finding("deliveries", "warn", f"webhooks and letters are held: {', '.join(held)}", remedy)
    return Finding("deliveries", "ok", "webhooks and letters go out")


def _port(data: Path, port: int) -> Finding:
    if lock.is_held(data):
        return Finding("port", "ok", f"{data} is being served now")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            remedy = "Stop what listens there, or serve on another port."
            return Finding("port", "fail", f"127.0.0.1:{port}: {(error.strerror or '').lower()}", remedy)
    return Finding("port", "ok", f"127.0.0.1:{port} is free")


def _ready(settings: Settings) -> Finding:
    """What the server that runs says of itself."""
    url = f"{operating.url(settings.operator_host, settings.operator_port)}/readyz"
    try:
        answer = httpx.get(url, timeout=PATIENCE_S, trust_env=False)
        said = msgspec.json.decode(answer.content, type=Readiness)
    except (httpx.HTTPError, msgspec.DecodeError, msgspec.ValidationError):
        remedy = "Look at its log; it was started without COUNTERSIGN_OPERATOR_PORT, or it hangs: then restart it."
        return Finding("running", "fail", f"{url} does not answer as a server does", remedy)
    if said.failing:
        found = "; ".join(f"{each.name}: {each.detail}" for each in said.checks if each.state == "failed")
        return Finding("running", "fail", found, "docs/how-to/watch-a-server.md says what each check means.")
    return Finding("running", "ok", f"{url}: ready, {len(said.checks)} checks")


def _clock(data: Path) -> Finding:
    now = clock.now()
    remedy = "Set the clock, and let NTP keep it: tokens and codes end by it."
    if now < OLDEST_NOW:
        return Finding("clock", "fail", clock.rfc3339(now), remedy)
    if not os.access(data, os.W_OK | os.X_OK):
        return Finding("clock", "ok", clock.rfc3339(now))
    probe = data / f".clock-{ids.new_uuid()}"
    try:
        probe.touch(mode=0o600)
        skew_s = abs(probe.stat().st_mtime_ns / 1000 - clock.now()) / clock.SECOND
    except OSError as error:
        return Finding("clock", "warn", f"{clock.rfc3339(now)}, not compared with the disk's: {error.strerror}", remedy)
    finally:
        probe.unlink(missing_ok=True)
    if skew_s > LARGEST_SKEW_S:
        return Finding("clock", "warn", f"{clock.rfc3339(now)}, {skew_s:.0f} s off from the disk's", remedy)
    return Finding("clock", "ok", clock.rfc3339(now))
