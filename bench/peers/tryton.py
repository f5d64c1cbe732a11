"""Tryton with a module for leads, under gunicorn with one worker. Its administrator calls it over JSON-RPC."""

import base64
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import harness
import msgspec
from processes import HERE, Worker, listening

from peers import installed
from peers.peer import (
    COLUMNS,
    LIMIT,
    ORDER,
    SHOWN,
    STAGE,
    Page,
    Peer,
    Place,
    database_of,
    fill_table,
    gunicorn_command,
    lead_id,
    rows,
    send_raw,
)
from tests.servers.process import free_port

PASSWORD = "a long password"
CONFIGURATION = """
[database]
uri = {uri}
path = {path}
[session]
timeout = 86400
max_age = 86400
"""
Result = TypeVar("Result")


class Lead(msgspec.Struct):
    """The fields of a lead that are compared."""

    title: str


class Leads(msgspec.Struct):
    """A page of them."""

    rows: list[Lead]
    total: int


class Answer(msgspec.Struct, Generic[Result]):
    """The result of a call."""

    result: Result


def _page_of(body: bytes) -> Page:
    page = msgspec.json.decode(body, type=Answer[Leads]).result
    return Page([row.title for row in page.rows], page.total)


def _title_of(body: bytes) -> str:
    return msgspec.json.decode(body, type=Answer[list[Lead]]).result[0].title


@contextmanager
def serving(location: Place, numbers: Sequence[int]) -> Iterator[Peer]:
    """Provide the filled peer (see `peer.Serving`)."""
    python = installed.python("tryton")
    modules = installed.run([python, "-c", "import trytond; print(trytond.__path__[0] + '/modules')"], seconds=60)
    shutil.copytree(HERE / "contenders" / "tryton_lead", Path(modules.strip()) / "lead", dirs_exist_ok=True)
    url = database_of(location, "tryton")
    environment = _set_up(location, python, url)
    port = free_port()
    command = gunicorn_command(python, location, port)
    log = location.folder / f"tryton-{location.database}.log"
    with listening([*command, "trytond.application:app"], port, log=log, environment=environment) as worker:
        call, owner = _administrator_requests(worker)
        fill_table(location, url, "lead", COLUMNS, rows(location.leads, owner))
        domain = [["stage", "=", STAGE]]
        page = call("model.lead.page", domain, LIMIT, [[ORDER, "ASC"], ["id", "ASC"]], SHOWN)
        gets = [call("model.lead.read", [lead_id(number)], SHOWN) for number in numbers]
        yield Peer(worker, page, gets, _page_of, _title_of)


def _set_up(location: Place, python: Path, url: str) -> Mapping[str, str]:
    """Create the tables and the administrator, and return environment variables for the server."""
    uri = "sqlite://" if location.database == "sqlite" else url.rpartition("/")[0]
    configuration, password = location.folder / f"tryton-{location.database}.cfg", location.folder / "tryton-password"
    configuration.write_text(CONFIGURATION.format(uri=uri, path=location.folder))
    password.write_text(PASSWORD)
    environment = {
        "TRYTOND_CONFIG": str(configuration),
        "TRYTOND_DATABASE_NAMES": "tryton",
        "TRYTONPASSFILE": str(password),
    }
    if location.database == "sqlite":
        # Tryton opens only existing files.
        (location.folder / "tryton.sqlite").touch()
    admin = [python.parent / "trytond-admin", "-c", configuration, "-d", "tryton", "--email", "mia@bench.example"]
    installed.run([*admin, "-u", "lead", "--activate-dependencies"], seconds=300, environment=environment)
    return environment


def _administrator_requests(worker: Worker) -> tuple[Callable[..., bytes], int]:
    """Sign in as the administrator. Return a function that creates requests which call a method with arguments, and the
    administrator's id."""

    def request(method: str, *arguments: object, **headers: str) -> bytes:
        body = {"id": 1, "method": method, "params": arguments}
        return harness.post("/tryton/rpc/", json.dumps(body).encode(), **headers)

    answer = send_raw(worker, request("common.db.login", "admin", {"password": PASSWORD}, "en"))
    user, token, _ = msgspec.json.decode(answer, type=Answer[tuple[int, str, str | None]]).result
    session = base64.b64encode(f"admin:{user}:{token}".encode()).decode()

    def call(method: str, *arguments: object) -> bytes:
        # The last argument is the context of Tryton, which is empty.
        return request(method, *arguments, {}, Authorization=f"Session {session}")

    return call, user
