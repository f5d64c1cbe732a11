"""The clock that tests may fix, and the random numbers that they may seed."""

from contextlib import ExitStack

from countersign.kernel import clock, ids


def test_blocks_that_overlap_leave_the_clock_to_the_machine() -> None:
    first_block, second_block = ExitStack(), ExitStack()
    first_block.enter_context(clock.fixed(clock.Instant(1)))
    second_block.enter_context(clock.fixed(clock.Instant(2)))
    first_block.close()
    during = clock.now()
    second_block.close()

    assert (during, clock.now() > 2) == (2, True)


def test_the_inner_block_gives_the_clock_back_to_the_outer() -> None:
    with clock.fixed(clock.Instant(1)), clock.fixed(clock.Instant(2)):
        with clock.fixed(clock.Instant(1)):
            pass
        inner = clock.now()

    assert inner == 2


def test_blocks_that_overlap_leave_chance_to_the_machine() -> None:
    random_values: list[bytes] = []
    for _ in range(2):
        first_block, second_block = ExitStack(), ExitStack()
        first_block.enter_context(ids.seeded("first"))
        second_block.enter_context(ids.seeded("second"))
        first_block.close()
        second_block.close()
        random_values.append(ids.random_bytes(16))

    assert random_values[0] != random_values[1]
