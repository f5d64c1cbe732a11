"""Directus on node. A user with one role, which has a row rule, calls it over REST with a static token."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import harness
import msgspec
from processes import Worker, listening, pin_prefix

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
    lead_id,
    rows,
    send_raw,
)
from tests.servers.process import free_port

ADMIN, TOKEN = "bench-admin", "bench-clerk"
KINDS = {"expected_revenue_minor": "bigInteger", "expected_close": "date", "notes": "text", "owner": "uuid"}
INDEXED = ("title", "stage", "expected_revenue_minor", "expected_close")
FIELDS = [*COLUMNS[1:], "contact_phone", "party", "lost_reason"]
RULE = {"stage": {"_neq": "lost"}}
SETTINGS = {
    "HOST": "127.0.0.1",
    "SECRET": "bench",
    "NODE_ENV": "production",
    "LOG_LEVEL": "warn",
    "TELEMETRY": "false",
    "WEBSOCKETS_ENABLED": "false",
    # It would answer 503 when it is asked for as much as it can do.
    "PRESSURE_LIMITER_ENABLED": "false",
    "ADMIN_EMAIL": "mia@bench.example.com",
    "ADMIN_PASSWORD": "a long password",
    "ADMIN_TOKEN": ADMIN,
}


class Lead(msgspec.Struct):
    """The fields of a lead that are compared."""

    title: str


class One(msgspec.Struct):
    """A lead alone."""

    data: Lead


class Counted(msgspec.Struct):
    """The number of matching records."""

    filter_count: int


class Leads(msgspec.Struct):
    """A page of leads."""

    data: list[Lead]
    meta: Counted


class Named(msgspec.Struct):
    """A created record."""

    id: str | int


class Made(msgspec.Struct):
    """The answer to making it."""

    data: Named


def _page_of(body: bytes) -> Page:
    page = msgspec.json.decode(body, type=Leads)
    return Page([item.title for item in page.data], page.meta.filter_count)


def _title_of(body: bytes) -> str:
    return msgspec.json.decode(body, type=One).data.title


@contextmanager
def serving(location: Place, numbers: Sequence[int]) -> Iterator[Peer]:
    """Provide the filled peer (see `peer.Serving`)."""
    node = installed.node()
    program = installed.node_package("directus", node) / "node_modules" / "directus" / "cli.js"
    url = database_of(location, "directus")
    port = free_port()
    folder = location.folder / f"directus-{location.database}"
    folder.mkdir()
    environment = {**installed.with_node(node), **SETTINGS, **_files(location, folder, url), "PORT": str(port)}
    installed.run([node, program, "bootstrap"], seconds=300, environment=environment)
    command = [*pin_prefix(location.cores.worker), node, program, "start"]
    log = location.folder / f"directus-{location.database}.log"
    with listening(command, port, log=log, environment=environment) as worker:
        owner = _set_up(worker)
        fill_table(location, url, "lead", COLUMNS, rows(location.leads, owner))
        bearer = f"Bearer {TOKEN}"
        query = f"filter[stage][_eq]={STAGE}&sort={ORDER},id&limit={LIMIT}&meta=filter_count"
        page = harness.get(f"/items/lead?{query}", Authorization=bearer)
        gets = [harness.get(f"/items/lead/{lead_id(number)}", Authorization=bearer) for number in numbers]
        yield Peer(worker, page, gets, _page_of, _title_of)


def _files(location: Place, folder: Path, url: str) -> dict[str, str]:
    """Return the settings of the folders and of the database in which the peer stores its data."""
    folder_settings = {"EXTENSIONS_PATH": str(folder), "STORAGE_LOCAL_ROOT": str(folder)}
    if location.database == "sqlite":
        return {**folder_settings, "DB_CLIENT": "sqlite3", "DB_FILENAME": url.removeprefix("sqlite:///")}
    return {**folder_settings, "DB_CLIENT": "pg", "DB_CONNECTION_STRING": url}


def _set_up(worker: Worker) -> str:
    """Create the collection of leads, and a user with a role that reads the leads which its rule permits. Return the
    user's id."""

    def make(path: str, **values: object) -> str | int:
        request = harness.post(f"/{path}", json.dumps(values).encode(), Authorization=f"Bearer {ADMIN}")
        return msgspec.json.decode(send_raw(worker, request), type=Made).data.id

    fields: list[dict[str, object]] = [_field(name) for name in FIELDS]
    number = {"is_primary_key": True, "has_auto_increment": True}
    key: dict[str, object] = {"field": "id", "type": "integer", "schema": number}
    body: dict[str, object] = {"collection": "lead", "schema": {}, "meta": {}, "fields": [key, *fields]}
    send_raw(worker, harness.post("/collections", json.dumps(body).encode(), Authorization=f"Bearer {ADMIN}"))
    role, policy = make("roles", name="restricted"), make("policies", name="restricted")
    make("access", role=role, policy=policy)
    make("permissions", policy=policy, collection="lead", action="read", permissions=RULE, fields=SHOWN)
    user = make("users", email="cy@bench.example.com", role=role, token=TOKEN)
    return str(user)


def _field(name: str) -> dict[str, object]:
    kind = KINDS.get(name, "string")
    return {"field": name, "type": kind, "meta": {}, "schema": {"is_nullable": True, "is_indexed": name in INDEXED}}
