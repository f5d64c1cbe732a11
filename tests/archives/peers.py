"""The contents of an archive according to other parsers: the standard library and the usual programs."""

import gzip
import io
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

from backports import zstd

from tests.archives.good import Tree

MAGICS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x28\xb5\x2f\xfd": zstd.decompress,
}


def is_zip(data: bytes) -> bool:
    """Return whether the data begins like a zip file."""
    return data.startswith(b"PK")


def _clean(name: str) -> str:
    """Return the name as a path: without a leading `./`, trailing slashes and empty parts."""
    while name.startswith("./"):
        name = name[2:]
    return re.sub("//+", "/", name.rstrip("/"))


def by_zipfile(data: bytes) -> Tree:
    """Return the contents of a zip according to the standard library, which decodes names without the UTF-8 flag as
    UTF-8 too."""
    tree: Tree = {}
    with zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8") as archive:
        for info in archive.infolist():
            is_link = info.external_attr >> 28 == 0o12
            kind = "folder" if info.is_dir() else "link" if is_link else "file"
            tree[_clean(info.filename)] = kind, archive.read(info)
    tree.pop("", None)
    tree.pop(".", None)
    return tree


def by_tarfile(data: bytes) -> Tree:
    """Return the contents of a tar according to the standard library, decompressed first if needed."""
    for magic, unpacked in MAGICS.items():
        if data.startswith(magic):
            data = unpacked(data)
            break
    tree: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
        for info in archive:
            name = _clean(info.name)
            if info.isdir():
                tree[name] = "folder", b""
            elif info.issym():
                tree[name] = "link", info.linkname.encode()
            else:
                content = archive.extractfile(info)
                tree[name] = "file", content.read() if content else b"nothing to read"
    tree.pop("", None)
    tree.pop(".", None)
    return tree


def by_library(data: bytes) -> Tree:
    """Return the contents of an archive according to the standard library."""
    return by_zipfile(data) if is_zip(data) else by_tarfile(data)


PROGRAMS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "bsdtar": (False, ("bsdtar", "--no-same-owner", "-xf", "ARCHIVE", "-C", "FOLDER")),
    "tar": (False, ("tar", "--no-same-owner", "-xf", "ARCHIVE", "-C", "FOLDER")),
    "bsdtar of zip": (True, ("bsdtar", "--no-same-owner", "-xf", "ARCHIVE", "-C", "FOLDER")),
    "unzip": (True, ("unzip", "-qqn", "ARCHIVE", "-d", "FOLDER")),
    "7z": (True, ("7z", "x", "-bd", "-y", "-snld20", "-oFOLDER", "ARCHIVE")),
}
"""Maps a program to whether it reads zip files, and to its command."""


def by_program(name: str, data: bytes) -> Tree | None:
    """Return the tree that the program unpacks. Return None if the program does not read the format or is not
    installed. The exit code is ignored, because the comparison shows errors."""
    for_zip, command_words = PROGRAMS[name]
    if for_zip != is_zip(data) or shutil.which(command_words[0]) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        archive_path, unpacked_folder = Path(folder) / "archive", Path(folder) / "out"
        archive_path.write_bytes(data)
        unpacked_folder.mkdir()
        command = [
            word.replace("ARCHIVE", str(archive_path)).replace("FOLDER", str(unpacked_folder)) for word in command_words
        ]
        environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
        return on_disk(unpacked_folder)


def on_disk(folder: Path) -> Tree:
    """Return the tree below a folder."""
    tree: Tree = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            tree[name] = "link", os.readlink(path).encode()
        else:
            tree[name] = ("folder", b"") if path.is_dir() else ("file", path.read_bytes())
    return tree


def compose_paths(tree: Tree) -> Tree:
    """Return the tree with its paths in NFC, the form in which some programs write them."""
    return {unicodedata.normalize("NFC", path): entry for path, entry in tree.items()}


def with_implied(tree: Tree) -> Tree:
    """Return the tree with the folders that paths imply."""
    full_tree: Tree = dict(tree)
    for path in tree:
        above = path.rpartition("/")[0]
        while above:
            full_tree.setdefault(above, ("folder", b""))
            above = above.rpartition("/")[0]
    return full_tree
