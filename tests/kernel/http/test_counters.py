"""The counters of a node are exact across processes and limited in time and space, also if a worker dies or the file is
damaged."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.kernel import clock
from countersign.kernel.http.rate_limit import COUNTERS_FILE, Quota, SharedMemoryCounters
from tests.kernel import open_files

_NOW_S = 1_795_000_000
_HAMMER = """
import sys
from pathlib import Path
from countersign.kernel.http.rate_limit import SharedMemoryCounters
counters = SharedMemoryCounters(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(sum(counters.hit_now("one key", int(sys.argv[2]), 3600).allowed for _ in range(int(sys.argv[3]))))
"""
_FORKER = """
import os, sys
from pathlib import Path
from countersign.kernel.http.rate_limit import SharedMemoryCounters
counters = SharedMemoryCounters(Path(sys.argv[1]))
counters.hit_now("k", 5001, 3600)
child = os.fork()
allowed = sum(counters.hit_now("k", 5001, 3600).allowed for _ in range(4000))
# One os.write, because an unbuffered print makes two writes, and those of parent and child could interleave.
os.write(1, f"{allowed}\\n".encode())
if child:
    os.waitpid(child, 0)
"""
_HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class _Clock:
    def __init__(self) -> None:
        self.seconds: float = _NOW_S

    def now(self) -> clock.Instant:
        return clock.Instant(int(self.seconds * clock.SECOND))


@pytest.fixture
def settable_clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    settable_clock = _Clock()
    monkeypatch.setattr(clock, "now", settable_clock.now)
    return settable_clock


@pytest.fixture
def counters(tmp_path: Path) -> SharedMemoryCounters:
    return SharedMemoryCounters(tmp_path)


def test_exactly_the_limit_is_allowed_and_each_answer_shows_the_remaining_quota(
    counters: SharedMemoryCounters, settable_clock: _Clock
) -> None:
    answers = [counters.hit_now("k", 3, 60) for _ in range(5)]

    assert answers == [
        Quota(3, 2, 60, True),
        Quota(3, 1, 60, True),
        Quota(3, 0, 60, True),
        Quota(3, 0, 60, False),
        Quota(3, 0, 60, False),
    ]


def test_a_window_begins_at_the_first_hit_and_ends_on_time(
    counters: SharedMemoryCounters, settable_clock: _Clock
) -> None:
    settable_clock.seconds += 0.5
    counters.hit_now("k", 1, 60)

    settable_clock.seconds += 59.25
    assert counters.hit_now("k", 1, 60) == Quota(1, 0, 1, False)
    settable_clock.seconds += 0.75
    assert counters.hit_now("k", 1, 60) == Quota(1, 0, 60, True)


def test_a_cost_that_does_not_fit_is_refused_whole(counters: SharedMemoryCounters) -> None:
    assert counters.hit_now("k", 10, 60, cost=7).remaining == 3
    assert not counters.hit_now("k", 10, 60, cost=4).allowed
    assert counters.hit_now("k", 10, 60, cost=3) == Quota(10, 0, 60, True)
    assert not counters.hit_now("other", 10, 60, cost=11).allowed
    assert not counters.hit_now("none", 0, 60).allowed


async def test_a_peek_counts_nothing(counters: SharedMemoryCounters, settable_clock: _Clock) -> None:
    assert await counters.peek("k", 1, 60) == Quota(1, 1, 60, True)
    assert await counters.hit("k", 1, 60) == Quota(1, 0, 60, True)
    assert await counters.peek("k", 1, 60) == Quota(1, 0, 60, False)


def test_keys_do_not_share_a_count(counters: SharedMemoryCounters) -> None:
    for key in ("a", "b", "", "a\0", "é", "\ud800", "k" * 10_000):
        assert counters.hit_now(key, 1, 60).allowed


def test_counts_survive_a_restart(counters: SharedMemoryCounters, tmp_path: Path) -> None:
    counters.hit_now("k", 1, 3_600)

    assert not SharedMemoryCounters(tmp_path).hit_now("k", 1, 3_600).allowed


def test_eight_processes_together_are_allowed_exactly_the_limit(tmp_path: Path) -> None:
    hammers = [_start(_HAMMER, str(tmp_path), "5000", "2000") for _ in range(8)]
    for hammer in hammers:
        assert _line(hammer) == "ready"

    for hammer in hammers:
        _release(hammer)

    assert sum(int(_line(hammer)) for hammer in hammers) == 5_000
    assert [_exit_code(hammer) for hammer in hammers] == [0] * 8


def test_other_workers_can_count_after_a_worker_is_killed_during_a_count(
    counters: SharedMemoryCounters, tmp_path: Path
) -> None:
    rng = random.Random(7)
    for _ in range(5):
        hammer = _start(_HAMMER, str(tmp_path), "4000000000", "1000000000")
        assert _line(hammer) == "ready"
        _release(hammer)
        remaining_before = counters.hit_now("one key", 4_000_000_000, 3_600).remaining
        for _ in range(rng.randrange(2_000, 20_000)):
            counters.hit_now("one key", 4_000_000_000, 3_600)
        hammer.kill()
        assert _exit_code(hammer) == -signal.SIGKILL

        quota = counters.hit_now("one key", 4_000_000_000, 3_600)
        assert quota.allowed
        assert quota.remaining < remaining_before
        assert counters.hit_now("one key", 4_000_000_000, 3_600).remaining == quota.remaining - 1


def test_a_stopped_worker_with_the_lock_does_not_stop_other_workers(
    counters: SharedMemoryCounters, tmp_path: Path
) -> None:
    holder = _start(_HOLDER, str(tmp_path / "counters.lock"))
    assert _line(holder) == "held"

    began_s = clock.monotonic_s()
    answers = [counters.hit_now("k", 100, 60) for _ in range(50)]
    elapsed_s = clock.monotonic_s() - began_s
    _release(holder)

    assert answers[-1].remaining == 50
    # If each of the 50 hits waited 0.25 s for the lock, they would take 12.5 s.
    assert 0.2 < elapsed_s < 6
    assert _exit_code(holder) == 0


def test_a_forked_child_counts_in_the_same_windows_and_does_not_share_the_lock(tmp_path: Path) -> None:
    forker = _start(_FORKER, str(tmp_path))

    assert int(_line(forker)) + int(_line(forker)) == 5_000
    assert _exit_code(forker) == 0


def test_a_full_bucket_forgets_the_window_that_ends_soonest(tmp_path: Path, settable_clock: _Clock) -> None:
    counters = SharedMemoryCounters(tmp_path, slots=8)
    for number in range(8):
        counters.hit_now(f"k{number}", 1, 100 if number == 3 else 1_000)

    assert counters.hit_now("new", 1, 1_000).allowed

    assert not counters.hit_now("new", 1, 1_000).allowed
    for number in (0, 1, 2, 4, 5, 6, 7):
        assert not counters.hit_now(f"k{number}", 1, 1_000).allowed
    assert counters.hit_now("k3", 1, 100).allowed


def test_an_ended_window_is_replaced_before_a_live_window(tmp_path: Path, settable_clock: _Clock) -> None:
    counters = SharedMemoryCounters(tmp_path, slots=8)
    counters.hit_now("ended", 1, 10)
    settable_clock.seconds += 11
    for number in range(8):
        counters.hit_now(f"k{number}", 1, 5)

    assert not any(counters.hit_now(f"k{number}", 1, 5).allowed for number in range(8))


@pytest.mark.parametrize("jump_s", [-1, -59, -61, -3_600, -10 * 365 * 86_400])
def test_after_the_clock_is_set_back_a_count_remains_for_at_most_one_window(
    counters: SharedMemoryCounters, settable_clock: _Clock, jump_s: int
) -> None:
    counters.hit_now("k", 1, 60)

    settable_clock.seconds += jump_s

    assert counters.hit_now("k", 1, 60) == Quota(1, 0, 60, False)
    settable_clock.seconds += 60
    assert counters.hit_now("k", 1, 60).allowed


def test_windows_from_the_future_make_room_first(tmp_path: Path, settable_clock: _Clock) -> None:
    counters = SharedMemoryCounters(tmp_path, slots=8)
    settable_clock.seconds += 10**6
    for number in range(8):
        counters.hit_now(f"future{number}", 1, 60)
    settable_clock.seconds -= 10**6

    for number in range(8):
        counters.hit_now(f"k{number}", 1, 60)

    assert not any(counters.hit_now(f"k{number}", 1, 60).allowed for number in range(8))


def test_a_clock_set_back_removes_no_counter_while_there_is_space(tmp_path: Path, settable_clock: _Clock) -> None:
    counters = SharedMemoryCounters(tmp_path, slots=8)
    for number in range(4):
        counters.hit_now(f"before{number}", 1, 60)

    settable_clock.seconds -= 1
    for number in range(4):
        counters.hit_now(f"after{number}", 1, 60)

    assert not any(counters.hit_now(f"before{number}", 1, 60).allowed for number in range(4))


def test_a_clock_set_forward_ends_the_windows(counters: SharedMemoryCounters, settable_clock: _Clock) -> None:
    counters.hit_now("k", 1, 60)

    settable_clock.seconds += 10 * 365 * 86_400

    assert counters.hit_now("k", 1, 60).allowed


def test_a_changed_window_length_applies_at_once(counters: SharedMemoryCounters, settable_clock: _Clock) -> None:
    counters.hit_now("k", 1, 3_600)
    settable_clock.seconds += 61

    assert counters.hit_now("k", 1, 60).allowed


_KEYS = st.sampled_from("abcde")
_STEPS = st.one_of(
    st.tuples(st.just("hit"), _KEYS, st.integers(0, 5), st.sampled_from([10, 60]), st.integers(0, 4)),
    st.tuples(st.just("wait"), st.floats(-100, 100)),
    st.tuples(st.just("reopen")),
)


@settings(deadline=None)
@given(steps=st.lists(_STEPS, max_size=60))
def test_any_sequence_of_hits_gets_the_same_quotas_as_from_a_dictionary_of_windows(
    steps: list[tuple[str, str, int, int, int] | tuple[str, float] | tuple[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("counters")
    counters = SharedMemoryCounters(directory, slots=64)
    window_by_key: dict[str, tuple[int, int]] = {}
    settable_clock = _Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", settable_clock.now)
        for step in steps:
            if len(step) == 5:
                _, key, limit, window_s, cost = step
                assert counters.hit_now(key, limit, window_s, cost) == _expected_quota(
                    window_by_key, settable_clock.now(), key, limit, window_s, cost
                )
            elif len(step) == 2:
                settable_clock.seconds += step[1]
            else:
                counters = SharedMemoryCounters(directory, slots=64)


def _expected_quota(
    window_by_key: dict[str, tuple[int, int]], now: int, key: str, limit: int, window_s: int, cost: int
) -> Quota:
    start, count = window_by_key.get(key, (now, 0))
    if start > now:
        start = now
    if now >= start + window_s * clock.SECOND:
        start, count = now, 0
    is_allowed = count + cost <= limit
    count += cost if is_allowed else 0
    window_by_key[key] = (start, count)
    remaining_us = start + window_s * clock.SECOND - now
    return Quota(limit, max(0, limit - count), (remaining_us + clock.SECOND - 1) // clock.SECOND, is_allowed)


@pytest.mark.parametrize(
    "content",
    [b"", b"short", b"X" * (64 + 64 * 32), b"\0" * (64 + 64 * 32), b"CSCOUNT1" + b"\0" * (64 + 64 * 32 - 8)],
    ids=["empty", "short", "foreign", "zeros", "other slot count"],
)
def test_a_damaged_or_foreign_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / COUNTERS_FILE).write_bytes(content)

    counters = SharedMemoryCounters(tmp_path, slots=64)

    assert counters.hit_now("k", 1, 60).allowed
    assert not SharedMemoryCounters(tmp_path, slots=64).hit_now("k", 1, 60).allowed
    assert sorted(path.name for path in tmp_path.iterdir()) == [COUNTERS_FILE, "counters.lock"]
    assert (tmp_path / COUNTERS_FILE).read_bytes()[:12] == b"CSCOUNT1" + (64).to_bytes(4, "little")


def test_new_callers_are_allowed_although_the_slots_contain_garbage(tmp_path: Path, settable_clock: _Clock) -> None:
    SharedMemoryCounters(tmp_path, slots=64)
    path = tmp_path / COUNTERS_FILE
    path.write_bytes(path.read_bytes()[:64] + random.Random(1).randbytes(64 * 32))

    counters = SharedMemoryCounters(tmp_path, slots=64)

    assert all(counters.hit_now(f"k{number}", 1, 60).allowed for number in range(20))


def test_the_file_has_reserved_space_and_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    SharedMemoryCounters(tmp_path)

    status = (tmp_path / COUNTERS_FILE).stat()
    assert status.st_size == 64 + 65_536 * 32
    assert status.st_blocks * 512 >= status.st_size
    assert status.st_mode & 0o777 == 0o600


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SharedMemoryCounters(tmp_path / "none")


@pytest.mark.parametrize("slots", [0, -8, 7, 12])
def test_slots_that_fill_no_bucket_are_an_error(tmp_path: Path, slots: int) -> None:
    with pytest.raises(ValueError, match="multiple of 8"):
        SharedMemoryCounters(tmp_path, slots)


async def test_closing_releases_every_file(tmp_path: Path) -> None:
    counters = SharedMemoryCounters(tmp_path)
    files_before = open_files.open_files_below(tmp_path)

    await counters.close()

    assert files_before
    assert open_files.open_files_below(tmp_path) == []


def _start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _release(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.close()


def _exit_code(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    process.stdin.close()
    assert process.stdout is not None
    process.stdout.close()
    return process.wait(60)
