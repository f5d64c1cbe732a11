"""Pairs of worlds on each database: built once for each audience, and copied for every test."""

import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.settings import Settings
from tests.records.office import settings
from tests.records.worlds import building
from tests.records.worlds.building import Audience, ClosedWorld, OpenWorld, Variant
from tests.servers.postgres import Cluster, PostgresFactory

ARCHIVE = """
from countersign.declare import LongText, Model, Module, Ref, Text, where

class Dossier(Model, locked=(where("writer", eq="Nobody"),), comments=True):
    title = Text()
    party = Ref("party")
    lead = Ref("lead", on_delete="cascade")
    writer = Text(personal="PERSON")

module = Module("archive", version="1", label="Archive", needs=("party", "crm"), models=(Dossier,))
"""
"""A module that only world b has, and for which no caller has a grant."""


class OriginalWorld(NamedTuple):
    """A world that is copied: its settings, and what is known about it."""

    settings: Settings
    built: ClosedWorld


class OriginalWorlds:
    """The worlds of a run on one engine, by audience. In a run with --full, each pair is used only once."""

    def __init__(self, folder: Path, cluster: Cluster | None, *, is_full: bool) -> None:
        """Store the worlds in the folder or, for PostgreSQL, in databases of the cluster."""
        self._folder = folder
        self._cluster = cluster
        self._is_full = is_full
        self._built: dict[Audience, tuple[OriginalWorld, OriginalWorld]] = {}
        self._numbers = count(1)

    async def build(self, audience: Audience) -> None:
        """Build the pair for this audience if it does not exist."""
        if audience not in self._built:
            self._built[audience] = (await self._original("a", audience), await self._original("b", audience))

    async def take(self, audience: Audience) -> tuple[OriginalWorld, OriginalWorld]:
        """Return the pair for this audience."""
        await self.build(audience)
        return self._built.pop(audience) if self._is_full else self._built[audience]

    async def _original(self, variant: Variant, audience: Audience) -> OriginalWorld:
        name = f"world_{next(self._numbers)}"
        world_settings = settings(str(self._folder / name), self._cluster.create(name) if self._cluster else "")
        return OriginalWorld(world_settings, await building.build(world_settings, variant, audience))


class WorldPairs:
    """Copies the worlds for one test."""

    def __init__(self, originals: OriginalWorlds, folder: Path, new_url: Callable[[str], str]) -> None:
        """Store the copies in the folder or, for PostgreSQL, in databases that `new_url` creates as copies of the named
        database."""
        self._originals = originals
        self._folder = folder
        self._new_url = new_url
        self._numbers = count(1)

    async def build(self, audience: Audience) -> None:
        """Build the originals before the test changes something that the build uses."""
        await self._originals.build(audience)

    @asynccontextmanager
    async def copy_pair(self, audience: Audience) -> AsyncGenerator[tuple[OpenWorld, OpenWorld]]:
        """Return a pair of worlds for this test that look the same to the audience."""
        first, second = await self._originals.take(audience)
        async with (
            building.open_world(self._copy(first), "a", first.built) as one,
            building.open_world(self._copy(second), "b", second.built) as two,
        ):
            yield one, two

    def _copy(self, original: OriginalWorld) -> Settings:
        data = shutil.copytree(original.settings.data, self._folder / f"world{next(self._numbers)}")
        return settings(str(data), self._new_url(original.settings.database_url.rpartition("/")[2]))


@pytest.fixture(scope="session")
def archive_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of world b's module."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "worlds_archive.py").write_text(ARCHIVE)
    info = folder / "worlds_archive-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: worlds-archive\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[countersign.modules]\narchive = worlds_archive:module\n")
    return folder


@pytest.fixture(autouse=True)
def archive(archive_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the module of world b for Python."""
    monkeypatch.setattr(sys, "path", [str(archive_folder), *sys.path])


@pytest.fixture(scope="session")
def sqlite_originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OriginalWorlds:
    """The worlds on SQLite."""
    is_full = bool(request.config.getoption("--full"))
    return OriginalWorlds(tmp_path_factory.mktemp("worlds"), None, is_full=is_full)


@pytest.fixture(scope="session")
def postgres_originals(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_cluster: Cluster
) -> OriginalWorlds:
    """The worlds on PostgreSQL."""
    is_full = bool(request.config.getoption("--full"))
    return OriginalWorlds(tmp_path_factory.mktemp("worlds"), postgres_cluster, is_full=is_full)


@pytest.fixture
def sqlite_worlds(sqlite_originals: OriginalWorlds, tmp_path: Path) -> WorldPairs:
    """Makes pairs of worlds on SQLite."""
    return WorldPairs(sqlite_originals, tmp_path, lambda _: "")


@pytest.fixture(params=["sqlite", "postgres"])
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> WorldPairs:
    """Makes pairs of worlds on each engine."""
    if request.param == "sqlite":
        world_pairs: WorldPairs = request.getfixturevalue("sqlite_worlds")
        return world_pairs
    factory: PostgresFactory = request.getfixturevalue("new_postgres_url")
    return WorldPairs(request.getfixturevalue("postgres_originals"), tmp_path, factory)
