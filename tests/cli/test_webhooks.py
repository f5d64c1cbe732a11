"""The refusals of `webhooks` describe what is valid."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run


@pytest.fixture
def data(run: Run, tmp_path: Path) -> Path:
    """A data directory with records."""
    assert run("user", "create", "alice", "--data", tmp_path / "data").returncode == Exit.OK
    return tmp_path / "data"


@pytest.mark.parametrize("url", ["http://hooks.example/", "https://10.0.0.5/a", "https://LOCALHOST/"])
def test_a_private_address_is_refused_and_the_setting_that_allows_private_addresses_named(
    run: Run, data: Path, url: str
) -> None:
    command = ["webhooks", "add", url, "--data", str(data)]

    refused_result = run(*command)
    added_result = run(*command, COUNTERSIGN_PRIVATE_WEBHOOKS="true")

    assert refused_result.returncode == Exit.USAGE
    assert "COUNTERSIGN_PRIVATE_WEBHOOKS=true" in refused_result.stderr
    assert added_result.returncode == Exit.OK, added_result.stderr


def test_a_public_address_needs_no_setting(run: Run, data: Path) -> None:
    for url in ("https://hooks.example/a", "https://93.184.216.34/"):
        assert run("webhooks", "add", url, "--data", data).returncode == Exit.OK


def test_an_invalid_time_is_refused_with_the_accepted_forms(run: Run, tmp_path: Path) -> None:
    for text in ("yesterday", "2026-13-01"):
        result = run("webhooks", "replay", "any", "--since", text, "--data", tmp_path / "data")

        assert result.returncode == Exit.USAGE
        assert f"'{text}' is not a time" in result.stderr
        assert "ISO 8601" in result.stderr
        assert "2026-12-31T18:00:00Z" in result.stderr
        assert "30d" in result.stderr


def test_a_moment_is_a_date_a_time_or_days_ago(run: Run, data: Path) -> None:
    added_webhook = json.loads(run("webhooks", "add", "https://hooks.example/", "--json", "--data", data).stdout)
    yesterday = datetime.now(UTC) - timedelta(days=1)

    for since in ("1d", yesterday.date().isoformat(), yesterday.isoformat()):
        result = run("webhooks", "replay", added_webhook["id"], "--since", since, "--json", "--data", data)

        assert json.loads(result.stdout)["deliveries"] == 0, result.stderr


def test_each_command_reports_its_failed_step(run: Run, tmp_path: Path) -> None:
    added_result = run("webhooks", "add", "https://127.0.0.1/", "--data", tmp_path / "data")
    removed_result = run("webhooks", "remove", "any", "--data", tmp_path / "data")

    assert added_result.stderr.startswith("Error: cannot add the webhook\n")
    assert removed_result.stderr.startswith("Error: cannot remove the webhook\n")
