"""A small shop in a database of others: its tables and rows, its models, and the service over it.

Each personal value contains a mark. A mark in an answer to an agent, or in the log, is a leak.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import httpx
import psycopg

from countersign.declare import (
    Bool,
    Date,
    Decimal,
    Grant,
    LongText,
    Model,
    Module,
    Moment,
    Money,
    Number,
    Ref,
    Role,
    Select,
    Table,
    Text,
)
from countersign.declare.registry import Registry
from countersign.kernel.database.open import open_database
from countersign.kernel.database.versions import Versions
from countersign.kernel.http.rate_limit import SharedMemoryCounters
from countersign.kernel.mail.transports import open_mail
from countersign.kernel.security.masterkey import load_master_key
from countersign.records import app, base_models, root_secret
from countersign.records.access import agent_tokens
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.view import Caller
from countersign.records.adopted import store
from countersign.records.adopted.replica import ReadReplica
from countersign.records.adopted.suspension import Suspensions
from countersign.records.commands import comments
from countersign.records.context import Records
from countersign.records.schema import install
from countersign.settings import Settings
from tests.records.inside import InProcessService
from tests.servers.postgres import Cluster

MARK = "xMARKx"
ROOT_URL = "http://127.0.0.1"
OWN_FILE = "own.sqlite"
BUSY_MS = 2_000

POSTGRES = """
CREATE TYPE order_state AS ENUM ('new', 'paid', 'on hold');
CREATE TABLE country (code varchar(10) PRIMARY KEY, title text NOT NULL);
CREATE TABLE customer (
    customer_id serial PRIMARY KEY,
    first_name varchar(45) NOT NULL,
    email text,
    note text,
    born date,
    activebool boolean NOT NULL DEFAULT true,
    country varchar(10) REFERENCES country,
    balance numeric(10, 2),
    rating numeric(8, 4),
    status integer NOT NULL DEFAULT 0,
    visits integer,
    seen timestamptz,
    password text
);
CREATE TABLE "Orders" (
    id uuid PRIMARY KEY, customer_id integer REFERENCES customer, state order_state NOT NULL
);
CREATE TABLE line (
    order_id uuid REFERENCES "Orders", number smallint, title text, PRIMARY KEY (order_id, number)
);
"""
SQLITE = """
CREATE TABLE country (code TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL);
CREATE TABLE customer (
    customer_id INTEGER PRIMARY KEY,
    first_name TEXT NOT NULL COLLATE NOCASE,
    email TEXT,
    note TEXT,
    born TEXT,
    activebool INTEGER NOT NULL DEFAULT 1,
    country TEXT REFERENCES country,
    balance REAL,
    rating NUMERIC,
    status INTEGER NOT NULL DEFAULT 0,
    visits INTEGER,
    seen TEXT,
    password TEXT
);
CREATE TABLE "Orders" (id TEXT PRIMARY KEY NOT NULL, customer_id INTEGER REFERENCES customer, state TEXT NOT NULL);
CREATE TABLE line (order_id TEXT NOT NULL, number INTEGER NOT NULL, title TEXT, PRIMARY KEY (order_id, number));
"""
ORDERS = ("5b0c0b52-3a3e-4a0a-8f0e-000000000001", "5b0c0b52-3a3e-4a0a-8f0e-000000000002")
ROWS = f"""
INSERT INTO country VALUES ('AT', 'Austria'), ('JP', '日本');
INSERT INTO customer VALUES
    (1, 'Ada {MARK}', 'ada{MARK}@example.com', 'calls {MARK}', '1985-12-10', '1', 'AT', 12.34, 4.5000, 0, 7,
        '2026-01-02T03:04:05.678Z', 'secret {MARK}'),
    (2, 'Bob {MARK}', 'bob{MARK}@example.com', NULL, NULL, '0', 'JP', -0.05, 0.1250, 1, 10, NULL, NULL),
    (3, 'Zoë {MARK}', 'ada{MARK}@example.com', 'Äpfel {MARK}', '2000-02-29', '1', NULL, NULL, NULL, 7,
        NULL, NULL, NULL);
INSERT INTO "Orders" VALUES
    ('{ORDERS[0]}', 1, 'new'), ('{ORDERS[1]}', 2, 'on hold');
INSERT INTO line VALUES ('{ORDERS[0]}', 1, 'Tea'), ('{ORDERS[0]}', 2, 'Éclair'), ('{ORDERS[1]}', 1, NULL);
"""


class Country(Model, table=Table("country", key="code")):
    """A country."""

    title = Text()


class Customer(Model, table=Table("customer", key="customer_id", rows_about=3), comments=True):
    """A customer."""

    first_name = Text(personal="PERSON")
    email = Text(personal="EMAIL")
    note = LongText(personal="TEXT")
    born = Date()
    active = Bool(column="activebool")
    country = Ref("country")
    balance_minor = Money(column="balance")
    rating = Decimal()
    status = Select(values={0: "new", 1: "blocked"}, unknown="other")
    visits = Number()
    seen = Moment()


class Order(Model, table=Table("Orders", key="id"), comments=True):
    """An order."""

    customer = Ref("customer", columns="customer_id")
    state = Select(values={"new": "new", "paid": "paid", "on hold": "on_hold"})


class Line(Model, table=Table("line", key=("order_id", "number"))):
    """A line of an order."""

    order = Ref("order", columns="order_id")
    title = Text(sortable=False)
    number = Number()


MODULE = Module(
    "shop",
    version="1.0.0",
    models=(Country, Customer, Order, Line),
    search_path=("public",),
    roles=(Role("shop_reader", *(Grant(model=name, masked="*") for name in ("country", "customer", "order", "line"))),),
)
MODELS = ("country", "customer", "order", "line")
REGISTRY = Registry([base_models.MODULE, MODULE])


def make_sqlite(path: Path, tables: str = SQLITE) -> str:
    """Create the shop in a SQLite file, and return its address."""
    run_sqlite(path, tables + ROWS)
    return f"sqlite:///{path}"


def run_sqlite(path: Path | str, statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a SQLite file as another application does, and return their rows.

    This uses the library of the service: another library in the same process would take back its locks.
    """
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    try:
        return list(connection.execute(statements).fetchall())
    finally:
        connection.close()


def make_postgres(cluster: Cluster, url: str) -> str:
    """Create the shop in the database at the address, and return the address for a role that may only read."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((POSTGRES + ROWS).encode())
        name = url.rpartition("/")[2]
        role = f"reader_{name}"
        columns = "customer_id, first_name, email, note, born, activebool, country, balance, rating, status, visits, "
        connection.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public TO {role}".encode())
        connection.execute(f"GRANT SELECT ({columns} seen) ON customer TO {role}".encode())
        connection.execute(f'GRANT SELECT ON country, "Orders", line TO {role}'.encode())
    return url.replace("postgres@", f"{role}@")


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


@dataclass
class Shop:
    """The service over the shop, with an HTTP client."""

    inside: InProcessService
    http: httpx.AsyncClient
    url: str
    replica: ReadReplica | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether the shop is in a SQLite file."""
        return self.url.startswith("sqlite")

    @property
    def path(self) -> Path:
        """The SQLite file of the shop."""
        return Path(self.url.removeprefix("sqlite:///"))

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of the other application."""
        if self.is_sqlite:
            return run_sqlite(self.path, statement)
        name = self.url.rpartition("/")[2]
        with psycopg.connect(self.url.replace(f"reader_{name}@", "postgres@")) as connection:
            return connection.execute(statement.encode()).fetchall()

    def change(self, statement: str) -> None:
        """Run a statement of the other application that writes the shop."""
        if self.url.startswith("sqlite"):
            run_sqlite(self.path, statement)
            return
        name = self.url.rpartition("/")[2]
        with psycopg.connect(self.url.replace(f"reader_{name}@", "postgres@"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def plan_of(self, statement: str, values: Sequence[Any]) -> str:
        """Return how the existing database would run a statement if its tables were large."""
        if self.url.startswith("sqlite"):
            connection = apsw.Connection(str(self.path))
            named = {str(number): value for number, value in enumerate(values, 1)}
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", named).fetchall()
            connection.close()
            return "\n".join(str(row[-1]) for row in rows)
        name = self.url.rpartition("/")[2]
        with psycopg.connect(self.url.replace(f"reader_{name}@", "postgres@")) as connection:
            connection.execute("SET LOCAL enable_seqscan = off")
            prepared = f"PREPARE found AS {statement}; EXPLAIN EXECUTE found ({', '.join(map(_literal, values))})"
            cursor = connection.execute(prepared.encode())
            cursor.nextset()
            return "\n".join(str(row[0]) for row in cursor.fetchall())

    @property
    def suspensions(self) -> Suspensions:
        """The suspended models."""
        adopted = self.inside.service.engine.adopted["customer"]
        assert isinstance(adopted, store.AdoptedStore)
        return adopted.suspensions

    def narrowed(self, caller: Caller) -> Caller:
        """Return the caller with the comments that it sees, as authentication would return it."""
        return comments.with_comments(caller, self.inside.service.engine.dialect)

    async def token_of(self, person: Caller) -> str:
        """Return the bearer token of a new agent of the person."""
        records = self.inside.service.records
        async with records.database.transaction() as transaction:
            return (await agent_tokens.issue_token(transaction, records, person, TokenRequest(("*",), "scout"))).token


@asynccontextmanager
async def open_shop(
    url: str,
    folder: Path,
    registry: Registry = REGISTRY,
    *,
    is_shared: bool = False,
    read_deadline_s: float = 5.0,
    replica_url: str = "",
) -> AsyncGenerator[Shop]:
    """Open the service over the existing database at the address, with a replica of it if `replica_url` is set. If
    `is_shared` is set, it can be written, and on PostgreSQL it also has the own tables. Otherwise they are in a SQLite
    file in the folder."""
    folder = folder / "data"
    folder.mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:
        master = load_master_key(None, None, folder)
        connected = store.connected_file(registry, url) if is_shared else None
        own_url = url if is_shared and connected is None else f"sqlite:///{folder / OWN_FILE}"
        database = await open_database(own_url, schema="records", reserve_bytes=0, connected=connected)
        stack.push_async_callback(database.close)
        counters = SharedMemoryCounters(folder, slots=64)
        stack.push_async_callback(counters.close)
        await install.upgrade(database, registry, master)
        secret = await root_secret.secret(database, master)
        existing = await store.open_adopted(registry, url, read_deadline_s, is_shared=is_shared)
        stack.push_async_callback(existing.close)
        records = Records(
            settings=Settings(data=str(folder)),
            root_url=ROOT_URL,
            is_loopback=True,
            database=database,
            registry=registry,
            bits=await install.bits(database),
            master=master,
            secret=secret,
            mail=open_mail("", "Shop <no-reply@localhost>", folder),
            versions=Versions(database, ("access",)).current,
            plan_version=Versions(database, ("plan",)).current,
        )
        replica = None
        if replica_url:
            replica = ReadReplica(existing, partial(store.open_adopted, registry, replica_url, 5.0))
            stack.push_async_callback(replica.close)
        connected_stores = await store.stores(registry, existing, secret, is_shared=is_shared, replica=replica)
        service = app.assemble_service(records, counters, connected_stores)
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=ROOT_URL))
        yield Shop(InProcessService(service), client, url, replica)
