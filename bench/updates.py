"""Compares the size of an update from one release to the next: our deltas, bsdiff, hdiffpatch, xdelta3, zstd and
casync.

Each pair of releases is measured in two forms: the files that it unpacks to (the other tools get both trees as tar),
and the archive that is shipped (the tools get the archives). Most pairs are real releases, which pip downloads. Two
pairs are generated and resemble games: contents of their packs are inserted, moved and edited. Each of our deltas is
applied, to verify it.

Run: python bench/updates.py [--only NAME]... [--keep FOLDER]. When all pairs are measured, the program writes
docs/results/updates.json and docs/explanation/update-sizes.md.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import hdiffpatch

from countersign.updates import chunks
from countersign.updates.deltas import make
from countersign.updates.manifest import File

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs/results/updates.json"
PAGE = ROOT / "docs/explanation/update-sizes.md"
RELEASES = (
    ("obstore", "0.12.0", "0.12.1"),
    ("zstandard", "0.24.0", "0.25.0"),
    ("pulpcore", "3.122.0", "3.123.1"),
    ("msgspec", "0.19.0", "0.20.0"),
    ("cryptography", "46.0.1", "46.0.2"),
    ("mypy", "1.18.1", "1.18.2"),
    ("sqlalchemy", "2.0.43", "2.0.44"),
    ("setuptools", "80.8.0", "80.9.0"),
    ("pillow", "11.2.1", "11.3.0"),
    ("ruff", "0.14.0", "0.14.1"),
    ("numpy", "2.3.3", "2.3.4"),
)
PLATFORMS = ("any", *(f"manylinux{kind}_x86_64" for kind in ("2014", "_2_17", "_2_24", "_2_27", "_2_28")))
MAX_TO_BEST, MAX_TO_BSDIFF = 1.05, 0.15
LIMIT_S = 1800
MIB = 1 << 20


class Pair(NamedTuple):
    """Two versions: the folders with their trees, and the shipped archives if there are any."""

    name: str
    versions: str
    trees: tuple[Path, Path]
    shipped: tuple[Path, Path] | None


def download(folder: Path, name: str, version: str) -> Path:
    """Download the wheel for CPython 3.11 on Linux x86-64, independent of this Python and this machine."""
    target = folder / f"{name}-{version}"
    if not target.exists():
        platforms = [argument for platform in PLATFORMS for argument in ("--platform", platform)]
        options = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.11", *platforms]
        command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(target), f"{name}=={version}"]
        subprocess.run(command, check=True, capture_output=True)
    return next(target.glob("*.whl"))


def real_pair(folder: Path, name: str, versions: tuple[str, str]) -> Pair:
    """Return the pair of two releases from the package registry."""
    wheels = [download(folder, name, version) for version in versions]
    trees: list[Path] = []
    for wheel in wheels:
        tree = wheel.parent / "tree"
        if not tree.exists():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(tree)
        trees.append(tree)
    return Pair(name, " → ".join(versions), (trees[0], trees[1]), (wheels[0], wheels[1]))


def asset(rng: random.Random) -> bytes:
    """Return an asset of a pack: random bytes like a picture or a sound, or compressible text, with equal
    probability."""
    size = rng.randrange(20_000, 1_500_000)
    if rng.random() < 0.5:
        return rng.randbytes(size)
    words = [rng.randbytes(rng.randrange(3, 12)).hex().encode() for _ in range(400)]
    return b" ".join(rng.choices(words, k=size // 15))


def pack_of(assets: list[bytes]) -> bytes:
    """Return a pack as in game engines: first the offsets and sizes of its assets, then the assets, each aligned to 2
    KiB."""
    position, table, body = 4 + 16 * len(assets), bytearray(len(assets).to_bytes(4, "little")), bytearray()
    for asset_bytes in assets:
        body += bytes(-(position + len(body)) % 2048)
        table += (position + len(body)).to_bytes(8, "little") + len(asset_bytes).to_bytes(8, "little")
        body += asset_bytes
    return bytes(table + body)


def edit(data: bytes, rng: random.Random) -> bytes:
    """Return the asset with 20 changed bits and 300 inserted bytes."""
    edited = bytearray(data)
    for _ in range(20):
        edited[rng.randrange(len(edited))] ^= 1 << rng.randrange(8)
    position = rng.randrange(len(edited))
    return bytes(edited[:position] + rng.randbytes(300) + edited[position:])


def generate_pair(folder: Path, name: str, packs: int, pack_bytes: int) -> Pair:
    """Generate a tree of packs and its next version, in which assets are inserted, edited, removed and moved within a
    pack or to another pack."""
    rng = random.Random(name)
    old_packs: list[list[bytes]] = []
    for _ in range(packs):
        pack: list[bytes] = []
        while sum(map(len, pack)) < pack_bytes:
            pack.append(asset(rng))
        old_packs.append(pack)
    new_packs = [list(pack) for pack in old_packs]
    for pack in new_packs:
        for _ in range(3):
            pack.insert(rng.randrange(len(pack)), asset(rng))
            pack.pop(rng.randrange(len(pack)))
            position = rng.randrange(len(pack))
            pack[position] = edit(pack[position], rng)
        pack.insert(0, pack.pop(rng.randrange(len(pack))))
    new_packs[-1].append(new_packs[0].pop(5))
    trees = (folder / f"{name}-1", folder / f"{name}-2")
    for tree, content in zip(trees, (old_packs, new_packs), strict=True):
        (tree / "data").mkdir(parents=True, exist_ok=True)
        for number, pack in enumerate(content):
            (tree / f"data/pack{number}.bin").write_bytes(pack_of(pack))
        (tree / "version.txt").write_text(tree.name)
    return Pair(name, "made up", trees, None)


def tar_of(tree: Path) -> Path:
    """Write the tree into a tar archive without times and owners, and return its path."""
    path = tree.with_name(tree.name + ".tar")
    options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    subprocess.run(["tar", *options, "-C", str(tree), "-cf", str(path), "."], check=True)
    return path


Tool = Callable[[Path, Path, Path], int]
"""A function of the old file, the new file and a working folder. It returns the size of the delta in bytes."""


def run(*command: str | Path, creates: Path | None = None) -> int:
    """Run the tool, and return the size of the file that it creates."""
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    return creates.stat().st_size if creates else 0


def by_bsdiff(old_path: Path, new_path: Path, folder: Path) -> int:
    """Return the size of the delta of bsdiff 4.3."""
    return run("bsdiff", old_path, new_path, folder / "p", creates=folder / "p")


def by_hdiffpatch(old_path: Path, new_path: Path, folder: Path) -> int:
    """Return the size of the delta of HDiffPatch with LZMA2."""
    return len(hdiffpatch.diff(old_path.read_bytes(), new_path.read_bytes(), "lzma2", validate=False))


def by_xdelta3(old_path: Path, new_path: Path, folder: Path) -> int:
    """Return the size of the delta of xdelta3 -9 with LZMA and a window over the whole file."""
    target = folder / "p"
    return run(
        "xdelta3", "-e", "-9", "-S", "lzma", "-B", str(1 << 29), "-f", "-s", old_path, new_path, target, creates=target
    )


def by_zstd(old_path: Path, new_path: Path, folder: Path) -> int:
    """zstd -19 --patch-from with the longest window."""
    target = folder / "p"
    options = ("-q", "-f", "-19", "--ultra", "--long=31", "--patch-from")
    return run("zstd", *options, old_path, new_path, "-o", target, creates=target)


def by_casync(old_path: Path, new_path: Path, folder: Path) -> int:
    """Return the size by casync: the chunks of the new file that a store with the old file's chunks lacks."""
    store = folder / "store"
    run("casync", "make", f"--store={store}", folder / "old.caibx", old_path)
    size_before = _size(store)
    run("casync", "make", f"--store={store}", folder / "new.caibx", new_path)
    return _size(store) - size_before


TOOLS: dict[str, Tool] = {
    "bsdiff": by_bsdiff,
    "hdiffpatch": by_hdiffpatch,
    "xdelta3": by_xdelta3,
    "zstd": by_zstd,
    "casync": by_casync,
}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def build_files(paths: list[tuple[str, Path]]) -> make.BuildFiles:
    """Return the files at these paths, by their names, as input for creating deltas."""
    path_of = dict(paths)
    files: list[File] = []
    for name, path in sorted(paths, key=lambda path: path[0].encode()):
        data = path.read_bytes()
        files.append(File(name, 0o644, len(data), hashlib.sha256(data).hexdigest(), chunks.chunk_id(data), []))
    return make.BuildFiles(files, lambda file: path_of[file.path].read_bytes())


def files_of_tree(tree: Path) -> make.BuildFiles:
    """Return all files of the tree."""
    return build_files([(str(path.relative_to(tree)), path) for path in tree.rglob("*") if path.is_file()])


def delta_sizes(old_files: make.BuildFiles, new_files: make.BuildFiles) -> tuple[int, int]:
    """Return the size of all our deltas together with their descriptions from the store, and the highest memory that
    applying one of them takes."""
    deltas = list(make.make(old_files, new_files))
    description_bytes = sum(len(json.dumps([delta.old, delta.files])) for delta in deltas)
    return sum(len(each.blob) for each in deltas) + description_bytes, max((each.memory for each in deltas), default=0)


def measure_pair(pair: Pair, form: str, folder: Path) -> dict[str, object]:
    """Measure all tools on one form of the pair. Stored figures of an interrupted run are reused."""
    if form == "shipped" and pair.shipped:
        old_path, new_path = pair.shipped
        sides = build_files([("archive", old_path)]), build_files([("archive", new_path)])
    else:
        old_path, new_path = tar_of(pair.trees[0]), tar_of(pair.trees[1])
        sides = files_of_tree(pair.trees[0]), files_of_tree(pair.trees[1])
    sizes: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name, tool in TOOLS.items():
        result_file = folder / f"{pair.name}.{form}.{name}.json"
        if not result_file.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                began_s = time.monotonic()
                size = tool(old_path, new_path, Path(work))
                result_file.write_text(json.dumps([size, round(time.monotonic() - began_s, 1)]))
        sizes[name], seconds[name] = json.loads(result_file.read_text())
    began_s = time.monotonic()
    size, memory = delta_sizes(*sides)
    seconds["ours"] = round(time.monotonic() - began_s, 1)
    smallest_name = min(sizes, key=lambda name: sizes[name])
    return {
        "name": pair.name,
        "versions": pair.versions,
        "form": form,
        "new_bytes": new_path.stat().st_size,
        "bytes": {**sizes, "ours": size},
        "seconds": seconds,
        "memory_mib": memory // MIB,
        "best": smallest_name,
        "to_best": round(size / sizes[smallest_name], 4),
        "to_bsdiff": round(size / sizes["bsdiff"], 4),
    }


def pairs(folder: Path, selected_names: list[str]) -> Iterator[Pair]:
    """Yield the pairs. If a release cannot be downloaded, the program ends with an error."""
    for name, *versions in RELEASES:
        if not selected_names or name in selected_names:
            try:
                yield real_pair(folder, name, (versions[0], versions[1]))
            except subprocess.CalledProcessError as error:
                last_line = error.stderr.decode().strip().splitlines()[-1:]
                sys.exit(f"{name} cannot be downloaded, so nothing is written: {' '.join(last_line)}")
    for name, packs, size in (("game-one-pack", 1, 96 * MIB), ("game-three-packs", 3, 64 * MIB)):
        if not selected_names or name in selected_names:
            yield generate_pair(folder, name, packs, size)


def page(results: list[dict[str, object]]) -> str:
    """Return the page with the table."""
    lines = [
        "# Sizes of updates",
        "",
        "`python bench/updates.py` generates this page; do not edit it. The table shows the bytes that an update from",
        "one release to the next transfers, as a share of the new release. Each release is measured in two forms: the",
        "files that it unpacks to (other tools get both trees as tar), and the archive that is shipped. The column",
        '"ours" is the size of all deltas together with what the store sends about them. "To the best" is ours',
        "divided by the result of the best single tool in the same line.",
        "",
        "| Pair | Form | New, MiB | bsdiff | hdiffpatch | xdelta3 -9 | zstd -19 | casync | ours | to the best |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        new_bytes, sizes = int(str(result["new_bytes"])), result["bytes"]
        assert isinstance(sizes, dict)
        shares = " | ".join(f"{100 * sizes[name] / new_bytes:.2f} %" for name in (*TOOLS, "ours"))
        name = f"{result['name']} {result['versions']}"
        lines.append(f"| {name} | {result['form']} | {new_bytes / MIB:.1f} | {shares} | {result['to_best']:.2f} |")
    worst, median = summary(results)
    lines += [
        "",
        f"The worst ratio to the best single tool is {worst:.2f} ({MAX_TO_BEST} is allowed). For archives as shipped,",
        f"the median ratio of ours to bsdiff on the archive is {median:.3f} ({MAX_TO_BSDIFF} is allowed).",
        "",
        "An archive is unpacked if this Python's zlib can reproduce each of its streams bit by bit, or with edits",
        "that take at most a quarter of the stream. GNU gzip and Node's zlib (npm) choose matches almost as zlib",
        "does. Archives from other compressors (zlib-ng, libdeflate, 7-Zip, zopfli) are compared without unpacking,",
        "and there ours is no better than other tools. For small updates of archives, a store compresses them with",
        "zlib, or ships the files themselves.",
        "",
    ]
    return "\n".join(lines)


def summary(results: list[dict[str, object]]) -> tuple[float, float]:
    """Return the highest ratio of ours to the best tool, and the median ratio of ours to bsdiff for archives."""
    shipped = [float(str(result["to_bsdiff"])) for result in results if result["form"] == "shipped"]
    return max(float(str(result["to_best"])) for result in results), statistics.median(shipped or [0.0])


def main() -> None:
    """Measure all pairs, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a pair; nothing is written then")
    parser.add_argument("--keep", type=Path, help="a folder for downloads, and for figures of an interrupted run")
    options = parser.parse_args()
    tools = [tool for tool in ("bsdiff", "xdelta3", "zstd", "casync", "tar") if shutil.which(tool) is None]
    if tools:
        sys.exit(f"not installed, so nothing is measured: {', '.join(tools)}")
    os.nice(5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: list[dict[str, object]] = []
        for pair in pairs(folder, options.only):
            for form in ("files", "shipped") if pair.shipped else ("files",):
                result_file = folder / f"{pair.name}.{form}.json"
                if not result_file.exists():
                    result_file.write_text(json.dumps(measure_pair(pair, form, folder)))
                results.append(json.loads(result_file.read_text()))
                sys.stdout.write(json.dumps(results[-1]) + "\n")
                sys.stdout.flush()
    if not options.only:
        worst, median = summary(results)
        run_details = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version()}
        run_details |= {"zlib": zlib.ZLIB_RUNTIME_VERSION, "worst_to_best": worst, "median_shipped_to_bsdiff": median}
        RESULT.write_text(json.dumps({**run_details, "pairs": results}, indent=1) + "\n")
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
