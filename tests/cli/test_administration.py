"""The commands that administer a data directory while a server serves it; each secret is shown once."""

import base64
import json
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import Running, served

PASSWORD = "a long enough password"


@pytest.fixture
def tenant(run: Run, tmp_path: Path) -> Path:
    """A data directory with the organisation `acme` and its owner."""
    data = tmp_path / "data"
    created_results = [
        run("org", "create", "acme", "--name", "Acme", "--data", data),
        run(
            *("person", "create", "Owner@Example.com", "--password-stdin"),
            *("--org", "acme", "--role", "owner", "--data", data),
            stdin=PASSWORD + "\n",
        ),
    ]
    assert [result.returncode for result in created_results] == [Exit.OK, Exit.OK], [
        result.stderr for result in created_results
    ]
    assert PASSWORD not in "".join(result.stdout + result.stderr for result in created_results)
    return data


def test_a_client_made_here_signs_in_to_the_server_and_its_secret_is_shown_once(run: Run, tenant: Path) -> None:
    created_result = run(
        *("client", "create", "acme", "--name", "CI", "--scope", "read:library admin:org"),
        *("--data", tenant, "--json"),
    )
    client = json.loads(created_result.stdout)
    with served(tenant) as server:
        me = run(
            *("whoami", "--json", "--server", server.url),
            COUNTERSIGN_CLIENT_ID=client["client_id"],
            COUNTERSIGN_CLIENT_SECRET=client["client_secret"],
        )

    assert me.returncode == Exit.OK, me.stderr
    assert json.loads(me.stdout)["orgs"] == ["acme"]
    assert client["client_secret"] not in me.stdout + me.stderr + created_result.stderr
    assert client["client_secret"] not in server.log.read_text()
    assert client["client_secret"].encode() not in (tenant / "distribution.sqlite").read_bytes()


def test_a_token_issued_on_the_command_line_is_accepted_by_the_server_on_any_port(run: Run, tenant: Path) -> None:
    with served(tenant) as server:
        issued_result = run("token", "issue", "owner@example.com", "--scope", "read:library", "--data", tenant)
        me = run("whoami", "--server", server.url, COUNTERSIGN_TOKEN=issued_result.stdout.strip())

    assert issued_result.stdout.count("\n") == 1
    assert issued_result.stdout.strip() not in issued_result.stderr
    assert me.returncode == Exit.OK, me.stderr
    assert "owner@example.com" in me.stdout
    assert "scopes: read:library\n" in me.stdout


def test_a_running_server_takes_rotated_keys_with_its_next_request(run: Run, tenant: Path) -> None:
    with served(tenant) as server:
        token = run("token", "issue", "owner@example.com", "--data", tenant).stdout.strip()
        exit_codes = [run("whoami", "--server", server.url, COUNTERSIGN_TOKEN=token).returncode]
        rotated_keys = json.loads(run("keys", "rotate", "--json", "--data", tenant).stdout)
        exit_codes.append(run("whoami", "--server", server.url, COUNTERSIGN_TOKEN=token).returncode)
        dropped_result = run("keys", "rotate", "--drop-previous", "--data", tenant)
        exit_codes.append(run("whoami", "--server", server.url, COUNTERSIGN_TOKEN=token).returncode)

    assert exit_codes == [Exit.OK, Exit.OK, Exit.REFUSED]
    assert len(rotated_keys["previous"]) == 1
    assert rotated_keys["kid"] not in rotated_keys["previous"]
    assert dropped_result.stdout.startswith("Signing with ")
    assert "Every earlier token is revoked." in dropped_result.stdout
    assert list(rotated_keys["published_until"]) == rotated_keys["previous"]


def test_a_client_is_registered_with_the_addresses_people_return_to(run: Run, tenant: Path) -> None:
    create_client = ("client", "create", "acme", "--name", "App", "--scope", "read:library", "--data", tenant)
    return_address, local = "https://app.example/back", "http://127.0.0.1/cb"

    created_result = run(*create_client, "--redirect-uri", return_address, "--redirect-uri", local, "--json")
    unsafe = run(*create_client, "--redirect-uri", "http://app.example/back")

    assert json.loads(created_result.stdout)["redirect_uris"] == [return_address, local]
    assert unsafe.returncode == Exit.FAILED
    assert "/redirect_uris/0: must be https" in unsafe.stderr


def test_the_exit_code_distinguishes_existing_missing_and_invalid_values(run: Run, tenant: Path) -> None:
    taken_result = run("org", "create", "acme", "--name", "Again", "--data", tenant)
    unknown_person = run("token", "issue", "nobody@example.com", "--data", tenant)
    no_org = run("client", "create", "none", "--name", "x", "--scope", "read:library", "--data", tenant)
    no_scope = run("client", "create", "acme", "--name", "x", "--scope", "root", "--data", tenant)
    weak_password = run("person", "create", "new@example.com", "--password-stdin", "--data", tenant, stdin="short\n")

    codes = [result.returncode for result in (taken_result, unknown_person, no_org, no_scope, weak_password)]
    assert codes == [Exit.CONFLICT, Exit.NOT_FOUND, Exit.NOT_FOUND, Exit.FAILED, Exit.FAILED]
    assert all(
        "Traceback" not in result.stderr for result in (taken_result, unknown_person, no_org, no_scope, weak_password)
    )


def test_only_the_owner_has_access_to_the_data_directory(tenant: Path) -> None:
    assert stat.S_IMODE(tenant.stat().st_mode) == 0o700
    assert stat.S_IMODE((tenant / "master.key").stat().st_mode) == 0o600


def test_db_upgrade_shows_the_pending_steps_and_applies_them_once(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"

    planned_result = run("db", "upgrade", "--dry-run", "--json", "--data", data)
    untouched = not data.exists()
    result = run("db", "upgrade", "--json", "--data", data)
    second_result = run("db", "upgrade", "--json", "--data", data)
    created_results = [
        run("org", "create", "acme", "--name", "Acme", "--data", data),
        run("user", "create", "bob", "--data", data),
    ]

    assert json.loads(planned_result.stdout)["services"] == ["distribution", "records"]
    assert {name.partition(":")[0] for name in json.loads(planned_result.stdout)["pending"]} == {
        "distribution",
        "records",
    }
    assert untouched
    assert json.loads(result.stdout)["applied"] == json.loads(planned_result.stdout)["pending"]
    assert json.loads(second_result.stdout)["applied"] == []
    assert [result.returncode for result in created_results] == [Exit.OK, Exit.OK], [
        result.stderr for result in created_results
    ]


def test_db_upgrade_creates_a_missing_service_only_if_named(run: Run, tenant: Path) -> None:
    upgrade_result = run("db", "upgrade", "--data", tenant)
    untouched = not (tenant / "records.sqlite").exists()
    named_result = run("db", "upgrade", "records", "--json", "--data", tenant)

    assert upgrade_result.stdout == "Were up to date: distribution.\n"
    assert "countersign db upgrade records" in upgrade_result.stderr
    assert untouched
    assert json.loads(named_result.stdout)["services"] == ["records"]
    assert (tenant / "records.sqlite").exists()


def test_codes_are_issued_redeemed_and_owned(run: Run, demo_store: Running, tmp_path: Path) -> None:
    client = {"COUNTERSIGN_CLIENT_ID": "demo-publisher", "COUNTERSIGN_CLIENT_SECRET": "demo-publisher-secret"}
    server = ("--server", demo_store.url)
    database = sqlite3.connect(f"file:{demo_store.data}/distribution.sqlite?mode=ro", uri=True)
    (slug,) = database.execute(
        "SELECT p.slug FROM product p JOIN organisation o ON o.id = p.org_id WHERE o.slug = 'northwind-games' LIMIT 1"
    ).fetchone()
    database.close()
    person = run("person", "create", "buyer@example.com", "--data", demo_store.data)
    token = {"COUNTERSIGN_TOKEN": demo_store.token("buyer@example.com")}

    issued_result = run(
        *("codes", "issue", f"northwind-games/{slug}", "--kind", "license", "--count", "3"),
        *("--expires", "30d", "--output", "codes.csv", *server),
        **client,
    )
    head, *codes = (tmp_path / "codes.csv").read_text().split()
    redeemed_result = run("redeem", codes[0].lower(), *server, **token)
    second_result = run("redeem", codes[0], *server, **token)
    unknown_result = run("redeem", "AAAAA-AAAAA-AAAAA-AAAAA", *server, **token)
    owned_result = run("library", *server, **token)

    assert (
        person.returncode
        == issued_result.returncode
        == redeemed_result.returncode
        == second_result.returncode
        == Exit.OK
    ), issued_result.stderr
    assert (head, len(codes)) == ("code", 3)
    assert stat.S_IMODE((tmp_path / "codes.csv").stat().st_mode) == 0o600
    assert not any(code in issued_result.stdout + issued_result.stderr for code in codes)
    assert redeemed_result.stdout.startswith("Redeemed: ")
    assert second_result.stdout == redeemed_result.stdout.replace("Redeemed", "You redeemed this code before")
    assert unknown_result.returncode == Exit.NOT_FOUND
    assert owned_result.stdout.startswith(f"northwind-games/{slug}\t")


Check = Callable[[Path], None]


def test_doctor_finds_nothing_wrong_before_the_first_start(run: Run, tmp_path: Path) -> None:
    result = run("doctor", "--json", "--distribution-port", "0", "--records-port", "0", "--data", tmp_path / "none")

    output = json.loads(result.stdout)
    assert result.returncode == Exit.OK
    assert {check["standing"] for check in output["checks"]} == {"ok"}
    assert not (tmp_path / "none").exists()


def _corrupt(data: Path) -> None:
    (data / "distribution.sqlite").write_bytes(b"no database at all" * 1000)


def _open_key(data: Path) -> None:
    (data / "master.key").chmod(0o644)


def _lose_key(data: Path) -> None:
    (data / "master.key").unlink()


def _change_key(data: Path) -> None:
    (data / "master.key").write_text(base64.b64encode(b"k" * 32).decode())


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        (_corrupt, "distribution database"),
        (_open_key, "master key"),
        (_lose_key, "master key"),
        (_change_key, "distribution database"),
    ],
)
def test_doctor_names_the_problem_and_the_remedy(run: Run, tenant: Path, damage: Check, check: str) -> None:
    damage(tenant)

    result = run("doctor", "--json", "--distribution-port", "0", "--records-port", "0", "--data", tenant)

    failed_checks = [check for check in json.loads(result.stdout)["checks"] if check["standing"] == "fail"]
    assert result.returncode == Exit.FAILED
    assert [check["check"] for check in failed_checks] == [check]
    assert failed_checks[0]["remedy"]


def test_doctor_names_a_variable_that_is_not_a_setting(run: Run, tmp_path: Path) -> None:
    client = {"COUNTERSIGN_CLIENT_ID": "a", "COUNTERSIGN_CLIENT_SECRET": "b", "COUNTERSIGN_TOKEN": "c"}

    result = run(
        "doctor", "records", "--records-port", "0", "--data", tmp_path / "none", COUNTERSIGN_RATE_PRESON="9", **client
    )

    assert result.returncode == Exit.OK
    assert "no setting is called COUNTERSIGN_RATE_PRESON\n" in result.stdout


def test_a_refusal_names_the_mistake_and_the_command(run: Run, tenant: Path) -> None:
    slug = run("org", "create", "Bad_Slug!", "--name", "A", "--data", tenant)
    scope = run("client", "create", "acme", "--name", "A", "--scope", "foo", "--data", tenant)

    assert "Why:   /slug: must be 1 to 64 of a-z, 0-9 and -" in slug.stderr
    assert "`errors`" not in slug.stderr
    assert "Next:  Name scopes among: read:products" in scope.stderr
    assert "leave scope out" not in scope.stderr
