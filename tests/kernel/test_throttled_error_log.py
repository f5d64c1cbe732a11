"""An error that repeats takes only a few log lines."""

import pytest
from structlog.testing import capture_logs

from countersign.kernel import telemetry
from countersign.kernel.errors import StorageFull, Unavailable
from countersign.kernel.telemetry import ThrottledErrorLog

FULL = StorageFull("Less than 64 MiB are free.")


def test_the_begin_and_the_end_of_a_full_disk_are_logged() -> None:
    error_log = ThrottledErrorLog("tending", "tending failed")

    with capture_logs() as lines:
        error_log.over()
        for _ in range(100):
            error_log.failed(FULL)
        error_log.over()
        error_log.over()

    begin_line, over = lines
    assert (begin_line["log_level"], begin_line["event"], begin_line["reason"]) == (
        "warning",
        "tending failed",
        FULL.detail,
    )
    assert "exc_info" not in begin_line
    assert (over["log_level"], over["event"], over["failures"]) == ("info", "tending failed: over", 100)


def test_a_lasting_error_is_logged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "REPEAT_S", 0.0)
    error_log = ThrottledErrorLog("tending", "tending failed")

    with capture_logs() as lines:
        error_log.failed(FULL)
        error_log.failed(FULL)

    assert [line["failures"] for line in lines] == [1, 2]


def test_another_kind_of_failure_is_reported_at_once_and_a_fault_with_its_traceback() -> None:
    error_log = ThrottledErrorLog("tending", "tending failed")
    fault = RuntimeError("a fault of ours")

    with capture_logs() as lines:
        for error in (FULL, FULL, Unavailable("The disk failed."), fault, fault):
            error_log.failed(error)

    assert [line["log_level"] for line in lines] == ["warning", "warning", "error"]
    assert lines[2]["exc_info"] is fault


def test_a_new_error_is_logged_after_an_earlier_error_ended() -> None:
    error_log = ThrottledErrorLog("tending", "tending failed")

    with capture_logs() as lines:
        for _ in range(2):
            error_log.failed(FULL)
            error_log.over()

    assert len(lines) == 4
