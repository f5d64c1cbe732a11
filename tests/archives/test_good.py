"""Harmless archives are accepted, and their contents are read unchanged. The tests and the usual tools write them."""

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
from tests.archives.tools import TOOLS, ArchiveTool, plant_build

WRITTEN_ARCHIVES = {
    **{f"zip, {name}": archive for name, archive in good.ZIPS.items()},
    **{f"tar, {name}": archive for name, archive in good.TARS.items()},
}


def read_tree(data: bytes, profile: Profile, name: str = "") -> Tree:
    """Return the paths of an archive with their kinds and contents, as the reader reports them."""
    entries = drain(data, replace(LIMITS, profile=profile), name)
    return {path: (kind, content) for path, (kind, _, content) in entries.items()}


def extract_tree(data: bytes, target: Path, profile: Profile, name: str = "") -> Tree:
    """Extract an archive, and return the paths below the target with their kinds and contents."""
    summary = extract(io.BytesIO(data), target, replace(LIMITS, profile=profile), name=name)
    tree = peers.on_disk(target)
    kinds = [kind for kind, _ in tree.values()]
    assert (summary.files, summary.links) == (kinds.count("file"), kinds.count("link"))
    assert summary.size == sum(len(content) for kind, content in tree.values() if kind == "file")
    return tree


def without_implied_folders(tree: Tree, expected: Tree) -> Tree:
    """Return the tree without folders that are not expected. An archive may omit the entry of a folder, or add it."""
    return {path: entry for path, entry in tree.items() if entry[0] != "folder" or path in expected}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", WRITTEN_ARCHIVES)
def test_a_harmless_archive_is_accepted_with_its_contents(name: str, profile: Profile, tmp_path: Path) -> None:
    make, expected = WRITTEN_ARCHIVES[name]
    data, file_name = make(), good.EMPTY_NAMES.get(name, "")

    assert without_implied_folders(read_tree(data, profile, file_name), expected) == expected
    assert without_implied_folders(extract_tree(data, tmp_path / "out", profile, file_name), expected) == expected


@pytest.mark.parametrize("name", good.COMPATIBLE)
def test_only_the_compatible_profile_accepts_unusual_archives(name: str, tmp_path: Path) -> None:
    make, expected = good.COMPATIBLE[name]
    data, file_name = make(), good.COMPATIBLE_NAMES.get(name, "")

    assert without_implied_folders(read_tree(data, "compatible", file_name), expected) == expected
    assert without_implied_folders(extract_tree(data, tmp_path / "out", "compatible", file_name), expected) == expected
    with pytest.raises(ArchiveRefused):
        read_tree(data, "strict", file_name)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.id)
def test_an_archive_made_by_a_usual_tool_is_accepted(tool: ArchiveTool, profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    expected = plant_build(folder, links=tool.has_links, letters=tool.says_utf8 or profile == "compatible")
    archive = tmp_path / f"made{tool.suffix}"
    tool.make(folder, archive)
    data = archive.read_bytes()
    prefix = "build-1.0/" if tool.id == "git-prefixed" else ""
    expected = {prefix + path: entry for path, entry in expected.items()}

    for tree in (read_tree(data, profile), extract_tree(data, tmp_path / "out", profile)):
        further_paths = {path for path in tree.keys() - expected.keys() if tree[path][0] != "folder"}
        assert without_implied_folders({path: tree[path] for path in tree.keys() - further_paths}, expected) == expected
        assert all(path.startswith(("META-INF/", "planted-1.0.dist-info/", "pyproject.toml")) for path in further_paths)


def test_the_strict_profile_refuses_names_beyond_ascii_that_are_not_marked_as_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    plant_build(folder, links=False, letters=True)
    archive = tmp_path / "made.zip"
    next(tool for tool in TOOLS if tool.id == "zip").make(folder, archive)

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(archive.read_bytes(), "strict")

    assert refusal.value.rule == "not-utf8"


def test_an_extracted_file_has_mode_755_if_it_is_executable_and_otherwise_644(tmp_path: Path) -> None:
    make, _ = good.TARS["a mode that runs"]

    extract(io.BytesIO(make()), tmp_path / "out", LIMITS)

    assert (tmp_path / "out/a.txt").stat().st_mode & 0o7777 == 0o755
    assert [mode for _, mode, _ in drain(good.SMALL).values()] == [0o644]


def test_a_standard_library_archive_of_65600_files_is_accepted() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(65_600):
            archive.writestr(f"{number % 256:x}/{number}", b"")

    assert len([1 for kind, _, _ in drain(buffer.getvalue()).values() if kind == "file"]) == 65_600
