"""A jump to any position of a list returns the rows that the whole list has there, for any caller and on both
databases."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from countersign.declare import Grant, Model, Number, Ref, Select, Text, where
from countersign.kernel import ids
from countersign.records.access.view import Caller
from countersign.records.commands import list_search, mask_output, sqlite_index_hints
from countersign.records.commands.list_search import PageSeeker
from countersign.records.commands.seek_pagination import MAX_POSITIONS, KnownPositions, ListQuery, SeekPosition
from countersign.records.commands.select import insert_statement, insert_values
from tests.figures import Figures
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.queries import worlds
from tests.records.queries.oracle import Query
from tests.records.queries.test_queries import SLOW, QueryWorld, Viewer, cases, create_world

ROWS = 4_000


def list_query(service: InProcessService, caller: Caller, model: str, query: Query) -> ListQuery:
    """Return the list of a query."""
    run = service.run(caller)
    view = run.view_of(model)
    reading = run.engine.reading(caller, view)
    return ListQuery(reading, view.reach("list"), list_search.read_query(run, model, "list", query))


async def jump(
    world: QueryWorld, viewer: Viewer, query: Query, known_positions: KnownPositions, offset: int, limit: int
) -> Any:
    """Return the rows of a jump as they are sent."""
    run = world.opened.run(viewer.caller)
    rows = await PageSeeker(run, list_query(world.opened, viewer.caller, "thing", query), known_positions).page(
        offset, limit
    )
    shown_rows = await mask_output.masked_records(run, run.engine.reading(viewer.caller, run.view_of("thing")), rows)
    return msgspec.json.decode(msgspec.json.encode(shown_rows))


async def check(world: QueryWorld, viewer: Viewer, query: Query, step: int, rng: random.Random) -> int:
    """Jump to random positions in one list, with the cached positions of earlier jumps. Return the number of jumps."""
    list_query = {name: query[name] for name in ("filter", "order") if name in query}
    whole_list = await world.ask(viewer.caller, "list", list_query)
    known_positions = KnownPositions(step)
    offsets = [rng.randint(0, len(whole_list) + 2) for _ in range(8)]
    for offset in offsets:
        limit = rng.choice([1, 3, 100])
        assert (
            await jump(world, viewer, list_query, known_positions, offset, limit) == whole_list[offset : offset + limit]
        ), offset
    return len(offsets)


async def test_a_jump_returns_the_same_rows_as_the_whole_list(
    database_url: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    """Random models, rows with equal and empty values, and roles that see a part of them: 480 jumps, or 80,000 with
    --full."""
    loop = asyncio.get_running_loop()
    models, examples_per_model = (200, 50) if is_full else (4, 15)
    counts = {"models": 0, "jumps": 0}

    def run_here(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    quick = settings(deadline=None, database=None, suppress_health_check=SLOW)

    @settings(quick, max_examples=models, phases=[Phase.generate])
    @given(worlds.models(), st.integers(0, 2**32))
    def on_a_model(model: type[Model], seed: int) -> None:
        counts["models"] += 1
        opening = create_world(database_url, tmp_path, counts["models"], model, seed)
        world: QueryWorld = run_here(opening.__aenter__())

        @settings(quick, max_examples=examples_per_model)
        @given(cases(world), st.integers(1, 9), st.randoms(use_true_random=False))
        def on_a_list(case: tuple[Viewer, Query, str], step: int, rng: random.Random) -> None:
            viewer, query, _ = case
            counts["jumps"] += run_here(check(world, viewer, query, step, rng))

        try:
            on_a_list()
        finally:
            run_here(opening.__aexit__(None, None, None))

    await asyncio.to_thread(on_a_model)

    figures |= {**counts, "mismatches": 0}
    assert counts["jumps"] >= models * examples_per_model * 6


class Shop(Model):
    """A shop. Some shops are hidden."""

    title = Text()
    size = Number()


class Deal(Model):
    """A sale. Every fifth sale has the state lost, which is hidden."""

    title = Text(index=True)
    stage = Select("new", "won", "lost", index=True)
    size = Number(index=True)
    shop = Ref("shop")
    email = Text(personal="EMAIL")


GRANTS = (
    Grant(model="deal", commands="*", clear=("title", "stage", "size", "shop"), masked=("email",),
          rows=(where("stage", ne="lost"),)),
    Grant(model="shop", commands="*", clear="*", rows=(where("size", gt=2),)),
)  # fmt: skip
ORDERS: list[list[dict[str, str]]] = [
    [],
    [{"field": "id", "dir": "desc"}],
    [{"field": "title"}],
    [{"field": "title", "dir": "desc"}],
    [{"field": "stage"}],
    [{"field": "stage", "dir": "desc"}, {"field": "size"}],
    [{"field": "size"}, {"field": "title", "dir": "desc"}],
    [{"field": "shop"}, {"field": "size", "dir": "desc"}],
]
FILTERS: list[list[dict[str, Any]]] = [
    [],
    [{"field": "stage", "op": "eq", "value": "new"}],
    [{"field": "size", "op": "gte", "value": 3}],
]


@pytest.fixture
async def trade(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """4,000 deals with equal and empty values in each field."""
    async with inside.open_service(database_url, tmp_path, Shop, Deal, deadline_s=60) as service:
        rng = random.Random(5)
        root = service.administrator()
        shops = [(await service.value(root, "shop", "create", size=number))["id"] for number in range(6)]
        model = service.models["deal"]
        rows = [
            tuple(insert_values(model, ids.new_record_id(), {
                "title": rng.choice([None, f"deal {rng.randrange(900)}"]),
                "stage": rng.choice(["new", "new", "won", "lost", None]),
                "size": rng.choice([None, rng.randrange(8)]),
                "shop": rng.choice([None, *shops]),
            }, {}))
            for _ in range(ROWS)
        ]  # fmt: skip
        async with service.service.records.database.transaction() as transaction:
            await transaction.run_many(insert_statement(model), rows)
        yield service


@pytest.fixture
async def clerk(trade: InProcessService) -> Caller:
    """A caller who does not see lost deals, e-mail addresses and small shops."""
    return await trade.person(*GRANTS)


async def page(trade: InProcessService, caller: Caller, **query: Any) -> Any:
    """Return a page of deals."""
    return await trade.value(caller, "deal", "list", **query)


async def test_pages_far_down_equal_those_of_the_whole_list(trade: InProcessService, clerk: Caller) -> None:
    rng = random.Random(7)
    for order in ORDERS:
        for conditions in FILTERS:
            query = {"order": order, "filter": conditions}
            whole_list = await page(trade, clerk, **query)
            for offset in (
                len(whole_list) - 1,
                rng.randint(1_000, len(whole_list)),
                rng.randint(1_000, len(whole_list)),
                ROWS,
            ):
                found_page = await page(trade, clerk, **query, limit=50, offset=offset)
                assert found_page == whole_list[offset : offset + 50], (query, offset)
    assert trade.service.engine.positions


@pytest.mark.parametrize("change", ["create", "delete", "show", "hide", "move"])
async def test_a_change_before_the_page_shifts_the_rows_of_the_page(
    trade: InProcessService, clerk: Caller, change: str
) -> None:
    """Cached positions of the list are no longer used after a change."""
    root = trade.administrator()
    query: dict[str, Any] = {"order": [{"field": "title"}]}
    whole_list = await page(trade, clerk, **query)
    await page(trade, clerk, **query, limit=10, offset=len(whole_list) - 5)
    lost_deal = (await page(trade, root, filter=[{"field": "stage", "op": "eq", "value": "lost"}], limit=1))[0]
    changes: dict[str, tuple[str, dict[str, Any]]] = {
        "create": ("create", {"title": "a", "stage": "won"}),
        "delete": ("delete", {"id": whole_list[0]["id"]}),
        "show": ("update", {"id": lost_deal["id"], "stage": "won", "title": "a"}),
        "hide": ("update", {"id": whole_list[0]["id"], "stage": "lost"}),
        "move": ("update", {"id": whole_list[0]["id"], "title": "z"}),
    }
    command, body = changes[change]
    await trade.value(root, "deal", command, **body)

    list_after = await page(trade, clerk, **query)

    assert list_after != whole_list
    for offset in (1_500, 2_500, len(whole_list) - 5):
        assert await page(trade, clerk, **query, limit=10, offset=offset) == list_after[offset : offset + 10]


async def test_a_jump_during_other_writes_reads_one_snapshot(trade: InProcessService, clerk: Caller) -> None:
    root = trade.administrator()

    async def write() -> None:
        for number in range(40):
            await trade.value(root, "deal", "create", title=f"a {number}", stage="won")

    writing_task = asyncio.create_task(write())
    pages: list[list[dict[str, Any]]] = []
    while not writing_task.done():
        pages.append(await page(trade, clerk, order=[{"field": "title"}], limit=50, offset=1_500))
    await writing_task

    # In each case, all new rows come first, so the page begins at the row 1,501 of the current list.
    whole_list = await page(trade, clerk, order=[{"field": "title"}])
    ids_of = [record["id"] for record in whole_list]
    for rows in pages:
        first_index = ids_of.index(rows[0]["id"])
        assert 1_500 <= first_index <= 1_540
        assert [row["id"] for row in rows] == ids_of[first_index : first_index + 50]


async def test_the_number_of_remembered_jumps_is_bounded(trade: InProcessService, clerk: Caller) -> None:
    for number in range(list_search.MAX_LISTS + 5):
        await page(trade, clerk, filter=[{"field": "size", "op": "ne", "value": number}], limit=1, offset=1_500)
    known_positions = KnownPositions(1)
    offset = 0
    while offset < MAX_POSITIONS * 3:
        offset += known_positions.step
        known_positions.add(SeekPosition(offset, (str(offset),)))

    assert len(trade.service.engine.positions) == list_search.MAX_LISTS
    assert known_positions.step == 4
    assert known_positions.before(MAX_POSITIONS * 2) == SeekPosition(MAX_POSITIONS * 2, (str(MAX_POSITIONS * 2),))


async def test_a_jump_also_works_in_a_filter_with_scattered_rows(trade: InProcessService, clerk: Caller) -> None:
    """On SQLite, such a list uses the index of the order and not the index of the filter."""
    conditions = [{"field": "stage", "op": "in", "value": ["new", "won"]}]
    query: dict[str, Any] = {"order": [{"field": "size"}], "filter": conditions}
    run = trade.run(clerk)
    list_query = list_search.read_query(run, "deal", "list", {**query, "limit": 20, "offset": 1_500})
    hinted_query = await sqlite_index_hints.with_index_hints(run, run.view_of("deal"), list_query)
    assert hinted_query.scattered == ({"stage"} if run.engine.dialect == "sqlite" else set())

    whole_list = await page(trade, clerk, **query)

    assert await page(trade, clerk, **query, limit=20, offset=1_500) == whole_list[1_500:1_520]
