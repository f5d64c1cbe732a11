"""A plain folder is read by the same rules as an archive: no file outside it is read, and no forbidden name is
accepted."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.archives.limits import Profile
from countersign.archives.reader import read_folder
from countersign.archives.refusals import ArchiveRefused
from tests.archives.cases import LIMITS, PROFILES
from tests.archives.names import DEEP, ON_DISK, NamesCase
from tests.archives.tools import plant_build


def read_tree(folder: Path, profile: Profile = "strict", **limits: int) -> dict[str, tuple[str, bytes]]:
    """Return the whole tree."""
    entries: dict[str, tuple[str, bytes]] = {}
    for entry, pieces in read_folder(folder, replace(LIMITS, profile=profile, **limits)):
        content = b"".join(pieces)
        entries[entry.path] = entry.kind, entry.target.encode() if entry.kind == "link" else content
    return entries


def of_links(**links: str) -> Callable[[Path], None]:
    """Create links by name, with a folder `d` beside them."""

    def make(folder: Path) -> None:
        (folder / "d").mkdir()
        for name, target in links.items():
            (folder / name.replace("__", "/")).symlink_to(target)

    return make


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix_socket:
        unix_socket.bind(str(folder / "s"))


def _mode(mode: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "f").write_bytes(b"x")
        (folder / "f").chmod(mode)

    return make


def _deep(folder: Path) -> None:
    (folder / DEEP).mkdir(parents=True)
    (folder / DEEP / "x").write_bytes(b"x")


HOSTILE: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "dot dot": ("symlink escape", "link-escape", of_links(l="../outside")),
    "absolute": ("symlink escape", "link-absolute", of_links(l="/etc/passwd")),
    "through another link": ("symlink escape", "link-escape", of_links(d__up="..", l="d/up/../x")),
    "a circle": ("symlink escape", "link-chain", of_links(a="b", b="a")),
    "a pipe": ("fifo", "special-file", lambda folder: os.mkfifo(folder / "p")),
    "a socket": ("device nodes", "special-file", _socket),
    "setuid": ("set id and sticky", "special-mode", _mode(0o4755)),
    "sticky": ("set id and sticky", "special-mode", _mode(0o1755)),
    "no permission": ("mode 000", "no-permission", _mode(0)),
    "65 folders": ("deep paths", "too-deep", _deep),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused(name: str, tmp_path: Path) -> None:
    _, rule, make = HOSTILE[name]
    make(tmp_path)

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(tmp_path)

    assert refusal.value.rule == rule


@pytest.mark.parametrize(
    "names_case", ON_DISK, ids=lambda names_case: f"{names_case.threat}-{names_case.trick}".replace(" ", "_")
)
def test_names_in_a_folder_keep_the_rules(names_case: NamesCase, tmp_path: Path) -> None:
    for name in names_case.names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(tmp_path)

    assert refusal.value.rule in names_case.rules.split()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_node_is_refused(tmp_path: Path) -> None:
    os.mknod(tmp_path / "n", 0o020644, os.makedev(1, 3))

    with pytest.raises(ArchiveRefused, match="n"):
        read_tree(tmp_path)


@pytest.mark.parametrize(("limit", "rule"), [("entries", "too-many-entries"), ("total_bytes", "too-large")])
def test_a_folder_keeps_to_the_limits(limit: str, rule: str, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"two")

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(tmp_path, **{limit: 3})

    assert refusal.value.rule == rule


def test_a_folder_is_read_within_its_time(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(tmp_path, seconds=0)

    assert refusal.value.rule == "too-slow"


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))).write_bytes(b"x")

    with pytest.raises(ArchiveRefused) as refusal:
        read_tree(tmp_path)

    assert refusal.value.rule == "not-utf8"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_harmless_folder_is_read_unchanged(profile: Profile, tmp_path: Path) -> None:
    planted_files = plant_build(tmp_path, links=True)

    entries = read_tree(tmp_path, profile)

    assert {path: entry for path, entry in entries.items() if entry[0] != "folder"} == planted_files
    assert entries["hollow"] == ("folder", b"")


def test_a_link_is_reported_and_never_followed(tmp_path: Path) -> None:
    inside_folder = tmp_path / "inside"
    (inside_folder / "d").mkdir(parents=True)
    (inside_folder / "d/x").write_bytes(b"x")
    (inside_folder / "l").symlink_to("d")

    assert read_tree(inside_folder).keys() - {"d"} == {"d/x", "l"}
