"""Detects executable files by their header (ELF, PE, Mach-O, scripts, zip packages, Wasm)."""

import struct
from collections.abc import Callable

from countersign.updates.manifest import Launch

HEAD_BYTES = 64 << 10
"""The number of bytes at the start of a file that are examined."""

_ELF_MACHINES = {3: "x86", 62: "x86_64", 40: "arm", 183: "arm64", 243: "riscv64", 21: "ppc64", 22: "s390x"}
_PE_MACHINES = {0x14C: "x86", 0x8664: "x86_64", 0x1C0: "arm", 0x1C4: "arm", 0xAA64: "arm64"}
_MACH_CPUS = {7: "x86", 0x01000007: "x86_64", 12: "arm", 0x0100000C: "arm64"}
_MACH_EXECUTE = 2
_ELF_EXEC, _ELF_DYN, _PT_INTERP = 2, 3, 3
_PE_EXECUTABLE, _PE_LIBRARY = 0x0002, 0x2000
_MAX_SLICES = 32


def detect(path: str, mode: int, head: bytes) -> Launch | None:
    """Return how the file can be started. Return None if it cannot be started (libraries, data) or is malformed. Only
    the bytes in `head`, the start of the file, are examined."""
    for magic, read_header in _BY_MAGIC:
        if head.startswith(magic):
            try:
                return read_header(path, mode, head)
            except (struct.error, IndexError, OverflowError, UnicodeDecodeError):
                return None
    if path.rpartition("/")[2].lower() in ("index.html", "index.htm"):
        return Launch(path, "html", "web")
    return None


def _elf(path: str, mode: int, head: bytes) -> Launch | None:
    """Read an ELF header (gABI 4.1, chapter 4). The file can be started if it is a program, or a shared object that
    names an interpreter."""
    is_64_bit, order = head[4] == 2, "<" if head[5] == 1 else ">"
    kind, machine = struct.unpack_from(order + "HH", head, 16)
    if kind == _ELF_DYN and not _has_interpreter(head, order, is_64_bit=is_64_bit):
        return None
    if kind not in (_ELF_EXEC, _ELF_DYN):
        return None
    platform = "android" if b"/system/bin/linker" in head else "linux"
    return Launch(path, "elf", platform, _names_of(_ELF_MACHINES, [machine]))


def _has_interpreter(head: bytes, order: str, *, is_64_bit: bool) -> bool:
    start = struct.unpack_from(order + ("Q" if is_64_bit else "I"), head, 32 if is_64_bit else 28)[0]
    size, count = struct.unpack_from(order + "HH", head, 54 if is_64_bit else 42)
    offsets = (start + number * size for number in range(min(count, 64)))
    return any(struct.unpack_from(order + "I", head, offset)[0] == _PT_INTERP for offset in offsets)


def _pe(path: str, mode: int, head: bytes) -> Launch | None:
    """Read the header of a Portable Executable (PE format, COFF file header)."""
    offset = struct.unpack_from("<I", head, 0x3C)[0]
    if head[offset : offset + 4] != b"PE\0\0":
        return None
    machine, flags = struct.unpack_from("<H16xH", head, offset + 4)
    if flags & _PE_LIBRARY or not flags & _PE_EXECUTABLE:
        return None
    return Launch(path, "pe", "windows", _names_of(_PE_MACHINES, [machine]))


def _mach(path: str, mode: int, head: bytes) -> Launch | None:
    """Read a Mach-O header of one architecture."""
    order = "<" if head[3] in (0xFE, 0xCF) or head[:4] in (b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe") else ">"
    cpu, _, kind = struct.unpack_from(order + "III", head, 4)
    return Launch(path, "macho", "macos", _names_of(_MACH_CPUS, [cpu])) if kind == _MACH_EXECUTE else None


def _fat(path: str, mode: int, head: bytes) -> Launch | None:
    """Read a Mach-O header of several architectures. Java classes begin with the same magic number, followed by a
    version instead of the number of architectures."""
    count = struct.unpack_from(">I", head, 4)[0]
    if not 0 < count <= _MAX_SLICES or not mode & 0o111:
        return None
    cpus = [struct.unpack_from(">I", head, 8 + 20 * number)[0] for number in range(count)]
    return Launch(path, "macho", "macos", _names_of(_MACH_CPUS, cpus)) if cpus[0] in _MACH_CPUS else None


def _script(path: str, mode: int, head: bytes) -> Launch | None:
    """Read the first line of a script. The script can be started if its mode is executable and the line names an
    interpreter."""
    line = head[2:258].split(b"\n", 1)[0].strip().decode("utf-8")
    return Launch(path, "script", None, [], line) if mode & 0o111 and line else None


def _zip(path: str, mode: int, head: bytes) -> Launch | None:
    """Detect an Android package by its name, and a Java archive by its name and its first entry."""
    name = path.lower()
    if name.endswith(".apk"):
        return Launch(path, "apk", "android")
    return Launch(path, "jar") if name.endswith(".jar") and b"META-INF/" in head else None


def _wasm(path: str, mode: int, head: bytes) -> Launch | None:
    return Launch(path, "wasm", "web")


def _names_of(names: dict[int, str], numbers: list[int]) -> list[str]:
    return sorted({names[number] for number in numbers if number in names})


_BY_MAGIC: tuple[tuple[bytes, Callable[[str, int, bytes], Launch | None]], ...] = (
    (b"\x7fELF", _elf),
    (b"MZ", _pe),
    *((magic, _mach) for magic in (b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf")),
    (b"\xca\xfe\xba\xbe", _fat),
    (b"#!", _script),
    (b"PK\x03\x04", _zip),
    (b"\0asm", _wasm),
)
