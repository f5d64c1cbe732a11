"""The process that reads an artifact: it reports a failure in any of its threads, and never loses data silently."""

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.archives.entry import ArchiveEntry, ArchiveMember
from countersign.updates.ingest_worker import BATCH_BYTES, BlockDigests, EntryProcessor
from countersign.updates.worker_protocol import encode_frame

FAILURES = [MemoryError(), ValueError("no such chunk"), RuntimeError("can't start new thread"), BrokenPipeError()]


class _FailsOnOtherThreads(io.BytesIO):
    """A pipe on which every thread except its creator's fails."""

    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self._failure = failure
        self._own = threading.current_thread()

    def write(self, data: object, /) -> int:
        """Fail, or accept nothing."""
        if threading.current_thread() is not self._own:
            raise self._failure
        return 0


def _member(size: int) -> ArchiveMember:
    pieces: Iterator[bytes] = (number.to_bytes(4, "big") * (1 << 14) for number in range(size >> 16))
    return ArchiveMember(ArchiveEntry("a", "file", size, 0o644), pieces)


@pytest.mark.parametrize("failure", FAILURES, ids=[type(failure).__name__ for failure in FAILURES])
@pytest.mark.parametrize("size", [1 << 16, 2 * BATCH_BYTES])
def test_a_failure_of_the_sender_ends_the_reading(failure: Exception, size: int) -> None:
    """If only the sender ended, the build would lack chunks or the reader would wait for ever."""
    contents = EntryProcessor(io.BytesIO(encode_frame(b"\1" * 1_000)), _FailsOnOtherThreads(failure), wants_chunks=True)

    with pytest.raises(type(failure)):
        _all_of(contents, size)


@pytest.mark.parametrize("failure", FAILURES, ids=[type(failure).__name__ for failure in FAILURES])
def test_a_failure_of_the_digests_is_not_treated_as_their_end(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the digests of a part would be accepted as those of the whole artifact."""
    artifact = tmp_path / "artifact"
    artifact.write_bytes(b"a" * 100_000)

    def fail(*_: object) -> bytes:
        raise failure

    monkeypatch.setattr(os, "pread", fail)
    with artifact.open("rb") as file, pytest.raises(type(failure)):
        BlockDigests(file.fileno()).digests()


def _all_of(contents: EntryProcessor, size: int) -> None:
    contents.process(_member(size))
    contents.finish()
