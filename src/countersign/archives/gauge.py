"""What an archive may use: bytes, ratio and time, watched while it is read."""

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.kernel import clock

_AROUND_BYTES = 1 << 20
_ENTRY_BYTES = 4096


class Gauge:
    """The use of one archive of `packed` bytes so far."""

    def __init__(self, limits: Limits, packed: int) -> None:
        self._limits = limits
        by_ratio = max(limits.ratio_after_bytes, limits.ratio * packed)
        self._most = min(limits.total_bytes, by_ratio)
        self._too_much = "too-large" if limits.total_bytes <= by_ratio else "ratio"
        self._unpacked = 0
        self._flowed = 0
        self._entries = 0
        self._end_s = clock.monotonic_s() + limits.seconds

    def count(self, size: int, entry: str | None = None) -> None:
        """Note that `size` bytes of files are unpacked, or are declared to be.

        Raises:
            ArchiveRefused: `too-large` or `ratio`.
        """
        self._unpacked += size
        if self._unpacked > self._most:
            self._refuse(entry)

    def flow(self, size: int) -> None:
        """Note that `size` bytes came out of a compressed stream, whatever they are.

        Raises:
            ArchiveRefused: `too-large` or `ratio`.
        """
        self._flowed += size
        # Headers and padding come on top of the files.
        if self._flowed > self._most + _AROUND_BYTES + self._entries * _ENTRY_BYTES:
            self._refuse(None)

    def entry(self) -> None:
        """Note that another entry begins.

        Raises:
            ArchiveRefused: `too-slow`.
        """
        self._entries += 1
        self.tick()

    def tick(self) -> None:
        """Raise ArchiveRefused `too-slow` when the time is over."""
        if clock.monotonic_s() > self._end_s:
            raise ArchiveRefused("too-slow", f"reading takes longer than {self._limits.seconds} seconds")

    def _refuse(self, entry: str | None) -> None:
        if self._too_much == "too-large":
            raise ArchiveRefused("too-large", f"it unpacks to more than {self._limits.total_bytes} bytes", entry=entry)
        raise ArchiveRefused("ratio", f"one byte becomes more than {self._limits.ratio}", entry=entry)
