"""The systemd units: systemd reads them without a word, and both services are held as tightly."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy/systemd"
NAMES = ("countersign.service", "countersign-worker@.service")
PROGRAM = "/opt/countersign/bin/countersign"
MOST_EXPOSURE = 1.5
ABOUT_THE_PROGRAM = {"Type", "NotifyAccess", "ExecStart", "Environment", "WatchdogSec", "StateDirectory"}

analyzed = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def analyze(*arguments: str, unit: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def here(name: str, tmp_path: Path) -> Path:
    """The unit with a program that is on every machine: whether ours is installed is not asked."""
    unit = tmp_path / name
    unit.write_text((UNITS / name).read_text().replace(PROGRAM, "/bin/true"))
    return unit


@analyzed
@pytest.mark.parametrize("name", NAMES)
def test_systemd_has_nothing_to_say_against_a_unit(name: str, tmp_path: Path) -> None:
    said = analyze("verify", "--man=no", unit=here(name, tmp_path))

    assert [line for line in said.splitlines() if name in line] == []


@analyzed
@pytest.mark.parametrize("name", NAMES)
def test_a_service_is_hardly_exposed(name: str, tmp_path: Path) -> None:
    said = analyze("security", "--offline=true", unit=here(name, tmp_path))

    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found is not None
    assert float(found[1]) <= MOST_EXPOSURE


def test_server_and_worker_are_held_as_tightly() -> None:
    server, worker = (settings(UNITS / name) for name in NAMES)

    assert server == worker
    assert "NoNewPrivileges" in server


def settings(unit: Path) -> dict[str, list[str]]:
    """The lines of a unit's service section but those about its program, by key."""
    section = unit.read_text().partition("[Service]")[2].partition("[Install]")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#") and key not in ABOUT_THE_PROGRAM:
            found.setdefault(key, []).append(value)
    return found
