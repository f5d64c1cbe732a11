"""The first bytes of a file show whether it can be started."""

import shutil
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.updates import executables
from countersign.updates.manifest import Launch

SCRIPT = b"#!/usr/bin/env python3\nprint('hello')\n"


def pe(machine: int, flags: int) -> bytes:
    return (
        b"MZ".ljust(0x3C, b"\0")
        + struct.pack("<I", 0x80)
        + bytes(0x40)
        + struct.pack("<4sH16xH", b"PE\0\0", machine, flags)
    )


def elf(kind: int, machine: int, *, interpreter: bool, wide: bool = True, order: str = "<") -> bytes:
    start = 64 if wide else 52
    head = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2]) + bytes(10)
    head += struct.pack(order + "HHI", kind, machine, 1)
    numbers = "QQQ" if wide else "III"
    head += struct.pack(order + numbers + "IHHHHHH", 0, start, 0, 0, start, 56 if wide else 32, 1, 0, 0, 0)
    return head.ljust(start, b"\0") + struct.pack(order + "I", 3 if interpreter else 1) + bytes(60)


def mach(magic: bytes, cpu: int, kind: int) -> bytes:
    order = "<" if magic[0] in (0xCE, 0xCF) else ">"
    return magic + struct.pack(order + "III", cpu, 0, kind)


STARTED = [
    ("a", elf(2, 62, interpreter=False), Launch("a", "elf", "linux", ["x86_64"])),
    ("pie", elf(3, 183, interpreter=True), Launch("pie", "elf", "linux", ["arm64"])),
    ("old", elf(2, 3, interpreter=False, wide=False), Launch("old", "elf", "linux", ["x86"])),
    ("big", elf(2, 21, interpreter=False, order=">"), Launch("big", "elf", "linux", ["ppc64"])),
    ("game.exe", pe(0x8664, 0x0022), Launch("game.exe", "pe", "windows", ["x86_64"])),
    ("mac", mach(b"\xcf\xfa\xed\xfe", 0x0100000C, 2), Launch("mac", "macho", "macos", ["arm64"])),
    (
        "fat",
        b"\xca\xfe\xba\xbe"
        + struct.pack(">I", 2)
        + struct.pack(">5I", 0x01000007, 0, 0, 0, 0)
        + struct.pack(">5I", 0x0100000C, 0, 0, 0, 0),
        Launch("fat", "macho", "macos", ["arm64", "x86_64"]),
    ),
    ("run.sh", SCRIPT, Launch("run.sh", "script", None, [], "/usr/bin/env python3")),
    ("app.apk", b"PK\x03\x04rest", Launch("app.apk", "apk", "android")),
    ("tool.jar", b"PK\x03\x04....META-INF/MANIFEST.MF", Launch("tool.jar", "jar")),
    ("game.wasm", b"\0asm\1\0\0\0", Launch("game.wasm", "wasm", "web")),
    ("web/index.html", b"<!doctype html>", Launch("web/index.html", "html", "web")),
]
PROGRAM = elf(3, 62, interpreter=True)
FAR = PROGRAM[:32] + struct.pack("<Q", 1 << 63) + PROGRAM[40:]
"""The offset of its segment table is impossible."""
NOT_STARTED = [
    ("lib.so", elf(3, 62, interpreter=False), 0o755),
    ("object.o", elf(1, 62, interpreter=False), 0o644),
    ("lib.dll", pe(0x8664, 0x2022), 0o755),
    ("lib.dylib", mach(b"\xcf\xfa\xed\xfe", 0x0100000C, 6), 0o755),
    ("Main.class", b"\xca\xfe\xba\xbe" + struct.pack(">HH", 0, 52), 0o644),
    ("Main.class", b"\xca\xfe\xba\xbe" + struct.pack(">HH", 0, 9) + bytes(200), 0o755),
    ("readme.md", b"#! not a script, a heading", 0o644),
    ("data.zip", b"PK\x03\x04", 0o644),
    ("page.html", b"<html>", 0o644),
    ("empty", b"", 0o755),
    ("cut", b"\x7fELF\2", 0o755),
    ("cut.exe", b"MZ", 0o755),
    ("far", FAR, 0o755),
]


@pytest.mark.parametrize(("path", "head", "expected"), STARTED, ids=[case[0] for case in STARTED])
def test_an_executable_is_described_with_platform_and_processors(path: str, head: bytes, expected: Launch) -> None:
    assert executables.detect(path, 0o755, head) == expected


@pytest.mark.parametrize(("path", "head", "mode"), NOT_STARTED, ids=range(len(NOT_STARTED)))
def test_libraries_data_and_cut_files_cannot_be_started(path: str, head: bytes, mode: int) -> None:
    assert executables.detect(path, mode, head) is None


def test_programs_of_this_machine_are_recognised() -> None:
    shell, interpreter = shutil.which("sh"), Path(sys.executable).resolve()

    for program in (shell, str(interpreter)):
        if program is not None and sys.platform == "linux":
            with Path(program).open("rb") as file:
                executable = executables.detect("program", 0o755, file.read(executables.HEAD_BYTES))
            assert executable is not None
            assert executable.format == "elf"


@given(
    st.sampled_from([b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"#!", b"PK\x03\x04"]), st.binary()
)
def test_no_bytes_can_do_harm(magic: bytes, tail: bytes) -> None:
    executables.detect("a", 0o755, magic + tail)
