"""The commands that show and change an installation's id, and every command that refuses places of different
installations."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from countersign.cli.main import commands
from countersign.cli.output import Exit, Failure
from countersign.kernel import installation_id
from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.installation_id import DirectoryId, InstallationMismatch
from countersign.store import lifespan
from tests.cli.conftest import Run
from tests.servers.countersign import MASTER_KEY
from tests.servers.postgres import PostgresFactory

Command = Callable[..., Result]
OTHER = "01a00000-0000-7000-8000-000000000000"


@pytest.fixture
def command(home: dict[str, str]) -> Command:
    """Run a command in this process, and return its output or its error."""

    def command(*arguments: str | Path, **variables: str) -> Result:
        return CliRunner().invoke(commands, [str(argument) for argument in arguments], env={**home, **variables})

    return command


def failure(result: Result) -> Failure:
    """Return the error of the failed command."""
    assert isinstance(result.exception, Failure), result.output
    return result.exception


def shown_ids(result: Result) -> set[str | None]:
    """Return the ids that `installation show --json` lists."""
    return {place["id"] for place in json.loads(result.stdout)["places"]}


def test_places_of_different_installations_are_shown_and_adopted_on_purpose(command: Command, data: Path) -> None:
    assert command("org", "create", "acme", "--name", "Acme", "--data", data).exit_code == Exit.OK
    shown_before = command("installation", "show", "--json", "--data", data)
    (own_id,) = shown_ids(shown_before)
    assert own_id is not None
    installation_id.write_directory(data, OTHER, ("distribution",))

    refused_create = failure(command("org", "create", "zenith", "--name", "Zenith", "--data", data))
    backup = failure(command("backup", "x", "--data", data, COUNTERSIGN_BACKUP_PASSPHRASE="a passphrase of ours"))
    conflict = command("installation", "show", "--json", "--data", data)
    doctor = command("doctor", "--json", "--data", data, "--distribution-port", "0", "--records-port", "0")
    unconfirmed = failure(command("installation", "adopt", "--data", data))

    for result in (refused_create, backup):
        assert result.exit_code == Exit.CONFLICT
        assert own_id in result.why
        assert OTHER in result.why
        assert str(data) in result.why
        assert "countersign installation adopt" in result.remedy
    assert (conflict.exit_code, shown_ids(conflict)) == (Exit.CONFLICT, {own_id, OTHER})
    checks = {check["check"]: check for check in json.loads(doctor.stdout)["checks"]}
    assert checks["installation"]["standing"] == "fail"
    assert OTHER in checks["installation"]["detail"]
    assert unconfirmed.exit_code == Exit.USAGE
    assert installation_id.directory_id(data) == DirectoryId(OTHER, is_settled=True, services=("distribution",))

    adopted = command("installation", "adopt", "--yes", "--json", "--data", data)
    collected = command("installation", "collect", "--json", "--data", data)
    shown_after = command("installation", "show", "--json", "--data", data)
    renewed = command("installation", "adopt", "--yes", "--new-id", "--json", "--data", data)

    assert json.loads(adopted.stdout)["id"] == own_id
    assert json.loads(collected.stdout)["removed"] == 0
    assert (shown_after.exit_code, shown_ids(shown_after)) == (Exit.OK, {own_id})
    assert json.loads(renewed.stdout)["id"] not in (own_id, OTHER)
    assert command("org", "create", "zenith", "--name", "Zenith", "--data", data).exit_code == Exit.OK


def test_a_typo_in_the_databases_name_is_refused_by_every_command(
    command: Command, run: Run, new_postgres_url: PostgresFactory, data: Path
) -> None:
    right = {"COUNTERSIGN_DATABASE_URL": new_postgres_url(), "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    wrong_settings = {**right, "COUNTERSIGN_DATABASE_URL": new_postgres_url()}
    ports = ("--distribution-port", "0", "--records-port", "0")
    for create_arguments in (("org", "create", "acme", "--name", "Acme"), ("user", "create", "ada")):
        assert command(*create_arguments, "--data", data, **right).exit_code == Exit.OK

    served_result = run("serve", *ports, "--data", data, **wrong_settings)
    doctor = command("doctor", "--json", *ports, "--data", data, **wrong_settings)
    org = failure(command("org", "create", "acme", "--name", "Acme", "--data", data, **wrong_settings))
    worker = failure(command("worker", "--processes", "1", "--data", data, **wrong_settings))

    assert served_result.returncode == org.exit_code == worker.exit_code == Exit.CONFLICT, served_result.stderr
    assert "setup" not in served_result.stdout + served_result.stderr
    assert "has no id of an installation" in served_result.stderr
    standings = {check["check"]: check["standing"] for check in json.loads(doctor.stdout)["checks"]}
    assert standings["installation"] == "fail"
    assert command("doctor", "--json", *ports, "--data", data, **right).exit_code == Exit.OK


def test_both_services_of_an_installation_have_one_id(command: Command, data: Path, settings: dict[str, str]) -> None:
    org = command("org", "create", "acme", "--name", "Acme", "--data", data, **settings)
    user = command("user", "create", "ada", "--name", "Ada", "--data", data, **settings)
    result = command("installation", "show", "--json", "--data", data, **settings)

    assert org.exit_code == user.exit_code == Exit.OK, user.output
    assert len(json.loads(result.stdout)["places"]) == 4
    assert len(shown_ids(result)) == 1


def test_a_lost_database_of_one_service_is_not_created_again(command: Command, data: Path) -> None:
    for create_arguments in (("org", "create", "acme", "--name", "Acme"), ("user", "create", "ada")):
        assert command(*create_arguments, "--data", data).exit_code == Exit.OK
    (data / "records.sqlite").unlink()

    refused_create = failure(command("user", "create", "eve", "--data", data))

    assert refused_create.exit_code == Exit.CONFLICT
    assert "has no id of an installation" in refused_create.why
    assert command("doctor", "--data", data, "--distribution-port", "0", "--records-port", "0").exit_code == Exit.FAILED
    assert command("db", "upgrade", "records", "--data", data).exit_code == Exit.OK
    assert command("installation", "adopt", "--yes", "--data", data).exit_code == Exit.OK
    assert command("user", "create", "eve", "--data", data).exit_code == Exit.OK


def test_a_file_store_is_claimed_by_one_installation(tmp_path: Path) -> None:
    files = LocalBlobs(tmp_path / lifespan.BLOBS_FOLDER, reserve_bytes=0)

    async def claim() -> None:
        await installation_id.claim(files, "one", "the files")
        await installation_id.claim(files, "one", "the files")
        with pytest.raises(InstallationMismatch, match="one"):
            await installation_id.claim(files, "two", "the files")

    asyncio.run(claim())
