"""Harmless archives, written here or by the usual tools, are accepted with exactly their contents."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.archives.extraction import extract
from countersign.archives.limits import Profile
from countersign.archives.refusals import ArchiveRefused
from tests.archives import good, peers
from tests.archives.cases import LIMITS, PROFILES, drain
from tests.archives.good import Tree
from tests.archives.tools import TOOLS, ArchiveTool, planted

WRITTEN = {
    **{f"zip, {name}": made for name, made in good.ZIPS.items()},
    **{f"tar, {n}": m for n, m in good.TARS.items()},
}


def read_tree(data: bytes, profile: Profile, name: str = "") -> Tree:
    """The tree that the reader returns."""
    found = drain(data, replace(LIMITS, profile=profile), name)
    return {path: (kind, content) for path, (kind, _, content) in found.items()}


def extracted_tree(data: bytes, target: Path, profile: Profile, name: str = "") -> Tree:
    """The tree in the folder after extraction."""
    told = extract(io.BytesIO(data), target, replace(LIMITS, profile=profile), name=name)
    found = peers.on_disk(target)
    kinds = [kind for kind, _ in found.values()]
    assert (told.files, told.links) == (kinds.count("file"), kinds.count("link"))
    assert told.size == sum(len(content) for kind, content in found.values() if kind == "file")
    return found


def without_implied(tree: Tree, wanted: Tree) -> Tree:
    """The tree without folders that only contain something, unless they are wanted."""
    return {path: entry for path, entry in tree.items() if entry[0] != "folder" or path in wanted}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_harmless_archive_is_taken_as_it_is(name: str, profile: Profile, tmp_path: Path) -> None:
    make, wanted = WRITTEN[name]
    data, called = make(), good.EMPTY_NAMES.get(name, "")

    assert without_implied(read_tree(data, profile, called), wanted) == wanted
    assert without_implied(extracted_tree(data, tmp_path / "out", profile, called), wanted) == wanted


@pytest.mark.parametrize("name", good.COMPATIBLE)
def test_only_the_compatible_profile_accepts_unusual_archives(name: str, tmp_path: Path) -> None:
    make, wanted = good.COMPATIBLE[name]
    data, called = make(), good.COMPATIBLE_NAMES.get(name, "")

    assert without_implied(read_tree(data, "compatible", called), wanted) == wanted
    assert without_implied(extracted_tree(data, tmp_path / "out", "compatible", called), wanted) == wanted
    with pytest.raises(ArchiveRefused):
        read_tree(data, "strict", called)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.id)
def test_an_archive_of_a_usual_tool_is_taken(tool: ArchiveTool, profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    wanted = planted(folder, links=tool.has_links, letters=tool.says_utf8 or profile == "compatible")
    made = tmp_path / f"made{tool.suffix}"
    tool.make(folder, made)
    data = made.read_bytes()
    prefix = "build-1.0/" if tool.id == "git-prefixed" else ""
    wanted = {prefix + path: entry for path, entry in wanted.items()}

    for tree in (read_tree(data, profile), extracted_tree(data, tmp_path / "out", profile)):
        further_paths = {path for path in tree.keys() - wanted.keys() if tree[path][0] != "folder"}
        assert without_implied({path: tree[path] for path in tree.keys() - further_paths}, wanted) == wanted
        assert all(path.startswith(("META-INF/", "planted-1.0.dist-info/", "pyproject.toml")) for path in further_paths)


def test_names_beyond_ascii_of_a_tool_that_does_not_say_utf8_need_the_compatible_profile(tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    planted(folder, links=False, letters=True)
    made = tmp_path / "made.zip"
    next(tool for tool in TOOLS if tool.id == "zip").make(folder, made)

    with pytest.raises(ArchiveRefused) as told:
        read_tree(made.read_bytes(), "strict")

    assert told.value.rule == "not-utf8"


def test_modes_are_either_that_of_a_program_or_that_of_a_file(tmp_path: Path) -> None:
    make, _ = good.TARS["a mode that runs"]

    extract(io.BytesIO(make()), tmp_path / "out", LIMITS)

    assert (tmp_path / "out/a.txt").stat().st_mode & 0o7777 == 0o755
    assert [mode for _, mode, _ in drain(good.SMALL).values()] == [0o644]


def test_a_standard_library_archive_of_65600_files_is_accepted() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for number in range(65_600):
            made.writestr(f"{number % 256:x}/{number}", b"")

    assert len([1 for kind, _, _ in drain(buffer.getvalue()).values() if kind == "file"]) == 65_600
