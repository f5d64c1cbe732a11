"""Bytes from one release to the next: our deltas beside bsdiff, hdiffpatch, xdelta3, zstd and casync.

Each pair twice: as the tree of files it unpacks to (the tools get both trees as tar), and as the archive that is
shipped (the tools get the archives). Real releases are downloaded with pip; two made-up trees are like a game's, with
packs whose contents were inserted, moved and edited. Every delta of ours is applied before it counts.

Run: python bench/updates.py [--only NAME]... [--keep FOLDER]; docs/results/updates.json and
docs/explanation/update-sizes.md are written when every pair was measured.
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
MOST_TO_BEST, MOST_TO_BSDIFF = 1.05, 0.15
LIMIT_S = 1800
MIB = 1 << 20


class Pair(NamedTuple):
    """Two versions: folders with their trees, and the archives as shipped where there are some."""

    name: str
    versions: str
    trees: tuple[Path, Path]
    shipped: tuple[Path, Path] | None


def downloaded(folder: Path, name: str, version: str) -> Path:
    """The wheel, for CPython 3.11 on Linux x86-64 whatever runs this."""
    target = folder / f"{name}-{version}"
    if not target.exists():
        wanted = [word for each in PLATFORMS for word in ("--platform", each)]
        options = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.11", *wanted]
        command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(target), f"{name}=={version}"]
        subprocess.run(command, check=True, capture_output=True)
    return next(target.glob("*.whl"))


def real(folder: Path, name: str, versions: tuple[str, str]) -> Pair:
    """Two releases from the package registry."""
    wheels = [downloaded(folder, name, version) for version in versions]
    trees: list[Path] = []
    for wheel in wheels:
        tree = wheel.parent / "tree"
        if not tree.exists():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(tree)
        trees.append(tree)
    return Pair(name, " → ".join(versions), (trees[0], trees[1]), (wheels[0], wheels[1]))


def asset(chance: random.Random) -> bytes:
    """A thing in a pack: half of them are pictures and sounds, which do not compress, half are texts and tables."""
    size = chance.randrange(20_000, 1_500_000)
    if chance.random() < 0.5:
        return chance.randbytes(size)
    words = [chance.randbytes(chance.randrange(3, 12)).hex().encode() for _ in range(400)]
    return b" ".join(chance.choices(words, k=size // 15))


def packed(assets: list[bytes]) -> bytes:
    """A pack: the places of its assets in front, as game engines have it, then the assets, each on 2 KiB."""
    at, table, body = 4 + 16 * len(assets), bytearray(len(assets).to_bytes(4, "little")), bytearray()
    for each in assets:
        body += bytes(-(at + len(body)) % 2048)
        table += (at + len(body)).to_bytes(8, "little") + len(each).to_bytes(8, "little")
        body += each
    return bytes(table + body)


def edited(data: bytes, chance: random.Random) -> bytes:
    """The asset with some bytes changed, and some put in."""
    out = bytearray(data)
    for _ in range(20):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    at = chance.randrange(len(out))
    return bytes(out[:at] + chance.randbytes(300) + out[at:])


def made_up(folder: Path, name: str, packs: int, pack_bytes: int) -> Pair:
    """A tree of packs and its next version: assets inserted, edited, dropped, and moved to another place or pack."""
    chance = random.Random(name)
    old: list[list[bytes]] = []
    for _ in range(packs):
        held: list[bytes] = []
        while sum(map(len, held)) < pack_bytes:
            held.append(asset(chance))
        old.append(held)
    new = [list(held) for held in old]
    for held in new:
        for _ in range(3):
            held.insert(chance.randrange(len(held)), asset(chance))
            held.pop(chance.randrange(len(held)))
            place = chance.randrange(len(held))
            held[place] = edited(held[place], chance)
        held.insert(0, held.pop(chance.randrange(len(held))))
    new[-1].append(new[0].pop(5))
    trees = (folder / f"{name}-1", folder / f"{name}-2")
    for tree, content in zip(trees, (old, new), strict=True):
        (tree / "data").mkdir(parents=True, exist_ok=True)
        for number, held in enumerate(content):
            (tree / f"data/pack{number}.bin").write_bytes(packed(held))
        (tree / "version.txt").write_text(tree.name)
    return Pair(name, "made up", trees, None)


def tarred(tree: Path) -> Path:
    """The tree as tar, without times and owners."""
    path = tree.with_name(tree.name + ".tar")
    options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    subprocess.run(["tar", *options, "-C", str(tree), "-cf", str(path), "."], check=True)
    return path


Tool = Callable[[Path, Path, Path], int]
"""Old file, new file, a folder to work in: the bytes to go from one to the other."""


def run(*command: str | Path, makes: Path | None = None) -> int:
    """Run the tool; the size of what it makes."""
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    return makes.stat().st_size if makes else 0


def by_bsdiff(old: Path, new: Path, folder: Path) -> int:
    """bsdiff 4.3."""
    return run("bsdiff", old, new, folder / "p", makes=folder / "p")


def by_hdiffpatch(old: Path, new: Path, folder: Path) -> int:
    """HDiffPatch with LZMA2."""
    return len(hdiffpatch.diff(old.read_bytes(), new.read_bytes(), "lzma2", validate=False))


def by_xdelta3(old: Path, new: Path, folder: Path) -> int:
    """xdelta3 -9 with LZMA and a window over everything."""
    target = folder / "p"
    return run("xdelta3", "-e", "-9", "-S", "lzma", "-B", str(1 << 29), "-f", "-s", old, new, target, makes=target)


def by_zstd(old: Path, new: Path, folder: Path) -> int:
    """zstd -19 --patch-from with the longest window."""
    target = folder / "p"
    options = ("-q", "-f", "-19", "--ultra", "--long=31", "--patch-from")
    return run("zstd", *options, old, new, "-o", target, makes=target)


def by_casync(old: Path, new: Path, folder: Path) -> int:
    """casync: the chunks that the new file adds to a store that has the old one's."""
    store = folder / "store"
    run("casync", "make", f"--store={store}", folder / "old.caibx", old)
    before = _size(store)
    run("casync", "make", f"--store={store}", folder / "new.caibx", new)
    return _size(store) - before


TOOLS: dict[str, Tool] = {
    "bsdiff": by_bsdiff,
    "hdiffpatch": by_hdiffpatch,
    "xdelta3": by_xdelta3,
    "zstd": by_zstd,
    "casync": by_casync,
}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def side_of(paths: list[tuple[str, Path]]) -> make.BuildFiles:
    """Files as a delta's maker sees them."""
    places = dict(paths)
    files: list[File] = []
    for name, path in sorted(paths, key=lambda each: each[0].encode()):
        data = path.read_bytes()
        files.append(File(name, 0o644, len(data), hashlib.sha256(data).hexdigest(), chunks.chunk_id(data), []))
    return make.BuildFiles(files, lambda file: places[file.path].read_bytes())


def of_tree(tree: Path) -> make.BuildFiles:
    """Every file of the tree."""
    return side_of([(str(path.relative_to(tree)), path) for path in tree.rglob("*") if path.is_file()])


def ours(old: make.BuildFiles, new: make.BuildFiles) -> tuple[int, int]:
    """Bytes of all deltas with what the store says about them, and the most memory that applying one takes."""
    made = list(make.make(old, new))
    said = sum(len(json.dumps([each.old, each.files])) for each in made)
    return sum(len(each.blob) for each in made) + said, max((each.memory for each in made), default=0)


def measured(pair: Pair, form: str, folder: Path) -> dict[str, object]:
    """All tools on one form of the pair."""
    if form == "shipped" and pair.shipped:
        old, new = pair.shipped
        sides = side_of([("archive", old)]), side_of([("archive", new)])
    else:
        old, new = tarred(pair.trees[0]), tarred(pair.trees[1])
        sides = of_tree(pair.trees[0]), of_tree(pair.trees[1])
    sizes: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name, tool in TOOLS.items():
        kept = folder / f"{pair.name}.{form}.{name}.json"
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                begun = time.monotonic()
                size = tool(old, new, Path(work))
                kept.write_text(json.dumps([size, round(time.monotonic() - begun, 1)]))
        sizes[name], seconds[name] = json.loads(kept.read_text())
    begun = time.monotonic()
    size, memory = ours(*sides)
    seconds["ours"] = round(time.monotonic() - begun, 1)
    best = min(sizes, key=lambda name: sizes[name])
    return {
        "name": pair.name,
        "versions": pair.versions,
        "form": form,
        "new_bytes": new.stat().st_size,
        "bytes": {**sizes, "ours": size},
        "seconds": seconds,
        "memory_mib": memory // MIB,
        "best": best,
        "to_best": round(size / sizes[best], 4),
        "to_bsdiff": round(size / sizes["bsdiff"], 4),
    }


def pairs(folder: Path, only: list[str]) -> Iterator[Pair]:
    """The pairs, one after another; a release that cannot be had ends everything with words."""
    for name, *versions in RELEASES:
        if not only or name in only:
            try:
                yield real(folder, name, (versions[0], versions[1]))
            except subprocess.CalledProcessError as error:
                last = error.stderr.decode().strip().splitlines()[-1:]
                sys.exit(f"{name} cannot be downloaded, so nothing is written: {' '.join(last)}")
    for name, packs, size in (("game-one-pack", 1, 96 * MIB), ("game-three-packs", 3, 64 * MIB)):
        if not only or name in only:
            yield made_up(folder, name, packs, size)


def page(found: list[dict[str, object]]) -> str:
    """The table."""
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
    for each in found:
        whole, sizes = int(str(each["new_bytes"])), each["bytes"]
        assert isinstance(sizes, dict)
        shares = " | ".join(f"{100 * sizes[name] / whole:.2f} %" for name in (*TOOLS, "ours"))
        name = f"{each['name']} {each['versions']}"
        lines.append(f"| {name} | {each['form']} | {whole / MIB:.1f} | {shares} | {each['to_best']:.2f} |")
    worst, median = summary(found)
    lines += [
        "",
        f"The worst ratio to the best single tool is {worst:.2f} ({MOST_TO_BEST} is allowed). For archives as shipped,",
        f"the median ratio of ours to bsdiff on the archive is {median:.3f} ({MOST_TO_BSDIFF} is allowed).",
        "",
        "An archive is unpacked if this Python's zlib can reproduce each of its streams bit by bit, or with edits",
        "that take at most a quarter of the stream. GNU gzip and Node's zlib (npm) choose matches almost as zlib",
        "does. Archives from other compressors (zlib-ng, libdeflate, 7-Zip, zopfli) are compared without unpacking,",
        "and there ours is no better than other tools. For small updates of archives, a store compresses them with",
        "zlib, or ships the files themselves.",
        "",
    ]
    return "\n".join(lines)


def summary(found: list[dict[str, object]]) -> tuple[float, float]:
    """Ours to the best tool at its worst; ours to bsdiff on archives in the median."""
    shipped = [float(str(each["to_bsdiff"])) for each in found if each["form"] == "shipped"]
    return max(float(str(each["to_best"])) for each in found), statistics.median(shipped or [0.0])


def main() -> None:
    """Measure everything, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a pair; nothing is written then")
    parser.add_argument("--keep", type=Path, help="a folder for downloads, and for figures of an interrupted run")
    options = parser.parse_args()
    missing = [tool for tool in ("bsdiff", "xdelta3", "zstd", "casync", "tar") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"not installed, so nothing is measured: {', '.join(missing)}")
    os.nice(5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found: list[dict[str, object]] = []
        for pair in pairs(folder, options.only):
            for form in ("files", "shipped") if pair.shipped else ("files",):
                kept = folder / f"{pair.name}.{form}.json"
                if not kept.exists():
                    kept.write_text(json.dumps(measured(pair, form, folder)))
                found.append(json.loads(kept.read_text()))
                sys.stdout.write(json.dumps(found[-1]) + "\n")
                sys.stdout.flush()
    if not options.only:
        worst, median = summary(found)
        about = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version()}
        about |= {"zlib": zlib.ZLIB_RUNTIME_VERSION, "worst_to_best": worst, "median_shipped_to_bsdiff": median}
        RESULT.write_text(json.dumps({**about, "pairs": found}, indent=1) + "\n")
        PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
