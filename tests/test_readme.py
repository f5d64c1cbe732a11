"""The README's tour is run as it stands: its commands in one shell, its output compared line by line."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.countersign import Running, environment, served
from tests.tour.archives import dependency_wheel

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END = "--- end of a command ---"


def commands(text: str) -> list[tuple[str, str]]:
    """Every command of the tour with the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether the printed text is what is shown, where … stands for anything within a line."""
    pattern = re.escape(shown.strip()).replace("…", "[^\n]*?")
    return re.fullmatch(pattern, printed.strip()) is not None


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Running]:
    """What `make run` leaves going."""
    with served(tmp_path / "data", "--demo") as running:
        yield running


def test_the_tour_runs_as_it_is_printed(store: Running, tmp_path: Path) -> None:
    tour = commands((ROOT / "README.md").read_text())
    packages = tmp_path / "packages"
    packages.mkdir()
    dependency_wheel("click", packages)
    lines = [f"cd {tmp_path}"]
    for command, _ in tour:
        lines += [command.replace("http://127.0.0.1:8480", store.url), f"echo '{END}'"]
    variables = environment(
        COUNTERSIGN_SERVER=store.url, HOME=str(tmp_path), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(packages)
    )
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"

    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], env=variables, capture_output=True, text=True, timeout=120, check=False
    )

    printed = done.stdout.split(f"{END}\n")
    assert len(tour) >= 10
    for (command, shown), output in zip(tour, printed, strict=False):
        assert matches(shown, output), f"$ {command}\n{output}\n{done.stderr}"


def test_a_changed_output_is_noticed() -> None:
    assert matches("a … c\n", "a b c")
    assert not matches("a … c\n", "a b d")
    assert not matches("a … c\n", "a\nb c")
    assert not matches("", "something")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", (ROOT / "README.md").read_text()))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
