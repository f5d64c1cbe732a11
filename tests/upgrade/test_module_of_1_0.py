"""A module that was written for version 1.0 is installed, and its commands work."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.declare.test_example_module import MODULES, install, person
from tests.servers.countersign import SOURCE, served

PACKAGE = Path(__file__).with_name("module_of_1_0")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demonstration with the module of version 1.0."""
    folder = tmp_path_factory.mktemp("module")
    site = install(Path(shutil.copytree(PACKAGE, folder / "package")))
    settings = {"PYTHONPATH": f"{site}{os.pathsep}{SOURCE}", "COUNTERSIGN_MODULES": MODULES}
    with served(folder / "data", "--demo", service="records", settings=settings) as running:
        yield running.url


def test_the_commands_and_former_options_of_an_old_module_work(url: str) -> None:
    root = person(url, "root")
    party = root.value("party.list", limit=1)[0]["id"]

    tripod = root.value("equipment.create", title="Tripod", serial="T-1")
    lent_tripod = root.value("equipment.lend", id=tripod["id"], borrower=party, contact="Ada Byron", due="2026-12-01")
    too_long = root.call("equipment.create", title="Tripod", serial="x" * 41)

    assert (tripod["state"], lent_tripod["state"], lent_tripod["contact"]) == ("in_stock", "lent", "Ada Byron")
    assert too_long.status_code == 400
    assert "40" in too_long.json()["error"]
