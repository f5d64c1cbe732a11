"""A page of a query on one indexed field uses an index on both databases: no statement sorts or scans the whole
table."""

import random
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from countersign.declare import Bool, Date, Grant, Model, Money, Move, Number, Ref, Select, Text, Workflow, where
from countersign.kernel import ids
from countersign.records.access.view import Caller
from countersign.records.commands import filters, list_search, select
from countersign.records.commands.select import SelectStatement, insert_statement, insert_values
from tests.records import inside
from tests.records.inside import InProcessService
from tests.servers.postgres import Cluster

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS = 20_000
# PostgreSQL reports how many rows it expects to sort. SQLite does not: it sorts either the rows that no index has
# ordered or all rows.
BIG_SORT = re.compile(r"(?<!Incremental )\bSort  \(.*rows=([0-9]+)")
WHOLE_SORT = re.compile(r"\bSCAN t\b.*(\n.*)*USE TEMP B-TREE FOR ORDER BY")
# Only rows that meet the condition are counted.
FOUND = re.compile(r"Index Cond|\bSEARCH t\b")
SCAN = re.compile(r"Seq Scan on thing|\bSCAN t\b(?! USING)")


class Place(Model):
    """The target of refs."""

    title = Text()


class Errand(Model):
    """A model with a workflow and a date."""

    stage = Select("a", "b", index=True)
    day = Date(index=True)
    workflow = Workflow("stage", move=Move("a", to="b", help="Moves it."))


class Thing(Model):
    """A model with an indexed field of each kind."""

    title = Text(index=True)
    size = Number(index=True)
    price_minor = Money(index=True)
    day = Date(index=True)
    done = Bool(index=True)
    stage = Select("zulu", "mike", "alpha", "new", "won", "lost", index=True)
    place = Ref("place")
    email = Text(personal="EMAIL", index=True)
    plain = Text()


def value(rng: random.Random, name: str, place_ids: list[str]) -> Any:
    """Return a stored value, which is empty in one of ten cases. The values of `done` and `stage` are skewed."""
    if rng.random() < 0.1:
        return None
    return {
        "title": f"title {rng.randrange(5_000)}",
        "size": rng.randrange(10_000),
        "price_minor": rng.randrange(10**6),
        "day": f"20{rng.randrange(10, 30)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
        "done": int(rng.random() < 0.01),
        "stage": rng.choices(["zulu", "mike", "alpha", "new", "won", "lost"], [60, 20, 10, 6, 3, 1])[0],
        "place": rng.choice(place_ids),
        "email": f"person{rng.randrange(8_000)}@example.com",
        "plain": "x",
    }[name]


FIELDS = ("title", "size", "price_minor", "day", "done", "stage", "place", "email")
VALUES: Mapping[str, Any] = {
    "title": "title 17",
    "size": 17,
    "price_minor": 170_000,
    "day": "2017-01-17",
    "done": True,
    "stage": "won",
    "email": "person17@example.com",
}
RANGED = tuple(name for name in FIELDS if name not in ("done", "place"))


async def insert_rows(service: InProcessService) -> None:
    """Insert rows like the rows of records, without their audit entries."""
    rng = random.Random(1)
    root = service.administrator()
    place_ids = [(await service.value(root, "place", "create"))["id"] for _ in range(300)]
    model = service.models["thing"]
    rows: list[tuple[Any, ...]] = []
    for _ in range(ROWS):
        values = {name: value(rng, name, place_ids) for name in model.fields}
        rows.append(tuple(insert_values(model, ids.new_record_id(), values, {})))
    database = service.service.records.database
    async with database.transaction() as transaction:
        await transaction.run_many(insert_statement(model), rows)
    if database.dialect == "postgres":
        # On a running server, autovacuum does this.
        async with database.transaction() as transaction:
            await transaction.run('ANALYZE "thing"')


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgres"])
async def things(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[InProcessService]:
    """20,000 records, once on SQLite and once on PostgreSQL. Tests only read them, so they are shared."""
    folder, name = tmp_path_factory.mktemp("things"), "things"
    url = f"sqlite:///{folder}/{name}.db"
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        cluster.drop(name)
        url = cluster.create(name)
    async with inside.open_service(url, folder, Place, Thing, deadline_s=60) as service:
        await insert_rows(service)
        yield service


class RecordedStatements:
    """The statements of queries, and their query plans."""

    def __init__(self, things: InProcessService, caller: Caller) -> None:
        self.things = things
        self.run = things.run(caller)

    def statement(self, **query: Any) -> SelectStatement:
        """Return the statement of `list`."""
        return list_search.statement(self.run, "thing", list_search.read_query(self.run, "thing", "list", query))

    def searching(self, **query: Any) -> SelectStatement:
        """Return the statement of `search`."""
        view = self.run.view_of("thing")
        reading = self.run.engine.reading(self.run.caller, view)
        return select.page_with_total(
            reading, view.reach("search"), list_search.read_query(self.run, "thing", "search", query)
        )

    async def plan(self, statement: SelectStatement) -> str:
        """Return the query plan of the engine."""
        return await self.things.plan_of(statement.text, statement.values)


def one_condition(name: str, operator: str, operand: Any) -> dict[str, Any]:
    """Return a filter with one condition."""
    return {"filter": [{"field": name, "op": operator, "value": operand}]}


def faults(plan: str, *, may_scan: bool = False) -> bool:
    """Return whether a plan reads the whole table or sorts more than a small part of it."""
    sorted_rows = [int(match) for match in BIG_SORT.findall(plan)]
    return (
        (not may_scan and SCAN.search(plan) is not None)
        or WHOLE_SORT.search(plan) is not None
        or any(row > ROWS // 20 for row in sorted_rows)
    )


async def check(things: InProcessService, queries: Iterable[dict[str, Any]]) -> None:
    """Require that list and search run these queries without reading or sorting the whole table."""
    statements = RecordedStatements(things, things.administrator())
    bad_plans: list[str] = []
    for query in queries:
        # If most records match, the engine may count them in any way. If few records match, it must use an index.
        is_few = any(condition["op"] in ("eq", "in") for condition in query.get("filter", ()))
        for statement, may_scan in (
            (statements.statement(**query), False),
            (statements.searching(**query), not is_few),
        ):
            plan = await statements.plan(statement)
            if faults(plan, may_scan=may_scan) or (is_few and not FOUND.search(plan)):
                bad_plans.append(
                    f"{str(query)[:200]}\n{statement.text}\n" + "\n".join(line[:200] for line in plan.splitlines())
                )
    assert not bad_plans, "\n\n".join(bad_plans)


async def test_a_page_in_the_order_of_any_indexed_field_is_read_from_its_index(things: InProcessService) -> None:
    await check(
        things,
        [
            {"order": [{"field": name, "dir": direction}, *second_order], "limit": 50, **offset}
            for name in (*FIELDS, "id")
            for direction in ("asc", "desc")
            for second_order in ([], [{"field": "plain", "dir": "desc"}])
            for offset in ({}, {"offset": 100})
            # Half of the records are equal in these fields, so equal records are sorted by the next key.
            if not (second_order and name in ("done", "stage", "id"))
        ],
    )


@pytest.mark.parametrize("name", ["day", "done", "stage"])
async def test_the_last_rows_are_read_from_an_index_without_sorting_rows_of_one_value(
    things: InProcessService, name: str
) -> None:
    statements = RecordedStatements(things, things.administrator())

    plan = await statements.plan(statements.statement(order=[{"field": name, "dir": "desc"}], limit=50))

    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


async def test_a_filter_on_one_indexed_field_is_answered_by_its_index(things: InProcessService) -> None:
    place_id = (await things.value(things.administrator(), "place", "list", limit=1))[0]["id"]
    await check(
        things,
        [
            {**query, "limit": 50}
            for name, operand in {**VALUES, "place": place_id, "id": place_id}.items()
            for query in (
                one_condition(name, "eq", operand),
                one_condition(name, "in", [operand]),
                one_condition(name, "in", [operand] * 1_000),
            )
        ],
    )


async def test_a_filter_of_many_values_is_answered_by_its_index(things: InProcessService) -> None:
    emails = [f"person{number}@example.com" for number in range(0, 8_000, 40)]
    titles = [f"title {number}" for number in range(0, 5_000, 25)]
    await check(
        things,
        [
            {**one_condition("email", "in", emails), "limit": 50, "order": [{"field": "email"}]},
            {**one_condition("title", "in", titles), "limit": 5_000},
            {**one_condition("size", "in", list(range(0, 10_000, 50))), "limit": 5_000, "order": [{"field": "day"}]},
        ],
    )


async def test_a_filter_and_the_order_of_one_indexed_field_share_its_index(things: InProcessService) -> None:
    await check(
        things,
        [
            {**one_condition(name, operator, VALUES[name]), "order": [{"field": name, "dir": direction}], "limit": 50}
            for name in RANGED
            for operator in ("eq", "gt", "lt", "gte", "lte")
            for direction in ("asc", "desc")
        ],
    )


async def test_a_page_of_a_caller_who_sees_a_part_is_read_from_an_index_too(things: InProcessService) -> None:
    grant = Grant(model="thing", commands="*", clear=FIELDS[:-1], masked=("email",), rows=(where("plain", eq="x"),))
    place_grant = Grant(model="place", commands="*", clear="*", rows=(where("title", is_null=True),))
    statements = RecordedStatements(things, await things.person(grant, place_grant))
    for name in FIELDS[:-2]:
        for direction in ("asc", "desc"):
            statement = statements.statement(order=[{"field": name, "dir": direction}], limit=50)
            assert not faults(await statements.plan(statement)), statement.text


async def test_the_check_sees_a_sort_and_a_scan(things: InProcessService) -> None:
    statements = RecordedStatements(things, things.administrator())

    assert faults(await statements.plan(statements.statement(order=[{"field": "plain"}], limit=50)))
    assert faults(await statements.plan(statements.statement(order=[{"field": "plain"}], limit=50)), may_scan=True)
    unindexed = await statements.plan(statements.statement(**one_condition("plain", "eq", "y"), limit=50))
    assert faults(unindexed) or not FOUND.search(unindexed)


@pytest.mark.parametrize("direction", ["asc", "desc"])
async def test_a_list_by_state_starts_at_the_first_visible_state(
    database_url: str, tmp_path: Path, direction: str
) -> None:
    """Without the condition on the position of the state, PostgreSQL reads each row of a hidden state that comes
    first."""
    hidden_state = "a" if direction == "asc" else "b"
    async with inside.open_service(database_url, tmp_path, Errand) as service:
        root = service.administrator()
        moved, _ = [(await service.value(root, "errand", "create", day="2026-01-01"))["id"] for _ in range(2)]
        await service.value(root, "errand", "move", id=moved)
        caller = await service.person(
            Grant(model="errand", commands="*", clear="*", rows=(where("stage", ne=hidden_state),))
        )
        query = {"order": [{"field": "stage", "dir": direction}], "limit": 50}
        statement = list_search.statement(service.run(caller), "errand", filters.read(query, "errand.list"))
        async with service.service.records.database.transaction() as transaction:
            if database_url.startswith("postgresql"):
                await transaction.run("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN" if database_url.startswith("postgresql") else "EXPLAIN QUERY PLAN"
            rows = await transaction.fetch(f"{explain} {statement.text}", *statement.values)
        plan = "\n".join(str(row[-1]) for row in rows)
        records = await service.value(caller, "errand", "list", **query)

    assert re.search(r"Index Cond: .*CASE|SEARCH t USING INDEX \S+ \(<expr>", plan), plan
    assert [record["stage"] for record in records] == ["b" if hidden_state == "a" else "a"]


@pytest.mark.parametrize("name", ["day", "stage"])
async def test_the_last_rows_of_visible_states_are_found_without_reading_rows_of_hidden_states(
    database_url: str, tmp_path: Path, name: str
) -> None:
    """On SQLite, the index of a date or a state has the state. Without it, each row of a hidden state is read from the
    table. On PostgreSQL, the page is read from the index in its order."""
    async with inside.open_service(database_url, tmp_path, Errand) as service:
        caller = await service.person(Grant(model="errand", commands="*", clear="*", rows=(where("stage", ne="b"),)))
        run = service.run(caller)
        view = run.view_of("errand")
        query = {"order": [{"field": name, "dir": "desc"}], "limit": 50}
        reading = run.engine.reading(caller, view)
        statement = select.page(reading, view.reach("list"), list_search.read_query(run, "errand", "list", query))
        keys = statement.text.replace(statement.text[len("SELECT ") : statement.text.index(" FROM ")], "t.id", 1)
        if run.engine.dialect == "postgres":
            async with service.service.records.database.transaction() as transaction:
                await transaction.run("SET LOCAL enable_seqscan = off")
                plan = "\n".join(row[0] for row in await transaction.fetch(f"EXPLAIN {keys}", *statement.values))
        else:
            plan = await service.plan_of(keys, statement.values)

    assert ("USING COVERING INDEX" if run.engine.dialect == "sqlite" else "Index") in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
