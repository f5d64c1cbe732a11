"""A wrong command line ends with exit code 2 and an error that shows the correct usage."""

import json

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["push", "no-such-file", "a/b", "--version", "1"],
        ["push", ".", "b", "--version", "1"],
        ["push", ".", "a/b"],
        ["push", ".", "A/b", "--version", "1"],
        ["push", ".", "a/b", "--version", "1", "--channel", "weekly"],
        ["push", ".", "a/b", "--version", "1", "--platform", "amiga"],
        ["download", "b"],
        ["download", "a/../b"],
        ["codes", "issue", "b"],
        ["codes", "issue", "b", "--kind", "gift"],
        ["codes", "issue", "b", "--kind", "promo", "--count", "0"],
        ["codes", "issue", "b", "--kind", "promo", "--expires", "soon"],
        ["codes", "issue", "b", "--kind", "promo", "--count", "5000"],
        ["library", "--server", "ftp://store"],
        ["library", "--server", "http://user:pw@store"],
        ["login"],
        ["redeem"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)

    assert result.returncode == Exit.USAGE
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_setting_that_cannot_be_used_is_named(run: Run) -> None:
    result = run("config", COUNTERSIGN_GRACE_S="soon")

    assert result.returncode == Exit.USAGE
    assert "COUNTERSIGN_GRACE_S" in result.stderr


def test_config_shows_each_value_with_its_source_and_no_secret(run: Run) -> None:
    secrets = {"COUNTERSIGN_MASTER_KEY": "hidden-key", "COUNTERSIGN_TOKEN": "hidden-token"}

    result = run("config", "--json", COUNTERSIGN_GRACE_S="7", **secrets)

    settings_by_variable = {setting["variable"]: setting for setting in json.loads(result.stdout)["settings"]}
    assert (
        settings_by_variable["COUNTERSIGN_GRACE_S"]["value"],
        settings_by_variable["COUNTERSIGN_GRACE_S"]["source"],
    ) == ("7", "environment")
    assert settings_by_variable["COUNTERSIGN_LOG_LEVEL"]["source"] == "default"
    assert "hidden-" not in result.stdout
    assert settings_by_variable["COUNTERSIGN_MASTER_KEY"]["value"] == "(set, not shown)"
    assert "hidden-" not in run("config", COUNTERSIGN_MASTER_KEY="hidden-key").stdout


def test_help_imports_neither_the_server_nor_rich(run: Run) -> None:
    result = run("--help", PYTHONPROFILEIMPORTTIME="1")

    assert result.returncode == Exit.OK
    for name in ("countersign.store", "asyncio", "httpx", "apsw", "asyncpg", "rich", "msgspec"):
        assert f" {name}\n" not in result.stderr, name


@pytest.mark.parametrize("command", ["push", "download", "library", "redeem", "publish", "codes", "login", "whoami"])
def test_client_commands_import_no_server(run: Run, command: str) -> None:
    result = run(command, "--help", PYTHONPROFILEIMPORTTIME="1")

    assert result.returncode == Exit.OK
    for name in ("countersign.store", "asyncio", "apsw", "asyncpg", "rich"):
        assert f" {name}\n" not in result.stderr, name
