"""Archives generated from the grammar of their format: valid archives with their contents, and archives with a random
trick in a random place."""

import random
from collections.abc import Callable
from typing import NamedTuple

from tests.archives import tars, zips
from tests.archives.good import Tree
from tests.archives.tars import GNU, LONG_LINK, PAX_GLOBAL, USTAR
from tests.archives.zips import DEFLATED, FOLDER_MODE, LINK_MODE, STORED, ZipArchive, ZipEntry

LETTERS = "abcdefghij"
MAX_GLOBAL = 8


class GeneratedArchive(NamedTuple):
    """An archive with its contents when it is valid, or with its trick when it may be invalid."""

    data: bytes
    tree: Tree | None
    trick: str = ""


class UniqueNames:
    """Unique names for entries, in folders that have no entry."""

    def __init__(self, rng: random.Random) -> None:
        self._chance = rng
        self._count = 0

    def next(self, length: int = 0) -> str:
        """Return a new name in a folder whose name has this many letters."""
        self._count += 1
        folder = "d" + "".join(self._chance.choices(LETTERS, k=length)) + "/" if length else ""
        return f"{folder}{self._chance.choice(LETTERS)}{self._count}"


def data_of(rng: random.Random) -> bytes:
    """Return random bytes of a file, of a length around a block."""
    return rng.randbytes(rng.choice((0, 1, 3, 511, 512, 513, 1500)))


def tar(seed: int) -> GeneratedArchive:
    """Return the tar archive with this number. Every third archive has a trick."""
    rng = random.Random(f"tar {seed}")
    names, tree = UniqueNames(rng), Tree()
    parts = [rng.choice(_TAR_PARTS)(rng, names, tree) for _ in range(rng.randrange(1, 9))]
    if seed % 3:
        return GeneratedArchive(tars.archive(*parts), tree)
    trick = rng.choice(list(_TAR_TRICKS))
    parts.insert(rng.randrange(len(parts) + 1), _TAR_TRICKS[trick](rng, names, tree))
    return GeneratedArchive(tars.archive(*parts), None, trick)


def _file(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name, data = names.next(rng.choice((0, 5))), data_of(rng)
    tree[name] = "file", data
    return tars.file(name.encode(), data, magic=rng.choice((USTAR, GNU)))


def _folder(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name = names.next()
    tree[name] = "folder", b""
    return tars.folder(name.encode() + rng.choice((b"/", b"")))


def _link(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name, target = names.next(), names.next()
    tree[name] = "link", target.encode()
    return tars.link(name.encode(), target.encode())


def _hard(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    files = [path for path, (kind, _) in tree.items() if kind == "file"]
    if not files:
        return _file(rng, names, tree)
    name, target = names.next(), rng.choice(files)
    tree[name] = tree[target]
    if len(target) < 100:
        return tars.hard(name.encode(), target.encode())
    return tars.long(target.encode(), LONG_LINK) + tars.hard(name.encode(), target.encode()[:100], magic=GNU)


def _long_by_gnu(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name, data = names.next(rng.choice((99, 130, 200))), data_of(rng)
    tree[name] = "file", data
    return tars.long(name.encode()) + tars.file(name.encode()[:100], data, magic=GNU)


def _by_pax(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name, data = names.next(rng.choice((5, 150))), data_of(rng)
    tree[name] = "file", data
    records = [(b"path", name.encode()), (b"mtime", b"1.5"), (b"comment", b"any\xc3\xa9")]
    if rng.random() < 0.5:
        records.append((b"size", str(len(data)).encode()))
    rng.shuffle(records)
    return tars.pax(*records) + tars.file(name.encode()[:100], data)


def _by_prefix(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    name, data = names.next(60), data_of(rng)
    folder, _, file_name = name.rpartition("/")
    tree[name] = "file", data
    return tars.file(file_name.encode(), data, prefix=folder.encode())


def _global(rng: random.Random, names: UniqueNames, tree: Tree) -> bytes:
    header = tars.pax((rng.choice((b"comment", b"mtime")), b"12"), kind=PAX_GLOBAL)
    return header * rng.randrange(1, MAX_GLOBAL // 2) + _file(rng, names, tree)


_TAR_PARTS: tuple[Callable[[random.Random, UniqueNames, Tree], bytes], ...] = (
    _file,
    _file,
    _folder,
    _link,
    _hard,
    _hard,
    _long_by_gnu,
    _by_pax,
    _by_prefix,
    _global,
)


def _two(data_before: bytes, data_after: bytes) -> Callable[[random.Random, UniqueNames, Tree], bytes]:
    return lambda rng, names, tree: data_before + data_after + _file(rng, names, tree)


_TAR_TRICKS: dict[str, Callable[[random.Random, UniqueNames, Tree], bytes]] = {
    "chained global headers": lambda rng, names, tree: (
        tars.pax((b"comment", b"x"), kind=PAX_GLOBAL) * rng.randrange(MAX_GLOBAL + 1, 40) + _file(rng, names, tree)
    ),
    "a global path": _two(tars.pax((b"path", b"global"), kind=PAX_GLOBAL), b""),
    "a global size": _two(tars.pax((b"size", b"0"), kind=PAX_GLOBAL), b""),
    "a global link path": _two(tars.pax((b"linkpath", b"/etc/passwd"), kind=PAX_GLOBAL), b""),
    "a global header behind an extended one": _two(
        tars.pax((b"path", b"one")), tars.pax((b"path", b"two"), kind=PAX_GLOBAL)
    ),
    "two extended headers": _two(tars.pax((b"path", b"one")), tars.pax((b"path", b"two"))),
    "two paths in one header": _two(tars.pax((b"path", b"one"), (b"path", b"two")), b""),
    "a path by both": _two(tars.long(b"one"), tars.pax((b"path", b"two"))),
    "two long names": _two(tars.long(b"one"), tars.long(b"two")),
    "a long name for nothing": _two(tars.long(b"one", LONG_LINK), b""),
    "a size that differs": _two(tars.pax((b"size", b"512")), b""),
    "a size that is none": _two(tars.pax((b"size", b"0x10")), b""),
    "a NUL in a path": _two(tars.pax((b"path", b"one\0two")), b""),
    "a sparse map": _two(tars.pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.name", b"other")), b""),
    "a header of zeros": lambda rng, names, tree: bytes(512) + _file(rng, names, tree),
    "a hard link to nothing": lambda rng, names, tree: tars.hard(names.next().encode(), b"nothing"),
    "a hard link to itself": lambda rng, names, tree: tars.hard(b"self", b"self"),
    "a hard link to a link": lambda rng, names, tree: tars.link(b"soft", b"x") + tars.hard(b"again", b"soft"),
    "a hard link with bytes": lambda rng, names, tree: (
        tars.file(b"one", b"1") + tars.header(b"two", 600, tars.HARD, target=b"one") + tars.file(b"in", b"x" * 88)
    ),
    "a link with bytes": lambda rng, names, tree: (
        tars.header(b"two", 1024, tars.LINK, target=b"one") + tars.file(b"hidden", b"x")
    ),
    "a folder with bytes": lambda rng, names, tree: (
        tars.header(b"two/", 1024, tars.FOLDER, mode=0o755) + tars.file(b"hidden", b"x")
    ),
    "a name again": lambda rng, names, tree: tars.file(b"same", b"1") + tars.file(b"same", b"2"),
    "an unknown kind": lambda rng, names, tree: tars.header(b"odd", 512, b"Q") + tars.file(b"hidden", b"x")[:512],
    "a prefix under GNU's magic": lambda rng, names, tree: tars.file(b"n", b"1", prefix=b"dir", magic=GNU),
    "a size in base 256": lambda rng, names, tree: tars.file(b"wide", b"x" * 700, raw={"size": tars.base256(700, 12)}),
    "a negative size": lambda rng, names, tree: tars.file(b"wide", b"x", raw={"size": tars.base256(-512, 12)}),
    "a size with spaces": lambda rng, names, tree: tars.file(b"gap", b"x" * 8, raw={"size": b"    10 \0    "}),
    "a name that leaves": lambda rng, names, tree: tars.pax((b"path", b"../out")) + tars.file(b"in", b"x"),
}


def zip_(seed: int) -> GeneratedArchive:
    """Return the zip archive with this number. Every third archive has a trick."""
    rng = random.Random(f"zip {seed}")
    names, tree = UniqueNames(rng), Tree()
    items = [_item(rng, names, tree) for _ in range(rng.randrange(1, 7))]
    if seed % 3:
        return GeneratedArchive(ZipArchive(items).written(), tree)
    trick = rng.choice(list(_ZIP_TRICKS))
    items.insert(rng.randrange(len(items) + 1), _ZIP_TRICKS[trick](names.next().encode(), data_of(rng)))
    return GeneratedArchive(ZipArchive(items).written(), None, trick)


def _item(rng: random.Random, names: UniqueNames, tree: Tree) -> ZipEntry:
    name, data = names.next(rng.choice((0, 8))), data_of(rng)
    kind = rng.choice(("file", "file", "file", "folder", "link"))
    if kind == "folder":
        tree[name] = "folder", b""
        return ZipEntry(name.encode() + b"/", b"", mode=FOLDER_MODE)
    if kind == "link":
        tree[name] = "link", b"elsewhere"
        return ZipEntry(name.encode(), b"elsewhere", mode=LINK_MODE)
    tree[name] = "file", data
    method = rng.choice((STORED, DEFLATED))
    return ZipEntry(name.encode(), data, method, descriptor=method == DEFLATED and rng.random() < 0.3)


_ZIP_TRICKS: dict[str, Callable[[bytes, bytes], ZipEntry]] = {
    "another name in front": lambda name, data: ZipEntry(name, data, local_name=name[:-1] + b"X"),
    "another size in front": lambda name, data: ZipEntry(name, data, local={"size": len(data) + 1}),
    "another method in front": lambda name, data: ZipEntry(name, data, local={"method": DEFLATED}),
    "another checksum in front": lambda name, data: ZipEntry(name, data, local={"crc": 1}),
    "a wrong checksum": lambda name, data: ZipEntry(name, data + b"x", local={"crc": 1}, central={"crc": 1}),
    "a size that is less": lambda name, data: ZipEntry(name, data + b"x", DEFLATED, central={"size": len(data)}),
    "a size of more": lambda name, data: ZipEntry(name, data, DEFLATED, central={"size": len(data) + 9}),
    "another offset": lambda name, data: ZipEntry(name, data, central={"offset": 1}),
    "bytes that belong to nothing": lambda name, data: ZipEntry(name, data, before=b"between"),
    "bytes behind a stream": lambda name, data: ZipEntry(name, data, DEFLATED, packed=zips.deflate(data) + b"more"),
    "another name in an extra field": lambda name, data: ZipEntry(
        name, data, extra=zips.unicode_path(name, b"other-" + name)
    ),
    "an extra field cut off": lambda name, data: ZipEntry(name, data, extra=zips.extra_field(1, b"12", length=9)),
    "sizes of Zip64 that differ": lambda name, data: ZipEntry(name, data, extra=zips.zip64(1, 2)),
    "encryption": lambda name, data: ZipEntry(name, data, flags=zips.ENCRYPTED),
    "a backslash": lambda name, data: ZipEntry(b"a\\" + name, data),
    "a name that leaves": lambda name, data: ZipEntry(b"../" + name, data),
    "a folder with bytes": lambda name, data: ZipEntry(name + b"/", b"bytes", mode=FOLDER_MODE),
    "no descriptor": lambda name, data: ZipEntry(name, data, DEFLATED, descriptor=True, descriptor_bytes=b""),
    "a descriptor that differs": lambda name, data: ZipEntry(
        name, data, DEFLATED, descriptor=True, descriptor_bytes=zips.descriptor(1, 2, 3)
    ),
}
