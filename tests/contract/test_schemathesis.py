"""Schemathesis against the served store: no caller gets a 5xx, or an undocumented status, header or answer, and no
invalid input is accepted.

With --full it runs 20,000 cases or more and prints figures for each caller and phase; otherwise it runs a sample.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.fuzzed import FuzzedStore, serve_fuzzed
from tests.figures import Figures

SEED = 8480
CALLERS = ("anonymous", "key", "player", "publisher")
FULL = {"examples,coverage": (1, 3_000, 0), "fuzzing": (45, 2_800, 0), "stateful": (100, 300, 60)}
"""Examples of each operation, the least number of cases they make, and the seconds for which they are repeated: with
four callers well over 20,000 cases."""
SAMPLE = {
    "anonymous": ("fuzzing,stateful", 2),
    "key": ("fuzzing", 2),
    "player": ("fuzzing,stateful", 2),
    "publisher": ("examples,coverage", 12),
}
"""The phases of each caller with one example. The number 1 calls every operation, and n every nth operation."""
LEAST_SAMPLE = 50


@pytest.fixture(scope="module")
def sampled_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedStore]:
    """The served store, for all callers of a sample."""
    with serve_fuzzed(tmp_path_factory.mktemp("fuzzed") / "data") as running:
        yield running


@pytest.fixture
def fuzzed_store(tmp_path: Path) -> Iterator[FuzzedStore]:
    """A served store for one test, with unchanged data."""
    with serve_fuzzed(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("caller", CALLERS)
def test_a_sample_of_requests_is_answered_as_described(sampled_store: FuzzedStore, caller: str, tmp_path: Path) -> None:
    _require(sampled_store, caller)
    phases, every = SAMPLE[caller]

    report = sampled_store.run(caller, tmp_path, phases=phases, examples=1, seed=SEED, every=every)

    assert_clean(report)
    assert report["test_cases"]["generated"] >= LEAST_SAMPLE


@pytest.mark.full
@pytest.mark.parametrize("phases", FULL)
@pytest.mark.parametrize("caller", CALLERS)
def test_every_request_is_answered_as_described(
    fuzzed_store: FuzzedStore, caller: str, phases: str, tmp_path: Path, figures: Figures
) -> None:
    _require(fuzzed_store, caller)
    examples, least, at_most_s = FULL[phases]

    report = fuzzed_store.run(caller, tmp_path, phases=phases, examples=examples, seed=SEED, at_most_s=at_most_s)

    assert_clean(report)
    cases = report["test_cases"]["generated"]
    assert cases >= least
    figures |= {
        "cases": cases,
        "operations": report["operations"]["tested"],
        "seed": SEED,
        "seconds": round(report["running_time"], 1),
        "failures": 0,
    }


def _require(fuzzed: FuzzedStore, caller: str) -> None:
    if fuzzed.callers[caller] is None:
        pytest.skip("no keys are provisioned here")


def assert_clean(report: dict[str, Any]) -> None:
    """Require that the run was complete and found no fault."""
    log_excerpt = "\n".join(line[:400] for line in report["log"].splitlines())
    assert (report["failures"], report["errors"]) == ([], []), log_excerpt[-12_000:]
    assert report["complete"]
    assert report["exit_code"] == 0, log_excerpt[-4_000:]
