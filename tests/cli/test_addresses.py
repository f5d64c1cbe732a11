"""Every command reports a setting with an invalid address by name and with the remedy, and shows no part of the
password."""

from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import MASTER_KEY

PASSPHRASE = "correct horse battery staple"
INVALID_ADDRESSES = {
    "COUNTERSIGN_DATABASE_URL": "postgresql://u:abcde/SecretTail@db.invalid/shop",
    "COUNTERSIGN_COUNTERS_URL": "redis://u:abcde/SecretTail@counters.invalid/0",
    "COUNTERSIGN_SMTP_URL": "smtp://u:abcde/SecretTail@mail.invalid",
}
SERVE = ("serve", "--distribution-port", "0", "--records-port", "0")


@pytest.mark.parametrize("name", INVALID_ADDRESSES)
def test_serve_names_the_setting_and_not_the_password(name: str, run: Run, tmp_path: Path) -> None:
    settings = {name: INVALID_ADDRESSES[name], "COUNTERSIGN_MASTER_KEY": MASTER_KEY}

    result = run(*SERVE, "--data", tmp_path / "data", **settings)
    two_worker_result = run(*SERVE, "--workers", "2", "--data", tmp_path / "data", **settings)

    assert result.returncode == Exit.USAGE, result.stdout + result.stderr
    assert two_worker_result.returncode == Exit.USAGE, two_worker_result.stdout + two_worker_result.stderr
    assert "Traceback" not in result.stdout + result.stderr + two_worker_result.stdout + two_worker_result.stderr
    require_remedy_without_password(name, result.stdout + result.stderr)
    require_remedy_without_password(name, two_worker_result.stdout + two_worker_result.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ("org", "create", "acme", "--name", "Acme"),
        ("backup", "one.backup"),
        ("verify",),
        ("db", "upgrade"),
        ("audit", "verify"),
        ("doctor", "--distribution-port", "0", "--records-port", "0"),
    ],
    ids=" ".join,
)
def test_each_command_names_the_database_setting(command: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    name = "COUNTERSIGN_DATABASE_URL"
    settings = {
        name: INVALID_ADDRESSES[name],
        "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
        "COUNTERSIGN_BACKUP_PASSPHRASE": PASSPHRASE,
    }

    result = run(*command, "--data", tmp_path / "data", **settings)

    assert result.returncode != Exit.OK
    assert "Traceback" not in result.stdout + result.stderr
    require_remedy_without_password(name, result.stdout + result.stderr)


def test_a_move_to_an_invalid_address_is_refused(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("org", "create", "acme", "--name", "Acme", "--data", data)

    result = run("db", "migrate", "--to", INVALID_ADDRESSES["COUNTERSIGN_DATABASE_URL"], "--data", data)

    assert result.returncode == Exit.USAGE, result.stderr
    require_remedy_without_password("--to", result.stdout + result.stderr)


def require_remedy_without_password(name: str, output: str) -> None:
    """Require the setting's name and the remedy in the output, and no part of the password."""
    assert name in output, output
    assert "percent-encode" in output
    assert "abcde" not in output
    assert "SecretTail" not in output
