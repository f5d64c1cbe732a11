"""The clock that tests may fix, and the random numbers that they may seed."""

from contextlib import ExitStack

from countersign.kernel import clock, ids


def test_blocks_that_overlap_leave_the_clock_to_the_machine() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(clock.fixed(clock.Instant(1)))
    second.enter_context(clock.fixed(clock.Instant(2)))
    first.close()
    during = clock.now()
    second.close()

    assert (during, clock.now() > 2) == (2, True)


def test_the_inner_block_gives_the_clock_back_to_the_outer() -> None:
    with clock.fixed(clock.Instant(1)), clock.fixed(clock.Instant(2)):
        with clock.fixed(clock.Instant(1)):
            pass
        inner = clock.now()

    assert inner == 2


def test_blocks_that_overlap_leave_chance_to_the_machine() -> None:
    found: list[bytes] = []
    for _ in range(2):
        first, second = ExitStack(), ExitStack()
        first.enter_context(ids.seeded("first"))
        second.enter_context(ids.seeded("second"))
        first.close()
        second.close()
        found.append(ids.random_bytes(16))

    assert found[0] != found[1]
