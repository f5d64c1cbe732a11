"""Django with Django REST framework, without permissions, under gunicorn with one worker."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import harness
import msgspec
from processes import HERE, listening

from peers import installed
from peers.peer import (
    COLUMNS,
    LIMIT,
    ORDER,
    STAGE,
    Page,
    Peer,
    Place,
    database_of,
    fill_table,
    gunicorn_command,
    lead_id,
    rows,
)
from tests.servers.process import free_port

MODULE = "contenders.django_peer"
OWNER = 1


class Lead(msgspec.Struct):
    """The fields of a lead that are compared."""

    title: str


class Leads(msgspec.Struct):
    """A page of them."""

    results: list[Lead]
    count: int


def _page_of(body: bytes) -> Page:
    page = msgspec.json.decode(body, type=Leads)
    return Page([result.title for result in page.results], page.count)


def _title_of(body: bytes) -> str:
    return msgspec.json.decode(body, type=Lead).title


@contextmanager
def serving(location: Place, numbers: Sequence[int]) -> Iterator[Peer]:
    """Provide the filled peer (see `peer.Serving`)."""
    python = installed.python("django")
    url = database_of(location, "django")
    environment = {"PYTHONPATH": str(HERE), "BENCH_DATABASE": url}
    installed.run([python, "-m", MODULE], seconds=60, environment=environment)
    columns = [f"{name}_id" if name == "owner" else name for name in COLUMNS]
    fill_table(location, url, "lead", columns, rows(location.leads, OWNER))
    port = free_port()
    command = gunicorn_command(python, location, port)
    log = location.folder / f"django-{location.database}.log"
    with listening([*command, f"{MODULE}:application"], port, log=log, environment=environment) as worker:
        page = harness.get(f"/leads/?stage={STAGE}&ordering={ORDER},id&limit={LIMIT}")
        gets = [harness.get(f"/leads/{lead_id(number)}/") for number in numbers]
        yield Peer(worker, page, gets, _page_of, _title_of)
