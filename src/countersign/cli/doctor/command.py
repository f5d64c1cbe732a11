"""`countersign doctor`: what the services need, checked one by one, each failure with its remedy."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from countersign.cli import configuration, lock, output
from countersign.cli.doctor import machine, supplies
from countersign.cli.doctor.finding import Finding
from countersign.cli.output import Exit, Failure
from countersign.cli.serve import PORTS, port_type
from countersign.kernel.http import exchange
from countersign.settings import BadSetting, Settings
from countersign.store import lifespan


@click.command()
@click.argument("service", type=click.Choice(tuple(PORTS)), required=False)
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that is to be listened on.")
@click.option("--distribution-port", type=port_type, default=PORTS["distribution"], show_default=True)
@click.option("--records-port", type=port_type, default=PORTS["records"], show_default=True)
@output.json_option
def doctor(service: str | None, data: str | None, host: str, distribution_port: int, records_port: int) -> None:
    """Check what one service needs, or without a name both; nothing is changed.

    Python, settings, data directory, disk, master key, databases and the rights in them, blob store, the installation's
    id, counters, mail, ports and clock. A server that runs and has an operator's port is asked as well.

    Exit code 0 when nothing failed (warnings are fine), 8 when a disk is full, else 1.
    """
    ports = {"distribution": distribution_port, "records": records_port}
    chosen = ports if service is None else {service: ports[service]}
    findings = [machine.python()]
    try:
        settings = configuration.load(data=data)
    except Failure as failure:
        findings.append(Finding("settings", "fail", failure.why, failure.remedy))
    else:
        findings += [_usable(settings), *checked(settings, host, chosen)]
    is_well = all(each.standing != "fail" for each in findings)
    if output.wants_json():
        output.answer({"ok": is_well, "checks": [each.members() for each in findings]})
    for each in findings:
        each.say()
    if not is_well:
        sys.exit(Exit.STORAGE_FULL if any(each.is_disk_full for each in findings) else Exit.FAILED)


def _usable(settings: Settings) -> Finding:
    """Whether what only the services make sense of can be used, and every name is known."""
    try:
        exchange.configured_proxies(settings)
    except BadSetting as error:
        return Finding("settings", "fail", str(error), "Correct it; `countersign config` explains every setting.")
    return machine.variables()


def checked(settings: Settings, host: str, ports: Mapping[str, int]) -> Iterator[Finding]:
    """Every check that needs settings, of the services with these ports, in the order in which their remedies help."""
    data = Path(settings.data)
    directory = machine.directory(data)
    yield directory
    # Of what cannot be entered, everything else would fail for the same reason.
    if directory.standing != "fail":
        yield machine.disk(data, settings.reserve_mib)
        yield from _supplied(settings, ports)
    if lock.is_held(data):
        yield from _served(settings, ports)
    else:
        yield from _listening(settings, host, ports)
    yield machine.time(data)


def _supplied(settings: Settings, ports: Mapping[str, int]) -> Iterator[Finding]:
    yield supplies.master_key(settings)
    for service in ports:
        yield asyncio.run(supplies.database(settings, service))
    if lifespan.SCHEMA in ports:
        yield asyncio.run(supplies.blobs(settings))
        yield asyncio.run(supplies.counters(settings))
    yield asyncio.run(supplies.installed(settings))
    yield asyncio.run(supplies.mail(settings))
    yield asyncio.run(supplies.deliveries(settings))


def _served(settings: Settings, ports: Mapping[str, int]) -> Iterator[Finding]:
    for service in ports:
        yield Finding(f"{service} port", "ok", f"{settings.data} is being served now")
    if settings.operator_port:
        yield machine.running(settings)


def _listening(settings: Settings, host: str, ports: Mapping[str, int]) -> Iterator[Finding]:
    for service, port in ports.items():
        yield machine.listening(service, host, port)
    if settings.operator_port:
        yield machine.listening("operator", settings.operator_host, settings.operator_port)
