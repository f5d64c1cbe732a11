"""An upgrade that is killed before any of its statements can be continued, and has the same result as an uninterrupted
upgrade."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.kernel.database.port import Database, Row
from countersign.records import root_secret
from countersign.records.masking.vault import PersonalValue, Vault
from countersign.records.schema.install import installed
from countersign.records.schema.rows import BATCH
from tests.figures import Figures
from tests.records.schema.conftest import MASTER, all_of, open_schema, put, put_many, shape, upgrade
from tests.records.schema.killed import AFTER, BEFORE
from tests.servers.countersign import SOURCE
from tests.servers.postgres import Cluster

LEADS = BATCH + 7
EVERY = 83


class DatabaseState(NamedTuple):
    """The whole state: the schema, its metadata, the rows, and the vault, whose random ids are replaced by numbers."""

    shape: str
    noted: object
    under_way: int
    rows: dict[str, list[Row]]
    vault: list[tuple[int, str, int]]


async def furnish(url: str) -> None:
    """Install BEFORE, with rows for every step to change."""
    database = await open_schema(url)
    await upgrade(database, *BEFORE)
    vault = Vault(await root_secret.secret(database, MASTER))
    async with database.transaction() as transaction:
        held_values = await vault.hold(
            transaction, [PersonalValue("PERSON", name, True) for name in ("Ada", "Ada", "Bob")]
        )
    leads = [f"b{number:023x}" for number in range(LEADS)]
    stages = ("new", "lost", None)
    await put_many(
        database,
        "lead",
        [
            {"id": lead, "title": f"T{number}", "mail": f"m{number % 5}@example.com", "stage": stages[number % 3]}
            for number, lead in enumerate(leads)
        ],
    )
    await put(database, "lead", title="Nick", nick="Ada", nick__value=held_values[0].id, size=7)
    notes = [await put(database, "note", lead=leads[number // 2], text="same") for number in range(4)]
    for note, name, value in ((notes[0], "Ada", held_values[1]), (notes[1], "Bob", held_values[2])):
        await put(database, "gone", note=note, name=name, name__value=value.id)
    await database.close()


async def state(url: str) -> DatabaseState:
    """Return everything that must be equal after two upgrades."""
    database = await open_schema(url)
    values = [row[0] for row in await all_of(database, "lead", "mail__value")]
    values += [row[0] for row in await all_of(database, "note", "text__value")]
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    vault = [(numbers.get(row[0], -1), row[1], row[2]) for row in await _vault(database)]
    rows = {
        "lead": await all_of(
            database, "lead", "id", "title", "mail", "size", "stage", "total_minor", "task", "title__folded"
        ),
        "note": await all_of(database, "note", "id", "lead", "text", "rank", "cost_minor"),
        "task": await all_of(database, "task", "id"),
        "values": [(numbers[value],) for value in values],
    }
    under_way = len(await database.fetch("SELECT module FROM module_state"))
    database_state = DatabaseState(await shape(database), await installed(database), under_way, rows, sorted(vault))
    await database.close()
    return database_state


async def _vault(database: Database) -> list[Row]:
    return await database.fetch("SELECT id, label, refs FROM pii_value")


class DatabaseCopies:
    """Copies a filled database."""

    def __init__(self, url: str, folder: Path, cluster: Cluster | None) -> None:
        self.url = url
        self._folder = folder
        self._cluster = cluster
        self._numbers = count(1)

    def create_copy(self) -> str:
        """Create another copy, and return its address."""
        number = next(self._numbers)
        if self._cluster is None:
            path = self._folder / f"copy_{number}.sqlite"
            for file in self._folder.glob("furnished.sqlite*"):
                shutil.copy(file, file.with_name(file.name.replace("furnished", f"copy_{number}")))
            return f"sqlite:///{path}"
        name = f"killed_{number}"
        old_copies = (name, f"killed_{max(number - 2, 0)}")
        self._cluster.drop(*old_copies)
        return self._cluster.create(name, "killed_furnished")


@pytest.fixture(params=["sqlite", "postgres"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseCopies:
    """A filled database of each engine that can be copied."""
    if request.param == "sqlite":
        database_copies = DatabaseCopies(f"sqlite:///{tmp_path}/furnished.sqlite", tmp_path, None)
    else:
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        cluster.drop("killed_furnished")
        database_copies = DatabaseCopies(cluster.create("killed_furnished"), tmp_path, cluster)
    asyncio.run(furnish(database_copies.url))
    return database_copies


class KilledUpgrades:
    """The process that forks upgrades that are killed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def upgrade(self, url: str, last_statement: int) -> str:
        """Upgrade until the statement with this number, and return how the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{last_statement} {url}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@pytest.fixture
def killer() -> Iterator[KilledUpgrades]:
    """The process, which ends with the test."""
    command = [sys.executable, "-m", "tests.records.schema.killed"]
    with subprocess.Popen(
        command, cwd=SOURCE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield KilledUpgrades(process)
        assert process.stdin is not None
        process.stdin.close()


def test_a_kill_before_any_statement_changes_nothing_of_the_end(
    copies: DatabaseCopies, killer: KilledUpgrades, is_full: bool, figures: Figures
) -> None:
    finished_copy = copies.create_copy()
    assert killer.upgrade(finished_copy, 0) == "done"
    expected = asyncio.run(state(finished_copy))

    kills = 0
    for last_statement in range(1, 2000, 1 if is_full else EVERY):
        url = copies.create_copy()
        outcome = killer.upgrade(url, last_statement)
        if outcome == "done":
            break
        assert outcome == "killed"
        assert killer.upgrade(url, 0) == "done", last_statement
        assert asyncio.run(state(url)) == expected, last_statement
        kills += 1

    figures |= {"kills": kills, "different": 0}
    assert kills > 100 // (1 if is_full else EVERY)


def test_repeated_kills_during_an_upgrade_only_cost_time(copies: DatabaseCopies, killer: KilledUpgrades) -> None:
    finished_copy, url = copies.create_copy(), copies.create_copy()
    assert killer.upgrade(finished_copy, 0) == "done"
    expected = asyncio.run(state(finished_copy))

    ends: list[str] = []
    while "done" not in ends and len(ends) < 30:
        ends.append(killer.upgrade(url, 40))

    kills = ends.index("done")
    assert set(ends[:kills]) == {"killed"}
    assert kills > 3
    assert asyncio.run(state(url)) == expected


def test_two_that_upgrade_at_once_share_the_steps(copies: DatabaseCopies) -> None:
    finished_copy, url = copies.create_copy(), copies.url

    async def upgrade_both() -> tuple[list[str], list[str]]:
        first_database, second_database = await open_schema(url), await open_schema(url)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(upgrade(engine, *AFTER, destroy=True)) for engine in (first_database, second_database)
            ]
        await first_database.close()
        await second_database.close()
        return tasks[0].result(), tasks[1].result()

    async def upgrade_alone() -> None:
        database = await open_schema(finished_copy)
        await upgrade(database, *AFTER, destroy=True)
        await database.close()

    asyncio.run(upgrade_alone())
    first_sentences, second_sentences = asyncio.run(upgrade_both())

    assert first_sentences
    assert second_sentences
    assert not set(first_sentences) & set(second_sentences), "each step is taken once"
    assert asyncio.run(state(url)) == asyncio.run(state(finished_copy))
