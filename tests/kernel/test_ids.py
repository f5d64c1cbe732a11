"""Ids of requests and of records: unique, also across forked processes."""

import os

import pytest

from countersign.kernel import clock, ids


def test_request_ids_are_16_hexadecimal_digits_and_unique() -> None:
    request_ids = [ids.new_request_id() for _ in range(10_000)]

    assert len(set(request_ids)) == len(request_ids)
    assert all(len(request_id) == 16 and int(request_id, 16) >= 0 for request_id in request_ids)


def test_request_ids_with_the_same_seed_are_equal_in_every_run() -> None:
    def request_ids(seed: str) -> list[str]:
        with ids.seeded(seed):
            return [ids.new_request_id() for _ in range(3)]

    assert request_ids("a") == request_ids("a")
    assert request_ids("a") != request_ids("b")


def test_a_forked_process_does_not_repeat_the_ids_of_its_parent() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ids.new_request_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        of_child = pipe.read()

    assert len(of_child) == 16
    assert of_child != ids.new_request_id()


def test_record_ids_of_a_series_begin_alike_within_a_second_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "monotonic_s", lambda: 100.0)
    series = ids.RecordIdSeries()
    first_ids = [series.new_id() for _ in range(1_000)]
    monkeypatch.setattr(clock, "monotonic_s", lambda: 101.0)
    later_ids = [series.new_id() for _ in range(1_000)]

    prefixes = [{record_id[:8] for record_id in record_ids} for record_ids in (first_ids, later_ids)]
    assert [len(prefix) for prefix in prefixes] == [1, 1]
    assert prefixes[0] != prefixes[1]
    assert len({*first_ids, *later_ids}) == 2_000
    assert all(len(record_id) == 24 and int(record_id, 16) >= 0 for record_id in first_ids)


def test_record_ids_of_a_series_and_a_seed_are_the_same_in_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    series = ids.RecordIdSeries()
    series.new_id()
    seeded_ids: list[list[str]] = []
    for now_s in (100.0, 101.0):
        monkeypatch.setattr(clock, "monotonic_s", lambda seconds=now_s: seconds)
        with ids.seeded("a"):
            seeded_ids.append([series.new_id() for _ in range(3)])

    assert seeded_ids[0] == seeded_ids[1]
