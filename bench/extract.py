"""Compares our extraction of a clean archive of 10,000 files (zip, tar and tar.gz) with bsdtar, each in its own
process.

Neither program waits until the files are on the disk. Ours reads every archive with two parsers and writes files
relative to open folders. "ours, confined" is what the store does: its process gives up its rights first.
"""

import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import harness
from harness import Bench
from processes import ROOT

FILES, QUICK_FILES, FOLDERS = 10_000, 2_000, 200
LARGEST_BYTES = 48 << 10
FORMATS = {"zip": ("--format=zip",), "tar": (), "tar.gz": ("-z",)}
OURS = """
import sys
from pathlib import Path
from countersign.archives.extraction import extract
from countersign.archives.limits import Limits
with open(sys.argv[1], "rb") as source:
    extract(source, Path(sys.argv[2]), Limits(), name=sys.argv[1], durable=False)
"""
CONFINED = (
    OURS.replace("archives.extraction", "archives.sandboxed_extraction")
    .replace("extract(", "extract_in_sandbox(")
    .replace("import extract\n", "import extract_in_sandbox\n")
)
TARGET_RATIO = 0.5

Unpack = Callable[[Path, Path], None]


def write_build(folder: Path, files: int) -> int:
    """Write this number of files, half of them compressible text and half random bytes. Return their size in bytes."""
    rng = random.Random(1)
    words = [rng.randbytes(6).hex() for _ in range(500)]
    size = 0
    for number in range(files):
        path = folder / f"part-{number % FOLDERS:03}" / f"asset-{number:05}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        length = int(LARGEST_BYTES * rng.random() ** 3)
        text = " ".join(rng.choices(words, k=length // 13 + 1)).encode()[:length]
        content = text if number % 2 else rng.randbytes(length)
        path.write_bytes(content)
        size += len(content)
    return size


def by_python(program: str) -> Unpack:
    """Return a function that runs a Python program with the archive and the target folder as arguments."""

    def unpack(archive: Path, target: Path) -> None:
        environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
        subprocess.run([sys.executable, "-c", program, archive, target], check=True, env=environment)

    return unpack


def by_bsdtar(archive: Path, target: Path) -> None:
    """Unpack with bsdtar and its default settings."""
    target.mkdir()
    subprocess.run(["bsdtar", "-xf", archive, "-C", target], check=True)


def unpack_seconds(unpack: Unpack, archive: Path, target: Path) -> float:
    """Unpack the archive, delete the result, and return the seconds of the unpacking."""
    began_s = time.monotonic()
    unpack(archive, target)
    took_s = time.monotonic() - began_s
    shutil.rmtree(target)
    return took_s


def measure(bench: Bench) -> None:
    """Measure all contenders in rounds for each format. The first round only warms up."""
    contenders: dict[str, Unpack] = {
        "ours": by_python(OURS),
        "ours, confined": by_python(CONFINED),
        "bsdtar": by_bsdtar,
    }
    files = QUICK_FILES if bench.options.is_quick else FILES
    tree = bench.folder / "tree"
    size = write_build(tree, files)
    bench.other = {"files": files, "mib": round(size / 2**20, 1)}
    for form, options in FORMATS.items():
        archive = bench.folder / f"build.{form}"
        subprocess.run(["bsdtar", *options, "-cf", archive, "-C", tree, "."], check=True)
        took_s: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(bench.options.rounds + 1):
            for name, unpack in contenders.items():
                seconds = unpack_seconds(unpack, archive, bench.folder / "target")
                if number:
                    took_s[name].append(seconds)
        medians = {name: statistics.median(times) for name, times in took_s.items()}
        ratios = {
            name: statistics.median(
                peer_time / own_time for peer_time, own_time in zip(took_s["bsdtar"], times, strict=True)
            )
            for name, times in took_s.items()
        }
        print(f"\n{form}, {files} files, {size / 2**20:.0f} MiB, archive {archive.stat().st_size / 2**20:.0f} MiB")
        for name, median_s in medians.items():
            print(f"  {name:16}{median_s:7.3f} s {files / median_s:9,.0f} files/s   {ratios[name]:.2f} of bsdtar")
        bench.other[form] = {"seconds": {name: [round(time, 4) for time in times] for name, times in took_s.items()}}
        bench.aim(f"{form}: files a second to bsdtar's", round(ratios["ours"], 3), TARGET_RATIO)
        bench.aim(f"{form}: the same, confined", round(ratios["ours, confined"], 3), TARGET_RATIO)


if __name__ == "__main__":
    with harness.bench("extract", "Unpacking 10,000 files", needs_load=False) as running:
        measure(running)
