"""What an agent learns of connected tables depends only on what it may see: two databases that differ only in personal
and hidden values have the same responses, while other applications write them."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import pytest

from countersign.records.adopted.reader import AdoptedReader, AdoptedScope
from countersign.records.commands import filters
from countersign.records.masking.connected_aliases import ConnectedAliases
from countersign.records.masking.seen_values import SeenColumn
from tests.adopted.connected_worlds import (
    Audience,
    ConnectedRequests,
    WritingRequests,
    compare,
    open_pair,
    open_writable_pair,
)
from tests.figures import Figures
from tests.records.worlds import leaking_out
from tests.records.worlds.comparing import ResponsesDiffer
from tests.records.worlds.transports import MCP, REST, Transport
from tests.servers.postgres import PostgresFactory

PAIRS = 60
ALL_PAIRS = 5_000
"""The number of requests of each caller over each protocol: 20,000 for each engine."""
PAIRS_OF_WORLDS = 10

audiences = pytest.mark.parametrize("audience", get_args(Audience))
transports = pytest.mark.parametrize("transport", [REST, MCP], ids=["REST", "MCP"])

NewUrl = Callable[[], str]
"""Returns the address of a new database."""
NewCopy = Callable[[str], str]
"""Returns the address of a copy of the database with this name."""


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> NewUrl:
    """Return a function that creates an empty database on each engine."""
    if request.param == "postgres":
        factory: PostgresFactory = request.getfixturevalue("new_postgres_url")
        return factory
    numbers = iter(range(1_000))
    return lambda: f"sqlite:///{tmp_path}/existing{next(numbers)}.sqlite"


async def run(
    folder: Path, new_url: NewUrl, audience: Audience, transport: Transport, *, seed: int, count: int
) -> tuple[Counter[int], int]:
    """Compare two new databases. Return how often each status was returned, and the number of tokens."""
    folder.mkdir()
    async with open_pair(folder, (new_url(), new_url()), audience) as worlds:
        requests = ConnectedRequests(worlds[0].built.service.records.registry, seed)
        counts = await compare(worlds, audience, requests, count, transport)
    return counts.statuses, counts.tokens


@audiences
@transports
async def test_two_databases_answer_the_same(
    tmp_path: Path, new_url: NewUrl, audience: Audience, transport: Transport
) -> None:
    statuses, tokens = await run(tmp_path / "pair", new_url, audience, transport, seed=1, count=PAIRS)

    assert statuses[200] > PAIRS / 5, "hardly any request was a good one"
    assert tokens > 40


@pytest.fixture(params=["sqlite", "postgres"])
def new_copy(request: pytest.FixtureRequest, tmp_path: Path) -> NewCopy:
    """Return a function that copies a database, or creates an empty one from "template0", on each engine."""
    if request.param == "postgres":
        factory: PostgresFactory = request.getfixturevalue("new_postgres_url")
        return factory
    numbers = iter(range(1_000))

    def copy(template: str) -> str:
        path = tmp_path / f"theirs{next(numbers)}.sqlite"
        # Beside a connected file is an empty one, whose name begins with that of the file.
        for each in sorted(tmp_path.glob(f"{template}*")):
            shutil.copy(each, path.with_name(each.name.replace(template, path.name)))
        return f"sqlite:///{path}"

    return copy


async def run_writing(
    folder: Path, new_url: NewCopy, audience: Audience, transport: Transport, *, seed: int, count: int
) -> tuple[Counter[int], int]:
    """Compare two new databases whose tables agents propose to write. Return what `run` returns."""
    folder.mkdir()
    async with open_writable_pair(folder, new_url, audience) as worlds:
        requests = WritingRequests(worlds[0].built.service.records.registry, seed)
        counts = await compare(worlds, audience, requests, count, transport)
    return counts.statuses, counts.tokens


@audiences
@transports
async def test_two_databases_answer_the_same_to_agents_that_write_tokens(
    tmp_path: Path, new_copy: NewCopy, audience: Audience, transport: Transport
) -> None:
    statuses, tokens = await run_writing(
        tmp_path / "pair", new_copy, audience, transport, seed=1, count=2 * PAIRS
    )

    assert statuses[202] > PAIRS / 10, f"hardly any request became a plan: {statuses}"
    assert tokens > 40


async def test_a_confirmed_guess_is_caught(
    tmp_path: Path, new_postgres_url: PostgresFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_none(*_: object) -> dict[tuple[str, str], int]:
        """Return no aliases, so that typed text has the token of an equal value."""
        return {}

    monkeypatch.setattr(ConnectedAliases, "of_columns", find_none)

    with pytest.raises(ResponsesDiffer):
        await run_writing(tmp_path / "pair", new_postgres_url, "everything", REST, seed=3, count=1_000)


def masked_fields_are_filtered(patch: pytest.MonkeyPatch) -> None:
    """Filters and orders accept masked fields."""
    leaking_out.masked_fields_are_filtered(patch)


def refs_to_hidden_records_are_shown(patch: pytest.MonkeyPatch) -> None:
    """A ref shows the id of a record that the caller does not see."""
    patch.setattr(AdoptedScope, "_sees_target", lambda *_: None)


def hidden_rows_are_read(patch: pytest.MonkeyPatch) -> None:
    """The conditions of grants on rows do not count."""
    patch.setattr(filters, "any_of", lambda *_: "1 = 1")


def revisions_count_reads(patch: pytest.MonkeyPatch) -> None:
    """A revision depends on more than what the caller sees."""
    reads = count(1)
    patch.setattr(AdoptedReader, "_revision_of", lambda *_: next(reads) // 50)


def long_texts_are_cut_before_they_are_masked(patch: pytest.MonkeyPatch) -> None:
    """Personal values that have the same first letters have one token."""
    real = AdoptedReader.seen_values

    def seen_values(self: AdoptedReader, rows: Sequence[Sequence[Any]], start: int) -> list[SeenColumn]:
        return [each._replace(texts=[text and text[:5] for text in each.texts]) for each in real(self, rows, start)]

    patch.setattr(AdoptedReader, "seen_values", seen_values)


LEAKS: tuple[tuple[Audience, Callable[[pytest.MonkeyPatch], None]], ...] = (
    ("everything", masked_fields_are_filtered),
    ("everything", revisions_count_reads),
    ("everything", long_texts_are_cut_before_they_are_masked),
    ("limited", refs_to_hidden_records_are_shown),
    ("limited", hidden_rows_are_read),
)


@pytest.mark.parametrize(("audience", "leak"), LEAKS, ids=[leak.__name__ for _, leak in LEAKS])
async def test_a_planted_leak_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audience: Audience, leak: Callable[[pytest.MonkeyPatch], None]
) -> None:
    urls = iter((f"sqlite:///{tmp_path}/a.sqlite", f"sqlite:///{tmp_path}/b.sqlite"))
    leak(monkeypatch)

    with pytest.raises(ResponsesDiffer):
        await run(tmp_path / "pair", lambda: next(urls), audience, REST, seed=3, count=1_000)


@pytest.mark.full
@audiences
@transports
async def test_two_databases_answer_the_same_to_five_thousand_requests_of_agents_that_write_tokens(
    tmp_path: Path, new_copy: NewCopy, audience: Audience, transport: Transport, figures: Figures
) -> None:
    statuses: Counter[int] = Counter()
    tokens, began_s = 0, perf_counter()
    for seed in range(2, 2 + PAIRS_OF_WORLDS):
        new_statuses, seen = await run_writing(
            tmp_path / f"pair{seed}", new_copy, audience, transport, seed=seed, count=ALL_PAIRS // PAIRS_OF_WORLDS
        )
        statuses += new_statuses
        tokens += seen
    counted = {str(status): times for status, times in sorted(statuses.items())}
    figures |= {"pairs": statuses.total(), "different": 0, "tokens": tokens, "statuses": counted}
    figures["pairs_per_s"] = round(statuses.total() / (perf_counter() - began_s))


@pytest.mark.full
@audiences
@transports
async def test_two_databases_answer_the_same_to_five_thousand_requests(
    tmp_path: Path, new_url: NewUrl, audience: Audience, transport: Transport, figures: Figures
) -> None:
    statuses: Counter[int] = Counter()
    tokens, began_s = 0, perf_counter()
    for seed in range(2, 2 + PAIRS_OF_WORLDS):
        folder, requests = tmp_path / f"pair{seed}", ALL_PAIRS // PAIRS_OF_WORLDS
        new_statuses, seen = await run(folder, new_url, audience, transport, seed=seed, count=requests)
        statuses += new_statuses
        tokens += seen
    counted = {str(status): times for status, times in sorted(statuses.items())}
    figures |= {"pairs": statuses.total(), "different": 0, "tokens": tokens, "statuses": counted}
    figures["pairs_per_s"] = round(statuses.total() / (perf_counter() - began_s))
