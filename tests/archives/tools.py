"""Other projects' programs and libraries that make an archive of a folder."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple, cast

import pytest

from tests.archives.good import Tree


class ArchiveTool(NamedTuple):
    """One way to make an archive of `folder` in `archive`; `program` must be installed.

    `has_links` is whether it keeps symbolic links, `says_utf8` whether it marks names that are not ASCII as UTF-8.
    """

    id: str
    program: str
    make: Callable[[Path, Path], None]
    has_links: bool = True
    says_utf8: bool = True
    suffix: str = ""


def planted(folder: Path, *, links: bool, letters: bool = True) -> Tree:
    """Fill a folder with typical build contents: text, a program, empty files and folders, a long path, a name beyond
    ASCII, links."""
    long = "/".join(["a folder with quite a long name"] * 4)
    files: dict[str, tuple[int, bytes]] = {
        "readme.txt": (0o644, b"hello\n"),
        "bin/run.sh": (0o755, b"#!/bin/sh\necho hello\n"),
        "data/deep/levels.bin": (0o644, bytes(range(256)) * 800),
        "data/empty.txt": (0o644, b""),
        f"{long}/{'n' * 60}.txt": (0o644, b"far down\n"),
    }
    if letters:
        files["naïve 名.txt"] = (0o644, b"letters\n")
    for path, (mode, content) in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)
    (folder / "hollow").mkdir()
    found: Tree = {path: ("file", content) for path, (_, content) in files.items()}
    if links:
        for path, target in {"current": "data/deep", "bin/readme": "../readme.txt"}.items():
            (folder / path).symlink_to(target)
            found[path] = ("link", target.encode())
        (folder / "bin/again.sh").hardlink_to(folder / "bin/run.sh")
        found["bin/again.sh"] = found["bin/run.sh"]
    return found


def need(program: str) -> str:
    """The program; the test is skipped when it is missing."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def run(*words: str | Path, within: Path, into: Path | None = None) -> None:
    """Run a program to its end in a folder; its output may go to a file, through a pipe that cannot seek.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8", "HOME": str(within)}
    result = subprocess.run(words, cwd=within, check=True, capture_output=True, env=environment, timeout=120)
    if into is not None:
        into.write_bytes(result.stdout)


def run_in_folder(program: str, *words: str) -> Callable[[Path, Path], None]:
    """Run it in the folder; ARCHIVE stands for the archive's path."""

    def make(folder: Path, archive: Path) -> None:
        run(need(program), *(str(archive) if word == "ARCHIVE" else word for word in words), within=folder)

    return make


def piped(program: str, *words: str) -> Callable[[Path, Path], None]:
    """Run it in the folder; its output is the archive."""

    def make(folder: Path, archive: Path) -> None:
        run(need(program), *words, within=folder, into=archive)

    return make


def by_zipfile(compression: int, *, streamed: bool = False) -> Callable[[Path, Path], None]:
    """Python's zipfile; when it streams to a pipe, it writes descriptors."""

    def make(folder: Path, archive: Path) -> None:
        with archive.open("wb") as opened:
            target = cast(IO[bytes], UnseekableFile(opened.write)) if streamed else opened
            with zipfile.ZipFile(target, "w", compression) as made:
                for path in sorted(folder.rglob("*")):
                    made.write(path, path.relative_to(folder).as_posix())

    return make


class UnseekableFile:
    """A file that can only be written to, as a pipe."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self.write = write

    def flush(self) -> None:
        """Do nothing."""


def by_tarfile(form: int, mode: str = "w") -> Callable[[Path, Path], None]:
    """Python's tarfile."""

    def make(folder: Path, archive: Path) -> None:
        with tarfile.open(archive, mode, format=form) as made:
            made.add(folder, ".")

    return make


def by_shutil(form: str, suffix: str) -> Callable[[Path, Path], None]:
    """Python's make_archive."""

    def make(folder: Path, archive: Path) -> None:
        made = shutil.make_archive(str(archive.with_name("made")), form, folder)
        Path(made).rename(archive)
        assert made.endswith(suffix)

    return make


def by_git(*words: str) -> Callable[[Path, Path], None]:
    """git archive of a commit of the folder."""

    def make(folder: Path, archive: Path) -> None:
        git = need("git")
        author = ("-c", "user.name=A", "-c", "user.email=a@example.test")
        run(git, "init", "-q", within=folder)
        run(git, "add", "-A", within=folder)
        run(git, *author, "commit", "-q", "-m", "all", within=folder)
        run(git, "archive", "-o", archive, *words, "HEAD", within=folder)
        shutil.rmtree(folder / ".git")

    return make


def by_hatchling(folder: Path, archive: Path) -> None:
    """A wheel, built offline: the folder becomes a package."""
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "planted"\nversion = "1.0"\n'
        '[tool.hatch.build.targets.wheel]\ninclude = ["*"]\n'
    )
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", archive.parent / "dist", within=folder)
    next((archive.parent / "dist").glob("*.whl")).rename(archive)


TOOLS = [
    ArchiveTool("zip", "zip", run_in_folder("zip", "-qry", "ARCHIVE", "."), says_utf8=False, suffix=".zip"),
    ArchiveTool("zip-stored", "zip", run_in_folder("zip", "-qry0", "ARCHIVE", "."), says_utf8=False, suffix=".zip"),
    ArchiveTool("zip-streamed", "zip", piped("zip", "-qr", "-", "."), has_links=False, says_utf8=False, suffix=".zip"),
    ArchiveTool("zip-no-folders", "zip", run_in_folder("zip", "-qryD", "ARCHIVE", "."), says_utf8=False, suffix=".zip"),
    ArchiveTool("zip-no-extras", "zip", run_in_folder("zip", "-qryX", "ARCHIVE", "."), says_utf8=False, suffix=".zip"),
    ArchiveTool("7z-zip", "7z", run_in_folder("7z", "a", "-tzip", "-snl", "ARCHIVE", "."), suffix=".zip"),
    ArchiveTool("7z-tar", "7z", run_in_folder("7z", "a", "-ttar", "-snl", "ARCHIVE", "."), suffix=".tar"),
    ArchiveTool("bsdtar-zip", "bsdtar", run_in_folder("bsdtar", "-cf", "ARCHIVE", "--format=zip", "."), suffix=".zip"),
    *(
        ArchiveTool(
            f"bsdtar-{form}",
            "bsdtar",
            run_in_folder("bsdtar", "-cf", "ARCHIVE", f"--format={form}", "."),
            suffix=".tar",
        )
        for form in ("ustar", "pax", "gnutar", "paxr")
    ),
    ArchiveTool("bsdtar-gz", "bsdtar", run_in_folder("bsdtar", "-czf", "ARCHIVE", "."), suffix=".tar.gz"),
    ArchiveTool("bsdtar-zst", "bsdtar", run_in_folder("bsdtar", "--zstd", "-cf", "ARCHIVE", "."), suffix=".tar.zst"),
    *(
        ArchiveTool(
            f"tar-{form}", "tar", run_in_folder("tar", "-cf", "ARCHIVE", f"--format={form}", "."), suffix=".tar"
        )
        for form in ("gnu", "pax", "ustar", "oldgnu")
    ),
    ArchiveTool("tar-names", "tar", run_in_folder("sh", "-c", 'exec tar -cf "$1" *', "sh", "ARCHIVE"), suffix=".tar"),
    ArchiveTool("tar-gz", "tar", run_in_folder("tar", "-czf", "ARCHIVE", "."), suffix=".tar.gz"),
    ArchiveTool("tar-xz", "tar", run_in_folder("tar", "-cJf", "ARCHIVE", "."), suffix=".tar.xz"),
    ArchiveTool("tar-zst", "tar", run_in_folder("tar", "--zstd", "-cf", "ARCHIVE", "."), suffix=".tar.zst"),
    ArchiveTool("tarfile-gnu", "python3", by_tarfile(tarfile.GNU_FORMAT), suffix=".tar"),
    ArchiveTool("tarfile-pax", "python3", by_tarfile(tarfile.PAX_FORMAT), suffix=".tar"),
    ArchiveTool("tarfile-ustar", "python3", by_tarfile(tarfile.USTAR_FORMAT), suffix=".tar"),
    ArchiveTool("tarfile-xz", "python3", by_tarfile(tarfile.PAX_FORMAT, "w:xz"), suffix=".tar.xz"),
    ArchiveTool("zipfile", "python3", by_zipfile(zipfile.ZIP_DEFLATED), has_links=False, suffix=".zip"),
    ArchiveTool("zipfile-stored", "python3", by_zipfile(zipfile.ZIP_STORED), has_links=False, suffix=".zip"),
    ArchiveTool(
        "zipfile-streamed", "python3", by_zipfile(zipfile.ZIP_DEFLATED, streamed=True), has_links=False, suffix=".zip"
    ),
    ArchiveTool("shutil-zip", "python3", by_shutil("zip", ".zip"), has_links=False, suffix=".zip"),
    ArchiveTool("shutil-gztar", "python3", by_shutil("gztar", ".tar.gz"), suffix=".tar.gz"),
    ArchiveTool("shutil-xztar", "python3", by_shutil("xztar", ".tar.xz"), suffix=".tar.xz"),
    ArchiveTool("jar", "jar", run_in_folder("jar", "cf", "ARCHIVE", "."), has_links=False, suffix=".jar"),
    ArchiveTool("jar-stored", "jar", run_in_folder("jar", "cf0M", "ARCHIVE", "."), has_links=False, suffix=".jar"),
    ArchiveTool("git-tar", "git", by_git("--format=tar"), suffix=".tar"),
    ArchiveTool("git-gz", "git", by_git("--format=tar.gz"), suffix=".tar.gz"),
    ArchiveTool("git-zip", "git", by_git("--format=zip"), suffix=".zip"),
    ArchiveTool("git-prefixed", "git", by_git("--format=tar", "--prefix=build-1.0/"), suffix=".tar"),
    ArchiveTool("hatchling", "python3", by_hatchling, has_links=False, suffix=".whl"),
]
