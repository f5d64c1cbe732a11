"""Compares the ingest of a 1 GiB build (upload, chunks, signed manifest) with rsync, restic and borg, and verification
with b3sum.

The build is packed first, as a publisher would pack it. The measured time is from the first byte sent to the manifest.
rsync copies the tree to the same volume. restic and borg back up the tree into a new repository. borg runs without
encryption; restic always encrypts.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
import psutil
from harness import Bench
from processes import ROOT
from transfer import Publisher, serve_store

MIB = 1 << 20
PACKS, QUICK_PACKS, PACK_BYTES = 60, 8, 16 * MIB
SMALL_FILES = 4000
BACKUP_TARGET, MAX_RSS_MIB, VERIFY_TARGET = 2.0, 300, 0.8

Once = Callable[[Path, Path], None]


def write_build(tree: Path, packs: int) -> int:
    """Write a build like a game: large packs, half of whose content is compressible, and many small files. Return its
    size in bytes."""
    rng = random.Random(1)
    words = [rng.randbytes(5).hex().encode() for _ in range(4000)]
    text = b" ".join(rng.choices(words, k=PACK_BYTES // 11))
    for number in range(packs):
        content = bytearray(rng.randbytes(PACK_BYTES // 2))
        start = rng.randrange(len(text) // 4)
        content += text[start : start + PACK_BYTES // 2]
        path = tree / "packs" / f"{number:03}.pak"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for number in range(SMALL_FILES):
        path = tree / f"small-{number % 50:02}" / f"{number:05}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text[number * 100 : number * 100 + rng.randrange(200, 12_000)])
    return sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())


def by_rsync(tree: Path, target: Path) -> None:
    """Copy the tree with rsync."""
    subprocess.run(["rsync", "-a", f"{tree}/", target], check=True)


def by_restic(tree: Path, target: Path) -> None:
    """Back up the tree with restic into a new repository."""
    environment = {**os.environ, "RESTIC_PASSWORD": "bench", "RESTIC_CACHE_DIR": str(target.with_name("cache"))}
    for arguments in (["init"], ["backup", str(tree)]):
        subprocess.run(["restic", "-q", "-r", target, *arguments], check=True, env=environment)


def by_borg(tree: Path, target: Path) -> None:
    """Back up the tree with borg into a new, unencrypted repository."""
    environment = {**os.environ, "BORG_BASE_DIR": str(target.with_name("cache"))}
    subprocess.run(["borg", "init", "--encryption", "none", target], check=True, env=environment)
    subprocess.run(["borg", "create", f"{target}::one", tree], check=True, env=environment)


PEERS: dict[str, Once] = {"rsync": by_rsync, "restic": by_restic, "borg": by_borg}


class MemoryWatch:
    """Records the highest memory use of any worker or ingest process below a process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.highest_mib = 0.0

    def sample(self) -> None:
        """Read the current memory use of the processes."""
        for process in self._process.children(recursive=True):
            try:
                arguments = " ".join(process.cmdline())
                if "worker" in arguments or "ingest" in arguments:
                    self.highest_mib = max(self.highest_mib, process.memory_info().rss / MIB)
            except psutil.Error:
                continue


class Ingest:
    """Uploads builds to the store and processes them, one after another."""

    def __init__(self, publisher: Publisher, watching: MemoryWatch) -> None:
        self._publisher = publisher
        self._watching = watching
        self.parts_s: dict[str, list[float]] = {"upload": [], "processing": []}

    def take(self, archive: Path, name: str) -> str:
        """Upload and process a build, and return the id of the artifact."""
        artifact, upload_s = self._publisher.upload(archive, name)
        began_s = time.monotonic()
        self.job("build.process", {"artifact_id": artifact, "again": True})
        self.parts_s["upload"].append(upload_s)
        self.parts_s["processing"].append(time.monotonic() - began_s)
        return artifact

    def job(self, kind: str, payload: dict[str, object]) -> dict[str, object]:
        """Start a job, wait until it has ended, and return its result."""
        body = json.dumps({"type": kind, "payload": payload}).encode()
        job = self._publisher.post("/api/v1/jobs", body)
        while job["status"] not in ("completed", "failed"):
            time.sleep(0.02)
            self._watching.sample()
            job = self._publisher.get(f"/api/v1/jobs/{job['job_id']}")
        if job["status"] == "failed":
            raise RuntimeError(str(job["error"]))
        result = job["result"]
        assert isinstance(result, dict)
        return result


def seconds_of(work: Callable[[], object]) -> float:
    """Run the function and return the seconds."""
    os.sync()
    began_s = time.monotonic()
    work()
    return time.monotonic() - began_s


@contextmanager
def clear_path(path: Path) -> Iterator[Path]:
    """Provide a path that does not exist before and after the block."""
    shutil.rmtree(path, ignore_errors=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def measure(bench: Bench) -> None:
    """Measure ours, rsync, restic and borg in rounds, and then verification beside b3sum."""
    tree, archive = bench.folder / "tree", bench.folder / "build.tar"
    size = write_build(tree, QUICK_PACKS if bench.options.is_quick else PACKS)
    subprocess.run(["tar", "-cf", archive, "-C", tree, "."], check=True)
    peers = {name: run_once for name, run_once in PEERS.items() if shutil.which(name)}
    skipped_names = sorted(PEERS.keys() - peers.keys())
    took_s: dict[str, list[float]] = {name: [] for name in ("countersign", *peers)}
    with serve_store(bench.folder) as (port, pid):
        watching = MemoryWatch(pid)
        ingest = Ingest(Publisher(port), watching)
        for number in range(bench.options.rounds):
            took_s["countersign"].append(seconds_of(lambda n=number: ingest.take(archive, f"build-{n}.tar")))
            for name, run_once in peers.items():
                with clear_path(bench.folder / "target") as target, clear_path(bench.folder / "cache"):
                    took_s[name].append(seconds_of(lambda run_once=run_once, target=target: run_once(tree, target)))
    _report(bench, size, took_s, ingest, watching)
    bench.other["skipped"] = skipped_names
    _verify(bench, tree, size)


def _report(bench: Bench, size: int, took_s: dict[str, list[float]], ingest: Ingest, watching: MemoryWatch) -> None:
    own_times = took_s["countersign"]
    medians = {name: statistics.median(times) for name, times in took_s.items()}
    print(f"\n{size / MIB:.0f} MiB, seconds: " + ", ".join(f"{name} {each:.2f}" for name, each in medians.items()))
    median_by_part = {name: statistics.median(times) for name, times in ingest.parts_s.items()}
    print("  of ours: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in median_by_part.items()))
    print(f"  most memory of a worker or reader: {watching.highest_mib:.0f} MiB")
    bench.other.update(seconds=took_s, parts_s=ingest.parts_s, rss_mib=round(watching.highest_mib, 1), mib=size // MIB)
    if "rsync" in took_s:
        ratio = statistics.median(
            own_time / peer_time for own_time, peer_time in zip(own_times, took_s["rsync"], strict=True)
        )
        bench.aim("rsync's wall time to a third of ours", 3 / ratio, 1.0)
    for name in ("restic", "borg"):
        if name in took_s:
            ratio = statistics.median(
                peer_time / own_time for own_time, peer_time in zip(own_times, took_s[name], strict=True)
            )
            bench.aim(f"times as fast as {name}", ratio, BACKUP_TARGET)
    bench.aim("300 MiB to the most memory", MAX_RSS_MIB / max(watching.highest_mib, 1), 1.0)


def _verify(bench: Bench, tree: Path, size: int) -> None:
    """Compare b3sum with the verification of an installation against its manifest, as `pull --verify` does it."""
    if shutil.which("b3sum") is None:
        return
    manifest = bench.folder / "manifest.json"
    program = [sys.executable, str(ROOT / "bench" / "verifying.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*program, "describe", tree, manifest], check=True, env=environment)
    files = sorted(str(path) for path in tree.rglob("*") if path.is_file())
    took_s: dict[str, list[float]] = {"countersign": [], "b3sum": []}
    for _ in range(bench.options.rounds + 1):
        output = subprocess.run([*program, "verify", tree, manifest], check=True, env=environment, capture_output=True)
        took_s["countersign"].append(float(output.stdout))
        took_s["b3sum"].append(seconds_of(lambda: subprocess.run(["b3sum", *files], check=True, capture_output=True)))
    counted_times = [times[1:] for times in (took_s["countersign"], took_s["b3sum"])]
    ratio = statistics.median(peer_time / own_time for own_time, peer_time in zip(*counted_times, strict=True))
    rates = {name: size / MIB / statistics.median(times[1:]) for name, times in took_s.items()}
    print("\nverifying, MiB/s: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
    bench.other["verify_s"] = took_s
    bench.aim("verifying to b3sum", ratio, VERIFY_TARGET)


if __name__ == "__main__":
    with harness.bench("ingest", "Taking in a build of 1 GiB", needs_load=False) as current:
        measure(current)
