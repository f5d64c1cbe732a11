"""Mounts small volumes for tests that need a full disk or a loss of power. Other processes do not see the volumes."""

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
WITHOUT_LOG_FLUSH = (2).to_bytes(4, "little")
"""The argument of the shutdown: data in memory, including the last part of the journal, is not written to the disk."""


@cache
def enter_mount_namespace() -> None:
    """Give this process its own mounts, which only it and its children see. Skip the test if the machine does not allow
    this."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small volume")
    has_namespace = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    if not has_namespace or not _succeeds("mount", "--make-rprivate", "/"):
        pytest.skip("this machine does not let root have mounts of its own")


def mount_memory(folder: Path, size_mib: int) -> None:
    """Mount a tmpfs volume of this size at the folder, which is created."""
    enter_mount_namespace()
    folder.mkdir()
    if not _succeeds("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", folder):
        pytest.skip("this machine does not let root mount a small volume")


def free_mib(volume: Path) -> float:
    """Return the free space on the volume in MiB."""
    return os.statvfs(volume).f_bavail * os.statvfs(volume).f_frsize / MIB


def fill_volume(volume: Path) -> Path:
    """Fill the volume to the last byte with one file, and return its path."""
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
    """Unmount the volume. Wait until no process uses it any more."""
    deadline_s = time.monotonic() + 60
    while not _succeeds("umount", folder):
        assert time.monotonic() < deadline_s, f"{folder} stays in use"
        time.sleep(0.05)


class PoweredVolume:
    """A volume in a disk image with ext4. A test can simulate a loss of power."""

    def __init__(self, folder: Path, size_mib: int) -> None:
        enter_mount_namespace()
        self.folder = folder
        self._image = folder.with_name(folder.name + ".img")
        folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(size_mib * MIB)
        if not _succeeds("mkfs.ext4", "-q", "-F", self._image):
            pytest.skip("mkfs.ext4 is not on this machine: install e2fsprogs to run this test")
        if not self._mount():
            pytest.skip("this machine does not let root mount a disk image: it has no loop devices")

    def _mount(self) -> bool:
        return _succeeds("mount", "-o", "loop", self._image, self.folder)

    def settle(self) -> None:
        """Write all data of the volume to the disk image."""
        subprocess.run(["sync", "-f", self.folder], check=True)

    def cut_power(self) -> None:
        """Simulate a loss of power: from now on, nothing is written to the disk image."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, WITHOUT_LOG_FLUSH)
        finally:
            os.close(descriptor)

    def restore(self) -> None:
        """Mount the volume again after the last process has closed it. The file system replays its journal."""
        unmount(self.folder)
        assert self._mount()

    def remove(self) -> None:
        """Unmount the volume, and delete the disk image."""
        unmount(self.folder)
        self._image.unlink()


def _succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
