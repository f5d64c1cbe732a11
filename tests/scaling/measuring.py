"""Measures how the cost of work grows with its input. The cost is the least CPU time of this thread in five runs, at n,
2n and 4n."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

MAX_FACTOR = 2.6
"""The maximum growth of the cost when the input doubles."""
FLOOR_S = 0.005
"""A cost at 4n below this is too small to be measured."""
TIMES = 5
LARGEST_BEGIN_S = 0.1
"""The maximum cost of a sixteenth of the longest input. A more expensive work is not measured further."""

REPEATS = 2
"""The number of times that an apparently superlinear result is measured again."""

_Input = TypeVar("_Input")


class CostGrowth:
    """The cost of the work at n, 2n and 4n."""

    def __init__(self, costs: tuple[float, float, float]) -> None:
        self.costs = costs

    @property
    def is_linear(self) -> bool:
        """Return whether the last doubling, or both doublings together, cost no more than allowed. One disturbed figure
        is ignored."""
        quarter_cost, half_cost, full_cost = self.costs
        return (
            full_cost < FLOOR_S
            or full_cost / max(half_cost, 1e-9) <= MAX_FACTOR
            or full_cost / max(quarter_cost, 1e-9) <= MAX_FACTOR**2
        )

    def __str__(self) -> str:
        return " → ".join(f"{cost * 1000:.2f} ms" for cost in self.costs)


def growth(make: Callable[[int], _Input], work: Callable[[_Input], object], longest: int) -> CostGrowth:
    """Return the costs of the work on inputs of a quarter, half and all of `longest`. An apparently superlinear result
    is measured again, because other processes disturb measurements of a millisecond."""
    cost_growth = _growth(make, work, longest)
    for _ in range(REPEATS):
        if cost_growth.is_linear:
            break
        cost_growth = _growth(make, work, longest)
    return cost_growth


def _growth(make: Callable[[int], _Input], work: Callable[[_Input], object], longest: int) -> CostGrowth:
    begin = _cost(work, make(longest // 16), 1)
    if begin > LARGEST_BEGIN_S:
        return CostGrowth((begin, float("inf"), float("inf")))
    largest_cost = _cost(work, make(longest), 1)
    if largest_cost < FLOOR_S:
        return CostGrowth((0.0, 0.0, largest_cost))
    quarter_cost, half_cost = (_cost(work, make(longest // divisor), TIMES) for divisor in (4, 2))
    return CostGrowth((quarter_cost, half_cost, min(largest_cost, _cost(work, make(longest), TIMES - 1))))


def _cost(work: Callable[[_Input], object], work_input: _Input, times: int) -> float:
    least = float("inf")
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(times):
            began_s = time.thread_time()
            work(work_input)
            least = min(least, time.thread_time() - began_s)
    finally:
        if was_collecting:
            gc.enable()
    return least
