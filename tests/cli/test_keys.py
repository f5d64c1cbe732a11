"""When the master key is replaced, every stored secret is re-encrypted, and the old key is no longer needed."""

import asyncio
import json
import sqlite3
import subprocess
import threading
from collections.abc import Generator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest

from countersign.cli.output import Exit
from countersign.kernel import reencryption
from countersign.kernel.security.masterkey import parse_master_key
from countersign.kernel.webhooks import receivers
from countersign.settings import Settings
from tests.cli.conftest import Run
from tests.cli.test_operator import serve_with_operator_port
from tests.servers.countersign import Running, served
from tests.test_encrypted_columns import BOTH, NEW, OLD, OWNER, THIRD, open_filled_services

KEY = "COUNTERSIGN_MASTER_KEY"
PASSPHRASE = {"COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple"}
TABLES = (
    *("distribution.service_key", "distribution.signing_key", "distribution.webhook"),
    *("records.service_key", "records.webhook"),
)
ENGINES = ["sqlite", "postgres"]


def empty_database_settings(request: pytest.FixtureRequest, engine: str) -> dict[str, str]:
    """Return the settings of an empty database, without the master key."""
    if engine == "sqlite":
        return {}
    url: str = request.getfixturevalue("new_postgres_url")()
    return {"COUNTERSIGN_DATABASE_URL": url}


def write_encrypted_values(data: Path, database_settings: dict[str, str]) -> None:
    """Write one value of every encrypted kind under the old key."""

    async def work() -> None:
        url = database_settings.get("COUNTERSIGN_DATABASE_URL", "")
        async with AsyncExitStack() as stack:
            await open_filled_services(stack, Settings(data=str(data), database_url=url, reserve_mib=0))

    asyncio.run(work())


@contextmanager
def signing(run: Run, server: Running, settings: dict[str, str]) -> Generator[list[int]]:
    """Replace the organisation's signing key again and again until the block ends."""
    token = run("token", "issue", OWNER, "--data", server.data, **settings).stdout.strip()
    answers: list[int] = []
    stop_event = threading.Event()

    def sign() -> None:
        address = f"{server.url}/api/v1/org/signing-keys"
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
            while not stop_event.is_set() or not answers:
                answers.append(http.post(address).status_code)

    thread = threading.Thread(target=sign)
    thread.start()
    try:
        yield answers
    finally:
        stop_event.set()
        thread.join()


def keys_of(result: "subprocess.CompletedProcess[str]") -> dict[str, tuple[str, int]]:
    """Return the state of each key in the command's --json output, with the number of values that the key encrypts."""
    return {key["key_id"]: (key["state"], key["values"]) for key in json.loads(result.stdout)["keys"]}


def tables_of(result: "subprocess.CompletedProcess[str]") -> dict[str, list[str]]:
    """Return the keys that encrypt the values of each table in the command's output."""
    tables: dict[str, list[str]] = {}
    for lot in json.loads(result.stdout)["sealed"]:
        tables.setdefault(lot["table"], []).append(lot["key_id"])
    return tables


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_rotation_beside_a_server_that_writes_the_old_master_key_may_go(
    run: Run, tmp_path: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    data, database_place, other_place = (
        tmp_path / "data",
        empty_database_settings(request, engine),
        empty_database_settings(request, engine),
    )
    write_encrypted_values(data, database_place)
    turning, new_key_settings = {**database_place, KEY: BOTH}, {**database_place, KEY: NEW}

    status_before = run("keys", "status", "--json", "--data", data, **turning)
    too_early = run("keys", "status", "--data", data, **new_key_settings)
    with served(data, service="both", settings=turning) as server, signing(run, server, turning) as signed_statuses:
        rotated_result = run("keys", "reencrypt", "--json", "--data", data, **turning)
    with (
        served(data, service="both", settings=new_key_settings) as server,
        signing(run, server, new_key_settings) as signed_later,
    ):
        second_result = run("keys", "reencrypt", "--json", "--data", data, **new_key_settings)
    created_result = run("backup", "one.backup", "--data", data, **new_key_settings, **PASSPHRASE)
    restored_result = run("restore", "one.backup", "--to", "copy", **{**other_place, KEY: NEW}, **PASSPHRASE)
    state = run("keys", "status", "--json", "--data", "copy", **{**other_place, KEY: NEW})
    verify_result = run("verify", "copy", **{**other_place, KEY: NEW})

    assert keys_of(status_before) == {"new": ("seals", 0), "old": ("needed", 5)}
    assert tables_of(status_before) == {table: ["old"] for table in TABLES}
    assert too_early.returncode == Exit.FAILED
    assert "Key old is missing: 5 values encrypted with it" in too_early.stdout
    assert rotated_result.returncode == second_result.returncode == Exit.OK, (
        rotated_result.stderr + second_result.stderr
    )
    assert json.loads(rotated_result.stdout)["reencrypted"] == dict.fromkeys(TABLES, 1)
    assert keys_of(rotated_result)["old"] == ("unneeded", 0)
    assert json.loads(second_result.stdout)["reencrypted"] == dict.fromkeys(TABLES, 0)
    assert {*signed_statuses, *signed_later} == {201}
    assert created_result.returncode == restored_result.returncode == verify_result.returncode == Exit.OK, (
        created_result.stderr + restored_result.stderr
    )
    assert keys_of(state) == {"new": ("seals", 5 + len(signed_statuses) + len(signed_later))}
    assert tables_of(state) == {table: ["new"] for table in TABLES}


def test_a_new_signing_key_keeps_stored_secrets_and_reencryption_keeps_signing_keys(
    run: Run, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    write_encrypted_values(data, {})

    kids = [json.loads(run("keys", "rotate", "--json", "--data", data, **{KEY: OLD}).stdout)["kid"] for _ in range(2)]
    state = run("keys", "status", "--json", "--data", data, **{KEY: BOTH})
    run("keys", "reencrypt", "--data", data, **{KEY: BOTH})
    last_result = run("keys", "rotate", "--json", "--data", data, **{KEY: NEW})
    result = run("keys", "rotate", "--data", data, **{KEY: NEW})

    assert keys_of(state) == {"new": ("seals", 0), "old": ("needed", 5)}
    assert json.loads(last_result.stdout)["previous"][:2] == kids[::-1]
    assert result.stdout.count("stays published until 20") == 4


def test_nothing_is_sealed_under_a_key_that_the_running_services_do_not_have(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_encrypted_values(data, {})
    with served(data, settings={KEY: OLD}):
        refused_result = run("keys", "reencrypt", "--data", data, **{KEY: BOTH})
        state = run("keys", "status", "--json", "--data", data, **{KEY: BOTH})
        rotated_result = run("keys", "reencrypt", "--data", data, **{KEY: f"{OLD},{NEW}"})

    assert refused_result.returncode == Exit.CONFLICT
    assert "do not have the master key new" in refused_result.stderr
    assert keys_of(state) == {"new": ("seals", 0), "old": ("needed", 5)}
    assert rotated_result.returncode == Exit.OK, rotated_result.stderr


def test_rotation_of_a_records_only_installation_creates_no_store(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    none_result = run("keys", "reencrypt", "--data", data)
    run("modules", "apply", "--data", data)

    state = run("keys", "status", "--json", "--data", data)
    rotated_result = run("keys", "reencrypt", "--data", data)
    signing_result = run("keys", "rotate", "--data", data)

    assert none_result.returncode == signing_result.returncode == Exit.NOT_FOUND
    assert "has no store, and only a store signs tokens" in signing_result.stderr
    assert tables_of(state).keys() == {"records.service_key"}
    assert rotated_result.returncode == Exit.OK, rotated_result.stderr
    assert "records.service_key: 0 re-encrypted\n" in rotated_result.stdout
    assert not (data / "distribution.sqlite").exists()


def test_missing_keys_are_named_by_readyz_doctor_and_verify_and_nothing_is_called_damaged(
    run: Run, tmp_path: Path
) -> None:
    data, key_settings = tmp_path / "data", {KEY: NEW}
    asyncio.run(_seal_under_several(data))

    with serve_with_operator_port(data, **key_settings) as server:
        readiness = server.ask("/readyz").json()
    doctor = run("doctor", "--json", "--distribution-port", "0", "--records-port", "0", "--data", data, **key_settings)
    verify_result = run("verify", "--json", "--data", data, **key_settings)
    result = run("verify", "--data", data, **key_settings)
    put_back = run("verify", "--data", data, **{KEY: f"{BOTH},{THIRD}"})

    failures = {check["name"]: check["detail"] for check in readiness["checks"] if check["state"] == "failed"}
    assert failures.keys() == {"distribution master key", "records master key"}
    assert "the master key old, third, which" in failures["distribution master key"]
    assert "the master key old, which" in failures["records master key"]
    failed_checks = [check for check in json.loads(doctor.stdout)["checks"] if check["standing"] == "fail"]
    assert [check["check"] for check in failed_checks] == ["distribution database", "records database"]
    assert "old, third" in failed_checks[0]["detail"]
    assert "Add old, third to the list" in failed_checks[0]["remedy"]
    assert verify_result.returncode == Exit.CHECKSUM
    assert {finding["place"]: finding["remedy"] for finding in json.loads(verify_result.stdout)["findings"]}.keys() == {
        *("distribution.signing_key", "distribution.webhook", "records.webhook")
    }
    assert "distribution.webhook: 1 values need the master key third, which is not given" in result.stdout
    assert result.stderr.startswith("Add old, third to the list")
    assert "restore" not in result.stderr
    assert put_back.returncode == Exit.OK, put_back.stdout


def test_a_backup_is_restored_with_all_of_its_keys_or_not_at_all(run: Run, tmp_path: Path) -> None:
    data, every = tmp_path / "data", {KEY: f"{BOTH},{THIRD}"}
    asyncio.run(_seal_under_several(data))
    run("backup", "one.backup", "--data", data, **every, **PASSPHRASE)

    refused_result = run("restore", "one.backup", "--to", "copy", **{KEY: NEW}, **PASSPHRASE)
    restored_result = run("restore", "one.backup", "--to", "copy", **PASSPHRASE)
    verify_result = run("verify", "copy")

    assert refused_result.returncode == Exit.CONFLICT
    assert "do not include these keys of the backup: old, third" in refused_result.stderr
    assert restored_result.returncode == verify_result.returncode == Exit.OK, (
        restored_result.stderr + verify_result.stdout
    )


async def _seal_under_several(data: Path) -> None:
    """Encrypt the keys that a start opens with the new key, the store's webhooks with a third key and the rest with the
    old."""
    async with AsyncExitStack() as stack:
        both_services = await open_filled_services(stack, Settings(data=str(data), reserve_mib=0))
        for database, columns in both_services.databases:
            await reencryption.reencrypt(database, columns[0], parse_master_key(BOTH, "test"))
        third_key = parse_master_key(f"{THIRD},{OLD}", "test")
        await reencryption.reencrypt(both_services.store.database, receivers.ENCRYPTED_COLUMN, third_key)


def test_verify_distinguishes_a_damaged_value_from_a_missing_key(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_encrypted_values(data, {})
    with closing(sqlite3.connect(data / "records.sqlite")) as database:
        database.execute("UPDATE webhook SET secrets = CAST(secrets || x'00' AS BLOB)")
        database.commit()
    other_key = OLD.removeprefix("old:")

    damaged_result = run("verify", "--data", data, **{KEY: OLD})
    state = run("keys", "status", "--data", data, **{KEY: OLD})
    renamed_result = run("verify", "--data", data, **{KEY: NEW.replace("new:", "old:")})
    unnamed_result = run("verify", "--data", data, **{KEY: other_key})

    assert [result.returncode for result in (damaged_result, renamed_result, unnamed_result)] == [Exit.CHECKSUM] * 3
    assert damaged_result.stdout == "records.webhook: 1 of 1 values cannot be decrypted with master key old\n"
    assert "restore the newest backup" in damaged_result.stderr
    assert state.returncode == Exit.FAILED
    assert "records.webhook: 1 values of key old cannot be decrypted" in state.stderr
    assert "records.service_key: 1 of 1 values cannot be decrypted with master key old" in renamed_result.stdout
    assert renamed_result.stderr.startswith(
        "If another master key has this id now, pass the key that encrypted the values."
    )
    assert unnamed_result.stderr.startswith("Add old to the list")
