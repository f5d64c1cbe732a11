"""Any query over any model gives what the documented words say, on both databases."""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from countersign.declare import Model
from countersign.records.access.view import Caller
from countersign.records.commands.count_by import KINDS as GROUPED
from tests.records import inside
from tests.records.figures import Figures
from tests.records.inside import Inside
from tests.records.queries import oracle, worlds
from tests.records.queries.oracle import Query, Record

SLOW = (HealthCheck.too_slow, HealthCheck.nested_given, HealthCheck.data_too_large, HealthCheck.filter_too_much)
ROWS = 60


class World:
    """A database with records of one random model, and who asks."""

    def __init__(self, opened: Inside) -> None:
        self.opened = opened
        self.caller: Caller = opened.administrator()
        self.model = opened.models["thing"]
        self.records: list[Record] = []

    async def ask(self, command: str, query: Query) -> Any:
        """What a command answers."""
        return await self.opened.value(self.caller, "thing", command, **query)

    async def fill(self, luck: random.Random) -> None:
        """Make targets and records that refer to them and to each other."""
        targets = [(await self.opened.value(self.caller, "target", "create"))["id"] for _ in range(4)]
        ids: list[str] = []
        for _ in range(luck.choice([0, 1, ROWS, ROWS])):
            made = await self.ask("create", worlds.rows(luck, self.model, {"target": targets, "thing": ids}))
            ids.append(made["id"])
            self.records.append(made)

    async def check(self, query: Query, name: str) -> None:
        """One case: list, search and count_by of a query against the oracle."""
        expected = oracle.page(self.model, self.records, query)
        found = await self.ask("search", query)
        assert found["rows"] == expected
        assert found["total"] == len(oracle.filtered(self.model, self.records, query))
        assert await self.ask("list", query) == expected
        if name in self.model.fields and self.model.fields[name].kind in GROUPED:
            condition = {"filter": query["filter"]} if "filter" in query else {}
            groups = oracle.groups(self.model, self.records, name, condition)
            assert await self.ask("count_by", {"field": name, **condition}) == groups


@asynccontextmanager
async def filled(url: str, folder: Path, number: int, model: type[Model], seed: int) -> AsyncGenerator[World]:
    """A world of its own: a file on SQLite, a schema on PostgreSQL."""
    place = folder / str(number)
    place.mkdir()
    own_url = f"sqlite:///{place}/test.db" if url.startswith("sqlite") else url
    async with inside.opened(own_url, place, worlds.Target, model, schema=f"world_{number}") as opened:
        world = World(opened)
        await world.fill(random.Random(seed))
        yield world


async def test_queries_give_what_the_oracle_gives(
    database_url: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    """200 cases on 10 random models, 20,000 on 400 with --full."""
    loop = asyncio.get_running_loop()
    wanted, each = (20_000, 50) if is_full else (200, 20)
    counted = {"cases": 0, "models": 0, "records": 0}

    def here(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    quick = settings(deadline=None, database=None, suppress_health_check=SLOW)

    # A failing query is made small; the model it was asked of stays, since every other one would need a database.
    @settings(quick, max_examples=wanted // each, phases=[Phase.generate])
    @given(worlds.models(), st.integers(0, 2**32))
    def on_a_model(model: type[Model], seed: int) -> None:
        counted["models"] += 1
        opening = filled(database_url, tmp_path, counted["models"], model, seed)
        world: World = here(opening.__aenter__())
        counted["records"] += len(world.records)

        @settings(quick, max_examples=each)
        @given(worlds.queries(world.model, world.records), st.sampled_from(list(world.model.fields)))
        def on_a_query(query: Query, name: str) -> None:
            counted["cases"] += 1
            here(world.check(query, name))

        try:
            on_a_query()
        finally:
            here(opening.__aexit__(None, None, None))

    await asyncio.to_thread(on_a_model)

    figures |= {**counted, "mismatches": 0}
    assert counted["cases"] >= wanted * 0.9
