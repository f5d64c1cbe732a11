"""Backups of a served installation: no acknowledged write is missing, and a restored installation serves."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from tests.faults import drill, wire
from tests.faults.drill import DataDirectory, WriterLoad
from tests.figures import Figures
from tests.servers.countersign import Running
from tests.servers.postgres import PostgresFactory
from tests.servers.s3 import Bucket

SAMPLE, DRILLS_FULL = (0, 1, 3), 20
PAUSE_S, PAUSE_S_FULL = 0.05, 0.0
KINDS = ("sqlite", "postgres", "sqlite", "postgres and s3")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a drill on each database and one that blocks writes. With --full, run twenty of each."""
    if "number" in metafunc.fixturenames:
        numbers = range(DRILLS_FULL) if metafunc.config.getoption("--full") else SAMPLE
        metafunc.parametrize(("kind", "number"), [(KINDS[number % len(KINDS)], number) for number in numbers])


def places(kind: str, request: pytest.FixtureRequest, folder: Path) -> tuple[DataDirectory, DataDirectory]:
    """Return the original's place, and an empty place like it: SQLite, PostgreSQL, files in folders or in a bucket."""
    if kind == "sqlite":
        return DataDirectory.create(folder / "original"), DataDirectory.create(folder / "copy")
    new_url: PostgresFactory = request.getfixturevalue("new_postgres_url")
    bucket: Bucket | None = request.getfixturevalue("s3_url") if "s3" in kind else None
    original = DataDirectory.create(folder / "original", new_url(), bucket)
    return original, DataDirectory.create(folder / "copy", new_url(), bucket, "there")


def test_nothing_acknowledged_before_the_moment_of_a_backup_is_missing(
    kind: str, number: int, request: pytest.FixtureRequest, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    original, copy = places(kind, request, tmp_path)
    holds_writes = number % 4 > 1
    archive = tmp_path / "one.backup"
    if not is_full:
        original.write_demonstration()
    options = ["--hold-writes"] if holds_writes else []
    with original.serve(*(["--demo"] if is_full else [])) as running:
        load, backup_report = asyncio.run(
            drill.back_up_under_load(original, running, PAUSE_S_FULL if is_full else PAUSE_S, archive, *options)
        )

    restore_report = copy.command_output("restore", archive, "--to", copy.data)
    verify_report = copy.command_output("verify", copy.data)

    moment = str(backup_report["ended" if holds_writes else "moment"])
    acknowledged = sum(at < drill.time_of(moment) for names in load.acknowledged.values() for at in names.values())
    figures |= {
        "acknowledged_before": acknowledged,
        "lost": len(drill.missing_writes(load, copy, moment)),
        "holds_writes": holds_writes,
        "window_s": round(drill.time_of(str(backup_report["ended"])) - drill.time_of(str(backup_report["moment"])), 3),
    }
    assert restore_report["moment"] == backup_report["moment"]
    assert verify_report == {"ok": True, "data": str(copy.data), "findings": []}
    assert acknowledged > 0
    assert not drill.missing_writes(load, copy, moment)
    with copy.serve() as running:
        asyncio.run(a_day_after(running, copy, load))


async def a_day_after(running: Running, copy: DataDirectory, load: WriterLoad) -> None:
    """Old sessions are no longer valid; a person who signs in again can read, write and download."""
    lead = json.dumps({"title": "after the restore"}).encode()
    assert await drill.status(running.records_port, "/api/lead/create", load.person, lead) == 401
    assert await drill.status(running.port, "/api/v1/org", load.publisher) == 401

    person, publisher = await drill.sign_in(running.records_port), await asyncio.to_thread(copy.publisher)
    assert await drill.status(running.records_port, "/api/lead/create", person, lead) == 200
    for name in await asyncio.to_thread(copy.entries_of, "artifact") & load.files.keys():
        artifact_id, digest = load.files[name]
        answer = await wire.call(running.port, "GET", f"/api/v1/artifacts/{artifact_id}", token=publisher)
        assert hashlib.sha256(answer.body).hexdigest() == digest, answer
    release = json.dumps({"version": "2.0.0", "channel": "beta"}).encode()
    assert await drill.status(running.port, "/api/v1/products/drill/releases", publisher, release) == 201
