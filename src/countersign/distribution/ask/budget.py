"""How much work one question may cause: steps of the search are counted, and the CPU time of the reader is measured."""

import asyncio
import contextvars
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from countersign.kernel import clock
from countersign.kernel.errors import Unavailable

MAX_STEPS = 60_000
"""Steps of one question. The same question always takes the same number, whatever else the machine does."""
MAX_CPU_S = 0.09
"""CPU time of reading one question, for steps that cost more than usual. What the event loop does for it comes to
about 10 ms, so that a question takes 100 ms at most."""
MAX_WAITING = 32
"""Questions that wait for the reader in one process."""
_STEPS_PER_LOOK = 64

_Result = TypeVar("_Result")

# One thread: questions are read one after another, and the event loop competes with one of them at most.
_reader = ThreadPoolExecutor(1, thread_name_prefix="questions")


class TooInvolved(Exception):
    """The question takes more steps or more CPU time than one question may."""


class Budget:
    """What is left of one question's steps and CPU time."""

    def __init__(self, max_steps: int = MAX_STEPS, max_cpu_s: float | None = None) -> None:
        self._steps_left = max_steps
        self._cpu_left = MAX_CPU_S if max_cpu_s is None else max_cpu_s
        self._ends_at: float | None = None
        self._until_look = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps of work.

        Raises:
            TooInvolved: none are left, or no CPU time is.
        """
        self._steps_left -= steps
        if self._steps_left < 0:
            raise TooInvolved
        self._until_look -= steps
        if self._until_look < 0:
            self._until_look = _STEPS_PER_LOOK
            if self._ends_at is not None and clock.thread_cpu_s() > self._ends_at:
                raise TooInvolved

    def measured(self, work: Callable[[], _Result]) -> _Result:
        """Do the work on this thread, and take its CPU time from what is left.

        Raises:
            TooInvolved: as `spend`.
        """
        begun = clock.thread_cpu_s()
        self._ends_at = begun + self._cpu_left
        try:
            return work()
        except RecursionError as error:
            raise TooInvolved from error
        finally:
            self._ends_at = None
            self._cpu_left -= clock.thread_cpu_s() - begun

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Do the work on the thread that reads questions, so that the event loop goes on.

        Raises:
            TooInvolved: as `spend`.
            Unavailable: too many questions wait already.
        """
        if self._cpu_left <= 0:
            raise TooInvolved
        with _waiting:
            context = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(_reader, lambda: context.run(self.measured, work))


class _Waiting:
    """How many pieces of work wait for the reader of this process."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        if self.count >= MAX_WAITING:
            raise Unavailable("too many questions are being read", headers={"Retry-After": "1"})
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


_waiting = _Waiting()
_CURRENT: contextvars.ContextVar[Budget | None] = contextvars.ContextVar("question_budget", default=None)


def current() -> Budget:
    """The budget of the question that is being answered; a new one outside of any."""
    return _CURRENT.get() or Budget()


@contextmanager
def of_question() -> Generator[Budget]:
    """The budget of one question, for all that is done within; what is nested shares it."""
    held = _CURRENT.get()
    if held is not None:
        yield held
        return
    budget = Budget()
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)
