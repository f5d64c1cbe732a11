"""Measures the time of the test suite, alone or while other processes are busy: `python bench/test_runs.py quick --runs
3`.

Each run is one `make TARGET` in this checkout. It adds a line to docs/results/test_runs.jsonl with its wall clock and
CPU time in seconds, its exit code, the counts of pytest, and the number of busy processes.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
RESULTS = REPO / "docs/results/test_runs.jsonl"
LOG = Path(tempfile.gettempdir()) / "countersign-test-run.log"
"""The file with the output of the last run that failed."""
TAIL_LINES = 40


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Run this number of processes in an endless loop until the block ends."""
    busy_processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy_processes:
            process.kill()
            process.wait()


def run(target: str, busy_processes: int) -> dict[str, object]:
    """Run the target once and return its times and results."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=REPO, capture_output=True, text=True, check=True
    )
    started_at, began = datetime.now(UTC), time.monotonic()
    with busy(busy_processes):
        process = subprocess.Popen(
            ["make", target], cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        lines = [line.rstrip() for line in process.stdout]
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        LOG.write_text("\n".join(lines))
        print(f"The output is in {LOG}.")
    print("\n".join(line for line in lines[-TAIL_LINES:] if line.startswith(("FAILED", "ERROR", "make"))))
    summary_lines = [line.strip("= ") for line in lines if re.search(r"\b\d+ (passed|failed)\b", line)]
    return {
        "commit": commit.stdout.strip(),
        "at": started_at.isoformat(timespec="seconds"),
        "target": target,
        "busy_processes": busy_processes,
        "processors": os.cpu_count(),
        "seconds": round(seconds, 1),
        "user_s": round(usage.ru_utime, 1),
        "system_s": round(usage.ru_stime, 1),
        "exit_code": process.returncode,
        "pytest": summary_lines[-1] if summary_lines else "",
    }


def main() -> None:
    """Measure the runs that the command line requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=("quick", "test"))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0, help="busy processes beside each run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for _ in range(arguments.runs):
        line = json.dumps(run(arguments.target, arguments.busy))
        print(line, flush=True)
        with arguments.out.open("a") as results:
            results.write(line + "\n")


if __name__ == "__main__":
    main()
