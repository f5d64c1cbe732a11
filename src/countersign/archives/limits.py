"""All limits for untrusted archives: bytes, ratio, entries, time and memory, the limits of each format, and counters of
how much an archive has used."""

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


MAX_CHAINED_LINKS = 16
"""The maximum number of other links that resolving a symbolic link may pass through."""

# The limits on memory --------------------------------------------------------------------------------------------

MAX_PROCESS_BYTES = 1 << 30
"""The memory of the process that extracts an archive."""
MAX_XZ_BYTES = 160 << 20
"""The memory for decompressing an xz stream."""
MAX_ZSTD_WINDOW_LOG = 27
"""The largest window of a zstd stream, as a power of two."""

# The limits of zip files ------------------------------------------------------------------------------------------

MAX_ZIP_DIRECTORY_BYTES = 128 << 20
"""The maximum size of the central directory."""

# The limits of tar files ------------------------------------------------------------------------------------------

MAX_EXTENDED_HEADER_BYTES = 1 << 20
MAX_EXTENDED_HEADERS = 8
"""The maximum number of extended headers before one entry."""
COUNT_FIRST_FROM = 5_000
"""At this number of entries, the reader first counts all entries of the archive before it continues."""
SPARE_RECORDS, RECORDS_PER_ENTRY = 10_000, 16
"""The number of PAX records that an archive may have, and the number of further records per entry."""


class PaxRecordCounter:
    """Limits the number of PAX records of an archive.

    The limits on bytes are not enough: many small records take long to parse, and compress to almost nothing.
    """

    def __init__(self) -> None:
        self._left = SPARE_RECORDS

    def entry(self) -> None:
        """Allow the records of one more entry."""
        self._left += RECORDS_PER_ENTRY

    def take(self, name: str) -> None:
        """Count one record.

        Raises:
            ArchiveRefused: `pax-record`: the archive has too many records.
        """
        self._left -= 1
        if self._left < 0:
            detail = f"there are more than {RECORDS_PER_ENTRY} PAX records for each entry and {SPARE_RECORDS} besides"
            raise ArchiveRefused("pax-record", detail, entry=name)


MAX_REREAD_FACTOR = 4
"""For the file of a hard link, the reader goes back in the stream. All bytes that the reader skips again for this are
at most this many times the bytes before the current link."""
MIN_REREAD_BYTES = 64 << 20
"""The number of bytes that may be skipped again for hard links in any archive, however small it is."""


class RereadCounter:
    """Limits the number of bytes that are skipped again for hard links, and so the time that hard links take."""

    def __init__(self) -> None:
        self._skipped = 0

    def skip(self, size: int, position: int, entry: str) -> None:
        """Count `size` bytes that are skipped again for the hard link `entry`, whose header ends at `position`.

        Raises:
            ArchiveRefused: `hard-link`: too many bytes would be skipped again.
        """
        self._skipped += size
        if self._skipped > max(MIN_REREAD_BYTES, MAX_REREAD_FACTOR * position):
            detail = f"hard links go back so often that more than {self._skipped} bytes would be read again"
            raise ArchiveRefused("hard-link", detail, entry=entry)
