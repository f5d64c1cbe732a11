"""A small command changes no existing table, and creates no table when its arguments are wrong."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from countersign.cli.admin.databases import SERVICES
from countersign.cli.output import Exit
from countersign.kernel.database import migrate
from countersign.kernel.database.sqlite import open_sqlite
from countersign.records.schema import install
from countersign.settings import load
from countersign.store import lifespan
from tests.cli.conftest import Run, Settings
from tests.cli.test_serve import wait_until
from tests.servers.countersign import COMMAND, MASTER_KEY, environment, served

MODULES = "COUNTERSIGN_MODULES"
OF_RECORDS = [
    ("user", "create", "eve"),
    ("webhooks", "list"),
]
OF_A_STORE = [
    ("org", "create", "other", "--name", "Other"),
    ("person", "create", "x@example.com"),
    ("issuers", "add", "https://id.example", "--name", "ID", "--jwks-uri", "https://id.example/keys"),
]


def test_modules_other_than_the_served_modules_alter_no_table(run: Run, data: Path, settings: Settings) -> None:
    served_modules = {**settings, MODULES: "party,crm"}
    with served(data, service="records", settings=served_modules):
        refused_results = [
            run(*command, "--data", data, **{**settings, MODULES: module_names})
            for module_names in ("party,crm,helpdesk", "party")
            for command in OF_RECORDS
        ]
        upgrade_result = run("db", "upgrade", "--data", data, **{**settings, MODULES: "party,crm,helpdesk"})
        empty_result = run("db", "upgrade", "--data", data, **served_modules)
        result = run("user", "create", "eve", "--data", data, **served_modules)
        planned_result = run("modules", "plan", "--data", data, **served_modules)
    with served(data, service="records", settings=served_modules) as restarted:
        assert "Stop with ctrl-C" in restarted.log.read_text()

    for refused_result in refused_results:
        assert refused_result.returncode == Exit.CONFLICT, refused_result.stderr
        assert "the database has the modules base, crm, party, and the settings" in refused_result.stderr
        assert "same COUNTERSIGN_MODULES as the server" in refused_result.stderr
        assert "countersign modules apply" in refused_result.stderr
    assert upgrade_result.returncode == Exit.CONFLICT
    assert "another `countersign serve` uses it" in upgrade_result.stderr
    assert empty_result.returncode == Exit.OK, empty_result.stderr
    assert "name base, crm, helpdesk, party" in refused_results[0].stderr
    assert "name base, party\n" in refused_results[-1].stderr
    assert (result.returncode, planned_result.stdout) == (Exit.OK, "Everything is up to date.\n"), result.stderr


def test_an_interrupted_first_installation_is_completed_only_by_an_upgrade(run: Run, data: Path) -> None:
    data.mkdir(mode=0o700)
    assert run("org", "create", "acme", "--name", "Acme", "--data", data).returncode == Exit.OK
    asyncio.run(_migrations_run(data / "records.sqlite", install.MIGRATIONS))

    refused_result = run("user", "create", "eve", "--data", data)
    upgrade_result = run("db", "upgrade", "--data", data)
    result = run("user", "create", "eve", "--role", "administrator", "--data", data)

    assert refused_result.returncode == Exit.CONFLICT
    assert "steps of modules are pending: create the table " in refused_result.stderr
    assert "Run: countersign db upgrade" in refused_result.stderr
    assert [upgrade_result.returncode, result.returncode] == [Exit.OK, Exit.OK], upgrade_result.stderr + result.stderr


def test_migrations_that_are_to_come_are_left_to_an_upgrade(run: Run, data: Path) -> None:
    assert run("org", "create", "acme", "--name", "Acme", "--data", data).returncode == Exit.OK
    assert run("user", "create", "bob", "--data", data).returncode == Exit.OK
    for service, package in (("distribution", lifespan.MIGRATIONS), ("records", install.MIGRATIONS)):
        (data / f"{service}.sqlite").unlink()
        (data / "installation.json").unlink(missing_ok=True)
        (data / "blobs" / "installation.json").unlink(missing_ok=True)
        asyncio.run(_migrations_run(data / f"{service}.sqlite", package, leaving=1))
    applied_before = {service: _applied_migrations(data, service) for service in ("distribution", "records")}

    refused_results = [run(*command, "--data", data) for command in (*OF_A_STORE, *OF_RECORDS)]
    applied_after = {service: _applied_migrations(data, service) for service in applied_before}
    upgrade_result = run("db", "upgrade", "--data", data)
    upgrade_results = [run(*command, "--data", data) for command in (OF_A_STORE[0], OF_RECORDS[0])]

    for result in refused_results:
        assert result.returncode == Exit.CONFLICT, [*result.args, result.stderr]
        assert "are pending: " in result.stderr
        assert "Run: countersign db upgrade" in result.stderr
    assert applied_after == applied_before
    assert upgrade_result.returncode == Exit.OK
    assert [result.returncode for result in upgrade_results] == [Exit.OK, Exit.OK], [
        result.stderr for result in upgrade_results
    ]


def test_a_wrong_data_directory_is_refused_and_not_made(run: Run, data: Path, settings: Settings) -> None:
    making = (OF_A_STORE[0], OF_RECORDS[0])
    commands = [command for command in (*OF_A_STORE, *OF_RECORDS, ("webhooks", "resume")) if command not in making]

    for command in commands:
        result = run(*command, "--data", data, **settings)

        assert result.returncode == Exit.NOT_FOUND, [*command, result.stderr]
        assert "has no " in result.stderr
        assert "COUNTERSIGN_DATABASE_URL" in result.stderr or "Pass --data" in result.stderr
        assert not data.exists()
    dry_run_result = run("db", "upgrade", "--dry-run", "--data", data, **settings)
    assert "distribution: 0001" in dry_run_result.stdout
    assert "records: 0001" in dry_run_result.stdout


def test_a_records_command_does_not_create_records_in_a_store_installation(
    run: Run, data: Path, settings: Settings
) -> None:
    assert run("org", "create", "acme", "--name", "Acme", "--data", data, **settings).returncode == Exit.OK

    listed_result = run("webhooks", "list", "--data", data, **settings)
    resume_result = run("webhooks", "resume", "--data", data, **settings)
    planned_result = run("db", "upgrade", "--dry-run", "records", "--data", data, **settings)

    assert listed_result.returncode == Exit.NOT_FOUND
    assert "of the records service" in listed_result.stderr
    assert resume_result.stdout == "Nothing was paused.\n", resume_result.stderr
    assert not (data / "records.sqlite").exists()
    assert "records: 0001" in planned_result.stdout


@pytest.mark.parametrize("command", [("Paper_Lantern", "--name", "Paper Lantern"), ("paper-lantern", "--name", " ")])
def test_an_organisation_that_is_refused_leaves_nothing_behind(
    run: Run, data: Path, settings: Settings, command: tuple[str, ...]
) -> None:
    result = run("org", "create", *command, "--data", data, **settings)
    dry_run_result = run("db", "upgrade", "--dry-run", "distribution", "--data", data, **settings)

    assert result.returncode == Exit.FAILED
    assert "must be 1 to " in result.stderr
    assert not data.exists()
    assert "distribution: 0001" in dry_run_result.stdout


def test_a_created_link_with_a_guessed_address_is_printed_with_advice(run: Run, data: Path) -> None:
    guessed_result = run("user", "create", "one", "--data", data)
    result = run("user", "create", "two", "--data", data, COUNTERSIGN_RECORDS_URL="https://office.example")
    with served(data, service="records") as server:
        known_result = run("user", "create", "three", "--data", data)

    advice = "http://127.0.0.1:8080: serve the records there, or first set COUNTERSIGN_RECORDS_URL"
    assert advice in guessed_result.stderr
    assert result.stdout.startswith("https://office.example/setup?")
    assert known_result.stdout.startswith(f"{server.url}/setup?")
    assert advice not in result.stderr + known_result.stderr


async def _migrations_run(path: Path, package: str, *, leaving: int = 0) -> None:
    database = await open_sqlite(path, reserve_bytes=0)
    await migrate.upgrade(database, package, leaving=leaving)
    await database.close()


def _applied_migrations(data: Path, service: str) -> list[str]:
    # Inspect a copy, because reading the original would leave a lock that the commands meet.
    copy = shutil.copy(data / f"{service}.sqlite", data.with_name("looked_at"))
    database = sqlite3.connect(copy)
    rows = database.execute("SELECT name FROM schema_migration ORDER BY number").fetchall()
    database.close()
    return [str(name) for (name,) in rows]


@pytest.mark.parametrize(
    ("file", "migrations", "command"),
    [
        ("distribution.sqlite", lifespan.MIGRATIONS, ["org", "create", "acme", "--name", "Acme"]),
        ("records.sqlite", install.MIGRATIONS, ["user", "create", "eve", "--role", "administrator"]),
    ],
)
def test_a_command_waits_for_another_that_makes_the_first_installation(
    home: dict[str, str], data: Path, file: str, migrations: str, command: list[str]
) -> None:
    settings = {**home, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    data.mkdir(mode=0o700)
    asyncio.run(_migrations_run(data / file, migrations, leaving=1))
    arguments = [*COMMAND, *command, "--data", data]
    with subprocess.Popen(arguments, env=environment(**settings), stderr=subprocess.PIPE, text=True) as waiting_process:
        wait_until(lambda: waiting_process.poll() is not None or _holds(waiting_process.pid, data / file))
        # Hold the lock as the other command does, but in this process, because a command gives up after ten seconds
        # without a change.
        asyncio.run(SERVICES[file.partition(".")[0]].upgrade(load(settings, data=str(data))))
        error_output = waiting_process.communicate()[1]

    assert waiting_process.returncode == Exit.OK, error_output


def _holds(process: int, file: Path) -> bool:
    """Return whether the process has the file open. A descriptor that is closed during the check belongs to another
    file."""
    folder, target = Path(f"/proc/{process}/fd"), str(file.resolve())
    for descriptor in os.listdir(folder):
        with suppress(FileNotFoundError):
            if os.readlink(folder / descriptor) == target:
                return True
    return False
