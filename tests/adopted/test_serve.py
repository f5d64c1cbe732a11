"""The whole way: a module text, `countersign serve records --try`, an administrator and an agent."""

import re
import subprocess
import time
from pathlib import Path

import httpx
import psycopg
import pytest

from countersign.cli.output import Exit
from tests.adopted.shop import MARK, POSTGRES, ROWS, make_postgres, make_sqlite, run_sqlite
from tests.servers.countersign import COMMAND, MASTER_KEY, environment, served
from tests.servers.postgres import Cluster
from tests.servers.process import free_port

TEXT = '''"""A shop."""

from countersign.declare import Bool, Grant, Model, Module, Ref, Role, Table, Text


class Country(Model, table=Table("country", key="code")):
    """A country."""

    title = Text()


class Customer(Model, table=Table("customer", key="customer_id")):
    """A customer."""

    first_name = Text(personal="PERSON")
    active = Bool(column="activebool")
    country = Ref("country")


module = Module(
    "shop",
    version="1.0.0",
    models=(Country, Customer),
    search_path=("public",),
    roles=(Role("shop_reader", Grant(model="customer", masked="*")),),
)
'''
PASSWORD = "a long password"


def command(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line with these settings."""
    return subprocess.run(
        [*COMMAND, *arguments], env=environment(**variables), capture_output=True, text=True, timeout=120, check=False
    )


def signed_in(client: httpx.Client, log: str) -> dict[str, str]:
    """Create the first administrator with the link in the log, and return the headers of this person."""
    link = re.search(r"/setup\?token=(\S+)", log)
    assert link is not None, log
    form = {"token": link[1], "username": "root", "password": PASSWORD}
    assert client.post("/setup", data=form).status_code in (200, 303)
    session = client.post("/api/auth/login", json={"username": "root", "password": PASSWORD})
    return {"Authorization": f"Bearer {session.json()['token']}"}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_an_agent_reads_an_existing_database_in_a_try(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    if engine == "sqlite":
        url = make_sqlite(tmp_path / "theirs.sqlite")
    else:
        url = make_postgres(request.getfixturevalue("postgres_cluster"), request.getfixturevalue("postgres_url"))
    modules = tmp_path / "shop.py"
    modules.write_text(TEXT)

    settings = {"COUNTERSIGN_DATABASE_URL": url}
    options = ("--try", "--modules", str(modules))
    with (
        served(tmp_path / "data", *options, service="records", settings=settings) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        person = signed_in(client, running.log.read_text())
        body = {"scopes": ["*"], "label": "scout"}
        issued = client.post("/api/auth/agent-token", json=body, headers=person)
        agent = {"Authorization": f"Bearer {issued.json()['token']}"}

        in_clear = client.post("/api/customer/search", json={"limit": 5}, headers=person).json()["value"]
        masked = client.post("/api/customer/search", json={"expand": ["country"]}, headers=agent).json()["value"]

    assert [each["first_name"] for each in in_clear["rows"]] == [f"{name} {MARK}" for name in ("Ada", "Bob", "Zoë")]
    assert all(re.fullmatch(r"PERSON_[0-9]+", each["first_name"]) for each in masked["rows"])
    assert sorted(masked["names"]["country"].values()) == ["Austria", "日本"]
    assert (tmp_path / "data" / "records.sqlite").exists()


def test_a_person_changes_a_row_of_the_database_that_also_has_our_tables(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    columns = "first_name, activebool, country"
    postgres_cluster.sql(
        f"CREATE SCHEMA records AUTHORIZATION reader_{name}; GRANT INSERT ({columns}), UPDATE ({columns}) ON customer "
        f"TO reader_{name}",
        database=name,
    )
    modules = tmp_path / "shop.py"
    modules.write_text(TEXT.replace('key="customer_id"', 'key="customer_id", writable=True'))

    settings = {
        "COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_EXISTING_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY
    }  # fmt: skip
    options = ("--modules", str(modules), "--workers", "2")
    with (
        served(tmp_path / "data", *options, service="records", settings=settings) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        person = signed_in(client, running.log.read_text())
        record = client.post("/api/customer/list", json={"limit": 1}, headers=person).json()["value"][0]
        body = {"id": record["id"], "revision": record["revision"], "active": False}
        changed = client.post("/api/customer/update", json=body, headers=person)
        second_response = client.post("/api/customer/update", json=body, headers=person)
        condition = {"field": "command", "op": "eq", "value": "customer.update"}
        audit = client.post("/api/audit_entry/list", json={"filter": [condition]}, headers=person).json()["value"]

    assert (changed.status_code, changed.json()["value"]["active"]) == (200, False)
    assert (second_response.status_code, second_response.json()) == (400, {"error": "record has changed"})
    assert [(each["model"], each["record_id"]) for each in audit] == [("customer", record["id"])]
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT activebool FROM customer WHERE customer_id = 1").fetchall()
    assert rows == [(False,)]


def test_a_server_reads_each_recorded_change_once_and_audit_verify_counts_it(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    modules = tmp_path / "shop.py"
    modules.write_text(TEXT.replace('key="customer_id"', 'key="customer_id", writable=True'))
    script = command("connect", "watch", str(modules), "--role", f"reader_{name}").stdout
    postgres_cluster.sql(f"CREATE SCHEMA records AUTHORIZATION reader_{name}", script, database=name)
    settings = {
        "COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_EXISTING_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
        # A replica that is not running does not prevent the start.
        "COUNTERSIGN_READ_URL": f"postgresql://reader@127.0.0.1:{free_port()}/shop",
    }  # fmt: skip
    options = ("--modules", str(modules), "--workers", "2")
    condition = {"field": "command", "op": "eq", "value": "outside.change"}
    with (
        served(tmp_path / "data", *options, service="records", settings=settings) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        person = signed_in(client, running.log.read_text())
        postgres_cluster.sql("UPDATE customer SET activebool = NOT activebool", database=name)
        for _ in range(100):
            found = client.post("/api/audit_entry/list", json={"filter": [condition]}, headers=person).json()["value"]
            if len(found) >= 3:
                break
            time.sleep(0.1)
        time.sleep(2.5)
        entries = client.post("/api/audit_entry/list", json={"filter": [condition]}, headers=person).json()["value"]

    assert [(each["user_id"], each["fields"]) for each in entries] == [("role:postgres", "active")] * 3
    verified = command("audit", "verify", "--data", str(tmp_path / "data"), **settings)
    assert verified.stdout.splitlines()[-1] == (
        "This covers what was done through Countersign. 3 changes by other applications were recorded, in 1 of 2 "
        "connected tables; there may be others."
    )


@pytest.mark.parametrize(
    ("options", "read_only", "status"), [((), "", 200), (("--try",), "", 404), ((), "true", 404)], ids=str
)
def test_a_person_changes_a_row_of_a_sqlite_file_unless_it_is_only_read(
    tmp_path: Path, options: tuple[str, ...], read_only: str, status: int
) -> None:
    url = make_sqlite(tmp_path / "theirs.sqlite")
    modules = tmp_path / "shop.py"
    modules.write_text(TEXT.replace('key="customer_id"', 'key="customer_id", writable=True'))
    settings = {"COUNTERSIGN_EXISTING_URL": url}
    if read_only:
        settings["COUNTERSIGN_EXISTING_READ_ONLY"] = read_only
    arguments = (*options, "--modules", str(modules), "--workers", "2")
    with (
        served(tmp_path / "data", *arguments, service="records", settings=settings) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        person = signed_in(client, running.log.read_text())
        for is_active in (False, True, False):
            record = client.post("/api/customer/list", json={"limit": 1}, headers=person).json()["value"][0]
            body = {"id": record["id"], "revision": record["revision"], "active": is_active}
            changed = client.post("/api/customer/update", json=body, headers=person)
            assert changed.status_code == status, changed.text
        condition = {"field": "command", "op": "eq", "value": "customer.update"}
        audit = client.post("/api/audit_entry/list", json={"filter": [condition]}, headers=person).json()["value"]

    assert len(audit) == (3 if status == 200 else 0)
    (row,) = run_sqlite(tmp_path / "theirs.sqlite", "SELECT activebool FROM customer WHERE customer_id = 1")
    assert row == (0 if status == 200 else 1,)


def test_a_try_needs_a_module_text_and_creates_nothing_without_one(tmp_path: Path) -> None:
    settings = {"COUNTERSIGN_EXISTING_URL": make_sqlite(tmp_path / "theirs.sqlite")}

    ended = command("serve", "records", "--try", "--data", str(tmp_path / "data"), **settings)

    assert ended.returncode == Exit.USAGE
    assert "--try needs a module text: pass --modules ./NAME.py" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_a_try_with_a_superuser_is_refused_with_the_remedy(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute((POSTGRES + ROWS).encode())
    modules = tmp_path / "shop.py"
    modules.write_text(TEXT)
    settings = {"COUNTERSIGN_EXISTING_URL": postgres_url, "COUNTERSIGN_DATA": str(tmp_path / "data")}

    ended = command("serve", "records", "--try", "--port", "0", "--modules", str(modules), **settings)

    assert ended.returncode != 0
    assert "the role of the connected database is a superuser" in ended.stderr
    assert "--accept-wide-rights" in ended.stderr
