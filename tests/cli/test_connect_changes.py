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
from tests.cli.test_connect import shop_file


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """Return the address of a SQLite file, for which `connect` has written shop.py."""
    address = f"sqlite:///{shop_file(tmp_path)}"
    assert run("connect", address, "--name", "shop").returncode == Exit.OK
    return address


def change(url: str, statement: str) -> None:
    """Run a statement on the SQLite file."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.executescript(statement)


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
    table = "invoice: + the table is not in the file: write its model with connect --table"

    shown = run("connect", "diff", "shop.py", url)
    as_json = json.loads(run("connect", "diff", "--json", "shop.py", url).stdout)
    unconfirmed = run("connect", "accept", "shop.py", url)
    written_before = file.read_text()
    accepted = run("connect", "accept", "shop.py", url, "--yes")

    assert shown.stdout.splitlines() == [line, table, "countersign connect accept shop.py takes the changes over."]
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
    assert "customer: agents read in clear: name." in refused.stderr
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
