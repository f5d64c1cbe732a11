"""Programs and libraries of other projects that make an archive of a folder."""

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
    """A program that makes an archive of a folder. `make` gets the folder and the path of the archive.

    `has_links` is true if the archive contains symbolic links as links. `says_utf8` is true if the archive marks names
    beyond ASCII as UTF-8.
    """

    id: str
    program: str
    make: Callable[[Path, Path], None]
    has_links: bool = True
    says_utf8: bool = True
    suffix: str = ""


def plant_build(folder: Path, *, links: bool, letters: bool = True) -> Tree:
    """Fill a folder with the usual contents of a build, and return them: text, a program, empty files and folders, a
    long path, a name beyond ASCII (with `letters`), and links (with `links`)."""
    long_folder = "/".join(["a folder with quite a long name"] * 4)
    files: dict[str, tuple[int, bytes]] = {
        "readme.txt": (0o644, b"hello\n"),
        "bin/run.sh": (0o755, b"#!/bin/sh\necho hello\n"),
        "data/deep/levels.bin": (0o644, bytes(range(256)) * 800),
        "data/empty.txt": (0o644, b""),
        f"{long_folder}/{'n' * 60}.txt": (0o644, b"far down\n"),
    }
    if letters:
        files["naïve 名.txt"] = (0o644, b"letters\n")
    for path, (mode, content) in files.items():
        file_path = folder / path
        file_path.parent.mkdir(parents=True, exist_ok=True)
        file_path.write_bytes(content)
        file_path.chmod(mode)
    (folder / "hollow").mkdir()
    tree: Tree = {path: ("file", content) for path, (_, content) in files.items()}
    if links:
        for path, target in {"current": "data/deep", "bin/readme": "../readme.txt"}.items():
            (folder / path).symlink_to(target)
            tree[path] = ("link", target.encode())
        (folder / "bin/again.sh").hardlink_to(folder / "bin/run.sh")
        tree["bin/again.sh"] = tree["bin/run.sh"]
    return tree


def require_program(program: str) -> str:
    """Return the path of the program. Skip the test if the program is not installed."""
    program_path = shutil.which(program)
    if program_path is None:
        pytest.skip(f"{program} is not installed")
    return program_path


def run(*command_words: str | Path, within: Path, into: Path | None = None) -> None:
    """Run a program in the folder `within`, and wait for its end. Its output is written to the file `into`, if given.

    Raises:
        subprocess.CalledProcessError: the program failed.
    """
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8", "HOME": str(within)}
    result = subprocess.run(command_words, cwd=within, check=True, capture_output=True, env=environment, timeout=120)
    if into is not None:
        into.write_bytes(result.stdout)


def run_in_folder(program: str, *arguments: str) -> Callable[[Path, Path], None]:
    """Return a function that runs the program in the folder. The word ARCHIVE is replaced by the archive's path."""

    def make(folder: Path, archive: Path) -> None:
        run(
            require_program(program),
            *(str(archive) if word == "ARCHIVE" else word for word in arguments),
            within=folder,
        )

    return make


def run_with_output(program: str, *arguments: str) -> Callable[[Path, Path], None]:
    """Return a function that runs the program in the folder, and stores its output as the archive."""

    def make(folder: Path, archive: Path) -> None:
        run(require_program(program), *arguments, within=folder, into=archive)

    return make


def by_zipfile(compression: int, *, streamed: bool = False) -> Callable[[Path, Path], None]:
    """Return a function that uses Python's zipfile. With `streamed`, it writes to a file without `seek`, so that the
    archive has data descriptors."""

    def make(folder: Path, archive: Path) -> None:
        with archive.open("wb") as file:
            target = cast(IO[bytes], UnseekableFile(file.write)) if streamed else file
            with zipfile.ZipFile(target, "w", compression) as zip_file:
                for path in sorted(folder.rglob("*")):
                    zip_file.write(path, path.relative_to(folder).as_posix())

    return make


class UnseekableFile:
    """A file that has only `write` and `flush`, like a pipe."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self.write = write

    def flush(self) -> None:
        """Do nothing."""


def by_tarfile(form: int, mode: str = "w") -> Callable[[Path, Path], None]:
    """Return a function that uses Python's tarfile."""

    def make(folder: Path, archive: Path) -> None:
        with tarfile.open(archive, mode, format=form) as tar_file:
            tar_file.add(folder, ".")

    return make


def by_shutil(form: str, suffix: str) -> Callable[[Path, Path], None]:
    """Return a function that uses Python's shutil.make_archive."""

    def make(folder: Path, archive: Path) -> None:
        archive_name = shutil.make_archive(str(archive.with_name("made")), form, folder)
        Path(archive_name).rename(archive)
        assert archive_name.endswith(suffix)

    return make


def by_git(*options: str) -> Callable[[Path, Path], None]:
    """Return a function that commits the folder, and runs `git archive`."""

    def make(folder: Path, archive: Path) -> None:
        git = require_program("git")
        author = ("-c", "user.name=A", "-c", "user.email=a@example.test")
        run(git, "init", "-q", within=folder)
        run(git, "add", "-A", within=folder)
        run(git, *author, "commit", "-q", "-m", "all", within=folder)
        run(git, "archive", "-o", archive, *options, "HEAD", within=folder)
        shutil.rmtree(folder / ".git")

    return make


def by_hatchling(folder: Path, archive: Path) -> None:
    """Build a wheel from the folder with hatchling, without network access."""
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
    ArchiveTool(
        "zip-streamed", "zip", run_with_output("zip", "-qr", "-", "."), has_links=False, says_utf8=False, suffix=".zip"
    ),
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
