"""The operator's port and systemd's watchdog, as `serve` keeps them beside the services."""

import shutil
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import click

from countersign.cli.place import is_loopback
from countersign.kernel import metrics
from countersign.kernel.errors import StorageFull
from countersign.kernel.http import operator, vitals
from countersign.kernel.http.notify import ALIVE, notify, watchdog_s
from countersign.kernel.http.operator import Check, Operator, Watched
from countersign.kernel.http.server import ASGIApp, Listener
from countersign.kernel.http.siblings import Siblings
from countersign.kernel.metrics import Sample
from countersign.kernel.repeated import repeated
from countersign.settings import Settings

OPERATOR = "operator"

FREE = metrics.gauge("countersign_disk_free_bytes", "What is free on the volume of the data directory.")
RESERVE = metrics.gauge("countersign_disk_reserve_bytes", "Below so much free, every write is refused with 507.")


def listeners(settings: Settings) -> list[Listener]:
    """The operator's, where one is wanted."""
    if not settings.operator_port:
        return []
    return [Listener(OPERATOR, settings.operator_host, settings.operator_port, outlasts=True)]


def announce(own: Sequence[Listener]) -> None:
    """Say where the operator is answered."""
    for each in own:
        click.echo(f"Operator: {url(each.host, each.port)}/readyz, /livez, /metrics")


def url(host: str, port: int) -> str:
    """Where the operator is answered, as this machine reaches it."""
    try:
        address = ip_address(host or "::")
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


class Mailboxes:
    """How the workers ask each other, to be made before the fork: for whoever asks at the operator's port, and for
    systemd's watchdog, whose questions no request can crowd out."""

    def __init__(self, workers: int) -> None:
        self.asked = Siblings(workers)
        self.beats = Siblings(workers)

    def close(self) -> None:
        """Close them, in this process."""
        self.asked.close()
        self.beats.close()


@asynccontextmanager
async def watching(
    settings: Settings, mailboxes: Mailboxes, index: int, services: Sequence[Watched]
) -> AsyncGenerator[list[ASGIApp]]:
    """While the block lasts, this worker answers the others, and systemd hears that all of them do; the applications
    of `listeners`."""
    beat_s = watchdog_s()
    async with AsyncExitStack() as stack:
        for each in (mailboxes.asked, mailboxes.beats):
            await stack.enter_async_context(each.answering(index, operator.tell(index)))
        if settings.operator_port:
            await stack.enter_async_context(vitals.watched())
        if beat_s is not None:
            await stack.enter_async_context(repeated(partial(_beat, mailboxes.beats), every_s=beat_s / 3))
        if not settings.operator_port:
            yield []
            return
        asks = is_loopback if is_loopback(settings.operator_host) else None
        yield [Operator(mailboxes.asked, (_machine(settings), *services), asks)]


async def _beat(siblings: Siblings) -> None:
    """Each worker speaks for all: as long as one is silent, nobody says that the service is alive."""
    if not await operator.silent(siblings):
        notify(ALIVE)


def _machine(settings: Settings) -> Watched:
    """The volume that both services share."""
    data, reserve = Path(settings.data), settings.reserve_mib << 20

    async def roomy() -> str:
        free = shutil.disk_usage(data).free
        said = f"{free >> 20} MiB free, {settings.reserve_mib} MiB are kept in reserve"
        if free < reserve:
            raise StorageFull(said)
        return said

    async def measured() -> Iterable[Sample]:
        return Sample(FREE, shutil.disk_usage(data).free), Sample(RESERVE, reserve)

    return Watched("machine", (Check("disk", roomy),), measured)
