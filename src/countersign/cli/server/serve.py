"""`countersign serve`: start the services of a data directory, print how to use them, and stop gracefully."""

import gc
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click

from countersign.cli import configuration
from countersign.cli.admin import lock
from countersign.cli.server.listen_address import PORTS, listen_address
from countersign.settings import Settings

NAMES = {"store": "distribution", "distribution": "distribution", "records": "records"}
"""Maps each name that the command line accepts for a service to the name of the service."""
MODULES = {
    "distribution": "countersign.cli.server.store_service",
    "records": "countersign.cli.server.records_service",
}
MAX_WORKERS = 64

worker_type = click.IntRange(1, MAX_WORKERS)
port_type = click.IntRange(0, 65535)


@click.command()
@click.argument("service", type=click.Choice(tuple(NAMES)), required=False)
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=port_type, help="Port of the one service that is named; 0 chooses a free one.")
@click.option("--distribution-port", type=port_type, help=f"Port of the store. Default: {PORTS['distribution']}")
@click.option("--records-port", type=port_type, help=f"Port of the records service. Default: {PORTS['records']}")
@click.option("--workers", type=worker_type, default=1, show_default=True, help="Number of processes of each service.")
@click.option("--modules", metavar="NAMES", help="Modules of the records service, in place of COUNTERSIGN_MODULES.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Serve the existing database of COUNTERSIGN_EXISTING_URL; all new tables are in the data directory.",
)
@click.option(
    "--accept-wide-rights",
    is_flag=True,
    help="With --try: accept a superuser, an owner of tables, or a role that bypasses row-level security.",
)
@click.option("--demo", is_flag=True, help="Fill an empty database with demonstration data; loopback only.")
def serve(
    *,
    service: str | None,
    data: str | None,
    host: str,
    port: int | None,
    distribution_port: int | None,
    records_port: int | None,
    workers: int,
    modules: str | None,
    tries: bool,
    accept_wide_rights: bool,
    demo: bool,
) -> None:
    """Serve the named service, or both services, each in processes of its own.

    `store` and `distribution` are the same service.
    """
    ports = _ports(service, port, {"distribution": distribution_port, "records": records_port})
    settings = configuration.load_unchecked(data=data, modules=modules)
    if tries:
        settings = _with_existing_database(settings, ports)
    if accept_wide_rights:
        settings = replace(settings, accept_wide_rights=True)
    configuration.require_own_database(settings)
    for name, requested_port in ports.items():
        url = settings.distribution_url if name == "distribution" else settings.records_url
        if demo and not listen_address(url, host, requested_port).is_loopback:
            raise click.UsageError(
                "--demo has well-known passwords: it is served on a loopback host only, like 127.0.0.1"
            )
    with lock.acquire(Path(settings.data)) as data_lock:
        # Import these modules late, so that a wrong command line is refused at once. Garbage collection is switched
        # off meanwhile, because imported modules stay in memory: there is nothing to collect.
        gc.disable()
        from countersign.cli.server import lifecycle
        from countersign.cli.server.service_runner import SERVING, ServiceRequest, StartOptions, run

        # Import only the requested services, because imports take half of the start time.
        services = {name: import_module(MODULES[name]).SERVICE for name in ports}
        requests = tuple(ServiceRequest(services[name], requested_port) for name, requested_port in ports.items())
        gc.enable()
        with lifecycle.log_lifecycle("serve", settings, SERVING):
            run(StartOptions(settings, host, requests, workers, is_demo=demo), data_lock)


def _with_existing_database(settings: Settings, ports: Mapping[str, int]) -> Settings:
    """Return the settings with the database URL as the address of an existing database, and with own tables in the data
    directory."""
    if list(ports) != ["records"]:
        raise click.UsageError("--try applies to the records service: `countersign serve records --try`")
    url = settings.existing_url or settings.database_url
    if not url:
        raise click.UsageError("--try needs the address of your database: set COUNTERSIGN_EXISTING_URL")
    _require_tables(settings)
    return replace(settings, existing_url=url, database_url="", existing_read_only=True)


def _require_tables(settings: Settings) -> None:
    """Check that a module declares a table of the existing database. Without one, the data directory would get the
    tables of the default modules, and the database would not be read.

    Raises:
        UsageError: no module declares a table.
    """
    from countersign.declare import DeclarationError
    from countersign.records import modules

    try:
        registry = modules.found(modules.module_names(settings.modules))
    except DeclarationError:
        return  # The start of the service explains the error.
    if all(model.table is None for model in registry.models.values()):
        raise click.UsageError(
            "--try needs a module text: pass --modules ./NAME.py, which `countersign connect` has written"
        )


def _ports(service: str | None, port: int | None, by_name: Mapping[str, int | None]) -> dict[str, int]:
    """Map each service to start to its port. --port sets the port of a named service; --*-port set those of both."""
    if service is None and port is not None:
        raise click.UsageError("--port applies to one service: name it, or use --distribution-port and --records-port")
    if service is not None and any(given_port is not None for given_port in by_name.values()):
        raise click.UsageError(f"`serve {service}` starts one service: set its port with --port")
    if service is not None:
        return {NAMES[service]: PORTS[NAMES[service]] if port is None else port}
    return {name: PORTS[name] if given_port is None else given_port for name, given_port in by_name.items()}
