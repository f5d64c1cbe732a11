"""`countersign doctor`: check this machine and what the services need; each failure comes with its remedy."""

import asyncio
import errno
import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

import click
import httpx
import msgspec

from countersign.cli import configuration, output
from countersign.cli.admin import lock
from countersign.cli.output import Exit, Failure
from countersign.cli.server import dependencies
from countersign.cli.server.dependencies import Finding
from countersign.cli.server.listen_address import PORTS, local_url
from countersign.cli.server.serve import port_type
from countersign.kernel import clock, ids
from countersign.kernel.http import client_address
from countersign.kernel.http.management import Readiness
from countersign.records import app
from countersign.settings import PREFIX, BadSetting, Settings, file_variables
from countersign.store import lifespan

MIN_TIME = 1_767_225_600 * clock.SECOND
"""2026-01-01T00:00:00Z. A clock that shows an earlier time was never set."""
MAX_SKEW_S = 5
WARN_FREE_MIB = 1024
READINESS_TIMEOUT_S = 60
"""Longer than all checks of a running server together may take."""
CLIENT_VARIABLES = {
    f"{PREFIX}{name}" for name in ("SERVER", "TOKEN", "CLIENT_ID", "CLIENT_SECRET", "BACKUP_PASSPHRASE")
}

# The remedy for each error that prevents listening.
_PORT_REMEDIES = {
    errno.EADDRINUSE: "Stop the program that listens on this port, or choose another port.",
    errno.EACCES: "Choose a port above 1023, or give the process CAP_NET_BIND_SERVICE.",
    errno.EADDRNOTAVAIL: "Choose an address that this machine has.",
}


def check_python() -> Finding:
    """Report the version and the path of the Python interpreter."""
    # The version needs no check: an interpreter older than 3.11 cannot parse this file.
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_variables() -> Finding:
    """Warn about environment variables with our prefix that are not settings.

    The variables are not refused, because other programs may use the same prefix.
    """
    known_names = {PREFIX + item.name.upper() for item in fields(Settings)} | file_variables() | CLIENT_VARIABLES
    given_names = (name for name, value in os.environ.items() if name.startswith(PREFIX) and value)
    unknown_names = sorted(name for name in given_names if name not in known_names)
    if unknown_names:
        remedy = "Correct or remove the variable; `countersign config` lists every name."
        return Finding("settings", "warn", f"no setting is called {', '.join(unknown_names)}", remedy)
    return Finding("settings", "ok", "every setting can be used")


def _nearest_existing(path: Path) -> Path:
    """Return the path, or the nearest directory above it that exists."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())


def check_directory(data: Path) -> Finding:
    """Check that the data directory can be written, and that other users cannot read it."""
    existing_directory = _nearest_existing(data)
    if not existing_directory.is_dir() or not os.access(existing_directory, os.W_OK | os.X_OK):
        remedy = "Make it a directory that this user may write, or choose another with --data."
        return Finding("data", "fail", f"{existing_directory} cannot be written", remedy)
    if existing_directory != data.absolute():
        return Finding("data", "ok", f"{data} will be made at the first start")
    if data.stat().st_mode & 0o077:
        remedy = f"Run: chmod 700 {data}"
        return Finding("data", "warn", f"{data} can be read by other users of this machine", remedy)
    return Finding("data", "ok", str(data))


def check_disk(data: Path, reserve_mib: int) -> Finding:
    """Check the free space on the volume of the data directory."""
    free_mib = shutil.disk_usage(_nearest_existing(data)).free >> 20
    detail = f"{free_mib} MiB free, {reserve_mib} MiB are kept in reserve"
    if free_mib <= reserve_mib:
        detail = f"the disk is full: {detail}"
        remedy = "Make space on this disk: every write is refused with 507."
        return Finding("disk", "fail", detail, remedy, is_disk_full=True)
    if free_mib <= reserve_mib + WARN_FREE_MIB:
        return Finding("disk", "warn", detail, "Make space on this disk soon, or move the data directory.")
    return Finding("disk", "ok", detail)


def check_port(name: str, host: str, port: int) -> Finding:
    """Check that a service could listen on this host and port now."""
    shown_address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in addresses:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        remedy = _PORT_REMEDIES.get(error.errno or 0, "Correct host and port.")
        return Finding(f"{name} port", "fail", f"{shown_address}: {(error.strerror or '').lower()}", remedy)
    return Finding(f"{name} port", "ok", f"{shown_address} is free")


def check_running_server(settings: Settings) -> Finding:
    """Check the readiness that the running server reports."""
    url = f"{local_url(settings.operator_host, settings.operator_port)}/readyz"
    try:
        answer = httpx.get(url, timeout=READINESS_TIMEOUT_S, trust_env=False)
        readiness = msgspec.json.decode(answer.content, type=Readiness)
    except (httpx.HTTPError, msgspec.DecodeError, msgspec.ValidationError):
        remedy = "If the server was started without COUNTERSIGN_OPERATOR_PORT, or hangs, restart it. See also its log."
        return Finding("running", "fail", f"{url} does not answer as a server does", remedy)
    if readiness.failing:
        failures = "; ".join(f"{check.name}: {check.detail}" for check in readiness.checks if check.state == "failed")
        return Finding("running", "fail", failures, "docs/how-to/watch-a-server.md explains each check.")
    return Finding("running", "ok", f"{url}: ready, {len(readiness.checks)} checks")


def check_clock(data: Path) -> Finding:
    """Check that the system clock was set, and that it agrees with the time stamps of the file system."""
    now = clock.now()
    remedy = "Set the clock, and synchronise it with NTP: tokens and codes expire by this clock."
    if now < MIN_TIME:
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
    if skew_s > MAX_SKEW_S:
        return Finding("clock", "warn", f"{clock.rfc3339(now)}, {skew_s:.0f} s different from the disk's clock", remedy)
    return Finding("clock", "ok", clock.rfc3339(now))


@click.command()
@click.argument("service", type=click.Choice(tuple(PORTS)), required=False)
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--distribution-port", type=port_type, default=PORTS["distribution"], show_default=True)
@click.option("--records-port", type=port_type, default=PORTS["records"], show_default=True)
@output.json_option
def doctor(service: str | None, data: str | None, host: str, distribution_port: int, records_port: int) -> None:
    """Check what the named service needs, or what both services need. Nothing is changed.

    The checks cover Python, settings, data directory, disk, master key, databases and the rights in them, the connected
    database, blob store, installation id, counters, mail, ports and clock. If a server is running and has an operator's
    port, the command also checks the readiness that the server reports.

    The exit code is 0 if no check failed (warnings are allowed), 8 if a disk is full, and 1 otherwise.
    """
    ports = {"distribution": distribution_port, "records": records_port}
    selected_ports = ports if service is None else {service: ports[service]}
    findings = [check_python()]
    try:
        settings = configuration.load(data=data)
    except Failure as failure:
        findings.append(Finding("settings", "fail", failure.why, failure.remedy))
    else:
        findings += [_check_settings(settings), *run_checks(settings, host, selected_ports)]
    is_well = all(finding.status != "fail" for finding in findings)
    if output.wants_json():
        output.print_result({"ok": is_well, "checks": [finding.as_json() for finding in findings]})
    for finding in findings:
        finding.say()
    if not is_well:
        sys.exit(Exit.STORAGE_FULL if any(finding.is_disk_full for finding in findings) else Exit.FAILED)


def _check_settings(settings: Settings) -> Finding:
    """Check the settings that only the services parse, and that the name of every setting is known."""
    try:
        client_address.configured_proxies(settings)
    except BadSetting as error:
        remedy = "Correct the setting; `countersign config` explains every setting."
        return Finding("settings", "fail", str(error), remedy)
    return check_variables()


def run_checks(settings: Settings, host: str, ports: Mapping[str, int]) -> Iterator[Finding]:
    """Run every check that needs settings, for the services that `ports` names.

    The order is the one in which an operator should apply the remedies.
    """
    data = Path(settings.data)
    directory = check_directory(data)
    yield directory
    # If the directory cannot be used, every other check would fail for the same reason.
    if directory.status != "fail":
        yield check_disk(data, settings.reserve_mib)
        yield from _check_dependencies(settings, ports)
    if lock.is_locked(data):
        yield from _check_serving(settings, ports)
    else:
        yield from _check_ports(settings, host, ports)
    yield check_clock(data)


def _check_dependencies(settings: Settings, ports: Mapping[str, int]) -> Iterator[Finding]:
    yield dependencies.check_master_key(settings)
    for service in ports:
        yield asyncio.run(dependencies.check_database(settings, service))
    if app.SCHEMA in ports and settings.existing_url:
        yield asyncio.run(dependencies.check_connected(settings))
    if lifespan.SCHEMA in ports:
        yield asyncio.run(dependencies.check_blobs(settings))
        yield asyncio.run(dependencies.check_counters(settings))
    yield asyncio.run(dependencies.check_installation(settings))
    yield asyncio.run(dependencies.check_mail(settings))
    yield asyncio.run(dependencies.check_deliveries(settings))


def _check_serving(settings: Settings, ports: Mapping[str, int]) -> Iterator[Finding]:
    for service in ports:
        yield Finding(f"{service} port", "ok", f"{settings.data} is being served now")
    if settings.operator_port:
        yield check_running_server(settings)


def _check_ports(settings: Settings, host: str, ports: Mapping[str, int]) -> Iterator[Finding]:
    for service, port in ports.items():
        yield check_port(service, host, port)
    if settings.operator_port:
        yield check_port("operator", settings.operator_host, settings.operator_port)
