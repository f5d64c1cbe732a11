"""The records on which the steps of a plan depend are looked up once for all steps, in parts of a limited
size."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from countersign.declare import Model, Ref, Text
from countersign.kernel.database.port import Row, Transaction, Value
from countersign.records.approvals.plan_dependencies import Dependencies
from countersign.records.commands import dependents
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from tests.records import inside
from tests.records.inside import InProcessService


class Depot(Model):
    """A place for crates."""

    title = Text(required=True)


class Shelf(Model):
    """Is in the same depot as a crate."""

    title = Text(required=True)
    depot = Ref("depot", required=True)


class Crate(Model, needs_approval=("create",), reads=("depot", "shelf")):
    """Can be created if the depot has room."""

    title = Text()
    depot = Ref("depot")


class RowCountingTransaction:
    """A transaction that records how many rows each statement returns."""

    def __init__(self, inner: Transaction) -> None:
        self._inner = inner
        self.found: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Run the statement in the real transaction, and count its rows."""
        rows = await self._inner.fetch(statement, *values)
        self.found.append(len(rows))
        return rows

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Run the statement in the real transaction, and count its row."""
        self.found.append(1)
        return await self._inner.fetch_one(statement, *values)


@pytest.fixture
async def yard(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service with these models."""
    async with inside.open_service(database_url, tmp_path, Depot, Shelf, Crate) as service:
        yield service


async def create_record(yard: InProcessService, model: str, /, **values: object) -> str:
    """Create a record as a person, and return its id."""
    return str((await yard.value(yard.administrator(), model, "create", **values))["id"])


async def count_lookups(yard: InProcessService, depot: str, count: int) -> tuple[set[str], list[int]]:
    """Look up the dependencies of this number of commands on one depot. Return them, and the number of rows of each
    statement."""
    several = [PreparedCommand("crate", "create", given={"depot": FieldInput(depot)}) for _ in range(count)]
    async with yard.service.records.database.transaction() as transaction:
        counting = RowCountingTransaction(transaction)
        run = yard.run(yard.administrator()).within(cast("Transaction", counting))
        around = Dependencies(run, several, locks=True)
        assert all([await around.reads(item) == [("depot", depot, 1)] for item in several])
        return {await around.fingerprint(item) for item in several}, counting.found


async def test_commands_about_one_record_read_the_record_once(yard: InProcessService) -> None:
    depot = await create_record(yard, "depot", title="a")
    await create_record(yard, "shelf", title="s", depot=depot)
    (lookup,), row_counts = await count_lookups(yard, depot, 1)
    assert lookup
    assert await count_lookups(yard, depot, 2_000) == ({lookup}, row_counts)
    assert len(row_counts) == 2


async def test_many_records_that_refer_are_read_in_parts_and_each_counts(
    yard: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependents, "MAX_RECORDS", 3)
    root, depot = yard.administrator(), await create_record(yard, "depot", title="a")
    shelves = [await create_record(yard, "shelf", title="s", depot=depot) for _ in range(9)]
    lookups = [await count_lookups(yard, depot, 1)]
    await yard.value(root, "shelf", "update", id=shelves[8], title="x")
    lookups.append(await count_lookups(yard, depot, 1))
    await create_record(yard, "shelf", title="s", depot=depot)
    lookups.append(await count_lookups(yard, depot, 1))
    await yard.value(root, "shelf", "delete", id=shelves[0])
    lookups.append(await count_lookups(yard, depot, 1))

    assert len({fingerprint for prints, _ in lookups for fingerprint in prints}) == 4
    assert max(count for _, row_counts in lookups for count in row_counts) == 4
    assert await count_lookups(yard, depot, 1) == lookups[-1]
