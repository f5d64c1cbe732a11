"""Compares reading a table of an existing database, as a person and as a masked agent, with the same SQL by hand.
Measures the time to read the schema of 150 tables, and to start the service over them."""

import asyncio
import http.client
import json
import os
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import harness
import psycopg
from contenders.connected import settings
from contenders.wanted import Wanted
from harness import Bench, Contender, Requests
from processes import Worker, worker

ROWS = tuple(int(each) for each in os.environ.get("BENCH_ROWS", "100000,1000000").split(","))
TABLES = 150
VISITS = 1_000
"""The number of different values of the indexed field by which lists are filtered."""
REPEATED = 50
"""The number of these values in repeated lists. Their personal values have been seen before, except in the warm-up."""
MAX_ROWS_COUNTED = 100_000
"""Counts of a larger table by so many clients wait longer than the service lets a request wait: it answers 429."""
ALONE = 200
"""The number of requests that one client sends one after another."""
WRITES, WARM_UP = 200, 20
"""The number of measured writes, and of those before them."""
AGENTS = 20
PASSWORD = "a long password"
GET_IDS = 5_000

MODULE = '''"""A shop."""

from countersign.declare import Date, Model, Module, Money, Number, Ref, Select, Table, Text


class Region(Model, table=Table("region", key="id")):
    """A region."""

    title = Text()


class Customer(Model, table=Table("customer", key="id")):
    """A customer."""

    name = Text(personal="PERSON")
    email = Text(personal="EMAIL")
    phone = Text(personal="PHONE")
    status = Select("active", "blocked", "new")
    region = Ref("region", columns="region_id")
    visits = Number()
    joined = Date()
    amount_minor = Money(column="amount")


module = Module("shop", version="1.0.0", models=(Region, Customer), search_path=("public",))
'''
TABLE = """
CREATE TABLE region (id integer PRIMARY KEY, title text);
CREATE TABLE customer (
    id integer PRIMARY KEY, name text, email text, phone text, status varchar(20),
    region_id integer REFERENCES region, visits integer, joined date, amount numeric(12, 2)
);
INSERT INTO region SELECT n, 'Region ' || n FROM {series_of_regions};
INSERT INTO customer
SELECT n, 'Ada Lovelace ' || n, 'ada' || n || '@example.com', '+43 1 ' || n,
    CASE n % 3 WHEN 0 THEN 'active' WHEN 1 THEN 'blocked' ELSE 'new' END, n % 100 + 1, n % {visits}, {day}, n * 1.25
FROM {series};
CREATE INDEX customer_by_visits ON customer (visits);
ANALYZE;
"""
_SERIES_OF_SQLITE = (
    "(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s)"
)


def script(database: str, rows: int) -> str:
    """Return the SQL that creates the tables with this number of customers."""
    if database == "sqlite":
        day, series = "date('2020-01-01', '+' || (n % 2000) || ' days')", _SERIES_OF_SQLITE
    else:
        day, series = "date '2020-01-01' + (n % 2000)::int", "generate_series(1, {count}) AS s (n)"
    regions = series.format(count=100)
    return TABLE.format(series_of_regions=regions, series=series.format(count=rows), day=day, visits=VISITS)


def create(bench: Bench, database: str, name: str, script: str) -> str:
    """Create an existing database with a script, and return its address."""
    if database == "sqlite":
        path = bench.folder / f"{name}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        return f"sqlite:///{path}"
    if bench.cluster is None:
        raise LookupError("PostgreSQL is not running")
    bench.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
    bench.cluster.sql(script, bench.cluster.url(name))
    return bench.cluster.url(name)


@dataclass(frozen=True, slots=True)
class Served:
    """The service and the floor over one table, the tokens of its callers, and the ids of some records."""

    ours: Worker
    floor: Worker
    tokens: dict[str, str]
    ids: list[str]


@contextmanager
def served(bench: Bench, database: str, rows: int) -> Iterator[Served]:
    """Run the service and the floor over a new table with this number of rows."""

    name = f"connected_{rows}"
    url = create(bench, database, name, script(database, rows))
    module = bench.folder / f"{name}.py"
    module.write_text(MODULE)
    data = bench.folder / f"{name}-{database}"
    common = {"database_url": url, "data": str(data), "modules": str(module)}
    asyncio.run(add_person(Wanted(contender="connected", port=0, **common), PASSWORD))
    with (
        worker({"contender": "connected", **common}, bench.folder, bench.cores) as ours,
        worker({"contender": "connected-floor", **common}, bench.folder, bench.cores) as floor,
    ):
        tokens = {"person": ask(ours, "auth/login", "", {"username": "ada", "password": PASSWORD})["token"]}
        issued = ask(ours, "auth/agent-token", tokens["person"], {"scopes": ["*"], "label": "scout"})
        tokens["agent"] = issued["token"]
        listed = ask(ours, "customer/list", tokens["person"], {"limit": min(GET_IDS, rows)})
        yield Served(ours, floor, tokens, [each["id"] for each in listed["value"]])


async def add_person(config: Wanted, password: str) -> None:
    """Create an administrator in a new data directory."""
    from countersign.kernel.security import passwords
    from countersign.records import app, user_creation
    from countersign.records.access.view import Caller, View
    from countersign.records.commands.run import Actor, Run

    hashed = await passwords.hash_password(password)
    async with (
        app.open_records(settings(config), "http://bench", is_loopback=True) as service,
        service.records.database.transaction() as transaction,
    ):
        nobody = Caller("person", "", "", "", View({}))
        run = Run(service.engine, nobody, transaction, Actor("0" * 24, request_id="made"), transaction)
        await user_creation.add_user(run, "ada", "Ada", None, ["administrator"], hashed)


def send(server: Worker, path: str, token: str, body: object, accept: str = "*/*", *, status: int = 200) -> bytes:
    """Send a command, and return the body of the response.

    Raises:
        RuntimeError: the response has another status.
    """
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": accept}
    with closing(connection):
        connection.request("POST", f"/api/{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
    if answer.status != status:
        raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
    return content


def ask(server: Worker, path: str, token: str, body: object) -> dict[str, object]:
    """Send a command, and return the decoded response."""
    return json.loads(send(server, path, token, body))


def measure(bench: Bench, database: str, rows: int) -> None:
    """Measure the commands on a table with this number of rows."""
    pages = [_page(number, 50) for number in range(REPEATED)]
    counted = f"{rows:,} rows"
    with served(bench, database, rows) as servers:
        variants = {
            "get": ([{"id": each} for each in servers.ids], [{"id": n + 1} for n in range(len(servers.ids))], 0.3),
            "list": (pages, pages, 0.3),
            "search": (pages, pages, 0.3),
        }
        if rows <= MAX_ROWS_COUNTED:
            variants["count_by"] = ([{"field": "status"}], [{}], 0.5)
        for command, (bodies, floor_bodies, wanted) in variants.items():
            title = f"{command} of 50" if command in ("list", "search") else command
            table = bench.compare(
                database,
                f"{title}, {counted}",
                [
                    Contender("floor", servers.floor, _requests(command, "", floor_bodies)),
                    Contender("ours", servers.ours, _requests(command, servers.tokens["person"], bodies)),
                    Contender("ours masked", servers.ours, _requests(command, servers.tokens["agent"], bodies)),
                ],
            )
            bench.aim(f"{database}, {counted}, {title} to the floor", table.ratios["ours/floor"], wanted)
            bench.aim(f"{database}, {counted}, {title}, masked to clear", table.ratios["ours masked/ours"], 0.5)
        alone(bench, database, counted, servers)
        export(bench, database, counted, servers)


def _page(visits: int, limit: int) -> dict[str, object]:
    return {"filter": [{"field": "visits", "op": "eq", "value": visits}], "limit": limit}


def alone(bench: Bench, database: str, counted: str, servers: Served) -> None:
    """Measure how long a masked agent waits for a response if no one else calls."""
    variants: dict[str, tuple[str, list[dict[str, object]], float, float]] = {
        "get": ("get", [{"id": each} for each in servers.ids[:ALONE]], 3, 10),
        "list of 100, repeated": ("list", [_page(number % 5, 100) for number in range(ALONE)], 10, 30),
        "list of 100, first sight": ("list", [_page(REPEATED + number, 100) for number in range(ALONE)], 30, 80),
    }
    for title, (command, bodies, median_ms, most_ms) in variants.items():
        for body in bodies[:5]:
            send(servers.ours, f"customer/{command}", servers.tokens["agent"], body)
        times_ms: list[float] = []
        for body in bodies:
            began_s = time.perf_counter()
            send(servers.ours, f"customer/{command}", servers.tokens["agent"], body)
            times_ms.append((time.perf_counter() - began_s) * 1000)
        p50, p99 = statistics.median(times_ms), statistics.quantiles(times_ms, n=100)[-1]
        bench.other[f"{database}, {title}, masked, one client, {counted}"] = {
            "p50_ms": round(p50, 2), "p99_ms": round(p99, 2)
        }  # fmt: skip
        print(f"\n{title}, masked, one client, {counted} on {database}: {p50:.2f} ms, p99 {p99:.2f} ms")
        bench.aim(f"{database}, {counted}, {median_ms} ms over p50 of {title}", median_ms / p50, 1)
        bench.aim(f"{database}, {counted}, {most_ms} ms over p99 of {title}", most_ms / p99, 1)


def write(bench: Bench, rows: int) -> None:
    """Measure how long a person waits for an update, and for the approval of a plan over ten records, and compare with
    the same rows locked and updated by hand in one transaction. Measure the share of PostgreSQL of twenty agents."""
    name = f"connected_writing_{rows}"
    url = create(bench, "postgres", name, script("postgres", rows))
    module = bench.folder / f"{name}.py"
    module.write_text(MODULE.replace('Table("customer", key="id")', 'Table("customer", key="id", writable=True)'))
    common = {"database_url": url, "data": str(bench.folder / name), "modules": str(module)}
    asyncio.run(add_person(Wanted(contender="connected-writing", port=0, **common), PASSWORD))
    counted = f"{rows:,} rows"
    with (
        worker({"contender": "connected-writing", **common}, bench.folder, bench.cores) as server,
        psycopg.connect(url) as connection,
    ):
        person = str(ask(server, "auth/login", "", {"username": "ada", "password": PASSWORD})["token"])
        agent = str(ask(server, "auth/agent-token", person, {"scopes": ["*"], "label": "scout"})["token"])
        listed = ask(server, "customer/list", person, {"limit": min(GET_IDS, rows)})
        ids = [each["id"] for each in listed["value"]]
        for title, size, median_ms, most_ms in (("update", 1, 6, 20), ("approve a plan over 10 records", 10, 30, 80)):
            ours_ms: list[float] = []
            floor_ms: list[float] = []
            for number in range(WRITES + WARM_UP):
                chosen = range(number * size % (len(ids) - size), number * size % (len(ids) - size) + size)
                floor_ms.append(_by_hand(connection, [each + 1 for each in chosen], number))
                ours_ms.append(_through(server, person, agent, [ids[each] for each in chosen], number))
            _write_figures(bench, f"{title}, one client, {counted}", ours_ms[WARM_UP:], floor_ms[WARM_UP:])
            p50, p99 = statistics.median(ours_ms[WARM_UP:]), statistics.quantiles(ours_ms[WARM_UP:], n=100)[-1]
            bench.aim(f"postgres, {counted}, {median_ms} ms over p50 of {title}", median_ms / p50, 1)
            bench.aim(f"postgres, {counted}, {most_ms} ms over p99 of {title}", most_ms / p99, 1)
        share = _share(bench, server, agent, ids)
    bench.other[f"postgres, {AGENTS} agents at one call a second, {counted}"] = {"share_of_a_core": round(share, 4)}
    print(f"\n{AGENTS} agents at one call a second, {counted}: PostgreSQL uses {share:.1%} of a core")
    bench.aim(f"postgres, {counted}, 5 % of a core over the share of {AGENTS} agents", 0.05 / max(share, 1e-4), 1)


def _by_hand(connection: psycopg.Connection[tuple[object, ...]], rows: list[int], number: int) -> float:
    """Lock and update rows in one transaction, and return the milliseconds."""
    began_s = time.perf_counter()
    for row in rows:
        connection.execute("SELECT id FROM customer WHERE id = %s FOR NO KEY UPDATE", [row])
        connection.execute("UPDATE customer SET visits = %s WHERE id = %s RETURNING id", [10_000 + number, row])
    connection.commit()
    return (time.perf_counter() - began_s) * 1000


def _through(server: Worker, person: str, agent: str, ids: list[str], number: int) -> float:
    """Update a record as a person, or approve a plan over several records, and return the milliseconds."""
    inputs = [{"id": each, "visits": 20_000 + number} for each in ids]
    path, body = "customer/update", inputs[0]
    if len(ids) > 1:
        steps = [{"command": "customer.update", "input": each} for each in inputs]
        plan = json.loads(send(server, "plan/propose", agent, {"steps": steps}, status=202))
        path, body = f"approve/{plan['plan_id']}", {}
    began_s = time.perf_counter()
    send(server, path, person, body)
    return (time.perf_counter() - began_s) * 1000


def _write_figures(bench: Bench, title: str, ours_ms: list[float], floor_ms: list[float]) -> None:
    p50, floor = statistics.median(ours_ms), statistics.median(floor_ms)
    figures = {
        "p50_ms": round(p50, 2), "p99_ms": round(statistics.quantiles(ours_ms, n=100)[-1], 2),
        "floor_p50_ms": round(floor, 2), "ratio_to_floor": round(p50 / floor, 2),
    }  # fmt: skip
    bench.other[f"postgres, {title}"] = figures
    print(f"\n{title} on postgres: {figures}")


def _share(bench: Bench, server: Worker, agent: str, ids: list[str]) -> float:
    """Return the share of a core that PostgreSQL uses while each agent calls once a second: reads, lists and plans."""
    seconds = 5 if bench.options.is_quick else 30
    plan_id = ""
    before_s = bench.cluster.cpu_s() if bench.cluster else 0.0
    began_s = time.perf_counter()
    for number in range(seconds * AGENTS):
        time.sleep(max(0.0, began_s + number / AGENTS - time.perf_counter()))
        calls: list[tuple[str, dict[str, object], int]] = [
            ("customer/get", {"id": ids[number % len(ids)]}, 200),
            ("customer/list", _page(number % VISITS, 50), 200),
            ("customer/update", {"id": ids[number % len(ids)], "visits": 30_000 + number}, 202),
            ("plan/withdraw", {"id": plan_id}, 200),
        ]
        path, body, status = calls[number % len(calls)]
        plan_id = json.loads(send(server, path, agent, body, status=status)).get("plan_id", "")
    took_s = time.perf_counter() - began_s
    return ((bench.cluster.cpu_s() if bench.cluster else 0.0) - before_s) / took_s


def _requests(command: str, token: str, bodies: list[dict[str, object]]) -> Requests:
    path = f"/api/customer/{command}"
    return Requests(
        [harness.post(path, json.dumps(body).encode(), Authorization=f"Bearer {token}") for body in bodies]
    )


def export(bench: Bench, database: str, counted: str, servers: Served) -> None:
    """Measure an export of the whole table as CSV, in turns."""
    callers = {
        "floor": (servers.floor, ""),
        "ours": (servers.ours, servers.tokens["person"]),
        "ours masked": (servers.ours, servers.tokens["agent"]),
    }
    times_s: dict[str, list[float]] = {name: [] for name in callers}
    for _ in range(bench.options.rounds):
        for name, (server, token) in callers.items():
            began_s = time.perf_counter()
            send(server, "customer/export", token, {}, "text/csv")
            times_s[name].append(time.perf_counter() - began_s)
    figures = {name: round(statistics.median(taken), 3) for name, taken in times_s.items()}
    bench.other[f"{database}, export, {counted}"] = {f"{name}, s": seconds for name, seconds in figures.items()}
    print(f"\nexport of {counted} on {database}: {figures}")
    ratio = statistics.median(a / b for a, b in zip(times_s["floor"], times_s["ours"], strict=True))
    bench.aim(f"{database}, {counted}, export to the floor", ratio, 0.3)


def introspect(bench: Bench, database: str) -> None:
    """Measure reading the schema of 150 tables, writing their module text, and starting the service over them."""
    from countersign.connect import draft, postgres, sqlite
    from countersign.declare import text
    from countersign.records import app

    tables = "".join(
        f"CREATE TABLE thing_{n} (id integer PRIMARY KEY, title varchar(100), email text, amount numeric(10, 2), "
        f"at date{', parent integer REFERENCES thing_' + str(n - 1) if n else ''});\n"
        for n in range(TABLES)
    )
    url = create(bench, database, "wide", tables)
    engine = sqlite if database == "sqlite" else postgres

    async def draft_text() -> str:
        schema = await (sqlite.read(url) if database == "sqlite" else postgres.read(url, []))
        samples = await engine.samples(url, schema.relations, 200)
        origin = f"{database}://db.example.com/wide"
        return text.write(draft.draft(schema, samples, name="wide", origin=origin, tables=(), reserved=()).text)

    async def start(config: Wanted) -> None:
        async with app.open_records(settings(config), "http://bench", is_loopback=True):
            pass

    read_s: list[float] = []
    start_s: list[float] = []
    module = bench.folder / "wide.py"
    for number in range(bench.options.rounds):
        began_s = time.perf_counter()
        module.write_text(asyncio.run(draft_text()))
        read_s.append(time.perf_counter() - began_s)
        data = str(bench.folder / f"wide-{database}-{number}")
        config = Wanted(contender="connected", port=0, database_url=url, data=data, modules=str(module))
        asyncio.run(start(config))
        began_s = time.perf_counter()
        asyncio.run(start(config))
        start_s.append(time.perf_counter() - began_s)
    figures = {"connect_s": round(statistics.median(read_s), 3), "start_s": round(statistics.median(start_s), 3)}
    bench.other[f"{database}, {TABLES} tables"] = figures
    print(f"\n{TABLES} tables on {database}: {figures}")
    bench.aim(f"{database}, 10 s over reading {TABLES} tables", 10 / figures["connect_s"], 1)


def run(bench: Bench, database: str) -> None:
    """Measure everything on one engine."""
    introspect(bench, database)
    for rows in ROWS:
        measure(bench, database, rows)
        if database == "postgres":
            write(bench, rows)


if __name__ == "__main__":
    with harness.bench("connected", "Tables of an existing database") as current:
        for engine_name in current.options.databases:
            run(current, engine_name)
