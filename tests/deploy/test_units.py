"""The systemd units: systemd accepts them without a warning, and both services have the same restrictions."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy/systemd"
NAMES = (
    "countersign.service", "countersign-worker@.service", "countersign-backup.service", "countersign-restore@.service",
)  # fmt: skip
GUIDE = UNITS.parents[1] / "docs/how-to/deploy-with-systemd.md"
SECRETS = "secrets.conf"
PROGRAM = "/opt/countersign/bin/countersign"
MOST_EXPOSURE = 1.5
NOT_ABOUT_RIGHTS = {
    "Environment", "EnvironmentFile", "ExecStart", "IOSchedulingClass", "KillMode", "LimitNOFILE", "LoadCredential",
    "Nice", "NotifyAccess", "Restart", "RestartSec", "StateDirectory", "TimeoutStopSec", "Type", "User", "WatchdogSec",
}  # fmt: skip

analyzed = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def analyze(*arguments: str, unit: Path) -> str:
    result = subprocess.run(
        ["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def unit_with_program(name: str, tmp_path: Path) -> Path:
    """Return the unit with a program that exists on every machine, because the test does not require an installed
    countersign."""
    unit = tmp_path / name
    unit.write_text((UNITS / name).read_text().replace(PROGRAM, "/bin/true"))
    return unit


@analyzed
@pytest.mark.parametrize("name", NAMES)
def test_systemd_has_nothing_to_say_against_a_unit(name: str, tmp_path: Path) -> None:
    report = analyze("verify", "--man=no", unit=unit_with_program(name, tmp_path))

    assert [line for line in report.splitlines() if name in line] == []


@analyzed
@pytest.mark.parametrize("name", NAMES)
def test_each_unit_is_valid_together_with_the_secrets_file(name: str, tmp_path: Path) -> None:
    unit = unit_with_program(name, tmp_path)
    folder = tmp_path / f"{name}.d"
    folder.mkdir()
    shutil.copy(UNITS / SECRETS, folder)

    report = analyze("verify", "--man=no", unit=unit)

    assert [line for line in report.splitlines() if name in line or SECRETS in line] == []


def test_the_guide_gives_every_unit_the_secrets() -> None:
    guide = GUIDE.read_text()
    loop = r"units='(.+)'\n +for unit in \$units; do\n +install -D -m 644 (\S+) /etc/systemd/system/\$unit\.d/"
    units = re.search(loop, guide)

    assert units is not None
    assert sorted(units[1].split()) == sorted(NAMES)
    assert (UNITS / units[2]).is_file()
    for variable in ("COUNTERSIGN_DATABASE_URL_FILE", "COUNTERSIGN_MASTER_KEY_FILE"):
        assert f"Environment={variable}=%d/" in (UNITS / units[2]).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_names_only_installed_files(name: str) -> None:
    named_paths = re.findall(r"(?:file:|=)(/opt/countersign/[^\s]*)", (UNITS / name).read_text())

    assert set(named_paths) == {PROGRAM}


@analyzed
@pytest.mark.parametrize("name", NAMES)
def test_a_service_is_hardly_exposed(name: str, tmp_path: Path) -> None:
    report = analyze("security", "--offline=true", unit=unit_with_program(name, tmp_path))

    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", report)
    assert match is not None
    assert float(match[1]) <= MOST_EXPOSURE


def test_all_units_have_the_same_restrictions() -> None:
    server, *other_rights = (rights(UNITS / name) for name in NAMES)

    assert other_rights == [server] * len(other_rights)
    assert "NoNewPrivileges" in server


def rights(unit: Path) -> dict[str, list[str]]:
    """Return the sandboxing settings of a unit, by key."""
    section = unit.read_text().partition("[Service]")[2].partition("[Install]")[0]
    rights_by_key: dict[str, list[str]] = {}
    for line in section.splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#") and key not in NOT_ABOUT_RIGHTS:
            rights_by_key.setdefault(key, []).append(value)
    return rights_by_key
