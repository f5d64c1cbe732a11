"""Small volumes of a test's own, which nobody else sees and which are gone with the tests: full ones, and ones that
lose their power."""

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
"""Stop at once: what is in memory, the journal's last part too, never reaches the disk."""


@cache
def apart() -> None:
    """Have mounts of our own from now on, seen by this process and its children; skips the test where only others
    may mount."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small volume")
    is_apart = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    if not is_apart or not _done("mount", "--make-rprivate", "/"):
        pytest.skip("this machine does not let root have mounts of its own")


def mount_memory(folder: Path, size_mib: int) -> None:
    """Mount a volume that is full soon (tmpfs)."""
    apart()
    folder.mkdir()
    if not _done("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", folder):
        pytest.skip("this machine does not let root mount a small volume")


def free_mib(volume: Path) -> float:
    """Room on the volume."""
    return os.statvfs(volume).f_bavail * os.statvfs(volume).f_frsize / MIB


def fill(volume: Path) -> Path:
    """Take every last byte of the volume; the file that has them."""
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
    """Unmount it, as soon as the last of those that were killed there is gone."""
    deadline_s = time.monotonic() + 10
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
        """Have everything that is on the volume by now on its disk."""
        subprocess.run(["sync", "-f", self.folder], check=True)

    def cut(self) -> None:
        """Take the power away: nothing more is written from this moment on."""
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(opened, EXT4_IOC_SHUTDOWN, NOLOGFLUSH)
        finally:
            os.close(opened)

    def restore(self) -> None:
        """Give it its power back, once nobody uses it any more; the file system reads its journal."""
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
