"""Small volumes for one test, invisible to other processes and removed after the tests: full ones, and ones that lose
their power."""

import ctypes
import fcntl
import os
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest

MIB = 1 << 20
CLONE_NEWNS = 0x20000
EXT4_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = (2).to_bytes(4, "little")
"""Stop at once: data in memory, including the last part of the journal, never reaches the disk."""


@cache
def apart() -> None:
    """Use mounts of our own from now on, visible to this process and its children; the test is skipped when mounting is
    not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small volume")
    is_apart = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    if not is_apart or not _done("mount", "--make-rprivate", "/"):
        pytest.skip("this machine does not let root have mounts of its own")


def mount_memory(folder: Path, size_mib: int) -> None:
    """Mount a small volume (tmpfs)."""
    apart()
    folder.mkdir()
    if not _done("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", folder):
        pytest.skip("this machine does not let root mount a small volume")


def free_mib(volume: Path) -> float:
    """Free space on the volume."""
    return os.statvfs(volume).f_bavail * os.statvfs(volume).f_frsize / MIB


def fill_volume(volume: Path) -> Path:
    """Fill the volume to the last byte, and return the file that does."""
    ballast = volume / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while file.write(b"x" * size):
                    continue
            except OSError:
                continue
    return ballast


def unmount(folder: Path) -> None:
    """Unmount it as soon as the last of the killed processes has ended."""
    deadline_s = time.monotonic() + 60
    while not _done("umount", folder):
        assert time.monotonic() < deadline_s, f"{folder} stays in use"
        time.sleep(0.05)


class PoweredVolume:
    """A disk image with ext4 that can lose its power."""

    def __init__(self, folder: Path, size_mib: int) -> None:
        apart()
        self.folder = folder
        self._image = folder.with_name(folder.name + ".img")
        folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(size_mib * MIB)
        if not _done("mkfs.ext4", "-q", "-F", self._image):
            pytest.skip("mkfs.ext4 is not on this machine: install e2fsprogs to run this test")
        if not self._mount():
            pytest.skip("this machine does not let root mount a disk image: it has no loop devices")

    def _mount(self) -> bool:
        return _done("mount", "-o", "loop", self._image, self.folder)

    def settle(self) -> None:
        """Write everything on the volume to its disk."""
        subprocess.run(["sync", "-f", self.folder], check=True)

    def cut_power(self) -> None:
        """Cut the power: nothing is written after this."""
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(opened, EXT4_IOC_SHUTDOWN, NOLOGFLUSH)
        finally:
            os.close(opened)

    def restore(self) -> None:
        """Restore the power after the last process has closed the volume; the file system replays its journal."""
        unmount(self.folder)
        assert self._mount()

    def remove(self) -> None:
        """Unmount it for good."""
        unmount(self.folder)
        self._image.unlink()


def _done(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
