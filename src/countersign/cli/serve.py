"""`countersign serve`: start the services of a data directory, say how to use them, stop gracefully."""

from pathlib import Path

import click

from countersign.cli import configuration, lock
from countersign.cli.output import Exit, Failure
from countersign.cli.place import place_of

DISTRIBUTION_PORT = 8480
RECORDS_PORT = 8080
MOST_WORKERS = 64

port_type = click.IntRange(0, 65535)


@click.command()
@click.argument("service", type=click.Choice(("distribution", "records")), required=False)
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=port_type, help="Port of the one service that is named; 0 chooses a free one.")
@click.option("--distribution-port", type=port_type, help=f"Port of the store. Default: {DISTRIBUTION_PORT}")
@click.option("--records-port", type=port_type, help=f"Port of the records service. Default: {RECORDS_PORT}")
@click.option("--workers", type=click.IntRange(1, MOST_WORKERS), default=1, show_default=True, help="Processes.")
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
    demo: bool,
) -> None:
    """Serve one service, or without a name all there are.

    The records service is not part of this version: `serve` starts the store alone, `serve records` ends with exit
    code 10.
    """
    wanted = _port(service, port, distribution_port, records_port)
    if service == "records":
        remedy = "Start the store with: countersign serve distribution"
        why = "this version holds the store (distribution) alone"
        raise Failure("cannot serve records", why=why, remedy=remedy, exit_code=Exit.NOT_INCLUDED)
    settings = configuration.load(data=data)
    if demo and not place_of(settings.distribution_url, host, wanted).is_loopback:
        raise click.UsageError("--demo has well-known passwords: it is served on a loopback host only, like 127.0.0.1")
    with lock.held(Path(settings.data)) as held:
        # Imported here, so that a wrong command line is refused at once.
        from countersign.cli.running import Start, run

        run(Start(settings, host, wanted, workers, is_demo=demo), held)


def _port(service: str | None, port: int | None, distribution_port: int | None, records_port: int | None) -> int:
    """The store's port; which option says it depends on whether a service is named."""
    if service is None and port is not None:
        raise click.UsageError("--port needs a service; say --distribution-port or --records-port")
    if service is not None and (distribution_port is not None or records_port is not None):
        raise click.UsageError(f"`serve {service}` takes --port")
    given = [each for each in (port, distribution_port) if each is not None]
    return given[0] if given else DISTRIBUTION_PORT
