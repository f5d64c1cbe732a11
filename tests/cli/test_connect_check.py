"""`countersign connect check` and `rights` work on the module text that `connect` has written."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.cli.test_connect import change, shop_file, shop_url
from tests.servers.postgres import Cluster


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """Return the address of a SQLite file, for which `connect` has written shop.py."""
    address = f"sqlite:///{shop_file(tmp_path)}"
    assert run("connect", address, "--name", "shop").returncode == Exit.OK
    return address


def test_a_file_that_fits_is_said_to_fit(run: Run, url: str) -> None:
    ended = run("connect", "check", "shop.py", url)

    assert (ended.returncode, ended.stderr) == (Exit.OK, "")
    assert ended.stdout == "shop.py: 1 model fits the database. 0 to look at.\n"


def test_each_line_names_what_does_not_fit_and_the_remedy(run: Run, url: str) -> None:
    change(url, "ALTER TABLE customer RENAME COLUMN name TO title")

    ended = run("connect", "check", "shop.py", COUNTERSIGN_EXISTING_URL=url)
    as_json = json.loads(run("connect", "check", "--json", "shop.py", url).stdout)

    assert ended.returncode == Exit.FAILED
    assert ended.stdout.splitlines() == [
        "customer.name: the table customer has no column name: correct the name, or take the column out",
        "customer: the table customer has changed since the file was written, so the model is hidden: look at connect "
        "diff, then run connect accept",
        "shop.py: 0 of 1 models fit the database. 0 to look at.",
    ]
    assert (as_json["models"], as_json["fitting"]) == (1, 0)
    assert [each["place"] for each in as_json["misfits"]] == ["customer.name", "customer"]


def test_a_key_that_rows_share_does_not_fit(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace('key="id"', 'key="name"'))
    assert run("connect", "check", "shop.py", url).returncode == Exit.OK
    change(url, "INSERT INTO customer (name) VALUES ('Ada')")

    ended = run("connect", "check", "shop.py", url)

    assert ended.returncode == Exit.FAILED
    assert "customer.table: several rows of customer have the same name: name another key" in ended.stdout


def test_the_role_is_compared_with_what_the_file_needs(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    wide = shop_url(postgres_url, postgres_cluster)
    database = postgres_url.rpartition("/")[2]
    (tmp_path / "url").write_text(wide)
    assert run("connect", "--url-file", "url", "--name", "shop").returncode == Exit.OK

    reader = run("connect", "check", "shop.py", "--url-file", "url")
    granted = run("connect", "rights", "shop.py", "--role", f"exact_{database}")
    postgres_cluster.sql(granted.stdout, database=database)
    (tmp_path / "url").write_text(postgres_url.replace("postgres@", f"exact_{database}@"))
    exact = run("connect", "check", "shop.py", "--url-file", "url")

    assert reader.returncode == exact.returncode == Exit.OK, reader.stdout + exact.stdout
    assert f"Role reader_{database}: has all it needs, and more: it may read " in reader.stdout
    assert "public.customer.password_hash" in reader.stdout
    assert exact.stdout == (
        "shop.py: 4 models fit the database. 5 to look at. "
        f"Role exact_{database}: has all it needs, and nothing more.\n"
    )
    assert "hunter2" not in granted.stdout + reader.stdout + reader.stderr


def test_a_table_that_is_not_connected_and_prevents_deletions_is_named(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    url = shop_url(postgres_url, postgres_cluster)
    postgres_cluster.sql("CREATE TABLE visit (c int REFERENCES customer)", database=postgres_url.rpartition("/")[2])
    assert run("connect", url, "--name", "shop", "--table", "customer").returncode == Exit.OK
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace("fingerprint=", "writable=True, deletes=True, fingerprint=", 1))

    ended = run("connect", "check", "shop.py", url)
    as_json = json.loads(run("connect", "check", "--json", "shop.py", url).stdout)

    assert (ended.returncode, as_json["misfits"]) == (Exit.OK, [])
    assert "customer: public.visit is not connected, and its rows prevent the deletion" in ended.stdout
    assert {each["place"] for each in as_json["deletions"]} == {"customer"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "missing.py"), Exit.NOT_FOUND, "missing.py does not exist"),
        (("check", "code.py"), Exit.USAGE, "code.py: line 1: "),
        (("check", "empty.py"), Exit.USAGE, "no model with a table"),
        (("check", "shop.py"), Exit.USAGE, "no URL is given"),
        (("check", "shop.py", "sqlite:///missing.db"), Exit.NOT_FOUND, "does not exist"),
        (("rights", "code.py"), Exit.USAGE, "code.py: line 1: "),
        (("rights", "shop.py", "--role", "pg_all"), Exit.USAGE, "not a name for a role"),
    ],
)
@pytest.mark.usefixtures("url")
def test_what_cannot_be_read_is_said_with_a_remedy(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "code.py").write_text(f"open({str(marker)!r}, 'w')\n")
    (tmp_path / "empty.py").write_text(
        'from countersign.declare import Module\n\nmodule = Module("empty", version="1.0.0")\n'
    )

    ended = run("connect", *arguments)

    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert not marker.exists()


def test_a_module_text_may_need_modules_of_the_setting(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    module = 'Module(\n    "shop",\n    version="1.0.0",\n'
    assert module in file.read_text()
    file.write_text(file.read_text().replace(module, f'{module}    needs=("party",),\n'))

    alone = run("connect", "check", "shop.py", url, COUNTERSIGN_MODULES="crm")
    served = run("connect", "check", "shop.py", url, COUNTERSIGN_MODULES="party,./shop.py")

    assert alone.returncode == Exit.USAGE
    assert served.returncode == Exit.OK, served.stderr
    assert served.stdout == "shop.py: 1 model fits the database. 0 to look at.\n"


def test_a_ref_may_name_a_model_of_another_module_text(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "two.db")) as connection:
        connection.executescript("CREATE TABLE person (id INTEGER PRIMARY KEY);")
        connection.executescript("CREATE TABLE deal (id INTEGER PRIMARY KEY, who INTEGER);")
    begin = "from countersign.declare import Model, Module, Number, Ref, Table\n\n\n"
    (tmp_path / "first.py").write_text(
        f'{begin}class Client(Model, table=Table("person", key="id")):\n    code = Number(column="id")\n\n\n'
        'module = Module("first", version="1.0.0", models=(Client,))\n'
    )
    (tmp_path / "second.py").write_text(
        f'{begin}class Deal(Model, table=Table("deal", key="id")):\n    client = Ref("client", columns="who")\n\n\n'
        'module = Module("second", version="1.0.0", models=(Deal,), needs=("first",))\n'
    )
    modules = "./first.py,./second.py"

    checked = run("connect", "check", "second.py", "sqlite:///two.db", COUNTERSIGN_MODULES=modules)
    changed = run("connect", "diff", "second.py", "sqlite:///two.db", COUNTERSIGN_MODULES=modules)

    assert checked.stdout == "second.py: 1 model fits the database. 0 to look at.\n", checked.stderr
    assert changed.returncode == Exit.OK, changed.stderr


def test_rights_for_tables_without_a_schema_are_noted(run: Run, url: str) -> None:
    ended = run("connect", "rights", "shop.py")

    assert ended.returncode == Exit.OK
    assert "A SQLite file has no roles." in ended.stderr


def test_a_locked_table_concerns_its_model_alone(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    (tmp_path / "url").write_text(shop_url(postgres_url, postgres_cluster))
    assert run("connect", "--url-file", "url", "--name", "shop").returncode == Exit.OK
    database = postgres_url.rpartition("/")[2]
    postgres_cluster.sql(
        "CREATE TABLE busy (id int PRIMARY KEY, title text)",
        "CREATE VIEW busy_view AS SELECT id, title FROM busy",
        f"GRANT SELECT ON busy_view TO reader_{database}",
        database=database,
    )
    table = 'Table("public.busy_view", key="id", fingerprint="0002aaaaaaaaaaaa")'
    declared = f'class Busy(Model, table={table}):\n    title = Text(personal="TEXT")\n'
    (tmp_path / "busy.py").write_text(
        "from countersign.declare import Model, Module, Table, Text\n\n\n"
        f'{declared}\n\nmodule = Module("busy", version="1.0.0", models=(Busy,))\n'
    )

    with psycopg.connect(postgres_url) as connection:
        connection.execute("LOCK TABLE busy IN ACCESS EXCLUSIVE MODE")
        others = run("connect", "check", "shop.py", "--url-file", "url")
        locked = run("connect", "diff", "busy.py", "--url-file", "url")
        accepted = run("connect", "accept", "busy.py", "--url-file", "url", "--model", "busy")

    assert others.returncode == Exit.OK, others.stdout + others.stderr
    line = "busy: ! public.busy_view cannot be compared now, because a table is locked: try again later"
    assert locked.stdout.splitlines()[0] == line
    assert accepted.returncode == Exit.CONFLICT
    assert 'fingerprint="0002aaaaaaaaaaaa"' in (tmp_path / "busy.py").read_text()


def test_the_rights_of_several_module_texts_are_those_of_one_role(run: Run, url: str, tmp_path: Path) -> None:
    written = (tmp_path / "shop.py").read_text()
    (tmp_path / "more.py").write_text(written.replace('Table("', 'Table("more.'))

    ended = run("connect", "rights", "shop.py", "more.py")
    as_json = json.loads(run("connect", "rights", "shop.py", "more.py", "--json").stdout)

    assert ended.returncode == Exit.OK, ended.stderr
    assert "reads the columns in shop.py, more.py, and nothing else." in ended.stdout
    granted = [line.partition(" ON TABLE ")[2] for line in ended.stdout.splitlines() if line.startswith("GRANT SELECT")]
    assert {place.partition(".")[0] for place in granted} == {'"more"', '"public"'}
    assert as_json["files"] == ["shop.py", "more.py"]


def test_policies_that_read_a_setting_need_a_session(
    run: Run, postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    role = f"tenants_{postgres_url.rpartition('/')[2]}"
    postgres_cluster.sql(
        f"CREATE ROLE {role} LOGIN",
        "CREATE TABLE visit (id integer PRIMARY KEY, tenant integer)",
        "INSERT INTO visit VALUES (1, 1)",
        "ALTER TABLE visit ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON visit USING (tenant = current_setting('app.tenant')::integer)",
        f"GRANT SELECT ON visit TO {role}",
        "CREATE TABLE log (id integer NOT NULL, tenant integer)",
        "INSERT INTO log VALUES (1, 1)",
        "ALTER TABLE log ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON log USING (tenant = current_setting('app.tenant')::integer)",
        f"GRANT SELECT ON log TO {role}",
        database=postgres_url.rpartition("/")[2],
    )
    address = postgres_url.replace("postgres@", f"{role}@")
    assert run("connect", address, "--name", "visits", "--sample", "0").returncode == Exit.OK

    without_session = run("connect", "check", "visits.py", address)
    file = tmp_path / "visits.py"
    with_option = file.read_text().replace("version=", 'session={"app.tenant": "user.tenant"}, version=')
    # No unique index covers the key of this model.
    log = 'class Log(Model, table=Table("public.log", key="id")):\n    tenant = Number()\n\n\n'
    both = with_option.replace("class Visit(", f"{log}class Visit(").replace("models=(Visit", "models=(Log, Visit")
    assert "(Log, Visit" in both
    file.write_text(both)
    with_session = run("connect", "check", "visits.py", address)

    unread = "visit: a policy of its table reads a setting that has no value (SQLSTATE 42704)"
    assert without_session.stdout.startswith(unread)
    assert with_session.returncode == Exit.OK, with_session.stdout


def test_a_file_in_wal_mode_does_not_fit_tables_that_are_written(run: Run, url: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "my-shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    only_read = run("connect", "check", "shop.py", url)
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace('key="id"', 'key="id", writable=True'))

    ended = run("connect", "check", "shop.py", url)

    assert (only_read.returncode, ended.returncode) == (Exit.OK, Exit.FAILED)
    assert ended.stdout.splitlines()[0] == (
        "customer.table: the SQLite file is in WAL mode, in which SQLite does not commit two files together, so it is "
        "only read: switch it with PRAGMA journal_mode=DELETE if its application allows that, or take writable out"
    )


def test_a_file_in_utf_16_is_refused(run: Run, url: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "wide.db")) as connection:
        connection.executescript("PRAGMA encoding = 'UTF-16le'; CREATE TABLE customer (id INTEGER PRIMARY KEY)")

    ended = run("connect", "check", "shop.py", f"sqlite:///{tmp_path / 'wide.db'}")

    assert ended.returncode == Exit.FAILED
    assert "is in UTF-16" in ended.stderr
    assert "Make a copy in UTF-8" in ended.stderr
