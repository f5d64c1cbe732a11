"""Random queries on random models give the documented results on both databases."""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from countersign.declare import Grant, Model, Ref, Where
from countersign.records.access.view import Caller
from tests.figures import Figures
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.queries import oracle, worlds
from tests.records.queries.oracle import Query, Record

SLOW = (HealthCheck.too_slow, HealthCheck.nested_given, HealthCheck.data_too_large, HealthCheck.filter_too_much)
ROWS = 60


class Viewer(NamedTuple):
    """A caller, with the fields that it sees in clear and the records as it sees them."""

    caller: Caller
    names: list[str]
    records: list[Record]


class QueryWorld:
    """A database with records of one random model, and two callers: one sees everything, and one sees a part."""

    def __init__(self, service: InProcessService) -> None:
        self.opened = service
        self.model = service.models["thing"]
        self.viewers: list[Viewer] = []

    async def ask(self, caller: Caller, command: str, query: Query) -> Any:
        """Run a command and return its value."""
        return await self.opened.value(caller, "thing", command, **query)

    async def create_records(self, rng: random.Random) -> None:
        """Create targets, and records that refer to them and to each other."""
        root = self.opened.administrator()
        targets = [(await self.opened.value(root, "target", "create"))["id"] for _ in range(4)]
        records: list[Record] = []
        for _ in range(rng.choice([0, 1, ROWS, ROWS])):
            refs = {"target": targets, "thing": [record["id"] for record in records]}
            records.append(await self.ask(root, "create", worlds.rows(rng, self.model, refs)))
        self.viewers = [Viewer(root, list(self.model.fields), records), await self.restricted(rng, records)]

    async def restricted(self, rng: random.Random, records: list[Record]) -> Viewer:
        """Return a caller with two roles. Each role shows some fields, and the records that meet one or two
        conditions."""
        names = sorted(rng.sample(list(self.model.fields), rng.randint(1, len(self.model.fields))))
        alternatives = [[worlds.rule(rng, self.model, records) for _ in range(rng.randint(1, 2))] for _ in range(2)]
        grants = [
            Grant(model="thing", commands="*", clear=tuple(names[offset::2]), rows=tuple(rules))
            for offset, rules in enumerate(alternatives)
        ]
        caller = await self.opened.person(*grants, Grant(model="target", commands="*", clear="*"))
        queries = [{"filter": [vars_of(rule) for rule in rules]} for rules in alternatives]
        ids = {record["id"] for query in queries for record in oracle.filter_records(self.model, records, query)}
        visible_records = [self.record_seen_by(record, names, ids) for record in records if record["id"] in ids]
        return Viewer(caller, names, visible_records)

    def record_seen_by(self, record: Record, names: list[str], visible_ids: set[str]) -> Record:
        """Return a record as a caller sees it who sees these fields and only these records."""
        fields = {name: field for name, field in self.model.fields.items() if name in names}
        return {
            "id": record["id"],
            "revision": 1,
            **{
                # A ref to a record that does not exist for the caller is empty.
                name: None if isinstance(field, Ref) and field.target == "thing" and record[name] not in visible_ids
                else record[name]
                for name, field in fields.items()
            },
        }  # fmt: skip

    async def check(self, viewer: Viewer, query: Query, name: str) -> None:
        """Compare list, search and count_by of a query with the oracle."""
        expected = oracle.page(self.model, viewer.records, query)
        result = await self.ask(viewer.caller, "search", query)
        assert result["rows"] == expected
        assert result["total"] == len(oracle.filter_records(self.model, viewer.records, query))
        assert await self.ask(viewer.caller, "list", query) == expected
        if self.model.fields[name].is_countable:
            condition = {"filter": query["filter"]} if "filter" in query else {}
            groups = oracle.groups(self.model, viewer.records, name, condition)
            assert await self.ask(viewer.caller, "count_by", {"field": name, **condition}) == groups


def vars_of(rule: Where) -> dict[str, Any]:
    """Return a rule in the form of a filter condition."""
    return {"field": rule.field, "op": rule.operator, "value": rule.value}


def cases(world: QueryWorld) -> st.SearchStrategy[tuple[Viewer, Query, str]]:
    """Generate a caller, a query, and a field that the caller sees."""
    return st.sampled_from(world.viewers).flatmap(
        lambda viewer: st.tuples(
            st.just(viewer), worlds.queries(world.model, viewer.names, viewer.records), st.sampled_from(viewer.names)
        )
    )


@asynccontextmanager
async def create_world(
    url: str, folder: Path, number: int, model: type[Model], seed: int
) -> AsyncGenerator[QueryWorld]:
    """Create a world in its own file on SQLite, or in its own schema on PostgreSQL."""
    world_folder = folder / str(number)
    world_folder.mkdir()
    own_url = f"sqlite:///{world_folder}/test.db" if url.startswith("sqlite") else url
    async with inside.open_service(own_url, world_folder, worlds.Target, model, schema=f"world_{number}") as service:
        world = QueryWorld(service)
        await world.create_records(random.Random(seed))
        yield world


async def test_queries_return_the_same_results_as_the_oracle(
    database_url: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    """The test runs 120 cases on 6 random models, and 20,000 cases on 400 models with --full."""
    loop = asyncio.get_running_loop()
    case_count, queries_per_case = (20_000, 50) if is_full else (120, 20)
    counts = {"cases": 0, "models": 0, "records": 0}

    def run_here(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    quick = settings(deadline=None, database=None, suppress_health_check=SLOW)

    # A failing query is minimized. Its model stays the same, because every other model would need a new database.
    @settings(quick, max_examples=case_count // queries_per_case, phases=[Phase.generate])
    @given(worlds.models(), st.integers(0, 2**32))
    def on_a_model(model: type[Model], seed: int) -> None:
        counts["models"] += 1
        opening = create_world(database_url, tmp_path, counts["models"], model, seed)
        world: QueryWorld = run_here(opening.__aenter__())
        counts["records"] += len(world.viewers[0].records)

        @settings(quick, max_examples=queries_per_case)
        @given(cases(world))
        def on_a_query(case: tuple[Viewer, Query, str]) -> None:
            counts["cases"] += 1
            run_here(world.check(*case))

        try:
            on_a_query()
        finally:
            run_here(opening.__aexit__(None, None, None))

    await asyncio.to_thread(on_a_model)

    figures |= {**counts, "mismatches": 0}
    assert counts["cases"] >= case_count * 0.9
