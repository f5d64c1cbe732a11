"""Runs the commands of the README in one shell, and compares their output with the README line by line."""

from functools import partial
from pathlib import Path

import pytest

from tests import docs
from tests.docs import DocumentedCommand
from tests.servers.countersign import served
from tests.servers.process import free_port
from tests.tour.archives import dependency_wheel


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, str]:
    """Return the variables that let pip find the library of the tour without a package index."""
    folder = tmp_path / "packages"
    folder.mkdir()
    dependency_wheel("click", folder)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


def test_the_printed_tour_runs_and_runs_again_after_a_reset(tmp_path: Path, packages: dict[str, str]) -> None:
    page = (docs.ROOT / "README.md").read_text()
    tour, ports = docs.commands(page), (free_port(), free_port())
    demonstration = partial(served, tmp_path / "data", "--demo", service="both", ports=ports)
    faults: list[str] = []

    # The second demonstration is seeded and not copied, so that its keys differ from the keys of the first.
    for is_copied in (True, False):
        with demonstration(settings={"COUNTERSIGN_JOB_WORKERS": "1"}, copies_demonstration=is_copied):
            printed_output = docs.run(tour, tmp_path, *ports, **packages)
            faults += docs.differences(tour, printed_output, *ports)
        docs.run([DocumentedCommand("countersign reset --yes --data data && rm -rf build/tour", "")], tmp_path, *ports)

    assert len(tour) >= 20
    assert "countersign reset --data data && rm -rf build/tour`" in page
    assert not "\n".join(faults)
    assert not (tmp_path / ".config").exists()


def test_a_changed_output_is_noticed() -> None:
    assert docs.matches_output("a … c\n", "a b c")
    assert not docs.matches_output("a … c\n", "a b d")
    assert not docs.matches_output("a … c\n", "a\nb c")
    assert not docs.matches_output("", "something")


def test_a_slow_transfer_is_no_difference() -> None:
    documented = "a.whl: … KiB\na.whl: done, … KiB in …, … MiB/s\n"
    slow_output = "a.whl: 9.0 KiB\na.whl: 41% of 9.0 KiB, 700 B/s, 0:07 left\na.whl: 90% of 9.0 KiB, 0 B/s\n"
    end = "a.whl: done, 9.0 KiB in 0:12, 0.8 KiB/s\n"

    assert docs.matches_output(documented, slow_output + end)
    assert not docs.matches_output(documented, slow_output)
    assert not docs.matches_output(documented, slow_output + end.replace("KiB in", "MiB in"))
    assert not docs.matches_output(documented, "a.whl: 41% of the bytes\n" + slow_output + end)


def test_a_command_that_ends_the_shell_is_noticed(tmp_path: Path) -> None:
    tour = docs.commands("```console\n$ echo one\none\n$ exit\n$ echo two\ntwo\n```\n")

    assert docs.differences(tour, docs.run(tour, tmp_path, 1), 1)


def test_a_command_may_continue_in_the_next_line(tmp_path: Path) -> None:
    tour = docs.commands("```console\n$ echo one \\\n    two\none two\n```\n")

    assert not docs.differences(tour, docs.run(tour, tmp_path, 1), 1)
