"""Reading a question takes less than 20 ms of CPU time, for any 2,000 characters."""

import time

import pytest

from tests.scaling.parsers import QUESTIONS, read_question

MAX_CPU_S = 0.02
LENGTH = 2_000
TIMES = 5


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_question_is_read_in_20_ms_of_cpu(name: str) -> None:
    text = QUESTIONS[name](LENGTH)[:LENGTH]
    costs: list[float] = []
    for _ in range(TIMES):
        began_s = time.thread_time()
        read_question(text)
        costs.append(time.thread_time() - began_s)

    assert min(costs) < MAX_CPU_S
