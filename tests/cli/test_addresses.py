"""Every command reports a setting with an invalid address by name and with the remedy, and shows no part of the
address."""

from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import MASTER_KEY

PASSPHRASE = "correct horse battery staple"
NAMES = {
    "COUNTERSIGN_DATABASE_URL": "postgresql://u:abcde/SecretTail@db.invalid/shop",
    "COUNTERSIGN_COUNTERS_URL": "redis://u:abcde/SecretTail@counters.invalid/0",
    "COUNTERSIGN_SMTP_URL": "smtp://u:abcde/SecretTail@mail.invalid",
}
SERVE = ("serve", "--distribution-port", "0", "--records-port", "0")


@pytest.mark.parametrize("name", NAMES)
def test_serve_names_the_setting_and_not_the_password(name: str, run: Run, tmp_path: Path) -> None:
    settings = {name: NAMES[name], "COUNTERSIGN_MASTER_KEY": MASTER_KEY}

    result = run(*SERVE, "--data", tmp_path / "data", **settings)
    serve_result = run(*SERVE, "--workers", "2", "--data", tmp_path / "data", **settings)

    assert result.returncode == Exit.USAGE, result.stdout + result.stderr
    assert serve_result.returncode == Exit.USAGE, serve_result.stdout + serve_result.stderr
    assert "Traceback" not in result.stdout + result.stderr + serve_result.stdout + serve_result.stderr
    require_told(name, result.stdout + result.stderr)
    require_told(name, serve_result.stdout + serve_result.stderr)


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
    settings = {name: NAMES[name], "COUNTERSIGN_MASTER_KEY": MASTER_KEY, "COUNTERSIGN_BACKUP_PASSPHRASE": PASSPHRASE}

    result = run(*command, "--data", tmp_path / "data", **settings)

    assert result.returncode != Exit.OK
    assert "Traceback" not in result.stdout + result.stderr
    require_told(name, result.stdout + result.stderr)


def test_a_move_to_an_invalid_address_is_refused(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("org", "create", "acme", "--name", "Acme", "--data", data)

    result = run("db", "migrate", "--to", NAMES["COUNTERSIGN_DATABASE_URL"], "--data", data)

    assert result.returncode == Exit.USAGE, result.stderr
    require_told("--to", result.stdout + result.stderr)


def require_told(name: str, message: str) -> None:
    """Require the setting's name and the remedy in the output, and no part of the password."""
    assert name in message, message
    assert "percent-encode" in message
    assert "abcde" not in message
    assert "SecretTail" not in message
