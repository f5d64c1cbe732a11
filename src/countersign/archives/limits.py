"""The limits for one archive (bytes, ratio, entries, time), and how much of them it has used."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.archives.refusals import ArchiveRefused
from countersign.kernel import clock
from countersign.settings import Settings

Profile: TypeAlias = Literal["strict", "compatible"]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for one archive and its content.

    `ratio` is the number of unpacked bytes per packed byte. It applies once `ratio_after_bytes` have been unpacked.
    """

    entries: int = 250_000
    depth: int = 64
    name_bytes: int = 255
    path_bytes: int = 1024
    total_bytes: int = 200 << 30
    ratio: int = 200
    ratio_after_bytes: int = 64 << 20
    seconds: int = 3600
    profile: Profile = "strict"


def limits_of(settings: Settings) -> Limits:
    """Return the limits from the operator's settings."""
    return Limits(
        entries=settings.archive_entries,
        depth=settings.archive_depth,
        name_bytes=settings.archive_name_bytes,
        path_bytes=settings.archive_path_bytes,
        total_bytes=settings.archive_total_mib * MEBIBYTE,
        ratio=settings.archive_ratio,
        ratio_after_bytes=settings.archive_ratio_after_mib * MEBIBYTE,
        seconds=settings.archive_seconds,
        profile="compatible" if settings.archive_profile == "compatible" else "strict",
    )


_ARCHIVE_OVERHEAD_BYTES = 1 << 20
_ENTRY_OVERHEAD_BYTES = 4096


class Budget:
    """Counts how much of the limits an archive of `packed_bytes` bytes has used."""

    def __init__(self, limits: Limits, packed_bytes: int) -> None:
        self._limits = limits
        by_ratio = max(limits.ratio_after_bytes, limits.ratio * packed_bytes)
        self._most = min(limits.total_bytes, by_ratio)
        self._too_much = "too-large" if limits.total_bytes <= by_ratio else "ratio"
        self._unpacked = 0
        self._flowed = 0
        self._entries = 0
        self._end_s = clock.monotonic_s() + limits.seconds

    def count(self, size: int, entry: str | None = None) -> None:
        """Count `size` bytes of files that were unpacked or declared.

        Raises:
            ArchiveRefused: the total exceeds the limit on bytes (`too-large`) or on the ratio (`ratio`).
        """
        self._unpacked += size
        if self._unpacked > self._most:
            self._refuse(entry)

    def flow(self, size: int) -> None:
        """Count `size` decompressed bytes of a stream, which include headers and padding.

        Raises:
            ArchiveRefused: the total exceeds the limit on bytes (`too-large`) or on the ratio (`ratio`).
        """
        self._flowed += size
        # Headers and padding are allowed in addition to the files.
        if self._flowed > self._most + _ARCHIVE_OVERHEAD_BYTES + self._entries * _ENTRY_OVERHEAD_BYTES:
            self._refuse(None)

    def entry(self) -> None:
        """Count an entry.

        Raises:
            ArchiveRefused: `too-slow`: the time limit is exceeded.
        """
        self._entries += 1
        self.tick()

    def tick(self) -> None:
        """Raise ArchiveRefused `too-slow` if the time limit is exceeded."""
        if clock.monotonic_s() > self._end_s:
            raise ArchiveRefused("too-slow", f"reading takes longer than {self._limits.seconds} seconds")

    def _refuse(self, entry: str | None) -> None:
        if self._too_much == "too-large":
            raise ArchiveRefused("too-large", f"it unpacks to more than {self._limits.total_bytes} bytes", entry=entry)
        raise ArchiveRefused("ratio", f"it unpacks to more than {self._limits.ratio} times its size", entry=entry)
