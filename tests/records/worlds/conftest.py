"""Pairs of worlds on each database."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.records.office import settings
from tests.records.worlds import building
from tests.records.worlds.building import Audience, World
from tests.servers.postgres import PostgresFactory

ARCHIVE = """
from countersign.declare import LongText, Model, Module, Ref, Text, where

class Dossier(Model, locked=(where("writer", eq="Nobody"),)):
    title = Text()
    party = Ref("party")
    lead = Ref("lead", on_delete="cascade")
    writer = Text(personal="PERSON")

module = Module("archive", version="1", label="Archive", needs=("party", "crm"), models=(Dossier,))
"""
"""A module that only world b has, and that nobody is granted anything of."""

Pairs = Callable[[Audience], AbstractAsyncContextManager[tuple[World, World]]]


def _pairs(folder: Path, new_url: Callable[[], str]) -> Pairs:
    numbers = count(1)

    @asynccontextmanager
    async def pair(audience: Audience) -> AsyncGenerator[tuple[World, World]]:
        number = next(numbers)
        first = settings(str(folder / f"a{number}"), new_url())
        second = settings(str(folder / f"b{number}"), new_url())
        async with building.opened(first, "a", audience) as one, building.opened(second, "b", audience) as two:
            yield one, two

    return pair


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the module of world b, as far as Python can tell."""
    (tmp_path / "worlds_archive.py").write_text(ARCHIVE)
    info = tmp_path / "worlds_archive-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: worlds-archive\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[countersign.modules]\narchive = worlds_archive:module\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.fixture
def sqlite_worlds(tmp_path: Path) -> Pairs:
    """Makes a pair of worlds on SQLite."""
    return _pairs(tmp_path, lambda: "sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Pairs:
    """Makes a pair of worlds on each engine."""
    if request.param == "sqlite":
        return _pairs(tmp_path, lambda: "sqlite")
    factory: PostgresFactory = request.getfixturevalue("new_postgres_url")
    return _pairs(tmp_path, factory)
