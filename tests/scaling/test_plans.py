"""A plan takes time in proportion to its steps, and the vault in proportion to the values of a transaction."""

import gc
import time
from itertools import count
from pathlib import Path

import pytest

from countersign.records.masking.vault import PersonalValue
from tests.records import inside
from tests.records.office import Office
from tests.scaling.measuring import FLOOR_S, CostGrowth

TIMES = 3
FULL = pytest.param(5_000, marks=pytest.mark.full)
_numbers = count(1)


async def _cost_of_approving(office: Office, agent: str, rows: int, times: int = TIMES) -> float:
    least = float("inf")
    for _ in range(times):
        name = f"n{next(_numbers)}"
        lines = [f"{name} {row},{name}.{row}@example.org,{name} {row}" for row in range(rows)]
        csv = "\n".join(["title,contact_email,contact_name", *lines])
        plan = await office.proposed(agent, "lead.import", csv=csv)
        gc.collect()
        began_s = time.process_time()
        approval = await office.approve("alice", plan)
        least = min(least, time.process_time() - began_s)
        assert approval.status_code == 200
    return least


@pytest.mark.parametrize("longest", [600, FULL])
async def test_approving_an_import_takes_linear_time(office: Office, longest: int) -> None:
    agent = await office.agent("alice", "lead.*")
    quarter_cost, half_cost, full_cost = [
        await _cost_of_approving(office, agent, longest // divisor) for divisor in (4, 2, 1)
    ]

    grown = CostGrowth((quarter_cost, half_cost, full_cost))
    assert grown.is_linear, f"{grown}"


async def _cost_of_holding(folder: Path, values: int) -> float:
    """Return the CPU time of a transaction that adds `values` values to a vault that has as many already."""
    async with inside.open_service(f"sqlite:///{folder}/vault.db", folder) as service:
        vault, database = service.service.engine.vault, service.service.records.database
        async with database.transaction() as transaction:
            for _ in range(values):
                await vault.create_alias_id(transaction, "PHONE", "d" * 24)
        began_s = time.thread_time()
        async with database.transaction() as transaction:
            for number in range(values // 2):
                await vault.hold(transaction, [PersonalValue("EMAIL", str(number), linked=True)])
                await vault.create_alias_id(transaction, "PHONE", "d" * 24)
        return time.thread_time() - began_s


async def test_storing_many_values_in_one_transaction_takes_linear_time(tmp_path: Path) -> None:
    costs: list[float] = []
    for values in (5_000, 10_000, 20_000):
        tries: list[float] = []
        for number in range(2):
            folder = tmp_path / f"{values}-{number}"
            folder.mkdir()
            tries.append(await _cost_of_holding(folder, values))
        costs.append(min(tries))

    quarter_cost, half_cost, full_cost = costs
    assert full_cost < FLOOR_S or CostGrowth((quarter_cost, half_cost, full_cost)).is_linear, str(
        CostGrowth((quarter_cost, half_cost, full_cost))
    )
