"""The imports of the benchmarks exist, and the guard against slower code decides as documented."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.figures import ROOT

BENCH = ROOT / "bench"


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    modules_before = set(sys.modules)
    yield import_module("guard")
    for name in set(sys.modules) - modules_before:
        if getattr(sys.modules[name], "__file__", None) and str(BENCH) in str(sys.modules[name].__file__):
            del sys.modules[name]


class FixedRatios:
    """A harness whose comparisons return these ratios, one after the other."""

    def __init__(self, *ratios: float) -> None:
        self.left = list(ratios)

    def compare(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(ratios={"ours/base": self.left.pop(0)})


def test_every_benchmark_imports() -> None:
    names = [file.stem for file in sorted(BENCH.glob("*.py"))]
    contenders = [f"contenders.{file.stem}" for file in sorted((BENCH / "contenders").glob("[a-z]*.py"))]
    optional = {"contenders.django_peer", "contenders.procrastinate_alone", "contenders.fast"}
    program = "\n".join(f"import {name}" for name in (*names, *(set(contenders) - optional)))
    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    result = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=False, env=environment)

    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("ratios", "is_fast"), [((0.95,), True), ((0.8, 0.89, 0.91), True), ((0.8, 0.89, 0.899), False)]
)
def test_a_benchmark_is_slower_only_if_all_three_comparisons_are_slower(
    guard: Any, ratios: tuple[float, ...], *, is_fast: bool
) -> None:
    assert guard.is_fast_enough(FixedRatios(*ratios), "redeem", {}) is is_fast


def test_a_resumed_benchmark_without_postgresql_finds_its_results_on_sqlite(
    guard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = import_module("harness")
    without_postgres = pytest.skip.Exception("PostgreSQL is not installed")
    for name, value in (("RESULTS", tmp_path), ("ROOT", tmp_path), ("commit", lambda: "abc")):
        monkeypatch.setattr(harness, name, value)
    monkeypatch.setattr(harness, "postgres", Mock(side_effect=without_postgres))
    monkeypatch.setattr(sys, "argv", ["redeem", "--resume"])
    (tmp_path / "redeem-sqlite.json").write_text('{"commit": "abc"}')

    with pytest.raises(SystemExit), harness.bench("redeem", "POST /redeem", needs_load=False):
        pytest.fail("the benchmark is measured again")


def test_a_baseline_missing_from_the_clone_is_reported(guard: Any) -> None:
    assert "git fetch --unshallow" in guard.missing("0" * 40)
