"""The operator's port, as `serve` keeps it beside the services."""

import shutil
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import click

from countersign.cli.place import is_loopback
from countersign.kernel import metrics
from countersign.kernel.errors import StorageFull
from countersign.kernel.http import instrumentation, management
from countersign.kernel.http.management import Check, ManagementApp, ServiceChecks
from countersign.kernel.http.server import ASGIApp, Listener, Program, Worker
from countersign.kernel.http.worker_ipc import WorkerMailboxes
from countersign.kernel.metrics import Sample
from countersign.settings import Settings

OPERATOR = "operator"

FREE = metrics.gauge("countersign_disk_free_bytes", "What is free on the volume of the data directory.")
RESERVE = metrics.gauge("countersign_disk_reserve_bytes", "Below so much free, every write is refused with 507.")


def announce(listeners: Sequence[Listener]) -> None:
    """Say where the operator is answered, if one of these is the operator's."""
    for each in listeners:
        if each.name == OPERATOR:
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


@asynccontextmanager
async def answering(
    settings: Settings, siblings: WorkerMailboxes, number: int, watched: ServiceChecks
) -> AsyncGenerator[None]:
    """While the block lasts, this worker answers the operator's process, where there is one."""
    if not settings.operator_port:
        yield
        return
    async with siblings.answering(number, management.worker_answers(number, watched)), instrumentation.track_loop_lag():
        yield


def program(settings: Settings, siblings: WorkerMailboxes) -> Program:
    """The operator's port, served by a process of its own."""

    @asynccontextmanager
    async def application(worker: Worker, _: Listener) -> AsyncGenerator[ASGIApp]:
        is_ours = is_loopback if is_loopback(settings.operator_host) else None
        yield ManagementApp(siblings, worker.scoreboard, _machine(settings), is_ours)

    return Program(application, Listener(OPERATOR, settings.operator_host, settings.operator_port), outlasts=True)


def _machine(settings: Settings) -> ServiceChecks:
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

    return ServiceChecks("machine", (Check("disk", roomy),), measured)
