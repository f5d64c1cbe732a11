"""A pull that is killed at any of its steps: the old version works or the new version is complete, and the next pull
finishes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.updates.install.workspace import side_folder
from tests.figures import ROOT, Figures
from tests.updates import victim
from tests.updates.builds import SampleBuild, contents_of

STEPS = "rename,renameat2,link,linkat,unlink,unlinkat,mkdir,rmdir,symlink,fsync,chmod,fchmodat,ftruncate,write"
SAMPLE = 7
MINE = b"the user's own"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def run(folder: Path, inject: str, *arguments: str) -> int:
    """Pull the new version in a process whose system calls are traced. Return its exit code, which is negative for a
    signal."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    watched = ["strace", "-o", f"{folder}.calls", "-e", f"trace={STEPS}", *(["-e", inject] if inject else [])]
    command = [*watched, sys.executable, "-m", "tests.updates.victim", str(folder), "2.0", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True).returncode


def steps(folder: Path) -> list[tuple[str, int]]:
    """Return the installer's calls: name, and the number of the call with that name in the whole process (as strace
    counts)."""
    visited_steps: list[tuple[str, int]] = []
    counts: dict[str, int] = {}
    is_begun = False
    for call in Path(f"{folder}.calls").read_text().splitlines():
        name = call.partition("(")[0]
        counts[name] = counts.get(name, 0) + 1
        is_begun = is_begun or str(side_folder(folder)) in call
        if is_begun and not call.startswith("+++"):
            visited_steps.append((name, counts[name]))
    return visited_steps


def is_whole(folder: Path, build: SampleBuild) -> bool:
    """Return whether the folder contains the build and the user's file, with the right bytes, modes and links."""
    links = {link.path: link.target for link in build.manifest.links}
    modes = {file.path: file.mode for file in build.manifest.files}
    return (
        contents_of(folder) == {**build.contents, "mine": MINE}
        and {path: os.readlink(folder / path) for path in links} == links
        and {path: (folder / path).stat().st_mode & 0o777 for path in modes} == modes
    )


@pytest.mark.parametrize("update_way", ["at-once", "two-steps"])
def test_a_kill_at_any_step_leaves_one_complete_version(
    tmp_path: Path, update_way: str, is_full: bool, figures: Figures
) -> None:
    pattern, app = tmp_path / "pattern", tmp_path / "app"
    victim.pull(pattern, "1.0")
    (pattern / "mine").write_bytes(MINE)
    shutil.copytree(pattern, app, symlinks=True)
    assert run(app, "", update_way) == 0
    every = steps(app)
    chosen_steps = every if is_full else every[:: max(1, len(every) // SAMPLE)]
    versions = {"old": 0, "new": 0, "between": 0}

    for name, number in chosen_steps:
        shutil.rmtree(app)
        shutil.copytree(pattern, app, symlinks=True)
        assert run(app, f"inject={name}:signal=SIGKILL:when={number}", update_way) != 0, (name, number)
        if is_whole(app, victim.OLD) if app.exists() else False:
            versions["old"] += 1
        elif app.exists():
            assert is_whole(app, victim.NEW), (name, number)
            versions["new"] += 1
        else:
            assert update_way == "two-steps", (name, number)
            versions["between"] += 1
        victim.pull(app, "2.0")
        assert is_whole(app, victim.NEW), (name, number)
        assert not side_folder(app).exists(), (name, number)

    assert versions["old"] > 0
    assert versions["new"] > 0
    figures.update({"kills": len(chosen_steps), **versions})
