"""Acknowledged writes survive: killed processes, two processes, a full disk, a disk whose sync fails."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from countersign.kernel.database.sqlite import open_sqlite

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
KILLS = 20


def _command(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"tests.kernel.database.{module}", *map(str, arguments)]


def _acknowledged_numbers(lines: list[str]) -> set[int]:
    return {int(line[1:]) for line in lines if line.startswith("+")}


def _kept_numbers(path: Path) -> set[int]:
    """Return the numbers of which both rows exist. The test fails if only one of them exists or the file is damaged."""
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    ids = {row[0] for row in connection.execute("SELECT id FROM thing")}
    connection.close()
    numbers = {number for number in ids if number > 0}
    assert ids == numbers | {-number for number in numbers}, "half a transaction"
    return numbers


def test_no_acknowledged_write_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    rng = random.Random(7)
    acknowledged: set[int] = set()
    for round_ in range(KILLS):
        command = _command("writing", path, 1 + round_ * 100_000, 0)
        process = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(rng.randint(1, 400))]
        process.kill()
        lines += process.stdout.readlines()
        process.stdout.close()
        process.wait()

        acknowledged |= _acknowledged_numbers([line for line in lines if line.endswith("\n")])
        assert acknowledged <= _kept_numbers(path)

    assert len(acknowledged) > KILLS


async def test_a_start_after_a_crash_writes_the_log_into_the_database_file_and_begins_a_new_log(tmp_path: Path) -> None:
    path, log = tmp_path / "a.db", tmp_path / "a.db-wal"
    command = _command("writing", path, 1, 0)
    process = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(50)]
    process.kill()
    process.stdout.close()
    process.wait()
    assert log.stat().st_size

    database = await open_sqlite(path)

    assert log.stat().st_size == 0
    kept_ids = {row[0] for row in await database.fetch("SELECT id FROM thing")}
    assert _acknowledged_numbers(lines) <= kept_ids
    await database.close()


def test_processes_that_start_at_once_all_open_a_new_file(tmp_path: Path) -> None:
    for round_ in range(3):
        path = tmp_path / f"{round_}.db"
        writers_started = [
            subprocess.Popen(
                _command("writing", path, 1 + number * 100, 3),
                env=ENVIRONMENT,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(4)
        ]
        outputs = [process.communicate(timeout=60)[0].splitlines() for process in writers_started]

        assert [len(_acknowledged_numbers(lines)) for lines in outputs] == [3] * 4
        assert len(_kept_numbers(path)) == 12


def test_two_processes_write_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writers = [
        subprocess.Popen(
            _command("writing", path, first_number, 300), env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for first_number in (1, 1001)
    ]
    outputs = [writer.communicate(timeout=60)[0].splitlines() for writer in writers]

    assert [writer.returncode for writer in writers] == [0, 0]
    everything = {*range(1, 301), *range(1001, 1301)}
    assert _acknowledged_numbers(outputs[0]) | _acknowledged_numbers(outputs[1]) == everything == _kept_numbers(path)


def test_on_a_full_volume_writes_are_refused_completely_and_work_again_with_free_space(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not on this machine: install util-linux to run this test")
    command = ["unshare", "-m", "--", *_command("filling", tmp_path)]
    result = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False)
    if (result.returncode and "unshare" in result.stderr) or result.stdout == "no mount\n":
        pytest.skip("only root may mount a small volume")

    assert result.returncode == 0, result.stderr
    *lines, last_line = result.stdout.splitlines()
    content = json.loads(last_line)
    refusals = {line.split()[1] for line in lines if line.startswith("-")}
    assert refusals == {"StorageFull"}
    assert len(content["acknowledged"]) > 16
    assert content["kept_while_full"] == content["acknowledged"]
    assert content["later"] == [True] * 8
    assert content["kept_after"] == len(content["acknowledged"]) + 8
    assert content["check"] == "ok"


@pytest.mark.parametrize("failing_sync", [9, 14, 20])
def test_after_a_sync_that_failed_nothing_more_is_acknowledged_until_a_restart(
    tmp_path: Path, failing_sync: int
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not on this machine: install strace to run this test")
    path, log = tmp_path / "a.db", tmp_path / "log"
    # One sync fails. A second attempt would report success although data is missing.
    fault = f"inject=fsync,fdatasync:error=EIO:when={failing_sync}"
    tracer = ["strace", "-f", "-qq", "-o", str(log), "-e", "trace=fsync,fdatasync", "-e", fault]
    result = subprocess.run(
        [*tracer, *_command("writing", path, 1, 200)],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in result.stderr.lower() and "not permitted" in result.stderr:
        pytest.skip("this machine does not let strace trace")

    assert result.returncode == 0, result.stderr
    assert re.search("EIO.*INJECTED", log.read_text())
    lines = result.stdout.splitlines()
    outcomes = [line for line in lines if line[0] in "+-"]
    first_refused = next(number for number, line in enumerate(outcomes) if line.startswith("-"))
    assert {line.split()[1] for line in outcomes[first_refused:]} == {"Unavailable"}
    # Reads continued, and saw the acknowledged writes.
    assert lines[-1] == f"={2 * len(_acknowledged_numbers(lines))}"
    assert _acknowledged_numbers(lines) <= _kept_numbers(path)

    second_result = subprocess.run(
        _command("writing", path, 1001, 10), env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(_acknowledged_numbers(second_result.stdout.splitlines())) == 10
