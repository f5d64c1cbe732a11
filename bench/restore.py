"""Compares backup and restore of an installation of 1 GiB (half in the database, half in files) with `tar` of the same
directory and `sync`.

tar is the floor: it neither encrypts nor verifies, and its copy of a database in use could not be restored.
"""

import asyncio
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import harness
import seed
from harness import Bench
from processes import ROOT

MIB = 1 << 20
SIZE_MIB, QUICK_MIB = 1024, 128
TARGET_S = 60
BLOB_MIB = 8
ROW_BYTES = 4096
FILL = """
    INSERT INTO idempotency (key_hash, request_hash, status, headers, body, sealed, created_at)
    VALUES ($1, $2, 200, '', $3, 0, 0)
"""


async def fill(data: Path, url: str, size_mib: int) -> None:
    """Create a store with this amount of data, half in its database and half in its files."""
    from countersign.settings import Settings
    from countersign.store import lifespan
    from countersign.store.releases import blobs

    rng = random.Random(3)
    settings = Settings(data=str(data), database_url=url, master_key=seed.MASTER_KEY if url else "")
    async with lifespan.open_store(settings, "http://127.0.0.1:8480", is_loopback=True) as store:
        for _ in range(size_mib // 2 // BLOB_MIB):
            sha256 = await blobs.put(store.database, store.blobs, rng.randbytes(BLOB_MIB * MIB))
            async with store.database.transaction() as transaction:
                await blobs.keep(transaction, [await blobs.touch(transaction, sha256, BLOB_MIB * MIB)])
        for _ in range(size_mib // 2 // 16):
            rows = [
                (rng.randbytes(32), rng.randbytes(32), rng.randbytes(ROW_BYTES)) for _ in range(16 * MIB // ROW_BYTES)
            ]
            async with store.database.transaction() as transaction:
                await transaction.run_many(FILL, rows)


def run_timed(command: list[str | Path], url: str = "") -> tuple[float, float]:
    """Run the command, and return its seconds including the writes to the disk, and its CPU seconds."""
    variables = {"PYTHONPATH": str(ROOT / "src"), "COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple"}
    if url:
        variables |= {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": seed.MASTER_KEY}
    began_s, usage_before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    os.sync()
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    return time.monotonic() - began_s, cpu_s


def measure(bench: Bench, database: str) -> None:
    """Measure tar, backup, untar and restore in rounds."""
    size_mib = QUICK_MIB if bench.options.is_quick else SIZE_MIB
    own_command = [sys.executable, "-m", "countersign.cli.main"]
    data, tar_path = bench.folder / f"{database}-data", bench.folder / f"{database}.tar"
    archive, copy = bench.folder / f"{database}.backup", bench.folder / f"{database}-copy"
    is_postgres = database == "postgres"
    asyncio.run(fill(data, _new_database(bench, "filled") if is_postgres else "", size_mib))
    source = _url(bench, "filled") if is_postgres else ""
    took_s: dict[str, list[tuple[float, float]]] = {}
    for number in range(bench.options.rounds):
        target = _new_database(bench, f"copy_{number}") if is_postgres else ""
        for name, command, url in (
            ("tar c", ["tar", "cf", tar_path, "-C", data, "."], ""),
            ("backup", [*own_command, "backup", archive, "--data", data], source),
            ("tar x", ["tar", "xf", tar_path, "-C", _new_folder(copy)], ""),
            ("restore", [*own_command, "restore", archive, "--to", copy.with_suffix(".restored")], target),
            ("verify", [*own_command, "verify", archive], ""),
        ):
            took_s.setdefault(name, []).append(run_timed(command, url))
        for path in (copy, copy.with_suffix(".restored")):
            shutil.rmtree(path)
        archive.unlink()
    for name, times in took_s.items():
        seconds, cpu_s = (statistics.median(values) for values in zip(*times, strict=True))
        print(f"  {database}, {name:8} {seconds:6.1f} s, {size_mib / seconds:6.0f} MiB/s, {cpu_s:6.1f} s of CPU")
        bench.other[f"{database}, {name}"] = {
            "s": round(seconds, 2),
            "mib_s": round(size_mib / seconds),
            "cpu_s": round(cpu_s, 2),
        }
    per_gib_s = statistics.median(wall for wall, _ in took_s["restore"]) * SIZE_MIB / size_mib
    bench.aim(f"{database}: {TARGET_S} s against restoring 1 GiB", TARGET_S / per_gib_s, 1)
    shutil.rmtree(data)
    tar_path.unlink()


def _new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _url(bench: Bench, name: str) -> str:
    if bench.cluster is None:
        raise RuntimeError("PostgreSQL is not installed")
    return bench.cluster.url(name)


def _new_database(bench: Bench, name: str) -> str:
    """Create an empty database and return its address."""
    url = _url(bench, name)
    if bench.cluster is not None:
        bench.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
    return url


if __name__ == "__main__":
    with harness.bench("restore", "Backup and restore", needs_load=False) as current:
        for engine in current.options.databases:
            measure(current, engine)
