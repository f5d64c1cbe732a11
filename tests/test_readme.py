"""The README's tour is run as it stands: its commands in one shell, its output compared line by line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import docs
from tests.servers.countersign import Running, served
from tests.tour.archives import dependency_wheel


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Running]:
    """What `make run` leaves going."""
    with served(tmp_path / "data", "--demo", service="both", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as running:
        yield running


def test_the_tour_runs_as_it_is_printed(store: Running, tmp_path: Path) -> None:
    tour = docs.commands((docs.ROOT / "README.md").read_text())
    packages = tmp_path / "packages"
    packages.mkdir()
    dependency_wheel("click", packages)

    ports = store.port, store.records_port
    printed = docs.run(tour, tmp_path, *ports, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(packages))

    assert len(tour) >= 20
    assert not "\n".join(docs.differences(tour, printed, *ports))


def test_a_changed_output_is_noticed() -> None:
    assert docs.matches("a … c\n", "a b c")
    assert not docs.matches("a … c\n", "a b d")
    assert not docs.matches("a … c\n", "a\nb c")
    assert not docs.matches("", "something")


def test_a_command_that_ends_the_shell_is_noticed(tmp_path: Path) -> None:
    tour = docs.commands("```console\n$ echo one\none\n$ exit\n$ echo two\ntwo\n```\n")

    assert docs.differences(tour, docs.run(tour, tmp_path, 1), 1)


def test_a_command_may_go_on_in_the_next_line(tmp_path: Path) -> None:
    tour = docs.commands("```console\n$ echo one \\\n    two\none two\n```\n")

    assert not docs.differences(tour, docs.run(tour, tmp_path, 1), 1)
