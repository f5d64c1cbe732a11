"""Ids of requests: unique, also across forked processes."""

import os

from countersign.kernel import ids


def test_request_ids_are_16_hexadecimal_digits_and_unique() -> None:
    request_ids = [ids.new_request_id() for _ in range(10_000)]

    assert len(set(request_ids)) == len(request_ids)
    assert all(len(request_id) == 16 and int(request_id, 16) >= 0 for request_id in request_ids)


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
