"""After a kill at any statement of a write, and on SQLite after any change of a file, the connected row has changed
exactly when the audit has the entry and the plan is approved. A second call with the same key, and a second approval,
write nothing twice."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adopted.shop import Shop
from tests.adopted.test_writing import Proposer, proposer, shop
from tests.figures import Figures
from tests.servers.countersign import SOURCE, environment

__all__ = ["proposer", "shop"]

SAMPLE = 4
FIRST_VISITS = 100
KEY = "6f1f0b9e-6d0c-4c5e-9d57-"

Send = Callable[..., dict[str, Any]]


@pytest.fixture
def send(shop: Shop, proposer: Proposer, tmp_path: Path) -> Iterator[Send]:
    """Send an order to a worker, and return how it ended."""
    variables = {**environment(), "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.adopted.kill_worker"], env=variables, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def order(**members: object) -> dict[str, Any]:
        base = {"url": shop.url, "folder": str(tmp_path), "person": proposer.person.user_id, "plan": "", "key": ""}
        stdin.write(json.dumps({**base, **members}) + "\n")
        stdin.flush()
        # The service of the child prints its log too.
        while not (line := stdout.readline()).startswith('{"is_killed"'):
            assert line, "the worker is gone"
        answer: dict[str, Any] = json.loads(line)
        return answer

    try:
        yield order
    finally:
        process.kill()
        process.wait()
        stdin.close()
        stdout.close()


async def _state(shop: Shop, plan_id: str) -> tuple[int, int, int, str]:
    """Return the visits of the first customer, the number of updates that its trigger has seen, the number of audit
    entries, and the state of the plan. On SQLite the next transaction completes what the kill has interrupted."""
    (theirs,) = shop.rows("SELECT visits, (SELECT count(*) FROM log) FROM customer WHERE customer_id = 1")
    async with shop.inside.service.records.database.transaction() as transaction:
        (ours,) = await transaction.fetch(
            "SELECT (SELECT count(*) FROM audit_entry WHERE command = 'customer.update'), "
            "(SELECT state FROM plan WHERE id = $1)",
            plan_id,
        )
    return theirs[0], theirs[1], ours[0], ours[1] or ""


@pytest.mark.parametrize("is_plan", [False, True], ids=["update", "approve"])
async def test_the_row_the_audit_entry_and_the_plan_change_together(
    shop: Shop, proposer: Proposer, send: Send, is_full: bool, figures: Figures, is_plan: bool
) -> None:
    record = (await proposer.call("customer/list", limit=1)).json()["value"][0]
    kill_at, step, points, written_points = 0, 1, 0, 0
    while True:
        visits = FIRST_VISITS + 2 * points
        plan_id = await proposer.propose(visits=visits) if is_plan else ""
        order = {"id": record["id"], "visits": visits, "plan": plan_id, "key": f"{KEY}{points:012x}"}
        before = await _state(shop, plan_id)

        ended = send(**order, kill_at=kill_at)
        after = await _state(shop, plan_id)
        send(**order, kill_at=0)

        is_written = after[1] > before[1]
        # The trigger adds one.
        written = (visits + 1, before[1] + 1, before[2] + 1, "executed" if is_plan else "")
        assert after == (written if is_written else before)
        assert ended["is_killed"] or is_written
        assert await _state(shop, plan_id) == written
        points, written_points = points + 1, written_points + is_written
        if not kill_at:
            step = 1 if is_full else max(1, ended["count"] // SAMPLE)
        elif not ended["is_killed"]:
            break
        kill_at += step

    # The first and the last run were not killed.
    assert points > SAMPLE
    figures |= {"points": points - 2, "written_before_the_kill": written_points - 2, "torn": 0, "doubled": 0}
