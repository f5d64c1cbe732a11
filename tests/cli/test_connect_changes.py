"""`countersign connect diff` and `accept` take changes of the database over into the module text."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.declare import text
from tests.cli.conftest import Run
from tests.cli.test_connect import change, shop_file, shop_url
from tests.servers.postgres import Cluster


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """Return the address of a SQLite file, for which `connect` has written shop.py."""
    address = f"sqlite:///{shop_file(tmp_path)}"
    assert run("connect", address, "--name", "shop").returncode == Exit.OK
    return address


def test_without_a_change_nothing_is_written(run: Run, url: str, tmp_path: Path) -> None:
    before = os.stat(tmp_path / "shop.py")

    shown = run("connect", "diff", "shop.py", url)
    accepted = run("connect", "accept", "shop.py", url)

    assert (shown.returncode, shown.stdout) == (Exit.OK, "shop.py: nothing has changed.\n")
    assert (accepted.returncode, accepted.stdout) == (Exit.OK, "shop.py: nothing to accept.\n")
    after = os.stat(tmp_path / "shop.py")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_new_column_is_taken_over(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.chmod(0o640)
    change(url, "ALTER TABLE customer ADD COLUMN phone TEXT; CREATE TABLE invoice (id INTEGER PRIMARY KEY, title TEXT)")
    line = 'customer: + phone TEXT: not in the file, so agents do not see it: phone = Text(personal="PHONE")'
    table = (
        "invoice: + the table is not in the file: write its model with connect --table invoice --out FILE, and move "
        "the class into this file"
    )

    shown = run("connect", "diff", "shop.py", url)
    as_json = json.loads(run("connect", "diff", "--json", "shop.py", url).stdout)
    unconfirmed = run("connect", "accept", "shop.py", url)
    written_before = file.read_text()
    accepted = run("connect", "accept", "shop.py", url, "--yes")

    command = f"To accept the changes: countersign connect accept shop.py {url}"
    assert shown.stdout.splitlines() == [line, table, command]
    assert (as_json["changes"][0]["model"], as_json["tables"]) == ("customer", ["invoice"])
    assert unconfirmed.returncode == Exit.CONFLICT
    assert "customer: not confirmed: look at its fields, and pass --yes." in unconfirmed.stderr
    assert "phone" not in written_before
    assert accepted.returncode == Exit.OK
    assert accepted.stdout.splitlines()[-1] == "Wrote shop.py. Look at the new fields, and start the server again."
    assert '    phone = Text(personal="PHONE")  # name\n' in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert run("connect", "check", "shop.py", url).returncode == Exit.OK
    assert sorted(path.name for path in tmp_path.iterdir() if "shop.py" in path.name) == ["shop.py"]


def test_an_unexplained_change_is_taken_over_only_if_the_model_is_named(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace('name = Text(personal="PERSON")', "name = Text()"))
    change(url, "ALTER TABLE customer ADD COLUMN title TEXT; ALTER TABLE customer DROP COLUMN password")

    refused = run("connect", "accept", "shop.py", url, "--yes")
    before = file.read_text()
    unknown = run("connect", "accept", "shop.py", url, "--model", "custom")
    accepted = run("connect", "accept", "shop.py", url, "--model", "customer")

    assert refused.returncode == Exit.CONFLICT
    assert "customer: ! customer is no longer the table that was reviewed" in refused.stdout
    assert "customer: agents read in clear: no field." in refused.stderr
    assert "and pass --model customer." in refused.stderr
    assert unknown.returncode == Exit.NOT_FOUND
    assert accepted.returncode == Exit.OK, accepted.stderr
    assert file.read_text() != before
    assert run("connect", "check", "shop.py", url).returncode == Exit.OK
    assert text.read(file.read_text()).models[0].class_name == "Customer"


def test_a_file_that_would_not_fit_its_rules_is_not_written(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace("(Model, ", '(Model, title_field="name", '))
    before = file.read_text()
    change(url, "ALTER TABLE customer ADD COLUMN title TEXT; ALTER TABLE customer DROP COLUMN name")

    ended = run("connect", "accept", "shop.py", url, "--model", "customer")

    assert ended.returncode == Exit.CONFLICT
    assert "cannot write the module" in ended.stderr
    assert "title_field" in ended.stderr
    assert file.read_text() == before


def test_a_key_that_two_rows_have_is_not_taken_over(run: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    change(url, "ALTER TABLE customer ADD COLUMN code TEXT; UPDATE customer SET code = 'a'")
    assert run("connect", "accept", "shop.py", url, "--yes").returncode == Exit.OK
    file.write_text(file.read_text().replace('key="id"', 'key="code"'))
    change(url, "INSERT INTO customer (name, code) VALUES ('Ada', 'a'); ALTER TABLE customer DROP COLUMN password")
    before = file.read_text()

    ended = run("connect", "accept", "shop.py", url, "--model", "customer")

    assert ended.returncode == Exit.CONFLICT
    assert "several rows of customer have the same code" in ended.stderr
    assert file.read_text() == before


def test_the_exit_code_says_whether_something_has_changed_if_it_is_asked_for(run: Run, url: str) -> None:
    assert run("connect", "diff", "shop.py", url, "--exit-code").returncode == Exit.OK
    change(url, "ALTER TABLE customer ADD COLUMN phone TEXT")

    assert run("connect", "diff", "shop.py", url).returncode == Exit.OK
    assert run("connect", "diff", "shop.py", url, "--exit-code").returncode == Exit.FAILED


def test_the_json_of_accept_contains_the_lines_of_the_changes(run: Run, url: str) -> None:
    change(url, "ALTER TABLE customer ADD COLUMN phone TEXT")

    acceptance = json.loads(run("connect", "accept", "--json", "shop.py", url, "--yes").stdout)

    assert acceptance["accepted"] == ["customer"]
    assert [line.partition(":")[0] for line in acceptance["changes"][0]["lines"]] == ["+ phone TEXT"]


def test_the_command_to_go_on_with_contains_the_url_file_but_no_password(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    address = shop_url(postgres_url, postgres_cluster)
    (tmp_path / "url file").write_text(address)
    assert run("connect", "--url-file", "url file", "--name", "garden").returncode == Exit.OK
    database = postgres_url.rpartition("/")[2]
    postgres_cluster.sql("ALTER TABLE store ADD COLUMN colour text", database=database)
    postgres_cluster.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_{database}", database=database)

    by_file = run("connect", "diff", "garden.py", "--url-file", "url file").stdout.splitlines()
    by_argument = run("connect", "diff", "garden.py", address)
    begin, _, end = address.rpartition(":hunter2@")
    in_query = run("connect", "diff", "garden.py", f"{begin}@{end}?password=hunter2")

    command = "To accept the changes: countersign connect accept garden.py"
    assert f"{command} --url-file 'url file'" in by_file
    assert f"{command} URL" in by_argument.stdout.splitlines()
    assert f"{command} URL" in in_query.stdout.splitlines(), in_query.stderr
    assert "The list of processes shows the password" in in_query.stderr
    assert "hunter2" not in by_argument.stdout + by_argument.stderr + in_query.stdout + in_query.stderr


def test_a_model_that_needs_a_look_is_named_with_the_command(run: Run, url: str) -> None:
    change(url, "ALTER TABLE customer ADD COLUMN title TEXT; ALTER TABLE customer DROP COLUMN password")

    said = run("connect", "diff", "shop.py", url).stdout.splitlines()[-1]

    assert said == "Look first at the fields of customer. Without a terminal, --model names each."


def test_a_word_that_is_no_command_is_said_to_be_none(run: Run, url: str) -> None:
    mistyped = run("connect", "chek", "shop.py")
    late = run("connect", "--json", "check", "shop.py", url)

    assert (mistyped.returncode, late.returncode) == (Exit.USAGE, Exit.USAGE)
    known = "review, check, rights, diff, accept"
    assert f"'chek' is neither a URL nor a command for a module text: {known}" in " ".join(mistyped.stderr.split())
    assert f"Write the command first: {known}" in " ".join(late.stderr.split())


def test_a_field_is_to_look_at_under_its_own_name(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "odd.db")) as connection:
        connection.executescript('CREATE TABLE person (id INTEGER PRIMARY KEY, "spare 1" TEXT, spare2 TEXT)')

    draft_report = json.loads(run("connect", "--json", "sqlite:///odd.db").stdout)
    reviewed = json.loads(run("connect", "review", "--json", "odd.py").stdout)

    assert draft_report["look"] == [each["column"] for each in reviewed["look"]]
    assert "person.spare_1" in draft_report["look"]
